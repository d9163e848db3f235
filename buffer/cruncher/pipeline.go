// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/turn"
)

// Pipeline is a chain of stages that work at the same time, each on its own devices. At each [Pipeline.Push] every stage computes the
// data that it has, while its results of the push before are copied through the host to the next stage. It is made by
// [NewPipeline]. Its methods may be called from several goroutines; pushes run one after the other.
//
// It is ClPipeline of Cekirdekler, file ClPipeline.cs, with its numbers of pushes until results come. Unlike there, stages that have
// no data yet do not run, data are never written to the arrays of a stage, hidden arrays are right on several devices, and a wrong
// argument changes nothing.
type Pipeline struct {
	life   lifetime
	mu     turn.Lock
	stages []*stage
	own    *bank // the inputs of the first stage themselves
}

// NewPipeline makes a pipeline of stages and runs their initializers. The outputs of a stage are, in their order, the inputs of the
// next one: there are as many, of the same types and lengths, or one output for all inputs. Inputs go whole to each device, or with
// the flag PartialRead each device's part.
func NewPipeline(ctx context.Context, stages ...Stage) (*Pipeline, error) {
	if len(stages) == 0 {
		return nil, fail("NewPipeline", gpu.ErrInvalid, "no stage")
	}
	p := &Pipeline{life: newLifetime(), mu: turn.New()}
	if err := p.build(ctx, stages); err != nil {
		_ = p.Close() // the first error says more
		return nil, err
	}
	return p, nil
}

