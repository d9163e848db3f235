// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"context"
	"math"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Expr is a computation that has not run yet. Building one checks shapes and costs next to nothing; [Dense.Assign] runs
// it. An expression that could not be built carries its first error and reports it when it is assigned; [Expr.Err] returns it at
// once. An Expr may be used several times.
//
// Element-wise operations broadcast dimensions of 1, as NumPy does: a matrix plus a row, a column or a 1x1 matrix.
// Comparisons yield 1 and 0 in the operands' type. Functions of real numbers (Exp, Log, Sqrt, Tanh, ...) need float32 or
// Half elements; on integers they are [gpu.ErrUnsupported].
type Expr[T Elem] struct{ n *node }

// Operand is an operand of an expression: a *[Dense], a *[Sparse] or an *[Expr].
type Operand[T Elem] interface {
	expr(op string) Expr[T]
}

// node is an operation of an expression.
type node = expr.Node

func (m *Dense[T]) expr(op string) Expr[T] { return Expr[T]{m.core().operand(op)} }

// Expr returns the matrix as an expression.
func (m *Dense[T]) Expr() *Expr[T] { return &Expr[T]{m.core().operand("Expr")} }

func (e *Expr[T]) expr(op string) Expr[T] {
	if e == nil || e.n == nil {
		return Expr[T]{expr.Failed(fail(op, buffer.ErrNil, "nil expression"))}
	}
	return *e
}

// from reads an operand; a nil one is an error.
func from[T Elem](op string, x Operand[T]) *node {
	if x == nil {
		return expr.Failed(fail(op, buffer.ErrNil, "nil operand"))
	}
	return x.expr(op).n
}

// nodes reads operands.
func nodes[T Elem](op string, args []Operand[T]) []*node {
	out := make([]*node, len(args))
	for i, a := range args {
		out[i] = from(op, a)
	}
	return out
}

// Failed returns an expression that carries an error, for packages that build expressions. Assigning it returns err.
func Failed[T Elem](err error) *Expr[T] {
	if err == nil {
		err = fail("Failed", buffer.ErrNil, "nil error")
	}
	return &Expr[T]{expr.Failed(err)}
}

// Err returns the error the expression was built with, or nil.
func (e *Expr[T]) Err() error { return e.expr("Err").n.Err }

// Dims returns the size of the result.
func (e *Expr[T]) Dims() (rows, cols int) {
	n := e.expr("Dims").n
	return n.Rows, n.Cols
}

// DType returns the element type of the result.
func (e *Expr[T]) DType() DType {
	if t := typeOf[T](); t == fuse.C64 { // which a real result becomes
		return t
	}
	return e.expr("DType").n.Typed(fuse.F32).Type
}

// On sets the device of an expression without matrices, such as a Fill.
func (e *Expr[T]) On(dev *gpu.Device) *Expr[T] {
	n := *e.expr("On").n
	switch {
	case n.Err != nil:
	case dev == nil:
		n.Err = fail("On", gpu.ErrInvalid, "nil device")
	case n.Dev != nil && n.Dev != dev:
		n.Err = fail("On", gpu.ErrForeign, "the expression is on another device")
	default:
		n.Dev = dev
	}
	return &Expr[T]{&n}
}

// Eval queues the expression and returns the result as a new owned matrix.
func (e *Expr[T]) Eval() (*Dense[T], error) {
	return evaluated[T](context.Background(), "Eval", e)
}

func evaluated[T Elem](ctx context.Context, op string, x Operand[T]) (*Dense[T], error) {
	m := &Dense[T]{}
	if err := m.core().evaluate(ctx, op, from(op, x)); err != nil {
		return nil, err
	}
	return m, nil
}

// Read runs the expression and returns the result row by row. If it solves a singular system the error is [ErrSingular], for a Cholesky
// factor that does not exist [ErrNotPosDef]: see [Expr.Solved].
func (e *Expr[T]) Read(ctx context.Context) ([]T, error) { return e.read(ctx, "Read") }

func (e *Expr[T]) read(ctx context.Context, op string) ([]T, error) {
	m, err := evaluated[T](ctx, op, e)
	if err != nil {
		return nil, err
	}
	v, err := m.values(ctx, op)
	if n := e.n; err == nil && n.Solves && !finite(v) {
		err = unsolved(ctx, op, n)
	}
	if err = firstError(err, m.Close()); err != nil {
		return nil, err
	}
	return v, nil
}

// Value runs an expression of size 1x1 and returns its value.
func (e *Expr[T]) Value(ctx context.Context) (v T, err error) {
	const op = "Value"
	if n := e.expr(op).n; n.Err == nil && (n.Rows != 1 || n.Cols != 1) {
		return v, expr.ShapeError(op, "a single element is needed; Read returns several", n.Shape(), fault.Shape{1, 1})
	}
	all, err := e.read(ctx, op)
	if err != nil {
		return v, err
	}
	return all[0], nil
}

