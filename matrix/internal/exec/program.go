// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
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
	generation uint32 // of the device, that kernels and temporaries are for
	steps      []recorded
	kernels    map[string]*gpu.Kernel // by their keys
	pool       []*buffer.Buffer       // temporaries, which all assignments use
	shared     bool                   // all plans have theirs of the pool
	settled    *settled               // what runs queue as long as nothing moves
	closed     bool
}

// recorded is an assignment as it was planned: it is planned again when an operand lies elsewhere.
type recorded struct {
	Assignment
	plain    bool       // it is evaluated anew in every run: it needs memory that lasts no longer
	plan     *plan.Plan // nil: yet to be made, unless it is plain
	to       Dense
	leaves   []leafAt
	buffers  []*buffer.Buffer // of the plan's memories
	operands int              // how many of them are not temporaries
	numbers  []uint32
}

// leafAt is a leaf and the matrix that it was.
type leafAt struct {
	of Source
	d  Dense
}

// Record plans assignments and compiles their kernels.
func (x *Executor) Record(ctx context.Context, list []Assignment) (*Program, error) {
	p := &Program{x: x, kernels: map[string]*gpu.Kernel{}}
	for _, a := range list {
		p.steps = append(p.steps, recorded{Assignment: a})
	}
	return p, x.During(ctx, p.refresh)
}

// Run queues the assignments, in one submission where the device's batches allow.
func (p *Program) Run(ctx context.Context) error {
	return p.x.During(ctx, func(r *Run) error {
		if p.closed {
			return fault.Fail("matrix: Run", fault.ErrClosed, "the program")
		}
		if !p.still() {
			p.settled = nil
			if err := p.refresh(r); err != nil {
				return err
			}
		}
		return p.x.dev.Together(func() error { return p.queue(r) })
	})
}

// refresh plans the assignments that are not planned for where their operands and destinations are now.
func (p *Program) refresh(r *Run) error {
	if p.generation != p.x.generation { // the device came back with nothing
		if err := p.drop(); err != nil {
			return err
		}
		for i := range p.steps {
			p.steps[i] = recorded{Assignment: p.steps[i].Assignment}
		}
		p.generation = p.x.generation
	}
	for i := range p.steps {
		s := &p.steps[i]
		to, moved, err := s.moved()
		if err == nil && moved {
			p.shared = false
			err = s.record(p, r, to)
		}
		if err != nil {
			return p.failed(i, err)
		}
	}
	if p.shared {
		return nil
	}
	return p.share()
}

// failed is an error of a step, with its number.
func (p *Program) failed(step int, err error) error {
	detail := fault.Text("; step ", step+1, " of ", len(p.steps))
	if errors.Is(err, buffer.ErrShape) {
		detail += ", whose matrices have to keep the sizes that they had when the program was made"
	}
	return fault.Fail("matrix: Run", err, detail)
}

// moved returns the destination, and whether the assignment has to be planned.
func (s *recorded) moved() (to Dense, moved bool, err error) {
	to, err = s.To.Current()
	switch {
	case err != nil:
	case to.Rows != s.Node.Rows || to.Cols != s.Node.Cols:
		err = expr.ShapeError("Run", fitsBefore, to.Shape(), s.Node.Shape())
	case to.Buf.ReadOnly():
		err = expr.Fail("Run", fault.ErrReadOnly, "the memory that the destination wraps")
	}
	if err != nil || s.plain {
		return to, false, err
	}
	moved = s.plan == nil || !to.same(s.to)
	for _, l := range s.leaves {
		d, err := l.of.Current()
		if err != nil {
			return to, false, err
		}
		moved = moved || !d.same(l.d)
	}
	return to, moved, nil
}

// same reports whether plans see a matrix as another one.
func (d Dense) same(o Dense) bool {
	return d.Layout == o.Layout && d.Type == o.Type && (d.Buf == o.Buf || d.Buf.Same(o.Buf))
}