func (p *Pipeline) build(ctx context.Context, stages []Stage) error {
	for i := range stages {
		s := &stages[i]
		cr, err := New(ctx, s.Devices, s.WGSL, s.Options...)
		if err != nil {
			return err
		}
		l := &stage{cr: cr}
		p.stages = append(p.stages, l) // Close closes it
		if err := l.fill("NewPipeline", s); err != nil {
			return err
		}
		if i > 0 {
			if err := joins(p.stages[i-1].outputs, l.inputs); err != nil {
				return err
			}
		}
		for k := range l.in {
			l.in[k], l.out[k] = newBank(l.inputs, true), newBank(l.outputs, true)
		}
	}
	p.own = newBank(p.stages[0].inputs, false)
	p.own.full = true
	for i, l := range p.stages {
		in := l.in[0]
		if i == 0 {
			in = p.own
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
// With nil for in, the data are those in the input arrays of the first stage, unless data of an earlier push have yet to be
// computed. With an empty [Params] no data go in, which empties a pipeline. With nil for out, results are written to the
// output arrays of the last stage. With S stages, results of the first push come out at push 2S+1, at 2S if in or out is nil,
// at 2S-1 if both are.
//
// A push that fails has written no results. The next one continues where it stopped, without repeating finished stages; data for in
// replace those of the failed push, so that it may be repeated. Kernels that failed may have written hidden arrays. A push with wrong
// arguments changes nothing.
func (p *Pipeline) Push(ctx context.Context, in, out Param) (came bool, err error) {
	if p == nil {
		return false, fail("Push", gpu.ErrClosed, "no pipeline")
	}
	err = p.life.during(ctx, p.mu, "Push", func(ctx context.Context) (err error) {
		came, err = p.push(ctx, in, out)
		return err
	})
	return came, err
}

func (p *Pipeline) push(ctx context.Context, in, out Param) (bool, error) {
	first, last := p.stages[0], p.stages[len(p.stages)-1]
	data, err := pushed(in, first.inputs, false)
	if err != nil {
		return false, err
	}
	results, err := pushed(out, last.outputs, true)
	if err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if in != nil && len(data) > 0 {
		first.in[1].receive(data)
	}
	if err := p.step(ctx, in == nil); err != nil {
		return false, err
	}
	from := last.out[1]
	if out == nil {
		from = last.out[0]
	}
	came := from.full
	if came {
		if err := from.deliver(results); err != nil {
			return false, err
		}
	}
	p.advance()
	return came, nil
}

// pushed returns the arrays that a push is given for those of a stage: these themselves for nil, and perhaps no data at all.
func pushed(given Param, own []param, written bool) (list []*Any, err error) {
	const op = "Push"
	g := &group{list: own}
	if given != nil {
		g = newGroup(given)
	}
	switch {
	case g.err != nil:
		return nil, g.err
	case given != nil && len(g.list) == 0 && !written:
		return nil, nil
	case len(g.list) != len(own):
		return nil, fail(op, ErrLength, itoa(len(g.list)), " arrays for ", itoa(len(own)))
	}
	for i := range own {
		a := g.list[i].array
		if a == nil {
			return nil, fail(op, gpu.ErrInvalid, g.list[i].name, " is a scalar")
		}
		if err := a.usable(op); err != nil {
			return nil, err
		}
		if err := matches(op, own[i].array, a); err != nil {
			return nil, err
		}
		if written && a.host.ReadOnly {
			return nil, fail(op, gpu.ErrReadOnly, a.name)
		}
		if given != nil && !written && a.host.Foreign != nil {
			if a, err = a.inGo(op); err != nil {
				return nil, err
			}
		}
		list = append(list, a)
	}
	return list, nil
}

// step has every stage compute that has data and has not yet, and hands on what they computed before, all at once. The first stage
// takes its inputs themselves for data if it has no others and own says so.
func (p *Pipeline) step(ctx context.Context, own bool) error {
	errs := make([]error, len(p.stages))
	var wg sync.WaitGroup
	for i, l := range p.stages {
		in, out := l.in[0], l.out[0]
		if i == 0 && own && !in.full {
			in = p.own
		}
		if in.full && !out.full {
			if in == p.own {
				in.touch()
			}
			wg.Go(func() {
				errs[i] = l.compute(ctx, l.runs, in, out)
				out.full = errs[i] == nil
			})
		}
		if i+1 < len(p.stages) && l.out[1].full {
			wg.Go(func() { p.stages[i+1].in[1].receive(l.out[1].arrays) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// advance ends a step: what moved meanwhile is next to be computed, and what was computed is next to move.
func (p *Pipeline) advance() {
	for i, l := range p.stages {
		l.in[0].full = false
		l.in[0], l.in[1] = l.in[1], l.in[0]
		last := i+1 == len(p.stages)
		if !last {
			l.out[1].full = false
		}
		if !last || l.out[0].full {
			l.out[0], l.out[1] = l.out[1], l.out[0]
		}
	}
}

// Close cancels calls in progress and releases the stages' device memory. Data in the pipeline are lost. It does not close the arrays
// and the devices. Later calls do nothing.
func (p *Pipeline) Close() error {
	if p == nil || p.life.ctx == nil {
		return nil
	}
	p.life.end()
	_ = p.mu.Take(context.Background()) // what had it is called off
	defer p.mu.Give()
	var errs []error
	for _, l := range p.stages {
		errs = append(errs, l.cr.Close())
	}
	return errors.Join(errs...)
}

// lifetime cancels the calls of an object when it is closed.
type lifetime struct {
	ctx context.Context
	end context.CancelFunc
}

func newLifetime() (l lifetime) {
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

func (l lifetime) over() bool { return l.ctx == nil || l.ctx.Err() != nil }

// during runs a method under mu, with a context that ends with ctx and with the lifetime. Errors after the lifetime's end are
// ErrClosed.
func (l lifetime) during(ctx context.Context, mu turn.Lock, op string, run func(ctx context.Context) error) error {
	if ctx == nil {
		return fail(op, gpu.ErrInvalid, "nil context")
	}
	closed := fail(op, gpu.ErrClosed, "the pipeline")
	if l.over() {
		return closed
	}
	if err := mu.Take(ctx); err != nil {
		return err
	}
	defer mu.Give()
	if l.over() {
		return closed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	err := run(ctx)
	if err != nil && l.over() {
		return closed
	}
	return err
}
