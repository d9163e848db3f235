// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// streams tells that evaluations may wait for results to leave the device, which they cannot in a page.
const streams = runtime.GOOS != "js"

// progressKey is the key of a context's function for progress.
type progressKey struct{}

// WithProgress returns a context under which evaluations tell how far they are.
func WithProgress(ctx context.Context, tell func(done, total int)) context.Context {
	if ctx == nil || tell == nil {
		return ctx // evaluations refuse a nil context
	}
	return context.WithValue(ctx, progressKey{}, tell)
}

// Functions that pages have no use for are no methods: those are in the tables of a page's program, whether it calls them or not.

// ranged is how many of the memories are used in ranges.
func ranged(t *tree) (n int) {
	for _, m := range t.memories {
		if m.Windowed {
			n++
		}
	}
	return n
}

// inRanges reports whether a plan uses memory in ranges, that of operands or its own.
func inRanges(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Memories, func(m plan.Memory) bool { return m.Windowed })
}

// factorises reports whether an expression has a decomposition.
func factorises(r *Run) bool {
	for n := range r.nodes {
		if n.Kind == expr.Factor {
			return true
		}
	}
	return false
}

// largest is the size of the largest temporary that the device has.
func largest(x *Executor) uint64 {
	if budget := x.dev.Budget(); budget > 0 {
		return min(x.info.Buffer, budget)
	}
	return x.info.Buffer
}

// Beyond reports whether a device has no memory for a matrix of so many bytes and what is computed beside it, so that the host keeps it.
func Beyond(dev *gpu.Device, bytes int) bool {
	if !streams || dev == nil {
		return false
	}
	most := dev.Info().Limits.MaxBufferSize
	if budget := dev.Budget(); budget > 0 {
		most = min(most, budget/2)
	}
	return uint64(bytes) > most
}

// makeRoom gives back memory of ranges before a plan that needs some, within the device's budget: that of earlier results, too, which go to
// the host, if it is much. It returns how many bytes are left for ranges and temporaries, roughly, so that the same plan does again; 0
// where there is no budget, or no need. If there is memory for all of a result that is used in ranges, r.hold, that is not counted.
func makeRoom(r *Run, dst Dense) (room uint64, err error) {
	budget := r.x.dev.Budget()
	r.hold = budget == 0
	if budget == 0 || ranged(&r.tree) == 0 && !factorises(r) {
		return 0, nil
	}
	used := budget
	for _, results := range []bool{false, true} {
		for i, b := range r.buffers {
			if err == nil && r.memories[i].Windowed && used > budget/4 {
				err = b.Evict(r.ctx, results)
			}
		}
		if used = occupied(r); err != nil {
			return 0, err
		}
	}
	step := max(budget/64, 1)
	room = max((budget-min(used, budget))/step*step, 1)
	if result := uint64(dst.Span() * dst.Type.Size()); r.memories[0].Windowed && result <= room/2 {
		room, r.hold = room-result, true
	}
	return room, nil
}

// occupied is how much of the device's memory is in use, or will be by the operands.
func occupied(r *Run) uint64 {
	used := r.x.dev.Stats().LiveBytes
	for i, b := range r.buffers {
		if b != nil && !r.memories[i].Windowed && b.Location()&buffer.Device == 0 {
			used += uint64(b.Size())
		}
	}
	return used
}

// divided reports whether a plan that may be ended in between writes a result that is not used in ranges in several steps, and the result
// is small enough to be computed elsewhere and copied when all of it is there.
func divided(r *Run, p *plan.Plan, dst Dense) bool {
	if r.memories[0].Windowed || !inRanges(p) && !demanding(r, p) {
		return false
	}
	count := 0
	for _, s := range p.Steps {
		if writes(s) {
			count++
		}
	}
	most := r.x.info.Buffer / 4
	if budget := r.x.dev.Budget(); budget > 0 {
		most = min(r.x.info.Buffer, budget/4)
	}
	return count > 1 && uint64(dst.Span()*dst.Type.Size()) <= most
}

// writes reports whether a step computes some of the destination.
func writes(s *plan.Step) bool { return s.Launch != nil && s.To.Mem == 0 }

