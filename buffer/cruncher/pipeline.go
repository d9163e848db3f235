// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"
	"sync"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
)

// Pipeline is a chain of stages that work at the same time, each on devices of its own. At each [Pipeline.Push] every stage that
// has data computes them, while what it computed at the push before goes on to the next stage, by way of the host. It is
// made by [NewPipeline]. Its methods may be called from several goroutines; pushes run one after the other.
//
// It is ClPipeline of Cekirdekler, file ClPipeline.cs, with its numbers of pushes until results come. Unlike there, stages that have
// no data yet do not run, data are never written to the arrays of a stage, hidden arrays are right on several devices, and a wrong
// argument changes nothing.
type Pipeline struct {
	life   lifetime
	mu     sync.Mutex
	stages []*segment
	ownIn  *bank
	ownOut *bank
	rings  bool // outputs of the last stage lie in the memory of inputs of the first
	open   bool // a push has failed and its step is not complete
	kinds  [2]kind
}

// kind is what a push is given for inputs or for outputs.
type kind uint8

const (
	ownArrays kind = iota
	given
	nothing
)

// NewPipeline makes a pipeline of stages and runs their initializers. The outputs of a stage are, in their order, the inputs of the
// next one: there are as many, of the same types and lengths, or one output for all inputs. Inputs go whole to each device, or with
// the flag PartialRead each device's part.
func NewPipeline(ctx context.Context, stages ...Stage) (*Pipeline, error) {
	const op = "NewPipeline"
	if len(stages) == 0 {
		return nil, fail(op, gpu.ErrInvalid, "no stage")
	}
	p := &Pipeline{}
	err := p.build(ctx, stages)
	if err == nil {
		err = p.initialize(ctx)
	}
	if err != nil {
		for _, l := range p.stages {
			_ = l.cr.Close() // the first error says more
		}
		return nil, err
	}
	p.life = newLifetime()
	return p, nil
}

func (p *Pipeline) build(ctx context.Context, stages []Stage) error {
	for i := range stages {
		l, err := newSegment(ctx, &stages[i])
		if err != nil {
			return err
		}
		p.stages = append(p.stages, l)
		if i > 0 {
			if err := joins(p.stages[i-1].outputs, l.inputs); err != nil {
				return err
			}
		}
	}
	first, last := p.stages[0], p.stages[len(p.stages)-1]
	p.ownIn, p.ownOut = over(first.inputs), over(last.outputs)
	for _, a := range p.ownIn.arrays {
		for _, b := range p.ownOut.arrays {
			p.rings = p.rings || first != last && overlaps(a, b)
		}
	}
	return nil
}

func (p *Pipeline) initialize(ctx context.Context) error {
	for i, l := range p.stages {
		in := l.in[0]
		if i == 0 {
			in = p.ownIn
		}
		if err := l.compute(ctx, l.inits, in, l.out[0]); err != nil {
			return err
		}
	}
	return nil
}

// joins checks whether outputs of a stage fit the inputs of the next one.
func joins(out, in []param) error {
	const op = "NewPipeline"
	if len(out) != len(in) && len(out) != 1 || len(in) == 0 {
		return fail(op, ErrLength, itoa(len(out)), " outputs for ", itoa(len(in)), " inputs")
	}
	for i := range in {
		if err := matches(op, in[i].array, out[min(i, len(out)-1)].array); err != nil {
			return err
		}
	}
	return nil
}

// overlaps reports whether two arrays share host memory.
func overlaps(a, b *Any) bool {
	x, y := a.host.Bytes, b.host.Bytes
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	p, q := uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0]))
	return p < q+uintptr(len(y)) && q < p+uintptr(len(x))
}

func matches(op string, a, b *Any) error {
	if a.t != b.t || a.n != b.n {
		return fail(op, ErrLength, a.name, " has ", itoa(a.n), " elements of ", a.t.String(), ", ", b.name, " ", itoa(b.n), " of ", b.t.String())
	}
	return nil
}

