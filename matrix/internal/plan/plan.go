// SPDX-License-Identifier: Apache-2.0

// Package plan turns an expression into a list of kernel launches without touching a device: which kernels, over which
// operands, by way of which temporaries. The same expression, operands of the same layouts in the same places and the same
// device give the same plan, whatever the numbers in it are.
package plan

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Device is what plans depend on of a device.
type Device struct {
	Binding uint64 // bytes that a kernel can bind at once
	Buffer  uint64 // bytes of the largest buffer
	Storage int    // storage bindings of a kernel
	kernels.Device
}

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
	Steps    []*Step
}

// Step is one launch.
type Step struct {
	*kernels.Launch            // nil: only bind, since parts of the result are written later
	Func            *fuse.Func // nil: the kernel has none
	Key             string     // identifies the kernel with the function
	Params          []byte     // the parameter block, for bindings that begin where their memories do and without the numbers
	Numbers         []Number
	Bindings        []Binding // the kernel writes one of them
	To              Operand   // what is written
	Sooner          *Step     // to be launched as long as this one's kernel is not compiled; nil: it is worth waiting for
}

// Binding is a storage binding. Some words of the parameter block count from where it begins, by so many elements.
type Binding struct {
	Mem    int
	Lo, Hi int // elements Lo to Hi-1 of the memory are needed
	Type   fuse.Type
	Intent buffer.Intent
	Words  []int
	Unit   int
}

// Number is a scalar of the expression: the word of the parameter block that holds it.
type Number struct{ Word, Index int }

// Input is what a plan is made from.
type Input struct {
	Device   Device
	Root     *expr.Node
	To       Operand                  // takes the result, which has its size
	Memories []Memory                 // of the result and the operands
	Numbers  []uint32                 // the distinct scalars of the expression
	Operand  func(*expr.Node) Operand // finds the matrix of a leaf
}

// New plans the computation of an expression.
func New(in Input) (*Plan, error) {
	p := newPlanner(in)
	p.cut(in.Root)
	p.evaluate(in.To, in.Root)
	return p.plan, p.err
}

func newPlanner(in Input) *planner {
	return &planner{
		Input: in, plan: &Plan{Memories: in.Memories}, temps: map[*expr.Node]Operand{}, larges: map[*expr.Node]bool{},
		cuts: map[*expr.Node]bool{}, measures: map[*expr.Node]measure{},
	}
}

// read is the operand, read transposed or not.
func (op Operand) read(transposed bool) Operand {
	if transposed {
		op.Layout = op.T()
	}
	return op
}
