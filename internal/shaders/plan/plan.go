// SPDX-License-Identifier: Apache-2.0

// Package plan describes computations that take one launch or several, such as products whose long sums are cut into
// parts. A kernel family returns plans; the caller compiles their kernels, provides their scratch memory and launches them
// in order.
package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Device is what the choice of a kernel depends on.
type Device struct {
	// Software is set for adapters that run on the CPU. They pay dearly for workgroup memory and barriers.
	Software bool
	// Narrow is set for a software adapter with vectors of four and few registers, SwiftShader, for which large tiles
	// are slow and take long to compile.
	SwiftShader    bool
	MaxInvocations int // of one workgroup
	MaxMemory      int // bytes of workgroup memory of one kernel
}

// Portable is the device that every WebGPU implementation is at least.
var Portable = Device{MaxInvocations: 256, MaxMemory: 16384}

// Buffer is something that a pass binds or writes.
type Buffer uint8

// The buffers. A and B are the operands that a family reads by itself, Scratch holds partial results. Result and the
// operands of the function are the caller's business.
const (
	Result Buffer = iota
	A
	B
	Scratch

	Buffers // how many there are
)

// Plan is a list of launches, none for an empty result. S tells the kernels of a family apart.
type Plan[S comparable] struct {
	Passes  []Pass[S]
	Scratch int // bytes of scratch memory
}

// Pass is one launch. Its storage bindings are those in Own and then the slots of its function.
type Pass[S comparable] struct {
	Spec   S
	Groups [3]uint32
	Shape  []byte   // begins the parameter block; [fuse.Func.Params] appends the rest
	Own    []Buffer // the kernel's own bindings, from binding 1 on
	To     Buffer   // where the function's slot 0 lies: Result or Scratch
	Row    uint32   // the row step in Scratch
}

// Func returns the function that completes the pass's kernel: f, the caller's, in the pass that stores the result. Partial
// results of type compute are stored as they are.
func (p *Pass[S]) Func(f *fuse.Func, compute fuse.Type) *fuse.Func {
	if p.To == Result {
		return f
	}
	return partial[compute&3]
}

// Place returns where the pass stores its results, given the place of the final one.
func (p *Pass[S]) Place(result fuse.Place) fuse.Place {
	if p.To == Result {
		return result
	}
	return fuse.Place{Row: p.Row, Col: 1}
}

// partial stores what it is given in scratch memory.
var partial = [4]*fuse.Func{store(fuse.F32), store(fuse.I32), store(fuse.U32), store(fuse.F32)}

func store(t fuse.Type) *fuse.Func {
	f := fuse.Identity(fuse.View{Type: t, Class: fuse.Vector})
	f.Flat = true
	return f
}

// Program specialises a kernel's file for a function. own are the storage bindings before those of the function. A function
// that holds WGSL of the user's has no reference implementation, as Go cannot run it.
func Program(
	name, source, fused string, f *fuse.Func, ref shaders.Reference, own []shaders.Access, params ...shaders.Param,
) (shaders.Program, error) {
	text, err := shaders.Expand(source, fused, params...)
	if err != nil {
		return shaders.Program{}, err
	}
	p := shaders.Program{Name: name, Source: text, Access: f.Access(own...)}
	if len(f.Calls) == 0 {
		p.Reference = ref
	}
	return p, nil
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
