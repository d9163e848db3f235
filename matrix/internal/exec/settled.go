// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// settled is what a run of a program has queued. Where the matrices are where they were then, the next run queues the same: it looks at each
// matrix and each memory once, however many assignments use it.
type settled struct {
	sources  []leafAt
	memories []memoryUse
	written  []written
	launches []launched
}

// memoryUse is memory, and what the first launches do with all of it that the others rely on.
type memoryUse struct {
	b   *buffer.Buffer
	in  buffer.Intent
	mem *gpu.Buffer
}

// written is what a launch writes.
type written struct {
	b *buffer.Buffer
	r buffer.Region
}

type launched struct {
	kernel *gpu.Kernel
	groups [3]uint32
	params []byte
	args   []gpu.Arg
	to     int // the number of what it writes
}

// mostWrapped is how many memories with a side of the host's a settled program may have: they are compared with each other.
const mostWrapped = 32

// note adds what a run has launched for a step of an assignment. Nothing is noted where f is nil.
func (f *settled) note(r *Run, s *recorded, i int, k *gpu.Kernel) {
	if f == nil {
		return
	}
	step := s.plan.Steps[i]
	for j, w := range step.Bindings {
		f.uses(s.buffers[w.Mem], w.Intent, r.args[j].Buffer)
	}
	if k == nil {
		return
	}
	to := written{s.buffers[step.To.Mem], step.To.Region(step.To.Type.Size())}
	at := 0
	for at < len(f.written) && f.written[at] != to {
		at++
	}
	if at == len(f.written) {
		f.written = append(f.written, to)
	}
	// Generic functions for these types would be code that pages load.
	f.launches = append(f.launches, launched{k, step.Groups, append([]byte(nil), r.params...), append([]gpu.Arg(nil), r.args...), at})
}

// uses adds a use of a memory.
func (f *settled) uses(b *buffer.Buffer, in buffer.Intent, mem *gpu.Buffer) {
	for i := range f.memories {
		if m := &f.memories[i]; m.b == b {
			if m.in == buffer.Reads && in != buffer.Reads {
				m.in = buffer.Writes
			}
			return
		}
	}
	f.memories = append(f.memories, memoryUse{b, in, mem})
}

// source adds a matrix.
func (f *settled) source(of Source, d Dense) {
	for _, s := range f.sources {
		if s.of == of {
			return
		}
	}
	f.sources = append(f.sources, leafAt{of, d})
}

// apart reports whether no memory is that of the host beneath another one, by way of which what is written to the one gets to the other.
func (f *settled) apart() bool {
	var hosted []*buffer.Buffer
	for _, m := range f.memories {
		if m.b.HasHost() {
			hosted = append(hosted, m.b)
		}
	}
	if len(hosted) > mostWrapped {
		return false
	}
	for i, b := range hosted {
		for _, o := range hosted[:i] {
			if !b.Same(o) && b.Overlaps(o) {
				return false
			}
		}
	}
	return true
}

// settle keeps what a run has queued for the next one, unless that may have to do something in between.
func (p *Program) settle(f *settled, elsewhere bool) {
	if f == nil || elsewhere || !f.apart() {
		return
	}
	for i := range p.steps {
		s := &p.steps[i]
		f.source(s.To, s.to)
		for _, l := range s.leaves {
			f.source(l.of, l.d)
		}
	}
	p.settled = f
}

// still reports whether all matrices are where they were when the program settled.
func (p *Program) still() bool {
	f := p.settled
	if f == nil || p.generation != p.x.generation {
		return false
	}
	for _, s := range f.sources {
		if d, err := s.of.Current(); err != nil || !d.same(s.d) {
			return false
		}
	}
	return true
}

// again queues what the program has settled on. If some memory is elsewhere now, or cannot be used, it has done nothing: then the
// assignments are to be queued one by one, which tells at which one that matters.
func (p *Program) again(r *Run) (done bool, err error) {
	f := p.settled
	for _, m := range f.memories {
		mem, base, err := m.b.Use(r.ctx, m.b.Device(), buffer.Range(0, m.b.Size()), m.in)
		if err != nil || mem != m.mem || base != 0 {
			return false, nil //nolint:nilerr // it comes again
		}
	}
	for i := range f.launches {
		l := &f.launches[i]
		if err := l.kernel.Dispatch(l.groups, l.params, l.args...); err != nil {
			for _, l := range f.launches[:i] {
				w := f.written[l.to]
				w.b.Wrote(p.x.dev, w.r)
			}
			for i := range p.steps {
				p.steps[i].refused()
			}
			return true, err
		}
	}
	for _, w := range f.written {
		w.b.Wrote(p.x.dev, w.r)
	}
	return true, nil
}

// settling is where a run notes what it launches: nil if it does something else, too.
func (p *Program) settling() *settled {
	for i := range p.steps {
		if p.steps[i].plain {
			return nil
		}
	}
	return &settled{}
}
