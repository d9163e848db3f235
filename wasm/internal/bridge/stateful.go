// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/nn"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// The kinds of [page.CmdLayer]: the handles that they fill; the targets that they write to; the values that they read: the numbers, which
// are bits of float32 or whole. Absent words are 0.
const (
	trainSGD       = iota // handle; parameter; gradient: rate decay
	trainMomentum         // handle; parameter; gradient: rate momentum decay, 1 for Nesterov's
	trainAdaGrad          // handle; parameter; gradient: rate epsilon decay
	trainRMSProp          // handle; parameter; gradient: rate rho epsilon decay
	trainAdam             // handle; parameter; gradient: rate beta1 beta2 epsilon decay, 1 for a decoupled decay
	trainAdaDelta         // handle; parameter; gradient: rate rho epsilon decay
	trainNormalise        // mean invStd; y [running mean, running variance]; x scale bias: channels epsilon factor
	trainQuantise         // levels lower upper; [residual]; x: bits
)

// training is a [page.CmdLayer] with its words.
type training struct {
	b                        *Bridge
	kind                     uint32
	made, targets, values, n []uint32
}

// layer runs an operation of package nn that has state: it writes to several matrices, makes several, or remembers some. The first step
// of an optimiser makes it.
func (b *Bridge) layer(a []uint32) {
	c := &training{b, a[0], a[1:4], a[4:7], a[7:10], a[10:16]}
	err := page.Guard(func() {
		b.program.run(a[16:])
		switch {
		case c.kind < trainNormalise:
			c.step()
		case c.kind == trainNormalise:
			c.normalise()
		case c.kind == trainQuantise:
			c.quantise()
		default:
			page.Invalid("training " + itoa(int(c.kind)))
		}
	})
	if err == nil {
		return
	}
	f := b.Note(err)
	if c.kind >= trainNormalise {
		for _, h := range c.made {
			if h != 0 {
				b.keep(h, f)
			}
		}
	}
	for _, h := range c.targets {
		if e := b.entries[h]; e != nil {
			e.err = f
		}
	}
	page.Check(f)
}

// value is an expression, on the page's device where it has no matrices.
func (c *training) value(i int) *nn.Expr {
	return typed[float32](c.b.program.value(c.values[i]).On(c.b.dev), matrix.Float32)
}

func (c *training) number(i int) float32 { return math.Float32frombits(c.n[i]) }

// target returns a matrix that is overwritten, whatever became of the last assignment to it.
func (c *training) target(i int) *nn.Dense { return dense[float32](c.b.matrix(c.targets[i])) }

// current returns a matrix that is read and written.
func (c *training) current(i int) *nn.Dense {
	return dense[float32](as[*anyDense](c.b.current(c.targets[i])))
}

// newOptimiser makes one of a kind.
func newOptimiser(kind uint32) nn.Optimiser {
	switch kind {
	case trainSGD:
		return &nn.SGD{}
	case trainMomentum:
		return &nn.Momentum{}
	case trainAdaGrad:
		return &nn.AdaGrad{}
	case trainRMSProp:
		return &nn.RMSProp{}
	case trainAdam:
		return &nn.Adam{}
	}
	return &nn.AdaDelta{}
}

// set gives an optimiser its settings, which may be others in each step, and returns its kind.
func (c *training) set(o nn.Optimiser) (kind uint32) {
	n := c.number
	switch o := o.(type) {
	case *nn.SGD:
		o.Rate, o.Decay = n(0), n(1)
		return trainSGD
	case *nn.Momentum:
		o.Rate, o.Momentum, o.Decay, o.Nesterov = n(0), n(1), n(2), n(3) != 0
		return trainMomentum
	case *nn.AdaGrad:
		o.Rate, o.Epsilon, o.Decay = n(0), n(1), n(2)
		return trainAdaGrad
	case *nn.RMSProp:
		o.Rate, o.Rho, o.Epsilon, o.Decay = n(0), n(1), n(2), n(3)
		return trainRMSProp
	case *nn.Adam:
		o.Rate, o.Beta1, o.Beta2, o.Epsilon, o.Decay, o.Decoupled = n(0), n(1), n(2), n(3), n(4), n(5) != 0
		return trainAdam
	case *nn.AdaDelta:
		o.Rate, o.Rho, o.Epsilon, o.Decay = n(0), n(1), n(2), n(3)
	}
	return trainAdaDelta
}

func (c *training) step() {
	e := c.b.entries[c.made[0]]
	if e == nil {
		e = &entry{value: newOptimiser(c.kind)}
		c.b.put(c.made[0], e)
	}
	o := as[nn.Optimiser](e)
	if c.set(o) != c.kind {
		page.Invalid("an optimiser of another kind")
	}
	page.Check(o.Step(c.current(0), c.value(0)))
}

// fill stores new matrices under the handles of the command.
func (c *training) fill(made ...*anyDense) {
	for i, m := range made {
		c.b.put(c.made[i], &entry{value: m})
	}
}

// vacant stops unless so many handles stand for nothing yet, each for itself.
func (c *training) vacant(count int) {
	for i, h := range c.made[:count] {
		c.b.vacant(h)
		if slices.Contains(c.made[:i], h) {
			page.Invalid("handle " + itoa(int(h)) + " twice")
		}
	}
}

func (c *training) normalise() {
	c.vacant(2)
	var mean, variance *nn.Dense
	if c.targets[1] != 0 {
		mean, variance = c.current(1), c.current(2)
	}
	y, x := c.target(0), c.value(0)
	rows, cols := x.Dims()
	sized(c.b.matrix(c.targets[0]), rows, cols)
	b := nn.BatchNorm{Channels: int(c.n[0]), Epsilon: c.number(1)}
	s := page.Must(b.Train(y, x, c.value(1), c.value(2), mean, variance, c.number(2)))
	c.b.entries[c.targets[0]].err = nil
	c.fill(dense[matrix.Any](s.Mean), dense[matrix.Any](s.InvStd))
}

func (c *training) quantise() {
	c.vacant(3)
	var residual *nn.Dense
	if c.targets[0] != 0 {
		residual = c.current(0)
	}
	q := page.Must(nn.Quantise(c.value(0), int(c.n[0]), residual))
	c.fill(dense[matrix.Any](q.Levels), dense[matrix.Any](q.Lower), dense[matrix.Any](q.Upper))
}
