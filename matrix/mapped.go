// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/elementwise"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// mapped computes an element-wise tree in one pass.
func (r *run) mapped(dst *Any, n *node, flip bool) error {
	turn := turned(dst)
	b := r.newBuilder(dst, n.t, turn)
	if err := b.build(n, flip != turn); err != nil {
		return err
	}
	if b.hazard() {
		return r.viaTemp(dst, n, func(m *Any) error { return r.mapped(m, n, flip) })
	}
	b.block = b.crossed()
	if err := b.bind(r.g.maxSlots(0)); err != nil {
		return err
	}
	form := b.form()
	if form == elementwise.Linear {
		b.flatten()
		if err := b.bind(r.g.maxSlots(0)); err != nil {
			return err
		}
	}
	plan := elementwise.NewPlan(form, b.rows, b.cols, b.store.place(b.rows, b.cols), r.g.software)
	return r.launch(b, 'e', plan.Spec.Key(), plan.Groups, plan.Shape[:],
		func() (shaders.Program, error) { return elementwise.Build(plan.Spec, copyFunc(&b.f)) })
}

// turned reports whether kernels see a result transposed: stored by columns, or a single column, whose elements then
// lie side by side in vectors. Binary16 results need neighbours in memory to be neighbours in a row.
func turned(m *Any) bool {
	if m.t == fuse.F16 {
		return m.order == ColMajorOrder || m.cols == 1 && m.rows > 1 && m.stride == 1
	}
	return m.rows > 1 && (m.order == ColMajorOrder || m.cols == 1)
}

// crossed reports whether operands stored the other way round are worth reading in blocks.
func (b *builder) crossed() bool {
	if b.rows < 4 || b.cols < 4 {
		return false
	}
	for _, ld := range b.loads {
		if p := ld.l.place(b.rows, b.cols); p.Row == 1 && p.Col > 1 && p.Col%4 == 0 && p.Offset%4 == 0 && ld.m.vectors() {
			return true
		}
	}
	return false
}

func (b *builder) form() elementwise.Form {
	switch {
	case b.words():
		return elementwise.Words
	case b.linear():
		return elementwise.Linear
	case b.block:
		return elementwise.Block
	}
	return elementwise.Grid
}

// words reports whether the result is binary16 that must be written word by word, each element computed on its own.
func (b *builder) words() bool {
	return b.f.Store.Type == fuse.F16 && b.f.Store.Class != fuse.Vector && !b.linear()
}

// maxSlots returns how many storage bindings a function may use in a kernel that has own ones itself.
func (g *engine) maxSlots(own int) int {
	return min(int(g.dev.Limits().MaxStorageBuffers)-own, fuse.MaxSlots+1)
}

// copyFunc keeps a function for a reference, which outlives the builder's slices.
func copyFunc(f *fuse.Func) *fuse.Func {
	c := *f
	c.Code = append([]fuse.Instr(nil), f.Code...)
	c.Loads = append([]fuse.View(nil), f.Loads...)
	c.Slots = append([]fuse.Slot(nil), f.Slots...)
	c.Calls = append([]fuse.Call(nil), f.Calls...)
	return &c
}

// launch queues one kernel: it finds or compiles the text for family, spec and function, and passes the shape, the
// function's parameters and its bindings.
func (r *run) launch(b *builder, family byte, spec [4]byte, groups [3]uint32, shape []uint32, build func() (shaders.Program, error)) error {
	g := r.g
	g.key = b.f.Key(append(append(g.key[:0], family), spec[:]...))
	k, err := g.kernel(g.key, build)
	if err != nil {
		return err
	}
	g.params = append(g.params[:0], bytesOf(shape)...)
	return b.dispatch(k, groups, g.params, g.args[:0])
}

// dispatch queues a kernel that takes the shape and own bindings before the function's, and marks the result as written.
func (b *builder) dispatch(k *gpu.Kernel, groups [3]uint32, shape []byte, own []gpu.Arg) error {
	g := b.run.g
	var err error
	if g.args, err = b.args(own, b.covers()); err != nil {
		return err
	}
	g.params = b.params(shape)
	if err := k.Dispatch(groups, g.params, g.args...); err != nil {
		return err
	}
	b.wrote()
	return nil
}

// covers reports whether the kernel writes all of the result's buffer.
func (b *builder) covers() bool {
	l := b.result.layout
	return l.offset == 0 && l.contiguous() && l.rows*l.cols*b.result.t.Size() == b.result.buf.Size()
}

// wrote marks the result's device side as current.
func (b *builder) wrote() { b.result.buf.Wrote(b.result.region(b.result.t.Size())) }