// Matrix returns the matrix if the expression is just a matrix, a view of it if it is a transpose of one, and nil for any other
// expression. Such a view, and views of it, do not keep the memory alive.
func (e *Expr[T]) Matrix() *Dense[T] {
	n, transposed := expr.Resolve(e.expr("Matrix").n, false)
	if n.Err != nil || n.Kind != expr.Leaf && n.Kind != expr.Complex {
		return nil
	}
	m, ok := n.Source.(*core)
	switch {
	case !ok:
		return nil
	case !transposed:
		return (*Dense[T])(unsafe.Pointer(m)) // all that a Dense has
	}
	return &Dense[T]{m.lentView("T", turned)}
}

// numberNode returns a number in the type of the computation, rounded like an element unless the type is Any.
func numberNode(t fuse.Type, v float64) *node {
	if t == fuse.F16 {
		v = t.Load(t.Store(v))
	}
	return expr.Number(t, 1, 1, v)
}

func scalar[T Elem](v T) *node {
	number := numberNode(numberOf(v))
	if z, ok := any(v).(complex64); ok {
		return expr.NewComplex("Fill", number, numberNode(fuse.F32, float64(imag(z))))
	}
	return number
}

// Elementwise applies an element-wise operation by its code, for programs that decode expressions. Operands of different types are
// [gpu.ErrInvalid].
func Elementwise[T Elem](op fuse.Op, args ...Operand[T]) *Expr[T] {
	name := op.String()
	if op.Arity() != len(args) { // that of an instruction is -1
		return &Expr[T]{expr.Failed(fail(name, gpu.ErrInvalid, itoa(len(args)), " operands"))}
	}
	return &Expr[T]{expr.NewMap(name, op, nodes(name, args)...)}
}

// powNode is x to the power s. Some powers need no logarithm.
func powNode(op string, x, s *node) *node {
	if _, im := s.Parts(); im == nil && s.Kind == expr.Complex { // a number of Go's
		s, _ = s.Parts()
	}
	if x.Err == nil && s.Kind == expr.Scalar && s.Rows == 1 && s.Cols == 1 && fuse.OpSqrt.Takes(x.Type) {
		switch s.Value {
		case 0.5:
			return expr.NewMap(op, fuse.OpSqrt, x)
		case 1:
			return x
		case 2:
			return expr.NewMap(op, fuse.OpSquare, x)
		case 3:
			return expr.NewMap(op, fuse.OpMul, expr.NewMap(op, fuse.OpSquare, x), x)
		case -1:
			return expr.NewMap(op, fuse.OpRecip, x)
		}
	}
	return expr.NewMap(op, fuse.OpPow, x, s)
}

// Fill is a rows x cols matrix of one value.
func Fill[T Elem](rows, cols int, v T) *Expr[T] { return &Expr[T]{fillNode(rows, cols, scalar(v))} }

func fillNode(rows, cols int, number *node) *node {
	if err := expr.CheckVirtual("Fill", rows, cols); err != nil {
		return expr.Failed(err)
	}
	if number.Kind == expr.Complex {
		re, im := number.Parts()
		return expr.NewComplex("Fill", fillNode(rows, cols, re), cmp.Or(im, expr.Number(fuse.F32, 1, 1, 0)))
	}
	n := *number
	n.Rows, n.Cols = rows, cols
	return &n
}

// Convert converts a to another element type, like a conversion in Go; floats beyond an integer type's range saturate.
func Convert[T, F Elem](a Operand[F]) *Expr[T] {
	const op = "Convert"
	x, t := from(op, a), typeOf[T]()
	if t == expr.Untyped {
		t = x.Typed(fuse.F32).Type // it stays what it is
	}
	return &Expr[T]{expr.NewConversion(op, t, x)}
}

// ConvertTo converts an expression of [Any] to an element type chosen at run time. For other expressions it must be their own type, else
// the error is [gpu.ErrInvalid]; see [Convert].
func (e *Expr[T]) ConvertTo(t DType) *Expr[T] {
	const op = "ConvertTo"
	n := e.expr(op).n
	switch {
	case n.Err != nil:
		return e
	case t >= fuse.Types || !isAny[T]() && t != n.Type:
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, n.Type.String(), " to ", t.String()))}
	}
	return &Expr[T]{expr.NewConversion(op, t, n)}
}

