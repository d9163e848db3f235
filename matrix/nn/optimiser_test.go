// SPDX-License-Identifier: Apache-2.0

package nn_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix/nn"
)

// rules are the optimisers with their formulas, for one number: step t changes p and the two that are remembered.
var rules = []struct {
	name string
	make func() nn.Optimiser
	step func(t, g float64, p, a, b *float64)
}{
	{"SGD", func() nn.Optimiser { return &nn.SGD{Rate: 0.1, Decay: 0.5} }, func(_, g float64, p, _, _ *float64) {
		*p -= 0.1 * (g + 0.5**p)
	}},
	{"Momentum", func() nn.Optimiser { return &nn.Momentum{Rate: 0.1, Momentum: 0.75} }, func(_, g float64, p, a, _ *float64) {
		*a = 0.75**a + g
		*p -= 0.1 * *a
	}},
	{"Nesterov", func() nn.Optimiser {
		return &nn.Momentum{Rate: 0.1, Momentum: 0.75, Nesterov: true}
	}, func(_, g float64, p, a, _ *float64) {
		*a = 0.75**a + g
		*p -= 0.1 * (g + 0.75**a)
	}},
	{"AdaGrad", func() nn.Optimiser { return &nn.AdaGrad{Rate: 0.1, Epsilon: 1e-3} }, func(_, g float64, p, a, _ *float64) {
		*a += g * g
		*p -= 0.1 * g / (math.Sqrt(*a) + 1e-3)
	}},
	{"RMSProp", func() nn.Optimiser { return &nn.RMSProp{Rate: 0.1, Rho: 0.75, Epsilon: 1e-3} }, func(_, g float64, p, a, _ *float64) {
		*a = 0.75**a + 0.25*g*g
		*p -= 0.1 * g / (math.Sqrt(*a) + 1e-3)
	}},
	{"Adam", func() nn.Optimiser {
		return &nn.Adam{Rate: 0.1, Beta1: 0.75, Beta2: 0.875, Epsilon: 1e-3, Decay: 0.25}
	}, func(t, g float64, p, a, b *float64) {
		adam(t, g+0.25**p, p, a, b)
	}},
	{"AdamW", func() nn.Optimiser {
		return &nn.Adam{Rate: 0.1, Beta1: 0.75, Beta2: 0.875, Epsilon: 1e-3, Decay: 0.25, Decoupled: true}
	}, func(t, g float64, p, a, b *float64) {
		*p -= 0.1 * 0.25 * *p
		adam(t, g, p, a, b)
	}},
	{"AdaDelta", func() nn.Optimiser { return &nn.AdaDelta{Rate: 1, Rho: 0.75, Epsilon: 1e-3} }, func(_, g float64, p, a, b *float64) {
		*a = 0.75**a + 0.25*g*g
		x := math.Sqrt(*b+1e-3) / math.Sqrt(*a+1e-3) * g
		*b = 0.75**b + 0.25*x*x
		*p -= x
	}},
}

func adam(t, g float64, p, a, b *float64) {
	*a, *b = 0.75**a+0.25*g, 0.875**b+0.125*g*g
	*p -= 0.1 * *a / (1 - math.Pow(0.75, t)) / (math.Sqrt(*b/(1-math.Pow(0.875, t))) + 1e-3)
}

// TestOptimisers takes 20 steps on two parameters, one of which its gradient is an expression of.
func TestOptimisers(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		for i, rule := range rules {
			rng := newRand(3)
			const rows, cols = 5, 7
			start := random(rng, rows*cols)
			p := load(t, dev, rows, cols, start, layout(i, rows, cols))
			q := load(t, dev, rows, cols, start)
			o := rule.make()
			want, other := float64s(start), float64s(start)
			remembered := make([][4]float64, rows*cols)
			for step := 1; step <= 20; step++ {
				grad := random(rng, rows*cols)
				grad[0] = 0
				g := load(t, dev, rows, cols, grad, layout(i+1, rows, cols))
				check(t, o.Step(p, g))
				check(t, o.Step(q, q.Expr().Scale(0.5)))
				for k := range want {
					r := &remembered[k]
					rule.step(float64(step), float64(grad[k]), &want[k], &r[0], &r[1])
					rule.step(float64(step), other[k]/2, &other[k], &r[2], &r[3])
				}
			}
			near(t, rule.name, p.Expr(), dev, want, 1e-5)
			near(t, rule.name+" of an expression", q.Expr(), dev, other, 1e-4)
			if err := o.Step(p, load(t, dev, 2, 2, make([]float32, 4))); !saysShape(err) {
				t.Error(rule.name, err)
			}
			if err := errors.Join(o.Step(nil, p), o.Step(p, nil)); !errors.Is(err, buffer.ErrNil) {
				t.Error(rule.name, err)
			}
			near(t, rule.name+" after mistakes", p.Expr(), dev, want, 1e-5)
			check(t, o.Close())
			check(t, o.Close())
		}
	})
}

func TestOptimiserMistakes(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	p := load(t, dev, 1, 2, []float32{1, 2})
	nan := float32(math.NaN())
	for _, o := range []nn.Optimiser{
		&nn.SGD{Rate: nan}, &nn.SGD{Decay: -1}, &nn.Momentum{Momentum: 1}, &nn.AdaGrad{Epsilon: nan}, &nn.RMSProp{Rho: -1},
		&nn.Adam{Beta1: 1}, &nn.Adam{Beta2: nan}, &nn.AdaDelta{Rho: 2},
	} {
		if err := o.Step(p, p); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("%T: %v", o, err)
		}
	}
	for _, o := range []nn.Optimiser{
		(*nn.SGD)(nil), (*nn.Momentum)(nil), (*nn.AdaGrad)(nil), (*nn.RMSProp)(nil), (*nn.Adam)(nil), (*nn.AdaDelta)(nil),
	} {
		if err := o.Step(p, p); !errors.Is(err, buffer.ErrNil) {
			t.Errorf("%T: %v", o, err)
		}
		check(t, o.Close())
	}
	zero := &nn.Adam{}
	check(t, zero.Step(p, p)) // a rate of 0 changes nothing
	near(t, "zero value", p.Expr(), dev, []float64{1, 2}, 0)
	check(t, zero.Step(&nn.Dense{}, &nn.Dense{}))
	check(t, zero.Close())
}
