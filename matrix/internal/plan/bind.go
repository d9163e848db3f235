// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// bind chooses how each operand is read and the result written, and which storage binding each uses. Operands in the
// result's memory share its binding, since WebGPU refuses one buffer bound for reading and for writing.
func (b *builder) bind(maxSlots int) error {
	f := b.f
	f.Scalars = len(b.numbers)
	f.Loads = f.Loads[:0]
	f.Store = fuse.View{Type: b.result.Type, Class: b.storeClass()}
	f.Slots = append(f.Slots[:0], fuse.Slot{Type: b.result.Type, Vec: f.Store.Class == fuse.Vector})
	b.slots = append(b.slots[:0], b.result)
	f.Flat = b.store.Offset == 0
	for _, op := range b.loads {
		slot := -1
		for s, o := range b.slots {
			if o.Mem == op.Mem && o.Type == op.Type {
				slot = s
			}
		}
		if slot < 0 {
			slot = len(b.slots)
			b.slots = append(b.slots, op)
			f.Slots = append(f.Slots, fuse.Slot{Type: op.Type})
		}
		v := fuse.View{Type: op.Type, Class: b.loadClass(op), Slot: uint8(slot)}
		if slot > 0 && (v.Class == fuse.Vector || v.Class == fuse.Crossed) {
			f.Slots[slot].Vec = true
		}
		f.Loads = append(f.Loads, v)
		f.Flat = f.Flat && op.Offset == 0
	}
	if len(b.slots) > maxSlots {
		return expr.Fail("Assign", expr.ErrLimit, strconv.Itoa(len(b.slots)), " matrices in one element-wise function")
	}
	return nil
}

// vectors reports whether the operand's memory can be bound in vectors.
func (p *planner) vectors(op Operand) bool { return p.plan.Memories[op.Mem].Vectors }

func (b *builder) storeClass() fuse.Class {
	l := b.store
	if !b.single && l.Order == expr.RowMajorOrder && l.Offset%4 == 0 && (l.Stride%4 == 0 || l.Rows == 1) && b.p.vectors(b.result) {
		return fuse.Vector
	}
	return fuse.Gather
}

func (b *builder) loadClass(op Operand) fuse.Class {
	at := place(op.Layout, b.rows, b.cols)
	vec := b.p.vectors(op) && !b.words() // which would have to begin at multiples of four
	switch {
	case at.Col == 0 && b.cols > 1, b.cols == 1 && at.Row == 0:
		return fuse.Column
	case vec && at.Col == 1 && at.Offset%4 == 0 && (at.Row%4 == 0 || b.rows == 1):
		return fuse.Vector
	case vec && b.block && at.Row == 1 && at.Col%4 == 0 && at.Offset%4 == 0:
		return fuse.Crossed
	}
	return fuse.Gather
}

// linear reports whether the kernel can run over everything as one row: result and operands contiguous in one order.
func (b *builder) linear() bool {
	if !oneRow(b.store) || b.f.Store.Class != fuse.Vector && b.store.Stride != b.store.Cols {
		return false
	}
	if b.store.Offset%4 != 0 || !b.p.vectors(b.result) {
		return false
	}
	for _, op := range b.loads {
		if !b.stretched(op) && (op.Offset%4 != 0 || !b.p.vectors(op)) {
			return false
		}
	}
	return b.linearLoads()
}

// linearLoads reports whether all operands can be read as one row.
func (b *builder) linearLoads() bool {
	for _, op := range b.loads {
		if !b.stretched(op) && (op.Rows != b.rows || op.Cols != b.cols || !oneRow(op.Layout)) {
			return false
		}
	}
	return true
}

// stretched reports whether an operand is a single element for the whole result.
func (b *builder) stretched(op Operand) bool {
	at := place(op.Layout, b.rows, b.cols)
	return at.Row == 0 && at.Col == 0
}

func oneRow(l expr.Layout) bool {
	return l.Order == expr.RowMajorOrder && (l.Rows == 1 || l.Stride == l.Cols)
}

// flatten turns the result and the operands into one row; linear said that this is the same.
func (b *builder) flatten() {
	b.flattenLoads()
	b.store = flat(b.store)
}

func (b *builder) flattenLoads() {
	for k, op := range b.loads {
		if !b.stretched(op) {
			b.loads[k].Layout = flat(op.Layout)
		}
	}
	b.rows, b.cols = 1, b.rows*b.cols
}

func flat(l expr.Layout) expr.Layout {
	return expr.Layout{Rows: 1, Cols: l.Rows * l.Cols, Offset: l.Offset, Stride: l.Rows * l.Cols, Order: expr.RowMajorOrder}
}

// hazard reports whether an operand shares elements with the result other than one for one.
func (b *builder) hazard() bool {
	for _, op := range b.loads {
		if op.Mem == b.result.Mem && op.Layout != b.store && op.Overlaps(b.store) {
			return true
		}
	}
	return false
}

// reads reports whether an operand lies in the result's memory.
func (b *builder) reads() bool {
	for _, op := range b.loads {
		if op.Mem == b.result.Mem {
			return true
		}
	}
	return false
}

// covers reports whether the kernel writes all of the result's memory.
func (b *builder) covers() bool {
	l := b.result
	return l.Offset == 0 && l.Contiguous() && l.Rows*l.Cols*l.Type.Size() == b.p.plan.Memories[l.Mem].Size
}

// kernel is how the text of a kernel is found or made.
type kernel struct {
	name  string
	key   []byte // family and spec; the function's key follows
	build func(f *fuse.Func) (shaders.Program, error)
}

// step is the launch of a kernel with the builder's function.
func (b *builder) step(k kernel, groups [3]uint32, shape []byte, own ...Window) Step {
	f := b.f
	s := Step{
		Name: k.name, Groups: groups, Shape: shape, Own: own, Func: f, Numbers: b.numbers,
		Store: place(b.store, b.rows, b.cols), To: b.result, Whole: b.covers() && !b.reads(),
	}
	if k.build != nil {
		s.Key = string(f.Key(k.key))
		s.Build = func() (shaders.Program, error) { return k.build(f) }
	}
	for slot, o := range b.slots {
		s.Slots = append(s.Slots, b.window(slot, o))
	}
	for _, op := range b.loads {
		s.Loads = append(s.Loads, place(op.Layout, b.rows, b.cols))
	}
	return s
}

// window is what the views of a slot need of its memory.
func (b *builder) window(slot int, o Operand) Window {
	w := Window{Mem: o.Mem, Lo: -1, Size: o.Type.Size()}
	grow := func(l expr.Layout) {
		if w.Lo < 0 || l.Offset < w.Lo {
			w.Lo = l.Offset
		}
		w.Hi = max(w.Hi, l.Offset+l.Span())
	}
	if slot == 0 {
		grow(b.store)
	}
	for k, v := range b.f.Loads {
		if int(v.Slot) == slot {
			grow(b.loads[k].Layout)
		}
	}
	return w
}

// launch appends a step to the plan.
func (b *builder) launch(k kernel, groups [3]uint32, shape []byte) {
	b.p.plan.Steps = append(b.p.plan.Steps, b.step(k, groups, shape))
}

// words is a kernel's shape as bytes.
func words(shape []uint32) []byte {
	out := make([]byte, 0, 4*len(shape))
	for _, w := range shape {
		out = append(out, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return out
}
