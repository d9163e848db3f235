// SPDX-License-Identifier: Apache-2.0

// Package plan turns an expression into a list of kernel launches without touching a device: which kernels, over which
// operands, by way of which temporaries. The same expression, operands of the same layouts in the same places and the same
// device give the same plan, whatever the numbers in it are.
package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
	"github.com/sublet-gpu/sublet/internal/shaders/product"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Device is what plans depend on of a device.
type Device struct {
	Binding uint64 // bytes that a kernel can bind at once
	Buffer  uint64 // bytes of the largest buffer
	Storage int    // storage bindings of a kernel
	plan.Device
}

// slots returns how many storage bindings a function may use in a kernel that has own ones itself.
func (d *Device) slots(own int) int { return min(d.Storage-own, fuse.MaxSlots+1) }

// Memory is memory that operands lie in. Operands are in the same memory where kernels would bind the same buffer.
type Memory struct {
	Size     int  // bytes
	Vectors  bool // it can be bound in vectors: an imported buffer whose size is no multiple of one would lose its end
	Windowed bool // the device gets parts of it only
}

// Operand is a matrix in one of the memories of a plan.
type Operand struct {
	expr.Layout
	Type fuse.Type
	Mem  int
}

// Plan is a list of launches. The first memories are those of the operands, the result's first of all; the others are
// temporaries, each of which is written before it is read.
type Plan struct {
	Memories []Memory
	Given    int // how many memories are the operands'
	Steps    []Step
}

// Window is the part of a memory that a binding needs: elements Lo to Hi-1 of Size bytes.
type Window struct{ Mem, Lo, Hi, Size int }

// Place is where an operand lies: distances in elements along the result's rows and columns, 0 where it is stretched.
type Place struct{ Offset, Row, Col int }

// Number is a scalar of a function: one of the expression's, or a constant of the plan's.
type Number struct {
	Index int // among the distinct numbers of the expression; -1 for a constant
	Bits  uint32
}

// Step is one launch, or the launches of a product.
type Step struct {
	Name   string
	Key    string // identifies the kernel; not of products
	Build  func() (shaders.Program, error)
	Groups [3]uint32
	Shape  []byte   // begins the parameter block; the function's places and numbers follow
	Own    []Window // the kernel's own bindings, which it reads; they come before those of the function

	Func    *fuse.Func // nil: the kernel has none, and writes To as its last binding
	Slots   []Window   // the bindings of the function, of which the kernel writes the first
	Store   Place
	Loads   []Place
	Numbers []Number

	To    Operand // what is written
	Whole bool    // that is all of its memory, and nothing there is read

	Product *Product // in place of Key, Build, Groups and Shape
	Reserve bool     // only binds To for writing: parts of it are written later
}

// Product is the part of a step that only products have. Own has the two factors.
type Product struct {
	Request product.Request
	Best    product.Plan
}

// PassKey identifies the kernel of a pass of a product.
func (s *Step) PassKey(b []byte, p *product.Pass) []byte {
	return p.Func(s.Func, s.Func.Type).Key(p.Spec.Key(append(b, 'p')))
}

// BuildPass writes the kernel of a pass of a product.
func (s *Step) BuildPass(p *product.Pass) (shaders.Program, error) {
	return product.Build(p.Spec, p.Func(s.Func, s.Func.Type))
}

// Shift returns how many elements lie before a binding of the window, of memory that is not windowed: the whole of it is
// bound, or if that is more than a kernel can bind a part that begins at a multiple of 256 bytes.
func (w Window) Shift(m Memory, binding uint64) int {
	if uint64(m.Size) <= binding {
		return 0
	}
	return w.Lo * w.Size / 256 * 256 / w.Size
}

// place returns where a layout lies as a kernel with a result of rows x cols sees it.
func place(l expr.Layout, rows, cols int) Place {
	r, c := l.Steps()
	if l.Rows == 1 && rows != 1 {
		r = 0
	}
	if l.Cols == 1 && cols != 1 {
		c = 0
	}
	return Place{l.Offset, r, c}
}

// At returns the place as a parameter of a kernel whose binding begins so many elements later.
func (p Place) At(shift int) fuse.Place {
	return fuse.Place{Offset: uint32(p.Offset - shift), Row: uint32(p.Row), Col: uint32(p.Col)}
}

// Read and Written return how many bytes the steps read and write, counting what several read for each of them.
func (p *Plan) Read() int {
	n := 0
	for i := range p.Steps {
		n += p.Steps[i].read()
	}
	return n
}

// Written returns how many bytes the steps write.
func (p *Plan) Written() int {
	n := 0
	for i := range p.Steps {
		if s := &p.Steps[i]; !s.Reserve {
			n += s.To.Rows * s.To.Cols * s.To.Type.Size()
		}
	}
	return n
}

func (s *Step) read() int {
	n := 0
	for _, w := range s.Own {
		n += (w.Hi - w.Lo) * w.Size
	}
	for k, w := range s.Slots {
		if k > 0 {
			n += (w.Hi - w.Lo) * w.Size
		}
	}
	return n
}
