// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// Eval reads an expression in Go's syntax. Names stand for the matrices of vars; * is the matrix product and % the
// element-wise one; + - / and comparisons work element by element, && || and ! on 0 and 1; numbers stand for themselves,
// and a number times a matrix scales it. T(A) and A.T are the transpose.
//
// Every operation of this package is a function under its name in small letters, as in exp(A), maxrows(A) and
// clamp(A, lo, hi), except that the operators are matmul (*), multiply (%), add, subtract or sub, and divide or div. Beside them
// there are fill(rows, cols, v), slice(A, i, k, j, l), row(A, i) and col(A, j). The case of a function's name does not matter.
// A call of mul, which is the product to some and element-wise to others, is [ErrName]; a matrix may have the name.
//
// A malformed text is [ErrSyntax], a name that is neither is [ErrName]; both come when the expression is assigned, or from
// Err, and name the place in the text.
func Eval[T Elem](text string, vars map[string]*Dense[T]) *Expr[T] {
	e := &evaluator[T]{text: text, vars: vars}
	if len(text) > maxText {
		return &Expr[T]{errorNode(fail("Eval", ErrSyntax, "longer than ", itoa(maxText), " bytes"))}
	}
	tree, err := parser.ParseExpr(text)
	if err != nil {
		msg, _, _ := strings.Cut(err.Error(), "\n")
		return &Expr[T]{errorNode(fail("Eval", ErrSyntax, msg))}
	}
	x := e.eval(tree, 0)
	if x.expr == nil && x.err == nil {
		return Fill(1, 1, fromFloat[T](x.number))
	}
	if x.err != nil {
		return &Expr[T]{errorNode(x.err)}
	}
	return x.expr
}

// The longest text and the deepest nesting that Eval reads.
const (
	maxText = 1 << 16
	maxNest = 1000
)

// textValue is a number or an expression.
type textValue[T Elem] struct {
	number float64
	expr   *Expr[T]
	base   *Dense[T] // what a plain name stands for, for slices
	err    error
}

type evaluator[T Elem] struct {
	text string
	vars map[string]*Dense[T]

	functions map[string]textFunction[T]
}

func (e *evaluator[T]) fail(n ast.Node, sentinel error, detail ...string) textValue[T] {
	at := "column " + itoa(int(n.Pos())) + ": " + strings.Join(detail, "")
	return textValue[T]{err: fail("Eval", sentinel, at)}
}

// placed adds the place in the text to an operation's error.
func placed(n ast.Node, err error) error {
	op, ok := errors.AsType[*gpu.OpError](err)
	if !ok || strings.HasPrefix(op.Op, "matrix: Eval") {
		return err
	}
	at := *op
	at.Op = "matrix: Eval: column " + itoa(int(n.Pos())) + ": " + strings.TrimPrefix(op.Op, "matrix: ")
	return &at
}

func (e *evaluator[T]) source(n ast.Node) string {
	from, to := int(n.Pos())-1, int(n.End())-1
	if from < 0 || to > len(e.text) || from > to {
		return ""
	}
	return e.text[from:to]
}

func (e *evaluator[T]) eval(n ast.Expr, depth int) textValue[T] {
	if depth > maxNest {
		return e.fail(n, ErrSyntax, "nested too deeply")
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		return e.eval(n.X, depth+1)
	case *ast.BasicLit:
		return e.literal(n)
	case *ast.Ident:
		if m, ok := e.vars[n.Name]; ok {
			return textValue[T]{expr: &Expr[T]{m.expr("Eval")}, base: m}
		}
		return e.fail(n, ErrName, strconv.Quote(n.Name))
	case *ast.SelectorExpr:
		if n.Sel.Name == "T" {
			return e.apply(n, "T", []textValue[T]{e.eval(n.X, depth+1)})
		}
	case *ast.UnaryExpr:
		return e.unary(n, e.eval(n.X, depth+1))
	case *ast.BinaryExpr:
		return e.binary(n, e.eval(n.X, depth+1), e.eval(n.Y, depth+1))
	case *ast.CallExpr:
		return e.call(n, depth)
	}
	return e.fail(n, ErrSyntax, "cannot use ", e.source(n))
}

func (e *evaluator[T]) literal(n *ast.BasicLit) textValue[T] {
	if n.Kind != token.INT && n.Kind != token.FLOAT {
		return e.fail(n, ErrSyntax, "cannot use ", n.Value)
	}
	if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
		return textValue[T]{number: float64(i)}
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if err != nil {
		return e.fail(n, ErrSyntax, "cannot read ", n.Value)
	}
	return textValue[T]{number: v}
}