// record plans the assignment.
func (s *recorded) record(p *Program, r *Run, to Dense) error {
	*s = recorded{Assignment: s.Assignment}
	temps := len(r.temps)
	lowered, n, err := lower(to, s.Node)
	if err != nil {
		return err
	}
	made, err := r.planned(lowered, n)
	if err != nil {
		return err
	}
	windowed := false
	for _, m := range made.Memories {
		windowed = windowed || m.Windowed
	}
	if windowed || len(r.temps) > temps || len(made.Steps) > 1 && r.overlapped() {
		s.plain = true
		return nil
	}
	for _, step := range made.Steps {
		if err := p.compile(r, step); err != nil {
			return err
		}
	}
	s.to, s.plan, s.operands = to, made, len(r.buffers)
	s.buffers, s.numbers = slices.Clone(r.buffers), slices.Clone(r.numbers)
	for n, at := range r.nodes {
		if n.Kind == expr.Leaf || n.Kind == expr.Words {
			op := r.operands[at]
			s.leaves = append(s.leaves, leafAt{n.Source.(Source), Dense{op.Layout, op.Type, r.buffers[op.Mem]}})
		}
	}
	return nil
}

// compile compiles the kernel of a step, unless it is there.
func (p *Program) compile(r *Run, s *plan.Step) error {
	if s.Launch == nil || p.kernels[s.Key] != nil {
		return nil
	}
	k, err := r.x.compile(r.ctx, s, false)
	if err == nil {
		p.kernels[s.Key] = k
	}
	return err
}

// share gives the plans their temporaries: each is written before it is read, so all plans use the same ones.
func (p *Program) share() error {
	var sizes []int // of the largest, the next one, and so on, of any plan
	for i := range p.steps {
		s := &p.steps[i]
		for k, m := range s.temporaries() {
			if k == len(sizes) {
				sizes = append(sizes, 0)
			}
			sizes[k] = max(sizes[k], s.plan.Memories[m].Size)
		}
	}
	for k, size := range sizes {
		if k < len(p.pool) && p.pool[k].Size() >= size {
			continue
		}
		b, err := buffer.New(p.x.dev, size)
		if err != nil {
			return err
		}
		if k == len(p.pool) {
			p.pool = append(p.pool, b)
			continue
		}
		b, p.pool[k] = p.pool[k], b
		if err := b.Close(); err != nil {
			return err
		}
	}
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
	p.shared = true
	return nil
}

// temporaries are the numbers of a plan's temporary memories, the largest first.
func (s *recorded) temporaries() (list []int) {
	if s.plan == nil {
		return nil
	}
	memories := s.plan.Memories
	for m := s.operands; m < len(memories); m++ {
		list = append(list, m)
		for k := len(list) - 1; k > 0 && memories[list[k]].Size > memories[list[k-1]].Size; k-- { // there are few, and the code of a sort is long
			list[k-1], list[k] = list[k], list[k-1]
		}
	}
	return list
}

func (p *Program) queue(r *Run) error {
	if p.settled != nil {
		if done, err := p.again(r); done {
			return err
		}
	}
	f := p.settling()
	p.settled, r.elsewhere = nil, false
	for i := range p.steps {
		s := &p.steps[i]
		if s.plain {
			to, err := s.To.Current()
			if err == nil {
				err = r.Assign(to, s.Node)
			}
			if err != nil {
				return p.failed(i, err)
			}
			continue
		}
		r.known = s.plan.Memories
		r.buffers = append(r.buffers[:0], s.buffers...)
		r.numbers = append(r.numbers[:0], s.numbers...)
		for k, step := range s.plan.Steps {
			if err := r.launch(step, p.kernels[step.Key]); err != nil {
				s.refused()
				if streams && outgrown(s.plan.Steps[:k], err) {
					err = incomplete(s.to, err)
				}
				return err
			}
			f.note(r, s, k, p.kernels[step.Key])
		}
	}
	p.settle(f, r.elsewhere)
	return nil
}

// refused tells the leaves that the evaluation failed.
func (s *recorded) refused() {
	for _, l := range s.leaves {
		if of, ok := l.of.(Refusable); ok {
			of.Refused()
		}
	}
}

// Close drops kernels and temporaries. What is queued still uses them.
func (p *Program) Close() error {
	if err := p.x.turn.Take(context.Background()); err != nil { // which does not end
		return err
	}
	defer p.x.turn.Give()
	p.steps, p.settled, p.closed = nil, nil, true
	return p.drop()
}

func (p *Program) drop() error {
	for _, k := range p.kernels {
		_ = k.Close() // never fails
	}
	clear(p.kernels)
	var first error
	for _, b := range p.pool {
		if err := b.Close(); err != nil && first == nil {
			first = err
		}
	}
	p.pool, p.shared = nil, false
	return first
}
