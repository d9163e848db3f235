// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Func is an element-wise function of the user's, in WGSL. It is fused like a built-in one.
type Func struct {
	name  string
	arity int
	call  fuse.Call
	err   error
}

// maxArity is how many arguments a Func may take.
const maxArity = 6

// NewFunc reads a function "fn name(x: f32, ...) -> f32 { ... }", or with i32 or u32 for matrices of those. The text may
// hold further functions, constants and comments; the first function is the one that is called. Its names are its own: other
// functions may use the same ones. What is no function is an error when it is applied. The device compiles it when it is first
// used, and complaints name the lines of the text; the oracle cannot run it.
func NewFunc(text string) *Func {
	f := &Func{}
	f.err = f.read(text)
	return f
}

func (f *Func) read(text string) error {
	const op = "NewFunc"
	scan, err := wgsl.Tokenize(text)
	if err != nil {
		return fail(op, ErrSyntax, err.Error())
	}
	functions := scan.Functions()
	if len(functions) == 0 {
		return fail(op, ErrSyntax, "no function \"fn name(x: f32) -> f32\"")
	}
	name := functions[0]
	if n, ok := scan.Params(name); !ok || n == 0 || n > maxArity {
		return fail(op, ErrSyntax, "a function has a name and 1 to ", itoa(maxArity), " parameters")
	}
	f.arity, _ = scan.Params(name)
	f.name = scan.At(name)
	f.call = fuse.NewCall(scan, f.name, f.arity)
	return nil
}

// problem returns why the text is not a function, or nil.
func (f *Func) problem() error {
	if f == nil {
		return fail("Apply", buffer.ErrNil, "nil function")
	}
	return f.err
}

// Apply applies a function of the user's element by element. Sizes stretch as for the built-in operations.
func Apply[T Elem](f *Func, args ...Operand[T]) *Expr[T] {
	const op = "Apply"
	if err := f.problem(); err != nil {
		return &Expr[T]{expr.Failed(err)}
	}
	if len(args) != f.arity {
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, itoa(len(args)), " arguments for ", f.name, ", which takes ", itoa(f.arity)))}
	}
	return &Expr[T]{expr.NewCall(op, &f.call, nodes(op, args)...)}
}