// Push moves everything by one step and reports whether results came out. in are arrays with data for the inputs of the first
// stage, out arrays for results of the outputs of the last one, both in the order of the stage, of the same types and lengths,
// whatever their names. The data are copied before Push returns.
//
// With nil for in, the data are what the input arrays of the first stage hold, unless data of an earlier push have yet to be
// computed. With [Params] of nothing no data go in: so a pipeline is emptied. With nil for out, results are written to the
// output arrays of the last stage. With S stages, results of the first push come out at push 2S+1, at 2S if in or out is nil,
// at 2S-1 if both are.
//
// A push that fails has to be repeated, with the same of in and out nil; what is done already is then not done again, but that
// kernels that failed may have written hidden arrays. If arguments are wrong nothing has happened.
func (p *Pipeline) Push(ctx context.Context, in, out Param) (bool, error) {
	const op = "Push"
	if p == nil || p.life.over() {
		return false, fail(op, gpu.ErrClosed, "the pipeline")
	}
	if ctx == nil {
		return false, fail(op, gpu.ErrInvalid, "nil context")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.over() {
		return false, fail(op, gpu.ErrClosed, "the pipeline")
	}
	from, to := pushed(in), pushed(out)
	kinds, err := p.check(from, to)
	if err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	ctx, done := p.life.within(ctx)
	defer done()
	p.open, p.kinds = true, kinds
	if kinds[0] == given {
		p.stages[0].in[1].receive(from.arrays())
	}
	if err := p.step(ctx); err != nil {
		if p.life.over() {
			err = fail(op, gpu.ErrClosed, "the pipeline")
		}
		return false, err
	}
	last := p.stages[len(p.stages)-1]
	came := kinds[1] == ownArrays && p.ownOut.full
	for i := range last.outputs {
		if came {
			last.outputs[i].array.MarkDirty() // for other crunchers
		}
	}
	if back := last.out[1]; kinds[1] == given && back.full {
		for i := range to.list {
			copy(to.list[i].array.host.Bytes, back.arrays[i].host.Bytes)
			to.list[i].array.MarkDirty()
		}
		back.full, came = false, true
	}
	p.advance()
	return came, nil
}

// pushed makes a group of an argument of a push, nil of nil.
func pushed(p Param) *group {
	if p == nil {
		return nil
	}
	return newGroup(p)
}

// check checks the arguments of a push.
func (p *Pipeline) check(in, out *group) (kinds [2]kind, err error) {
	const op = "Push"
	first, last := p.stages[0].inputs, p.stages[len(p.stages)-1].outputs
	for i, side := range []struct {
		group *group
		list  []param
	}{{in, first}, {out, last}} {
		switch {
		case side.group == nil:
			for _, s := range side.list {
				if err := s.array.usable(op); err != nil {
					return kinds, err
				}
			}
		case side.group.err == nil && len(side.group.list) == 0 && i == 0:
			kinds[i] = nothing
		default:
			kinds[i] = given
			if err := fits(op, side.group, side.list, i == 1); err != nil {
				return kinds, err
			}
		}
	}
	if p.rings && kinds == [2]kind{} {
		return kinds, fail(op, gpu.ErrInvalid, "the last stage would write the data of the first")
	}
	if p.open && kinds != p.kinds {
		return kinds, fail(op, gpu.ErrInvalid, "the push that failed is to be repeated")
	}
	return kinds, nil
}

// fits checks arrays of a push.
func fits(op string, g *group, list []param, written bool) error {
	if g.err != nil {
		return g.err
	}
	if len(g.list) != len(list) {
		return fail(op, ErrLength, itoa(len(g.list)), " arrays for ", itoa(len(list)))
	}
	for i := range list {
		a := g.list[i].array
		if a == nil {
			return fail(op, gpu.ErrInvalid, g.list[i].name(), " is a scalar")
		}
		if err := a.usable(op); err != nil {
			return err
		}
		if err := matches(op, list[i].array, a); err != nil {
			return err
		}
		if a.host.Foreign != nil {
			return fail(op, gpu.ErrUnsupported, a.name, " is not Go memory")
		}
		if written && a.host.ReadOnly {
			return fail(op, gpu.ErrReadOnly, a.name)
		}
	}
	return nil
}

// step has every stage compute and hands on what they computed before, all at once.
func (p *Pipeline) step(ctx context.Context) error {
	errs := make([]error, len(p.stages))
	var wg sync.WaitGroup
	for i, l := range p.stages {
		in, out := p.front(i)
		if in != nil && !l.ran {
			wg.Go(func() {
				if errs[i] = l.compute(ctx, l.runs, in, out); errs[i] == nil {
					l.ran, out.full = true, true
				}
			})
		}
		if i+1 < len(p.stages) && l.out[1].full && !l.sent {
			l.sent = true
			wg.Go(func() { p.stages[i+1].in[1].receive(l.out[1].arrays) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// front returns what a stage computes, nil if it has no data, and where to.
func (p *Pipeline) front(i int) (in, out *bank) {
	l := p.stages[i]
	in, out = l.in[0], l.out[0]
	if !in.full {
		in = nil
		if i == 0 && p.kinds[0] == ownArrays {
			in = p.ownIn
			if !l.ran {
				in.touch()
			}
		}
	}
	if i == len(p.stages)-1 && p.kinds[1] == ownArrays {
		out = p.ownOut
	}
	return in, out
}

// advance ends a step: what moved meanwhile is next to be computed, and what was computed is next to move.
func (p *Pipeline) advance() {
	for i, l := range p.stages {
		l.in[0].full = l.in[0].full && !l.ran
		l.in[0], l.in[1] = l.in[1], l.in[0]
		if l.sent {
			l.out[1].full = false
		}
		if i+1 < len(p.stages) || l.out[0].full {
			l.out[0], l.out[1] = l.out[1], l.out[0]
		}
		l.ran, l.sent = false, false
	}
	p.ownOut.full = false
	p.open = false
}

// Close stops what is under way and gives the stages' device memory back. Data on their way are lost. The arrays and the devices
// stay. Later calls do nothing.
func (p *Pipeline) Close() error {
	if p == nil || p.life.ctx == nil {
		return nil
	}
	p.life.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, l := range p.stages {
		errs = append(errs, l.cr.Close())
	}
	return errors.Join(errs...)
}
