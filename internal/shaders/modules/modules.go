// SPDX-License-Identifier: Apache-2.0

// Package modules has what package gpu/simd runs: kernels as WebAssembly. It keeps them in an archive, too: the npm package brings those of
// usual kernels along, as to compile them takes longer in a fresh page than all else.
package modules

import (
	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Kernel is what a module is made of. For Bounded and Exact see driver.Kernel.
type Kernel struct {
	Source, Entry  string
	Bounded, Exact bool
}

// Engine is what runs a module.
type Engine struct {
	JavaScript bool                          // a JavaScript engine; otherwise wazero
	Relaxed    bool                          // it has relaxed SIMD
	Shared     bool                          // its memory is shared with web workers
	Widen      func(*ir.Program) *ir.Program // has invocations run four at a time, see compile.Options
}

// Module is a compiled kernel.
type Module struct {
	Wasm     []byte
	Scratch  int       // bytes of memory that each thread needs
	Bindings []Binding // of storage that the kernel uses, in the order of its arguments
	Params   int       // the binding of its parameters, -1 if it has none
}

// Binding is one of storage.
type Binding struct {
	Number int
	Write  bool
	Least  int // bytes that it needs
}

// Compile compiles a kernel, whose program is that of its text. The memory that the module imports is never shared, see [compile.Share].
func Compile(p *ir.Program, k *Kernel, e *Engine) (*Module, error) {
	o := compile.Options{
		Exact: k.Exact, Guard: !k.Bounded, Relaxed: e.Relaxed, Fuse: e.Relaxed, Apart: fuse.Function,
		Threads: !e.JavaScript || e.Shared, Wazero: !e.JavaScript,
	}
	if !k.Bounded { // the library's own kernels compute four elements at a time as they are
		o.Widen = e.Widen
	}
	m, err := compile.Generate(p, o)
	if err != nil {
		return nil, err
	}
	made := &Module{Wasm: m.Wasm, Scratch: m.Scratch, Params: m.Params}
	for _, b := range m.Bindings {
		made.Bindings = append(made.Bindings, Binding{b.Binding, b.Write, b.Min})
	}
	return made, nil
}
