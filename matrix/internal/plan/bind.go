// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// launch appends a step to the plan.
func (b *builder) launch(l *kernels.Launch, own ...Binding) {
	s := b.step(l, own...)
	if gpu.RunsNative && l.Sooner != nil {
		s.Sooner = b.step(l.Sooner, own...)
	}
	b.p.plan.Steps = append(b.p.plan.Steps, s)
}

// step is the launch of a kernel with the builder's function. It chooses how each operand is read and the result written, and
// which storage binding each uses. Operands in the result's memory share its binding, since WebGPU refuses one buffer bound for
// reading and for writing. own are the kernel's own bindings.
func (b *builder) step(l *kernels.Launch, own ...Binding) *Step {
	f := b.f
	f.Scalars = len(b.numbers)
	f.Store = fuse.View{Type: b.result.Type, Class: b.storeClass()}
	f.Slots = []fuse.Slot{{Type: b.result.Type, Vec: f.Store.Class == fuse.Vector}}
	f.Loads = nil
	f.Flat = b.result.Offset == 0
	word := len(l.Shape)
	slots := []Binding{bindingOf(b.result, b.intent(), word)}
	places := make([]fuse.Place, len(b.loads))
	for k, op := range b.loads {
		word += 4
		at := slices.IndexFunc(slots, func(s Binding) bool { return s.Mem == op.Mem && s.Type == op.Type })
		if at < 0 {
			at = len(slots)
			f.Slots = append(f.Slots, fuse.Slot{Type: op.Type})
			slots = append(slots, bindingOf(op.Operand, buffer.Reads))
		}
		s := &slots[at]
		s.Lo, s.Hi = min(s.Lo, op.Offset), max(s.Hi, op.Offset+op.Span())
		s.Words = append(s.Words, word)
		class := b.loadClass(op)
		f.Loads = append(f.Loads, fuse.View{Type: op.Type, Class: class, Slot: uint8(at)})
		if at > 0 && (class == fuse.Vector || class == fuse.Crossed) {
			f.Slots[at].Vec = true
		}
		f.Flat = f.Flat && op.Offset == 0
		places[k] = b.place(op)
	}
	if len(slots) > b.p.Device.slots(len(own)) {
		b.p.tooMuch("Assign", strconv.Itoa(len(slots)), " matrices in one element-wise function")
	}
	word = len(l.Shape) + 4*f.Views()
	s := &Step{Launch: l, Func: f, Key: l.Key(f), Bindings: append(own, slots...), To: b.result}
	bits := make([]uint32, len(b.numbers))
	for k, n := range b.numbers {
		bits[k] = n.bits
		if n.index >= 0 {
			bits[k] = 0
			s.Numbers = append(s.Numbers, Number{word + k, n.index})
		}
	}
	s.Params = f.Params(shaders.Words(nil, l.Shape...), b.place(load{Operand: b.result}), places, bits)
	return s
}

// slots returns how many storage bindings a function may use in a kernel that has own ones itself.
func (d *Device) slots(own int) int { return min(d.Storage-own, fuse.MaxSlots+1) }

// bindingOf binds an operand. The words count elements from where the binding begins.
func bindingOf(op Operand, intent buffer.Intent, words ...int) Binding {
	return Binding{Mem: op.Mem, Lo: op.Offset, Hi: op.Offset + op.Span(), Type: op.Type, Intent: intent, Words: words, Unit: 1}
}

// intent is what the kernel does with the result's memory: it replaces all of it, or writes to it.
func (b *builder) intent() buffer.Intent {
	l, m := b.result, b.p.plan.Memories[b.result.Mem]
	whole := l.Offset == 0 && l.Rows*l.Cols*l.Type.Size() == m.Size || streams && m.Windowed && !l.Type.Packed()
	if whole && l.Contiguous() && !b.reads() {
		return buffer.Replaces
	}
	return buffer.Writes
}

// vectors reports whether the operand's memory can be bound in vectors.
func (p *planner) vectors(op Operand) bool { return p.plan.Memories[op.Mem].Vectors }

// place returns where an operand lies as the kernel sees it: its steps are 0 where it is stretched.
func (b *builder) place(op load) fuse.Place {
	row, col := op.Steps()
	if op.indexed {
		return fuse.Place{Offset: op.Offset, Row: row, Col: col, Rows: op.Rows, Cols: op.Cols}
	}
	if op.Rows == 1 && b.rows != 1 {
		row = 0
	}
	if op.Cols == 1 && b.cols != 1 {
		col = 0
	}
	return fuse.Place{Offset: op.Offset, Row: row, Col: col}
}

