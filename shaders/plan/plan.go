// SPDX-License-Identifier: Apache-2.0

// Package plan describes computations that take one launch or several: products whose long sums are cut into parts,
// reductions in stages. The kernel families return plans; the caller compiles their kernels, provides their scratch memory
// and launches them in order.
package plan

import (
	"github.com/sublet-gpu/sublet/shaders"
	"github.com/sublet-gpu/sublet/shaders/fuse"
)

// Device is what the choice of a kernel depends on.
type Device struct {
	// Software is set for adapters that run on the CPU. They pay dearly for workgroup memory and barriers.
	Software bool
	// Narrow is set for a software adapter with vectors of four and few registers, SwiftShader, for which large tiles
	// are slow and take long to compile.
	Narrow         bool
	MaxInvocations int // of one workgroup
	MaxMemory      int // bytes of workgroup memory of one kernel
}

// Portable is the device that every WebGPU implementation is at least.
var Portable = Device{MaxInvocations: 256, MaxMemory: 16384}

// Buffer is something that a pass binds or writes.
type Buffer uint8

// The buffers. A and B are the operands that a family reads by itself. Result and the operands of a function are the
// caller's business.
const (
	Result Buffer = iota
	A
	B
	Scratch0
	Scratch1
)

// Plan is a list of launches, none for an empty result. S tells the kernels of a family apart.
type Plan[S comparable] struct {
	Passes  []Pass[S]
	Scratch [2]int // bytes of Scratch0 and Scratch1
}

// Pass is one launch. Its storage bindings are those in Own and then the slots of its function.
type Pass[S comparable] struct {
	Spec   S
	Groups [3]uint32
	Shape  []byte   // begins the parameter block; [fuse.Func.Params] appends the rest
	Own    []Buffer // the kernel's own bindings, from binding 1 on
	Head   bool     // applies the function that computes the operand, otherwise the one that finishes the result
	To     Buffer   // where the function's slot 0 lies: Result, Scratch0 or Scratch1
	Row    uint32   // the row step there, unless it is Result
}

// Func returns the function that completes the pass's kernel. head computes the operand of a reduction or a softmax, tail
// finishes a product or a reduction; either may be nil where the family takes none. Partial results go to scratch memory
// as they are. moved is set when operands of head in the result's buffer are now in a new last slot, because scratch memory
// took the first one.
func (p *Pass[S]) Func(head, tail *fuse.Func, compute fuse.Type) (f *fuse.Func, moved bool) {
	switch {
	case p.Head && p.To == Result:
		return head, false
	case p.Head:
		return head.StoreTo(scratchView(compute))
	case p.To == Result:
		return tail, false
	}
	return partial[compute&3], false
}

// Place returns where the pass stores its results, given the place of the final one.
func (p *Pass[S]) Place(result fuse.Place) fuse.Place {
	if p.To == Result {
		return result
	}
	return fuse.Place{Row: p.Row, Col: 1}
}

func scratchView(t fuse.Type) fuse.View { return fuse.View{Type: t, Class: fuse.Vector} }

// partial stores what it is given in scratch memory.
var partial = [4]*fuse.Func{
	fuse.Identity(scratchView(fuse.F32)), fuse.Identity(scratchView(fuse.I32)), fuse.Identity(scratchView(fuse.U32)),
	fuse.Identity(scratchView(fuse.F32)),
}

// Quads is how many vectors of four hold n elements.
func Quads(n int) int { return shaders.Ceil(n, 4) }

// Words appends numbers to a parameter block.
func Words(b []byte, v ...int) []byte {
	for _, x := range v {
		b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return b
}
