// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"strings"

	"github.com/sublet-gpu/sublet/shaders/fuse"
)

// Func is an element-wise function of the user's, in WGSL. It is fused like a built-in one.
type Func struct {
	source, name string
	arity        int
	err          error
}

// maxArity is how many arguments a Func may take.
const maxArity = 6

// NewFunc reads a function "fn name(x: f32, ...) -> f32 { ... }", or with i32 or u32 for matrices of those. The text may
// hold further functions, constants and comments; the first function is the one that is called. The device compiles it
// when it is first used; the oracle cannot run it.
func NewFunc(wgsl string) *Func {
	const op = "NewFunc"
	f := &Func{source: wgsl}
	head := stripComments(wgsl)
	at := strings.Index(head, "fn ")
	open := strings.IndexByte(head, '(')
	end := strings.IndexByte(head, ')')
	if at < 0 || open < at || end < open {
		f.err = fail(op, ErrSyntax, "no function \"fn name(x: f32) -> f32\"")
		return f
	}
	f.name = strings.TrimSpace(head[at+3 : open])
	for p := range strings.SplitSeq(head[open+1:end], ",") {
		if strings.TrimSpace(p) != "" {
			f.arity++
		}
	}
	if f.name == "" || f.arity == 0 || f.arity > maxArity {
		f.err = fail(op, ErrSyntax, "a function has a name and 1 to ", itoa(maxArity), " parameters")
	}
	return f
}

// stripComments blanks comments.
func stripComments(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		switch {
		case strings.HasPrefix(s, "//"):
			i := strings.IndexByte(s, '\n')
			if i < 0 {
				return b.String()
			}
			s = s[i:]
		case strings.HasPrefix(s, "/*"):
			i := strings.Index(s, "*/")
			if i < 0 {
				return b.String()
			}
			s = s[i+2:]
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return b.String()
}

// Err returns why the text is not a function, or nil. Errors that only the compiler finds come when it is used.
func (f *Func) Err() error {
	if f == nil {
		return fail("Apply", ErrNil, "nil function")
	}
	return f.err
}

// Apply applies a function of the user's element by element. Sizes stretch as for the built-in operations.
func Apply[T Elem](f *Func, args ...Operand[T]) *Expr[T] {
	const op = "Apply"
	if err := f.Err(); err != nil {
		return &Expr[T]{errorNode(err)}
	}
	if len(args) != f.arity {
		return &Expr[T]{errorNode(fail(op, ErrInvalid, itoa(len(args)), " arguments for ", f.name, ", which takes ", itoa(f.arity)))}
	}
	nodes := make([]*node, len(args))
	for i, a := range args {
		nodes[i] = from(op, a)
	}
	n := join(op, nodes...)
	if n.err != nil {
		return &Expr[T]{n}
	}
	n.kind, n.call, n.t, n.op = kindCall, f, typeOf[T](), fuse.OpCall
	return &Expr[T]{n.broadcast(op)}
}
