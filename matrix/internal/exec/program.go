// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// Assignment is a node and the matrix that it is computed into.
type Assignment struct {
	To   Source
	Node *expr.Node
}

// Program is assignments that were planned, with their kernels and temporaries.
type Program struct {
	x          *Executor
	generation uint32 // of the device, that the kernels are for
	steps      []recorded
	pool       []*buffer.Buffer // temporaries, which all assignments use
	pooled     uint32           // the generation that these are of
	closed     bool
}

// recorded is an assignment as it was planned: it is planned again when an operand lies elsewhere.
type recorded struct {
	Assignment
	to       Dense
	plan     *plan.Plan // nil: evaluated as any other, since it takes memory of the host for the time
	leaves   []leafAt
	buffers  []*buffer.Buffer // of the plan's memories
	operands int              // how many of them are not temporaries
	numbers  []uint32
	kernels  []*gpu.Kernel // of the plan's steps
}

// leafAt is a leaf and the matrix that it was.
type leafAt struct {
	of Source
	d  Dense
}

// Record plans assignments and compiles their kernels.
func (x *Executor) Record(ctx context.Context, list []Assignment) (*Program, error) {
	p := &Program{x: x}
	for _, a := range list {
		p.steps = append(p.steps, recorded{Assignment: a})
	}
	return p, x.During(ctx, func(r *Run) error { return p.record(r, nil) })
}

// record plans the assignments that stale names, or all.
func (p *Program) record(r *Run, stale []int) error {
	if stale == nil {
		p.generation = p.x.generation
	}
	for i := range p.steps {
		if stale != nil && !slices.Contains(stale, i) {
			continue
		}
		if err := p.steps[i].record(r); err != nil {
			p.steps[i].plan = nil
			return err
		}
	}
	return p.share()
}

func (s *recorded) record(r *Run) error {
	s.close()
	to, err := s.To.Current()
	if err == nil && (to.Rows != s.Node.Rows || to.Cols != s.Node.Cols) {
		err = expr.ShapeError("Run", to.Shape(), s.Node.Shape())
	}
	if err != nil {
		return err
	}
	made, err := r.planned(to, s.Node)
	if err != nil {
		return err
	}
	for _, m := range made.Memories {
		if m.Windowed {
			return nil // parts come and go
		}
	}
	if len(r.temps) > 0 || len(made.Steps) > 1 && r.overlapped() {
		return nil
	}
	s.to, s.plan, s.operands = to, made, len(r.buffers)
	s.buffers, s.numbers = slices.Clone(r.buffers), slices.Clone(r.numbers)
	for n, at := range r.nodes {
		if n.Kind == expr.Leaf || n.Kind == expr.Words {
			op := r.operands[at]
			s.leaves = append(s.leaves, leafAt{n.Source.(Source), Dense{op.Layout, op.Type, r.buffers[op.Mem]}})
		}
	}
	for _, step := range made.Steps {
		var k *gpu.Kernel
		if step.Launch != nil {
			if k, err = r.x.compile(r.ctx, step, false); err != nil {
				return err
			}
		}
		s.kernels = append(s.kernels, k)
	}
	return nil
}

// close drops what belongs to a plan.
func (s *recorded) close() {
	for _, k := range s.kernels {
		_ = k.Close() // never fails
	}
	*s = recorded{Assignment: s.Assignment, leaves: s.leaves[:0]}
}

// share gives the plans their temporaries: each is written before it is read, so all plans use the same ones.
func (p *Program) share() error {
	var sizes []int // of the largest, the next one, and so on, of any plan
	for i := range p.steps {
		for k, m := range p.steps[i].temporaries() {
			if k == len(sizes) {
				sizes = append(sizes, 0)
			}
			sizes[k] = max(sizes[k], p.steps[i].plan.Memories[m].Size)
		}
	}
	for k, size := range sizes {
		if k == len(p.pool) {
			p.pool = append(p.pool, nil)
		}
		if p.pool[k] != nil && p.pool[k].Size() >= size && p.pooled == p.x.generation {
			continue
		}
		b, err := buffer.New(p.x.dev, size)
		if err != nil {
			return err
		}
		if err := p.pool[k].Close(); err != nil {
			return err
		}
		p.pool[k] = b
	}
	p.pooled = p.x.generation
	for i := range p.steps {
		s := &p.steps[i]
		if s.plan == nil {
			continue
		}
		s.buffers = append(s.buffers[:s.operands], make([]*buffer.Buffer, len(s.plan.Memories)-s.operands)...)
		for k, m := range s.temporaries() {
			s.buffers[m] = p.pool[k]
		}
	}
	return nil
}

// temporaries are the numbers of a plan's temporary memories, the largest first.
func (s *recorded) temporaries() []int {
	if s.plan == nil {
		return nil
	}
	var list []int
	for m := s.operands; m < len(s.plan.Memories); m++ {
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b int) int { return s.plan.Memories[b].Size - s.plan.Memories[a].Size })
	return list
}

// same reports whether a matrix is another one, as plans see it.
func (d Dense) same(o Dense) bool {
	return d.Layout == o.Layout && d.Type == o.Type && (d.Buf == o.Buf || d.Buf.Same(o.Buf))
}

// stale returns the assignments whose operands or destinations lie elsewhere now.
func (p *Program) stale() (list []int, err error) {
	for i := range p.steps {
		s := &p.steps[i]
		to, err := s.To.Current()
		if err != nil {
			return nil, err
		}
		moved := s.plan != nil && !to.same(s.to)
		for _, l := range s.leaves {
			d, err := l.of.Current()
			if err != nil {
				return nil, err
			}
			moved = moved || !d.same(l.d)
		}
		if moved {
			list = append(list, i)
		}
	}
	return list, nil
}

// Run queues the assignments, in one submission where the device's batches allow.
func (p *Program) Run(ctx context.Context) error {
	return p.x.During(ctx, func(r *Run) error {
		if p.closed {
			return fault.Fail("matrix: Run", fault.ErrClosed, "the program")
		}
		if p.generation != p.x.generation {
			if err := p.record(r, nil); err != nil {
				return err
			}
		}
		stale, err := p.stale()
		if err == nil && len(stale) > 0 {
			err = p.record(r, stale)
		}
		if err != nil {
			return err
		}
		return p.x.dev.Together(func() error { return p.queue(r) })
	})
}

func (p *Program) queue(r *Run) error {
	for i := range p.steps {
		s := &p.steps[i]
		if s.plan == nil {
			to, err := s.To.Current()
			if err == nil {
				err = r.Assign(to, s.Node)
			}
			if err != nil {
				return err
			}
			continue
		}
		r.known = s.plan.Memories
		r.buffers = append(r.buffers[:0], s.buffers...)
		r.numbers = append(r.numbers[:0], s.numbers...)
		for k, step := range s.plan.Steps {
			if err := r.launch(step, s.kernels[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close drops kernels and temporaries. What is queued still uses them.
func (p *Program) Close() error {
	if err := p.x.turn.Take(context.Background()); err != nil { // which does not end
		return err
	}
	defer p.x.turn.Give()
	for i := range p.steps {
		p.steps[i].close()
	}
	p.steps, p.closed = nil, true
	var first error
	for _, b := range p.pool {
		if err := b.Close(); err != nil && first == nil {
			first = err
		}
	}
	p.pool = nil
	return first
}
