// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// bind chooses how each operand is read and the result written, and which storage binding each uses. Operands in the
// result's buffer share its binding, since WebGPU refuses one buffer bound for reading and for writing.
func (b *builder) bind(maxSlots int) error {
	b.f.Scalars = len(b.scalars)
	b.f.Loads = b.f.Loads[:0]
	b.f.Slots = append(b.f.Slots[:0], fuse.Slot{Type: b.result.t})
	b.f.Store = fuse.View{Type: b.result.t, Class: b.storeClass()}
	b.f.Slots[0].Vec = b.f.Store.Class == fuse.Vector
	owners := b.run.owners[:0]
	owners = append(owners, b.result)
	for _, ld := range b.loads {
		slot := -1
		for s, o := range owners {
			if o.buf.Same(ld.m.buf) && o.t == ld.m.t {
				slot = s
			}
		}
		if slot < 0 {
			slot = len(owners)
			owners = append(owners, ld.m)
			b.f.Slots = append(b.f.Slots, fuse.Slot{Type: ld.m.t})
		}
		v := fuse.View{Type: ld.m.t, Class: b.loadClass(ld), Slot: uint8(slot)}
		if slot > 0 && (v.Class == fuse.Vector || v.Class == fuse.Crossed) {
			b.f.Slots[slot].Vec = true
		}
		b.f.Loads = append(b.f.Loads, v)
	}
	b.run.owners = owners
	b.f.Flat = b.flat()
	if len(owners) > maxSlots {
		return fail("Assign", ErrLimit, itoa(len(owners)), " matrices in one element-wise function")
	}
	return nil
}

// flat reports whether every operand and the result begin where their buffers do.
func (b *builder) flat() bool {
	for _, ld := range b.loads {
		if ld.l.offset != 0 {
			return false
		}
	}
	return b.store.offset == 0
}

// vectors reports whether the buffer can be bound in vectors: an imported buffer whose size is no multiple of one would
// lose its end.
func (m *Any) vectors() bool {
	return m.buf.Mode() != buffer.External || m.buf.HasHost() || m.buf.Size()%16 == 0
}

func (b *builder) storeClass() fuse.Class {
	l := b.store
	if !b.single && l.order == RowMajorOrder && l.offset%4 == 0 && (l.stride%4 == 0 || l.rows == 1) && b.result.vectors() {
		return fuse.Vector
	}
	return fuse.Gather
}

func (b *builder) loadClass(ld load) fuse.Class {
	p := ld.l.place(b.rows, b.cols)
	vec := ld.m.vectors() && !b.words() // which would have to begin at multiples of four
	switch {
	case p.Col == 0 && b.cols > 1:
		return fuse.Column
	case b.cols == 1 && p.Row == 0:
		return fuse.Column
	case vec && p.Col == 1 && p.Offset%4 == 0 && (p.Row%4 == 0 || b.rows == 1):
		return fuse.Vector
	case vec && b.block && p.Row == 1 && p.Col%4 == 0 && p.Offset%4 == 0:
		return fuse.Crossed
	}
	return fuse.Gather
}

// linear reports whether the kernel can run over everything as one row: result and operands contiguous in one order.
func (b *builder) linear() bool {
	if !b.oneRow(b.store) || b.f.Store.Class != fuse.Vector && b.store.stride != b.store.cols {
		return false
	}
	if b.store.offset%4 != 0 || !b.result.vectors() {
		return false
	}
	for _, ld := range b.loads {
		p := ld.l.place(b.rows, b.cols)
		if p.Row == 0 && p.Col == 0 {
			continue
		}
		if ld.l.rows != b.rows || ld.l.cols != b.cols || !b.oneRow(ld.l) || ld.l.offset%4 != 0 || !ld.m.vectors() {
			return false
		}
	}
	return true
}

func (b *builder) oneRow(l layout) bool {
	return l.order == RowMajorOrder && (l.rows == 1 || l.stride == l.cols)
}

// flatten turns everything into one row; linear said that this is the same.
func (b *builder) flatten() {
	one := func(l layout) layout {
		return layout{rows: 1, cols: l.rows * l.cols, offset: l.offset, stride: l.rows * l.cols, order: RowMajorOrder}
	}
	for k, ld := range b.loads {
		if p := ld.l.place(b.rows, b.cols); p.Row != 0 || p.Col != 0 {
			b.loads[k].l = one(ld.l)
		}
	}
	b.store = one(b.store)
	b.rows, b.cols = 1, b.rows*b.cols
}

// hazard reports whether an operand shares elements with the result other than one for one.
func (b *builder) hazard() bool {
	for _, ld := range b.loads {
		if ld.m.buf.Same(b.result.buf) && ld.l != b.store && ld.l.overlaps(b.store) {
			return true
		}
	}
	return false
}

// args returns the arguments of the function's bindings, bringing every operand up to date.
func (b *builder) args(out []gpu.Arg, whole bool) ([]gpu.Arg, error) {
	for s, o := range b.run.owners {
		a, err := b.window(s, o, whole && !b.reads(o))
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// reads reports whether an operand lies in the buffer.
func (b *builder) reads(m *Any) bool {
	for _, ld := range b.loads {
		if ld.m.buf.Same(m.buf) {
			return true
		}
	}
	return false
}

// window binds the whole buffer, or of a buffer larger than a binding may be the part that the views of the slot need,
// and moves their offsets.
func (b *builder) window(slot int, o *Any, whole bool) (gpu.Arg, error) {
	lo, hi := -1, 0
	grow := func(l layout) {
		if lo < 0 || l.offset < lo {
			lo = l.offset
		}
		hi = max(hi, l.offset+l.span())
	}
	if slot == 0 {
		grow(b.store)
	}
	for k, v := range b.f.Loads {
		if int(v.Slot) == slot {
			grow(b.loads[k].l)
		}
	}
	a, shift, err := o.bindRange(lo, hi, slot == 0, whole)
	if err != nil || shift == 0 {
		return a, err
	}
	if slot == 0 {
		b.store.offset -= shift
	}
	for k, v := range b.f.Loads {
		if int(v.Slot) == slot {
			b.loads[k].l.offset -= shift
		}
	}
	return a, nil
}

// params appends the function's part of the parameter block.
func (b *builder) params(out []byte) []byte {
	places := b.run.places[:0]
	for _, ld := range b.loads {
		places = append(places, ld.l.place(b.rows, b.cols))
	}
	b.run.places = places
	return b.f.Params(out, b.store.place(b.rows, b.cols), places, b.scalars)
}
