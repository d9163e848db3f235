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
	const op = "NewFunc"
	scan, err := wgsl.Tokenize(text)
	if err != nil {
		return &Func{err: fail(op, ErrSyntax, err.Error())}
	}
	name, n := scan.Function()
	switch {
	case name == "":
		return &Func{err: fail(op, ErrSyntax, "no function \"fn name(x: f32) -> f32\"")}
	case n == 0 || n > maxArity:
		return &Func{err: fail(op, ErrSyntax, "a function has a name and 1 to ", itoa(maxArity), " parameters")}
	}
	return &Func{name: name, arity: n, call: fuse.NewCall(scan, name, n)}
}

// Apply applies a function of the user's element by element. Sizes stretch as for the built-in operations.
func Apply[T Elem](f *Func, args ...Operand[T]) *Expr[T] {
	const op = "Apply"
	var err error
	switch {
	case f == nil:
		err = fail(op, buffer.ErrNil, "nil function")
	case f.err != nil:
		err = f.err
	case len(args) != f.arity:
		err = fail(op, gpu.ErrInvalid, itoa(len(args)), " arguments for ", f.name, ", which takes ", itoa(f.arity))
	default:
		return &Expr[T]{expr.NewCall(op, &f.call, nodes(op, args)...)}
	}
	return &Expr[T]{expr.Failed(err)}
}