func (e *evaluator[T]) unary(n *ast.UnaryExpr, x textValue[T]) textValue[T] {
	switch {
	case x.err != nil:
		return x
	case n.Op == token.ADD:
		return x
	case n.Op == token.SUB && x.expr == nil:
		return textValue[T]{number: -x.number}
	case n.Op == token.SUB:
		return e.apply(n, "neg", []textValue[T]{x})
	case n.Op == token.NOT:
		return e.apply(n, "not", []textValue[T]{x})
	}
	return e.fail(n, ErrSyntax, "operator ", n.Op.String())
}

func (e *evaluator[T]) binary(n *ast.BinaryExpr, x, y textValue[T]) textValue[T] {
	switch {
	case x.err != nil:
		return x
	case y.err != nil:
		return y
	}
	if x.expr == nil && y.expr == nil {
		return e.numbers(n, x.number, y.number)
	}
	name, ok := operatorNames[n.Op]
	if !ok {
		return e.fail(n, ErrSyntax, "operator ", n.Op.String())
	}
	if name == "matmul" && (x.expr == nil || y.expr == nil) {
		name = "multiply"
	}
	return e.apply(n, name, []textValue[T]{x, y})
}

var operatorNames = map[token.Token]string{
	token.ADD: "add", token.SUB: "subtract", token.MUL: "matmul", token.QUO: "divide", token.REM: "multiply",
	token.EQL: "equal", token.NEQ: "notequal", token.LSS: "less", token.LEQ: "lessequal",
	token.GTR: "greater", token.GEQ: "greaterequal", token.LAND: "and", token.LOR: "or",
}

// numbers computes with two numbers while reading.
func (e *evaluator[T]) numbers(n *ast.BinaryExpr, x, y float64) textValue[T] {
	switch n.Op {
	case token.ADD:
		return textValue[T]{number: x + y}
	case token.SUB:
		return textValue[T]{number: x - y}
	case token.MUL:
		return textValue[T]{number: x * y}
	case token.QUO:
		return textValue[T]{number: x / y}
	}
	return e.fail(n, ErrSyntax, "operator ", n.Op.String(), " between numbers")
}

func (e *evaluator[T]) call(n *ast.CallExpr, depth int) textValue[T] {
	name, ok := n.Fun.(*ast.Ident)
	if !ok {
		return e.fail(n, ErrSyntax, "cannot call ", e.source(n.Fun))
	}
	if strings.EqualFold(name.Name, "mul") {
		return e.fail(n, ErrName, strconv.Quote(name.Name), ": matmul(A, B) is the matrix product, multiply(A, B) the element-wise one")
	}
	args := make([]textValue[T], len(n.Args))
	for i, a := range n.Args {
		if args[i] = e.eval(a, depth+1); args[i].err != nil {
			return args[i]
		}
	}
	return e.apply(n, name.Name, args)
}

// function looks a function up. It makes its tables when the first one is called.
func (e *evaluator[T]) function(name string) (textFunction[T], bool) {
	if e.functions == nil {
		e.functions = textFunctions[T]()
		maps.Copy(e.functions, textForms[T]())
	}
	f, ok := e.functions[name]
	return f, ok
}

// apply calls a function of the table.
func (e *evaluator[T]) apply(n ast.Node, name string, args []textValue[T]) textValue[T] {
	f, ok := e.function(strings.ToLower(name))
	if !ok {
		return e.fail(n, ErrName, strconv.Quote(name))
	}
	if len(args) != f.arity {
		return e.fail(n, ErrSyntax, name, " takes ", itoa(f.arity), " arguments")
	}
	for _, a := range args {
		if a.err != nil {
			return a
		}
		if a.expr == nil && !representable[T](a.number) {
			return e.fail(n, gpu.ErrInvalid, strconv.FormatFloat(a.number, 'g', -1, 64), " in a computation of ", (&Dense[T]{}).DType().String())
		}
	}
	x := f.call(args)
	if x == nil {
		return e.fail(n, ErrSyntax, name, " does not take such arguments")
	}
	if err := x.Err(); err != nil {
		return textValue[T]{err: placed(n, err)}
	}
	return textValue[T]{expr: x}
}

// representable refuses fractions in integer arithmetic and numbers out of range.
func representable[T Elem](v float64) bool {
	switch typeOf[T]().Compute() {
	case typeOf[int32]():
		return v == math.Trunc(v) && v >= math.MinInt32 && v <= math.MaxInt32
	case typeOf[uint32]():
		return v == math.Trunc(v) && v >= 0 && v <= math.MaxUint32
	}
	return true
}

func fromFloat[T Elem](v float64) T {
	var t T
	switch p := any(&t).(type) {
	case *float32:
		*p = float32(v)
	case *Half:
		*p = dtype.ToHalf(v)
	case *int32:
		*p = int32(v)
	case *uint32:
		*p = uint32(v)
	case *Any:
		*p = Any(v)
	}
	return t
}