// ends reports whether a row of elements side by side is stored in vectors, of which the last one ends where its memory does or later.
func (p *planner) ends(op Operand) bool {
	return p.vectors(op) && op.Offset%4 == 0 && (op.Offset+op.Cols)*op.Type.Size() == p.plan.Memories[op.Mem].Size
}

func (b *builder) storeClass() fuse.Class {
	l := b.result
	if !b.single && !l.ColMajor && l.Offset%4 == 0 && (l.Stride%4 == 0 || l.Rows == 1) && b.p.vectors(l) {
		return fuse.Vector
	}
	if b.place(load{Operand: l}).Col == 1 {
		return fuse.Beside
	}
	return fuse.Gather
}

// unaligned reports whether the result is packed and shares words with others.
func (b *builder) unaligned() bool { return b.result.Type.Packed() && b.storeClass() != fuse.Vector }

func (b *builder) loadClass(op load) fuse.Class {
	at := b.place(op)
	vec := b.p.vectors(op.Operand) && !b.unaligned() // whose vectors would have to begin at multiples of four
	switch {
	case op.indexed:
		return fuse.Indexed
	case at.Col == 0 && b.cols > 1, b.cols == 1 && (at.Row == 0 || b.single):
		return fuse.Column
	case vec && at.Col == 1 && at.Offset%4 == 0 && (at.Row%4 == 0 || b.rows == 1):
		return fuse.Vector
	case b.block && at.Row == 1 && at.Col > 1:
		if vec && at.Col%4 == 0 && at.Offset%4 == 0 {
			return fuse.Crossed
		}
		return fuse.Across
	}
	if at.Col == 1 {
		return fuse.Beside
	}
	return fuse.Gather
}

// linear reports whether the kernel can run over everything as one row: result and operands contiguous in one order, wherever they begin.
// A packed result begins with a vector.
func (b *builder) linear() bool {
	l := b.result
	return oneRow(l.Layout) && (!l.Type.Packed() || l.Offset%4 == 0 && b.p.vectors(l)) && b.linearLoads()
}

// linearLoads reports whether all operands can be read as one row, and no value depends on what its row is.
func (b *builder) linearLoads() bool {
	return (!b.placed || b.rows <= 1) && !slices.ContainsFunc(b.loads, func(op load) bool {
		return !op.indexed && !b.stretched(op) && (op.Rows != b.rows || op.Cols != b.cols || !oneRow(op.Layout))
	})
}

// stretched reports whether an operand is a single element for the whole result.
func (b *builder) stretched(op load) bool {
	at := b.place(op)
	return at.Row == 0 && at.Col == 0
}

func oneRow(l expr.Layout) bool {
	return !l.ColMajor && (l.Rows == 1 || l.Stride == l.Cols)
}

// flatten turns the operands into one row; linearLoads said that this is the same.
func (b *builder) flatten() {
	for k, op := range b.loads {
		if !op.indexed && !b.stretched(op) {
			b.loads[k].Layout = flat(op.Layout)
		}
	}
	b.rows, b.cols = 1, b.rows*b.cols
}

func flat(l expr.Layout) expr.Layout {
	return expr.Layout{Rows: 1, Cols: l.Rows * l.Cols, Offset: l.Offset, Stride: l.Rows * l.Cols}
}

// hazard reports whether an operand shares elements with the result other than one for one.
func (b *builder) hazard() bool {
	return slices.ContainsFunc(b.loads, func(op load) bool {
		return op.Mem == b.result.Mem && (op.indexed || op.Layout != b.result.Layout) && op.Overlaps(b.result.Layout)
	})
}

// scattered reports whether neighbours of a row lie far apart, in the result or in an operand.
func (b *builder) scattered() bool {
	return b.storeClass() == fuse.Gather || slices.ContainsFunc(b.loads, func(op load) bool { return b.loadClass(op) == fuse.Gather })
}

// reads reports whether an operand lies in the result's memory.
func (b *builder) reads() bool {
	return slices.ContainsFunc(b.loads, func(op load) bool { return op.Mem == b.result.Mem })
}