// EqualAll waits for what is queued and reports whether a and b have the same size and the same elements. Different sizes are no error;
// NaN equals nothing. [Equal] compares element by element.
func EqualAll[T Elem](ctx context.Context, a, b Operand[T]) (bool, error) {
	const op = "EqualAll"
	x, y := from(op, a), from(op, b)
	return holds[T](ctx, op, x, y, expr.NewMap(op, fuse.OpEq, x, y))
}

// EqualApprox is [EqualAll] with a tolerance: elements a and b are equal if they are the same, or both finite and
//
//	|a - b| <= epsilon * max(1, |a|, |b|).
//
// An epsilon that is negative or not a number is [gpu.ErrInvalid]. Blaze compares float32 with 1e-6.
func EqualApprox[T interface{ float32 | Half }](ctx context.Context, a, b Operand[T], epsilon float32) (bool, error) {
	const op = "EqualApprox"
	if !(epsilon >= 0) {
		return false, fail(op, gpu.ErrInvalid, "epsilon is negative or not a number")
	}
	number := func(v float32) *node { return expr.Number(typeOf[T](), 1, 1, float64(v)) }
	x, y := from(op, a), from(op, b)
	size := expr.NewMap(op, fuse.OpMax, expr.NewMap(op, fuse.OpAbs, x), expr.NewMap(op, fuse.OpAbs, y))
	bound := expr.NewMap(op, fuse.OpMul, expr.NewMap(op, fuse.OpMax, size, number(1)), number(epsilon))
	bound = expr.NewMap(op, fuse.OpMin, bound, number(math.MaxFloat32)) // nothing is near an infinity
	near := expr.NewMap(op, fuse.OpLe, expr.NewMap(op, fuse.OpAbs, expr.NewMap(op, fuse.OpSub, x, y)), bound)
	return holds[T](ctx, op, x, y, expr.NewMap(op, fuse.OpOr, expr.NewMap(op, fuse.OpEq, x, y), near))
}

// holds reports whether x and y have the same size and test, a node that compares them, is 1 everywhere.
func holds[T Elem](ctx context.Context, op string, x, y, test *node) (bool, error) {
	a, _ := x.Parts()
	b, _ := y.Parts()
	err := expr.Join(op, a, b).Err
	switch {
	case err != nil || x.Rows != y.Rows || x.Cols != y.Cols:
		return false, err
	case x.Rows == 0 || x.Cols == 0:
		return true, nil
	}
	v, err := (&Expr[T]{expr.NewReduction(op, fuse.ReduceMin, fuse.AxisAll, 0, test)}).Value(ctx)
	return err == nil && v != *new(T), err
}

// Func is a user's element-wise function in WGSL. It is fused like a built-in one.
type Func struct {
	name string
	call fuse.Call
	err  error
}

// maxArity is how many arguments a Func may take.
const maxArity = 6

// NewFunc reads a function "fn name(x: f32, ...) -> f32 { ... }", or with i32 or u32 for matrices of those. The text may
// contain further functions, constants and comments, whose names do not clash with those of other texts; the first function is called. A
// text without a function is an error when it is applied. The device compiles it; diagnostics name the lines of the text. The oracle
// cannot run it. On devices that limit the iterations of loops, all elements that one invocation computes count together; if they exceed
// the limit, using the result is [gpu.ErrLimit].
func NewFunc(text string) *Func {
	const op = "NewFunc"
	scan, err := wgsl.Tokenize(text)
	if err != nil {
		return &Func{err: fail(op, ErrSyntax, err.Error())}
	}
	name, n, returns := scan.Function()
	switch {
	case name == "":
		return &Func{err: fail(op, ErrSyntax, "no function \"fn name(x: f32) -> f32\"")}
	case n == 0 || n > maxArity:
		return &Func{err: fail(op, ErrSyntax, "a function has a name and 1 to ", itoa(maxArity), " parameters")}
	case !returns:
		return &Func{err: fail(op, ErrSyntax, name, " returns nothing")}
	}
	return &Func{name: name, call: fuse.NewCall(scan, name, n)}
}

// Apply applies a user's function element by element. Sizes are broadcast as for the built-in operations.
func Apply[T Elem](f *Func, args ...Operand[T]) *Expr[T] {
	const op = "Apply"
	var err error
	switch {
	case f == nil || *f == Func{}:
		err = fail(op, buffer.ErrNil, "no function")
	case f.err != nil:
		err = f.err
	case len(args) != f.call.Arity:
		err = fail(op, gpu.ErrInvalid, itoa(len(args)), " arguments for ", f.name, ", which takes ", itoa(f.call.Arity))
	default:
		return &Expr[T]{expr.NewCall(op, &f.call, nodes(op, args)...)}
	}
	return &Expr[T]{expr.Failed(err)}
}