// demanding reports whether a plan takes memory of a budget, which may have none left, once it has written some of the result.
func demanding(r *Run, p *plan.Plan) bool {
	if r.x.dev.Budget() == 0 {
		return false
	}
	wrote, there := false, make([]bool, len(p.Memories))
	for i, b := range r.buffers {
		there[i] = i == 0 || b != nil && b.Location()&buffer.Device != 0
	}
	for _, s := range p.Steps {
		for _, b := range s.Bindings {
			if wrote && !there[b.Mem] {
				return true
			}
			there[b.Mem] = true
		}
		wrote = wrote || writes(s)
	}
	return false
}

// quantum is how many bytes there may be on their way to the device, or back, before an evaluation in ranges waits.
func quantum(x *Executor) uint64 {
	if budget := x.dev.Budget(); budget > 0 {
		return budget / 16
	}
	return 64 << 20
}

// replace performs a plan. That the destination has a part of an earlier result only does not matter if the plan replaces all of it.
func replace(r *Run, p *plan.Plan, dst Dense) error {
	region := dst.Region(dst.Type.Size())
	var before error
	if dst.Buf != nil && !reads(r) {
		before = dst.Buf.Spoil(nil, region)
	}
	wrote, err := false, error(nil)
	if inRanges(p) {
		wrote, err = performInRanges(r, p)
	} else {
		var done int
		done, err = r.perform(p)
		wrote = outgrown(p.Steps[:done], err)
	}
	switch {
	case err != nil && wrote && r.aside != computing:
		return incomplete(dst, err)
	case err != nil && before != nil:
		_ = dst.Buf.Spoil(before, region)
	}
	return err
}

// incomplete is the error of an evaluation that wrote some of the destination, which nobody can use from now on.
func incomplete(dst Dense, err error) error {
	_ = dst.Buf.Spoil(err, dst.Region(dst.Type.Size()))
	return errors.Join(err, fault.Fail("matrix: Assign", buffer.ErrIncomplete, "the destination"))
}

// outgrown reports whether an evaluation found no memory after steps that wrote some of the destination. Other errors are those of a device
// that is lost or closed, and with it what it had.
func outgrown(steps []*plan.Step, err error) bool {
	return errors.Is(err, gpu.ErrNoMemory) && slices.ContainsFunc(steps, writes)
}

// stream is an evaluation in ranges: while the device computes with some, those of the next launches go up and results of those before
// come back.
type stream struct {
	*Run
	plan    *plan.Plan
	tell    func(done, total int)
	waiting chan error // for what was queued some time ago, or its results; nil: nobody waits
	up      uint64     // bytes that had gone up when the last wait began
	results uint64     // bytes of results that are complete and not on their way to the host
	wrote   bool       // some of the destination
}

// performInRanges queues the steps of a plan that uses ranges, within the device's budget. After an error it reports whether some of the
// destination was written; a destination that is used in ranges is what it was as long as no results had to leave the device.
func performInRanges(r *Run, p *plan.Plan) (wrote bool, err error) {
	s := stream{Run: r, plan: p, up: r.x.dev.Stats().BytesUp}
	r.begin(p)
	s.tell, _ = r.ctx.Value(progressKey{}).(func(done, total int))
	dst, trial := r.buffers[0], s.known[0].Windowed && r.aside != computing
	if trial {
		if err := dst.Try(r.ctx); err != nil { // before anything is computed
			return false, err
		}
	}
	err = s.run()
	if waited := s.wait(); err == nil {
		err = waited
	}
	if s.known[0].Windowed && !r.hold && err == nil { // the rest of the result does not take memory either
		err = dst.Evict(r.ctx, true)
	}
	if trial {
		s.wrote = !dst.Settle(err == nil)
	}
	if r.x.dev.Budget() > 0 {
		_ = s.evict(nil, false) // the results that stay matter, not the memory
	}
	return s.wrote, err
}

