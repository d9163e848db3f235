// SPDX-License-Identifier: Apache-2.0

package nn

import (
	"errors"
	"math"
	"sync"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Optimiser updates a parameter to reduce a loss, given the gradient of the loss by the parameter. Step queues one kernel for each matrix
// that changes. The state of a parameter is kept in matrices of its size, which are 0 before the first step and kept until Close. It is
// found by the parameter's matrix, so each parameter must always be the same *Dense. A gradient that is an expression is evaluated once.
//
// The zero value of an optimiser is ready, with a Rate of 0; rates may change between steps. A parameter whose size changed is
// [buffer.ErrShape]. An optimiser may be used from several goroutines for different parameters.
type Optimiser interface {
	Step(param *Dense, grad Operand) error
	Close() error
}

// memory is an optimiser's state, by parameter.
type memory struct {
	mu  sync.Mutex
	all map[*Dense]*state
}

// state is the state of one parameter.
type state struct {
	step int // the number of this step, from 1 on
	a, b *Dense
}

func nilOptimiser(op string) error { return fail(op, buffer.ErrNil, "nil optimiser") }

func (m *memory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	for _, s := range m.all {
		err = errors.Join(err, s.close())
	}
	m.all = nil
	return err
}

func (s *state) close() (err error) {
	for _, d := range []*Dense{s.a, s.b} {
		if d != nil {
			err = errors.Join(err, d.Close())
		}
	}
	return err
}

// of returns the state of a parameter, which has so many matrices.
func (m *memory) of(op string, param *Dense, shape fault.Shape, matrices int) (*state, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.all[param]; s != nil {
		if s.a != nil {
			if rows, cols := s.a.Dims(); shape != (fault.Shape{rows, cols}) {
				return nil, shapeError(op, "a parameter keeps its size", shape, fault.Shape{rows, cols})
			}
		}
		return s, nil
	}
	s := &state{}
	for _, d := range []**Dense{&s.a, &s.b}[:matrices] {
		var err error
		if *d, err = matrix.New[float32](param.Device(), shape[0], shape[1]); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	if m.all == nil {
		m.all = map[*Dense]*state{}
	}
	m.all[param] = s
	return s, nil
}

// step validates a step and runs it. decay times the parameter is added to the gradient.
func (m *memory) step(op string, param *Dense, grad Operand, decay float32, matrices int, update func(s *state, g *Expr) error) error {
	p, shape, err := read[float32](op, param)
	if err != nil {
		return err
	}
	g, size, err := read(op, grad)
	switch {
	case err != nil:
		return err
	case size != shape:
		return shapeError(op, fitsEqual, shape, size)
	case param.Device() == nil:
		return nil // an empty matrix
	}
	if decay != 0 {
		g = g.Add(p.Scale(decay))
	}
	s, err := m.of(op, param, shape, matrices)
	if err != nil {
		return err
	}
	if g.Matrix() == nil && matrices > 0 {
		d, err := g.Eval()
		if err != nil {
			return err
		}
		defer func() { _ = d.Close() }()
		g = d.Expr()
	}
	s.step++
	return update(s, g)
}

// assign runs assignments until one fails.
func assign(to []*Dense, what ...*Expr) error {
	for i, e := range what {
		if err := to[i].Assign(e); err != nil {
			return err
		}
	}
	return nil
}

// valid refuses settings that are not numbers or out of range: shares of a mean are in [0, 1), others at least 0.
func valid(op string, shares []float32, others ...float32) error {
	for _, v := range shares {
		if !(v >= 0 && v < 1) {
			return fail(op, gpu.ErrInvalid, "a decay of a mean is at least 0 and below 1")
		}
	}
	for _, v := range others {
		if !(v >= 0) || math.IsInf(float64(v), 0) {
			return fail(op, gpu.ErrInvalid, "rates and the like are at least 0 and finite")
		}
	}
	return nil
}

// SGD is stochastic gradient descent: p -= rate*(g + decay*p).
type SGD struct {
	Rate, Decay float32

	memory memory
}

// Close drops what the optimiser remembers. The next step starts anew.
func (o *SGD) Close() error {
	if o == nil {
		return nil
	}
	return o.memory.close()
}

// Step makes one step.
func (o *SGD) Step(param *Dense, grad Operand) error {
	const op = "SGD.Step"
	if o == nil {
		return nilOptimiser(op)
	}
	if err := valid(op, nil, o.Rate, o.Decay); err != nil {
		return err
	}
	return o.memory.step(op, param, grad, o.Decay, 0, func(_ *state, g *Expr) error {
		return param.Assign(matrix.Sub(param, g.Scale(o.Rate)))
	})
}

// Momentum is gradient descent with momentum (Polyak, 1964), in the form of Sutskever and others, "On the importance of initialization
// and momentum in deep learning" (2013):
//
//	v = momentum*v + g;  p -= rate*v
//	                     p -= rate*(g + momentum*v)  with Nesterov set
type Momentum struct {
	Rate, Momentum, Decay float32
	Nesterov              bool

	memory memory
}

// Close drops what the optimiser remembers. The next step starts anew.
func (o *Momentum) Close() error {
	if o == nil {
		return nil
	}
	return o.memory.close()
}

// Step makes one step.
func (o *Momentum) Step(param *Dense, grad Operand) error {
	const op = "Momentum.Step"
	if o == nil {
		return nilOptimiser(op)
	}
	if err := valid(op, []float32{o.Momentum}, o.Rate, o.Decay); err != nil {
		return err
	}
	return o.memory.step(op, param, grad, o.Decay, 1, func(s *state, g *Expr) error {
		v := s.a.Expr()
		along := v
		if o.Nesterov {
			along = g.Add(v.Scale(o.Momentum))
		}
		return assign([]*Dense{s.a, param}, v.Scale(o.Momentum).Add(g), matrix.Sub(param, along.Scale(o.Rate)))
	})
}

// AdaGrad is that of Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization" (2011):
//
//	s += g^2;  p -= rate * g / (sqrt(s) + epsilon)
type AdaGrad struct {
	Rate, Epsilon, Decay float32

	memory memory
}

// Close drops what the optimiser remembers. The next step starts anew.
func (o *AdaGrad) Close() error {
	if o == nil {
		return nil
	}
	return o.memory.close()
}

// Step makes one step.
func (o *AdaGrad) Step(param *Dense, grad Operand) error {
	const op = "AdaGrad.Step"
	if o == nil {
		return nilOptimiser(op)
	}
	if err := valid(op, nil, o.Rate, o.Epsilon, o.Decay); err != nil {
		return err
	}
	return o.memory.step(op, param, grad, o.Decay, 1, func(s *state, g *Expr) error {
		return assign([]*Dense{s.a, param}, s.a.Expr().Add(g.Square()), matrix.Sub(param, scaled(g, s.a, o.Rate, 1, o.Epsilon)))
	})
}

// scaled is rate * g / (sqrt(s/correction) + epsilon), and 0 where g is 0, also where the divisor is.
func scaled(g *Expr, s *Dense, rate, correction, epsilon float32) *Expr {
	return matrix.CopyIf(g, g.Scale(rate).DivElem(s.Expr().DivScalar(correction).Sqrt().AddScalar(epsilon)))
}

// RMSProp is that of Tieleman and Hinton, "Lecture 6.5" of Neural Networks for Machine Learning (2012):
//
//	s = rho*s + (1-rho)*g^2;  p -= rate * g / (sqrt(s) + epsilon)
type RMSProp struct {
	Rate, Rho, Epsilon, Decay float32

	memory memory
}

// Close drops what the optimiser remembers. The next step starts anew.
func (o *RMSProp) Close() error {
	if o == nil {
		return nil
	}
	return o.memory.close()
}

// Step makes one step.
func (o *RMSProp) Step(param *Dense, grad Operand) error {
	const op = "RMSProp.Step"
	if o == nil {
		return nilOptimiser(op)
	}
	if err := valid(op, []float32{o.Rho}, o.Rate, o.Epsilon, o.Decay); err != nil {
		return err
	}
	return o.memory.step(op, param, grad, o.Decay, 1, func(s *state, g *Expr) error {
		return assign([]*Dense{s.a, param}, mean(o.Rho, s.a, g.Square()), matrix.Sub(param, scaled(g, s.a, o.Rate, 1, o.Epsilon)))
	})
}

// mean is a running mean: rho*old + (1-rho)*x.
func mean(rho float32, old *Dense, x *Expr) *Expr { return old.Expr().Scale(rho).Add(x.Scale(1 - rho)) }

// Adam is that of Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015), in step t:
//
//	m = beta1*m + (1-beta1)*g;  v = beta2*v + (1-beta2)*g^2
//	p -= rate * m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon)
//
// With Decoupled set the decay is not added to the gradient: p -= rate*decay*p comes first. That is AdamW, of Loshchilov and Hutter,
// "Decoupled Weight Decay Regularization" (2019).
type Adam struct {
	Rate, Beta1, Beta2, Epsilon, Decay float32
	Decoupled                          bool

	memory memory
}

// Close drops what the optimiser remembers. The next step starts anew.
func (o *Adam) Close() error {
	if o == nil {
		return nil
	}
	return o.memory.close()
}

// Step makes one step.
func (o *Adam) Step(param *Dense, grad Operand) error {
	const op = "Adam.Step"
	if o == nil {
		return nilOptimiser(op)
	}
	if err := valid(op, []float32{o.Beta1, o.Beta2}, o.Rate, o.Epsilon, o.Decay); err != nil {
		return err
	}
	coupled, kept := o.Decay, float32(1)
	if o.Decoupled {
		coupled, kept = 0, 1-float32(o.Rate*o.Decay)
	}
	return o.memory.step(op, param, grad, coupled, 2, func(s *state, g *Expr) error {
		unbiased := func(beta float32) float64 { return 1 - math.Pow(float64(beta), float64(s.step)) }
		rate := float32(float64(o.Rate) / unbiased(o.Beta1))
		next := param.Expr().Scale(kept).Sub(scaled(s.a.Expr(), s.b, rate, float32(unbiased(o.Beta2)), o.Epsilon))
		return assign([]*Dense{s.a, s.b, param}, mean(o.Beta1, s.a, g), mean(o.Beta2, s.b, g.Square()), next)
	})
}

// AdaDelta is that of Zeiler, "ADADELTA: An Adaptive Learning Rate Method" (2012):
//
//	s = rho*s + (1-rho)*g^2;  x = sqrt(u + epsilon)/sqrt(s + epsilon) * g
//	u = rho*u + (1-rho)*x^2;  p -= rate*x
//
// The paper's rate is 1. Epsilon has to be above 0 for the first step to move.
type AdaDelta struct {
	Rate, Rho, Epsilon, Decay float32

	memory memory
}

// Close drops what the optimiser remembers. The next step starts anew.
func (o *AdaDelta) Close() error {
	if o == nil {
		return nil
	}
	return o.memory.close()
}

// Step makes one step.
func (o *AdaDelta) Step(param *Dense, grad Operand) error {
	const op = "AdaDelta.Step"
	if o == nil {
		return nilOptimiser(op)
	}
	if err := valid(op, []float32{o.Rho}, o.Rate, o.Epsilon, o.Decay); err != nil {
		return err
	}
	return o.memory.step(op, param, grad, o.Decay, 2, func(s *state, g *Expr) error {
		root := func(d *Dense) *Expr { return d.Expr().AddScalar(o.Epsilon).Sqrt() }
		x := matrix.CopyIf(g, root(s.b).DivElem(root(s.a)).MulElem(g))
		if err := s.a.Assign(mean(o.Rho, s.a, g.Square())); err != nil {
			return err
		}
		d, err := x.Eval()
		if err != nil {
			return err
		}
		err = assign([]*Dense{s.b, param}, mean(o.Rho, s.b, d.Expr().Square()), matrix.Sub(param, d.Expr().Scale(o.Rate)))
		return errors.Join(err, d.Close())
	})
}
