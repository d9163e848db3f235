// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// Eval reads an expression with the operators of Go. Names stand for the matrices of vars; * is the matrix product and % the
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
	if len(text) > maxText {
		return &Expr[T]{errorNode(fail("Eval", ErrSyntax, "longer than ", itoa(maxText), " bytes"))}
	}
	scan, err := wgsl.Tokenize(text)
	if err != nil {
		return &Expr[T]{errorNode(fail("Eval", ErrSyntax, err.Error()))}
	}
	e := &evaluator[T]{scan: scan, vars: vars}
	x := e.binary(0, 0)
	if e.next < len(scan.Tokens) {
		e.malformed()
	}
	switch {
	case e.err != nil: // before what is wrong with the values: they may be those of another text
		return &Expr[T]{errorNode(e.err)}
	case x.err != nil:
		return &Expr[T]{errorNode(x.err)}
	case x.expr == nil:
		return Fill(1, 1, fromFloat[T](x.number))
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

// evaluator computes the values of a text while it reads it, by operator precedence. The tokens are those of WGSL, which has the
// same words, numbers and brackets.
type evaluator[T Elem] struct {
	scan *wgsl.Scan
	next int // the next token
	vars map[string]*Dense[T]
	err  error // the first mistake of syntax

	functions map[string]textFunction[T]
}

// place names the place of a token in the text.
func (e *evaluator[T]) place(token int) string { return "column " + itoa(e.scan.Pos(token)+1) + ": " }

func (e *evaluator[T]) fail(token int, sentinel error, detail ...string) textValue[T] {
	return textValue[T]{err: fail("Eval", sentinel, e.place(token)+strings.Join(detail, ""))}
}

// malformed notes that the next token cannot be there.
func (e *evaluator[T]) malformed() textValue[T] {
	what := "the end of the text"
	if e.next < len(e.scan.Tokens) {
		what = strconv.Quote(e.scan.At(e.next))
	}
	x := e.fail(e.next, ErrSyntax, "cannot use ", what)
	if e.err == nil {
		e.err = x.err
	}
	return x
}

// placed adds the place in the text to an operation's error.
func (e *evaluator[T]) placed(token int, err error) error {
	op, ok := errors.AsType[*gpu.OpError](err)
	if !ok || strings.HasPrefix(op.Op, "matrix: Eval") {
		return err
	}
	at := *op
	at.Op = "matrix: Eval: " + e.place(token) + strings.TrimPrefix(op.Op, "matrix: ")
	return &at
}

// accept passes over the next token if it is that character.
func (e *evaluator[T]) accept(c byte) bool {
	if e.scan.Char(e.next) != c {
		return false
	}
	e.next++
	return true
}

// textOperators are the binary operators with their precedence, as in Go. Longer ones come before those that they begin with.
var textOperators = []struct {
	text, function string
	precedence     int
}{
	{"||", "or", 1},
	{"&&", "and", 2},
	{"==", "equal", 3},
	{"!=", "notequal", 3},
	{"<=", "lessequal", 3},
	{">=", "greaterequal", 3},
	{"<", "less", 3},
	{">", "greater", 3},
	{"+", "add", 4},
	{"-", "subtract", 4},
	{"*", "matmul", 5},
	{"/", "divide", 5},
	{"%", "multiply", 5},
}

// binary reads operands and the operators between them that bind tighter than a precedence.
func (e *evaluator[T]) binary(outer, depth int) textValue[T] {
	start := e.next
	x := e.unary(depth)
	for e.err == nil {
		i := 0
		for i < len(textOperators) && !strings.HasPrefix(e.scan.Text[e.scan.Pos(e.next):], textOperators[i].text) {
			i++
		}
		if i == len(textOperators) || textOperators[i].precedence <= outer {
			break
		}
		e.next += len(textOperators[i].text) // each character is a token
		y := e.binary(textOperators[i].precedence, depth+1)
		x = e.combine(start, textOperators[i].text, textOperators[i].function, x, y)
		depth++ // what follows is another operation on top
	}
	return x
}

// combine applies a binary operator.
func (e *evaluator[T]) combine(start int, operator, function string, x, y textValue[T]) textValue[T] {
	switch {
	case x.err != nil:
		return x
	case y.err != nil:
		return y
	case x.expr != nil && y.expr != nil:
		return e.apply(start, function, []textValue[T]{x, y})
	case x.expr != nil || y.expr != nil:
		if function == "matmul" {
			function = "multiply"
		}
		return e.apply(start, function, []textValue[T]{x, y})
	}
	switch operator {
	case "+":
		x.number += y.number
	case "-":
		x.number -= y.number
	case "*":
		x.number *= y.number
	case "/":
		x.number /= y.number
	default:
		return e.fail(start, ErrSyntax, "operator ", operator, " between numbers")
	}
	return x
}

// unary reads an operand with the operators before and the transposes after it.
func (e *evaluator[T]) unary(depth int) textValue[T] {
	if depth > maxNest {
		if e.err == nil {
			e.err = e.fail(e.next, ErrSyntax, "nested too deeply").err
		}
		return textValue[T]{err: e.err}
	}
	start := e.next
	switch {
	case e.accept('+'):
		return e.unary(depth + 1)
	case e.accept('!'):
		return e.apply(start, "not", []textValue[T]{e.unary(depth + 1)})
	case e.accept('-'):
		x := e.unary(depth + 1)
		if x.err != nil || x.expr != nil {
			return e.apply(start, "neg", []textValue[T]{x})
		}
		return textValue[T]{number: -x.number}
	}
	x := e.operand(depth)
	for e.accept('.') {
		if e.scan.At(e.next) != "T" {
			return e.malformed()
		}
		e.next++
		x = e.apply(start, "T", []textValue[T]{x})
	}
	return x
}

// operand reads a number, a name, a call or an expression in parentheses.
func (e *evaluator[T]) operand(depth int) textValue[T] {
	start := e.next
	text := e.scan.At(start)
	switch {
	case e.accept('('):
		x := e.binary(0, depth+1)
		if !e.accept(')') {
			return e.malformed()
		}
		return x
	case e.scan.IsWord(start):
		e.next++
		if e.accept('(') {
			return e.call(start, text, depth)
		}
		if m, ok := e.vars[text]; ok {
			return textValue[T]{expr: &Expr[T]{m.expr("Eval")}, base: m}
		}
		return e.fail(start, ErrName, strconv.Quote(text))
	case e.accept('.'):
		text += e.scan.At(e.next)
	}
	if e.next == len(e.scan.Tokens) || e.scan.Tokens[e.next].Kind != wgsl.Number {
		return e.malformed()
	}
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		e.next++
		return textValue[T]{number: float64(i)}
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil {
		return e.malformed()
	}
	e.next++
	return textValue[T]{number: v}
}

// call reads the arguments of a function and applies it.
func (e *evaluator[T]) call(start int, name string, depth int) textValue[T] {
	var args []textValue[T]
	for !e.accept(')') {
		args = append(args, e.binary(0, depth+1))
		if !e.accept(',') && e.scan.Char(e.next) != ')' {
			return e.malformed()
		}
	}
	if strings.EqualFold(name, "mul") {
		return e.fail(start, ErrName, strconv.Quote(name), ": matmul(A, B) is the matrix product, multiply(A, B) the element-wise one")
	}
	return e.apply(start, name, args)
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
func (e *evaluator[T]) apply(start int, name string, args []textValue[T]) textValue[T] {
	for _, a := range args {
		if a.err != nil {
			return a
		}
	}
	f, ok := e.function(strings.ToLower(name))
	if !ok {
		return e.fail(start, ErrName, strconv.Quote(name))
	}
	if len(args) != f.arity {
		return e.fail(start, ErrSyntax, name, " takes ", itoa(f.arity), " arguments")
	}
	for _, a := range args {
		if a.expr == nil && !representable[T](a.number) {
			return e.fail(start, gpu.ErrInvalid, strconv.FormatFloat(a.number, 'g', -1, 64), " in a computation of ", (&Dense[T]{}).DType().String())
		}
	}
	x := f.call(args)
	if x == nil {
		return e.fail(start, ErrSyntax, name, " does not take such arguments")
	}
	if err := x.Err(); err != nil {
		return textValue[T]{err: e.placed(start, err)}
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