func (s *stream) run() error {
	next := 0 // the step that writes the destination next
	last := len(s.plan.Steps) - 1
	for i, step := range s.plan.Steps {
		if err := s.ctx.Err(); err != nil {
			return fault.Fail("matrix: Assign", err)
		}
		if i == last && !s.known[0].Windowed { // what failed has to be known before the result is written
			if err := s.wait(); err != nil {
				return err
			}
		}
		if next <= i {
			next = s.next(i)
		}
		if err := s.squeeze(i, next); err != nil {
			return err
		}
		for _, b := range step.Bindings {
			if s.plan.Last[b.Mem] == i {
				s.release(b.Mem)
			}
		}
		if i == next {
			s.wrote, next = true, s.next(i+1)
			if s.plan.Steps[next].To.Layout != step.To.Layout {
				s.results += uint64(step.To.Span() * step.To.Type.Size())
			}
		}
		if s.tell != nil {
			s.tell(i+1, last+1)
		}
		if i < last {
			if err := s.throttle(); err != nil {
				return err
			}
		}
	}
	return nil
}

// squeeze queues a step. If there is no memory for it, what is not used gives back its own: but for what the steps up to the next one that
// writes the destination use, then half as many of them, until only what this one uses stays.
func (s *stream) squeeze(i, next int) error {
	step := s.plan.Steps[i]
	err := s.step(step)
	for to := next; errors.Is(err, gpu.ErrNoMemory); to = i + (to-i)/2 {
		if err = cmp.Or(s.wait(), s.evict(s.plan.Steps[i:to+1], true)); err == nil {
			err = s.step(step)
		}
		if to == i {
			break
		}
	}
	return err
}

// next finds the first step from i on that writes the destination, or else the last one.
func (s *stream) next(i int) int {
	last := len(s.plan.Steps) - 1
	for ; i < last; i++ {
		if writes(s.plan.Steps[i]) {
			return i
		}
	}
	return last
}

// throttle begins to wait for what is queued, and has complete results go to the host, once there is enough of it; the wait before has
// to be over then.
func (s *stream) throttle() error {
	dev := s.x.dev
	up, most := dev.Stats().BytesUp, quantum(s.x)
	send := s.known[0].Windowed && !s.hold && s.results >= most
	if up-s.up < most && !send {
		return nil
	}
	if err := s.wait(); err != nil {
		return err
	}
	sync := dev.Sync
	if send {
		sync, s.results = s.buffers[0].Sync, 0
	}
	s.up, s.waiting = up, make(chan error, 1)
	go func(ctx context.Context, done chan error) { done <- sync(ctx) }(s.ctx, s.waiting)
	return nil
}

// wait returns when the wait that began last is over.
func (s *stream) wait() (err error) {
	if s.waiting != nil {
		err, s.waiting = <-s.waiting, nil
	}
	return err
}

// evict gives back the memory of ranges that none of the steps use. With results, those that are only there come to the host before; but
// without a budget those of this evaluation stay, so that the destination can be what it was.
func (s *stream) evict(steps []*plan.Step, results bool) error {
	keep := make([][]buffer.Region, len(s.buffers))
	for _, step := range steps {
		for k := range step.Bindings {
			if w := &step.Bindings[k]; s.known[w.Mem].Windowed && s.buffers[w.Mem] != nil {
				keep[w.Mem] = append(keep[w.Mem], region(w, s.buffers[w.Mem]))
			}
		}
	}
	ctx := s.ctx
	if !results {
		ctx = context.Background()
	}
	for m, b := range s.buffers {
		if s.known[m].Windowed && b != nil {
			stay := m == 0 && s.x.dev.Budget() == 0 && s.aside != computing
			if err := b.Evict(ctx, results && !stay, keep[m]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// region is what a binding needs of a buffer that is used in ranges, as [Run.bind] has it.
func region(w *plan.Binding, b *buffer.Buffer) buffer.Region {
	size := w.Type.Size()
	hi := min((w.Hi*size+3)/4*4, b.Size())
	lo := min(w.Lo*size, hi)
	return buffer.Range(lo, hi-lo)
}

// release closes a temporary.
func (s *stream) release(m int) {
	b := s.buffers[m]
	for i, temp := range s.temps {
		if m >= len(s.memories) && temp == b {
			_ = b.Close() // what is queued still sees it
			s.temps = append(s.temps[:i], s.temps[i+1:]...)
			s.buffers[m] = nil
			return
		}
	}
}

// reads reports whether an evaluation reads memory that it writes.
func reads(r *Run) bool {
	for n, at := range r.nodes {
		if (n.Kind == expr.Leaf || n.Kind == expr.Words) && r.operands[at].Mem == 0 {
			return true
		}
	}
	return false
}
