// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Eval reads an expression with the operators of Go. Names stand for the matrices of vars; * is the matrix product and % the
// element-wise one; + - / and comparisons work element by element, && || and ! on 0 and 1; numbers stand for themselves,
// and a number times a matrix scales it. T(A) and A.T are the transpose.
//
// Every operation of this package is a function under its name in small letters, as in exp(A), maxrows(A) and
// clamp(A, lo, hi), except that the operators are matmul (*), multiply (%), add, subtract or sub, and divide or div, and that
// numbers stand in these, not in functions of their own such as scale. Beside them there are fill(rows, cols, v),
// slice(A, i, k, j, l), row(A, i) and col(A, j). The case of a function's name does not matter.
// A call of mul, which is the product to some and element-wise to others, is [ErrName]; a matrix may have the name.
//
// A malformed text is [ErrSyntax], an unknown name [ErrName]; errors name the place in the text.
func Eval[T Elem](text string, vars map[string]*Dense[T]) *Expr[T] {
	e := &evaluator{t: typeOf[T](), matrix: func(name string) *node {
		if m, ok := vars[name]; ok {
			return m.core().operand("Eval")
		}
		return nil
	}}
	return &Expr[T]{e.run(text)}
}

// The longest text and the deepest nesting that Eval reads.
const (
	maxText = 1 << 16
	maxNest = 1000
)

// evaluator makes nodes of a text while it reads it, by operator precedence. The tokens are those of WGSL. A number of the text
// has no type before it is an argument.
type evaluator struct {
	t      fuse.Type
	matrix func(name string) *node // nil if there is none
	scan   *wgsl.Scan
	next   int   // the next token
	err    error // the first mistake of syntax
}

func (e *evaluator) run(text string) *node {
	if len(text) > maxText {
		return expr.Failed(fail("Eval", ErrSyntax, "longer than ", itoa(maxText), " bytes"))
	}
	var err error
	if e.scan, err = wgsl.Tokenize(text); err != nil {
		return expr.Failed(fail("Eval", ErrSyntax, err.Error()))
	}
	x := e.binary(0, 0)
	if e.next < len(e.scan.Tokens) {
		e.malformed()
	}
	switch {
	case e.err != nil: // before what is wrong with the values: they may be those of another text
		return expr.Failed(e.err)
	case isNumber(x):
		return numberNode(e.t, x.Value)
	}
	return x
}

// place names the place of a token in the text.
func (e *evaluator) place(token int) string { return "column " + itoa(e.scan.Pos(token)+1) + ": " }

func (e *evaluator) fail(token int, sentinel error, detail ...string) *node {
	return expr.Failed(fail("Eval", sentinel, e.place(token)+strings.Join(detail, "")))
}

// malformed notes a mistake of syntax, the first one: what is wrong at the next token, which cannot be there if nothing else is said.
func (e *evaluator) malformed(detail ...string) *node {
	switch {
	case e.err != nil:
		return expr.Failed(e.err)
	case len(detail) > 0:
	case e.next == len(e.scan.Tokens):
		detail = []string{"cannot use the end of the text"}
	default:
		detail = []string{"cannot use ", strconv.Quote(e.scan.At(e.next))}
	}
	x := e.fail(e.next, ErrSyntax, detail...)
	e.err = x.Err
	return x
}

// placed adds the place in the text to an operation's error.
func (e *evaluator) placed(token int, err error) error {
	op, ok := errors.AsType[*gpu.OpError](err)
	if !ok || strings.HasPrefix(op.Op, "matrix: Eval") {
		return err
	}
	at := *op
	at.Op = "matrix: Eval: " + e.place(token) + strings.TrimPrefix(op.Op, "matrix: ")
	return &at
}

// accept passes over the next token if it is that character.
func (e *evaluator) accept(c byte) bool {
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
func (e *evaluator) binary(outer, depth int) *node {
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
func (e *evaluator) combine(start int, operator, function string, x, y *node) *node {
	if !isNumber(x) || !isNumber(y) {
		if function == "matmul" && (isNumber(x) || isNumber(y)) {
			function = "multiply"
		}
		return e.apply(start, function, x, y)
	}
	v := x.Value
	switch operator {
	case "+":
		v += y.Value
	case "-":
		v -= y.Value
	case "*":
		v *= y.Value
	case "/":
		v /= y.Value
	default:
		return e.fail(start, ErrSyntax, "operator ", operator, " between numbers")
	}
	return numberNode(expr.Untyped, v)
}

// isNumber reports whether a node is a number of the text.
func isNumber(n *node) bool {
	return n.Err == nil && n.Kind == expr.Scalar && n.Type == expr.Untyped && n.Rows == 1 && n.Cols == 1
}

// unary reads an operand with the operators before and the transposes after it.
func (e *evaluator) unary(depth int) *node {
	if depth > maxNest {
		return e.malformed("nested too deeply")
	}
	start := e.next
	switch {
	case e.accept('+'):
		return e.unary(depth + 1)
	case e.accept('!'):
		return e.apply(start, "not", e.unary(depth+1))
	case e.accept('-'):
		x := e.unary(depth + 1)
		if isNumber(x) {
			return numberNode(expr.Untyped, -x.Value)
		}
		return e.apply(start, "neg", x)
	}
	x := e.operand(depth)
	for e.accept('.') {
		if e.scan.At(e.next) != "T" {
			return e.malformed()
		}
		e.next++
		x = e.apply(start, "T", x)
	}
	return x
}

// operand reads a number, a name, a call or an expression in parentheses.
func (e *evaluator) operand(depth int) *node {
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
		if m := e.matrix(text); m != nil {
			return m
		}
		return e.fail(start, ErrName, strconv.Quote(text))
	case e.accept('.'):
		text += e.scan.At(e.next)
	}
	if e.next == len(e.scan.Tokens) || e.scan.Tokens[e.next].Kind != wgsl.Number {
		return e.malformed()
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if i, whole := strconv.ParseInt(text, 0, 64); whole == nil {
		v, err = float64(i), nil
	}
	if err != nil {
		return e.malformed()
	}
	e.next++
	return numberNode(expr.Untyped, v)
}

// call reads the arguments of a function and applies it.
func (e *evaluator) call(start int, name string, depth int) *node {
	var args []*node
	for !e.accept(')') {
		args = append(args, e.binary(0, depth+1))
		if !e.accept(',') && e.scan.Char(e.next) != ')' {
			return e.malformed()
		}
	}
	if strings.EqualFold(name, "mul") {
		return e.fail(start, ErrName, strconv.Quote(name), ": matmul(A, B) is the matrix product, multiply(A, B) the element-wise one")
	}
	return e.apply(start, name, args...)
}

// textForms are the functions that are no operations, and how many arguments they have.
var textForms = map[string]int{"fill": 3, "slice": 5, "row": 2, "col": 2}

// apply calls a function.
func (e *evaluator) apply(at int, name string, args ...*node) *node {
	lower := strings.ToLower(name)
	if number := textShaping(lower); number >= 0 {
		return e.shaped(at, name, number, args)
	}
	arity, operation := textFunction(lower)
	form := operation == nil
	if form {
		arity = textForms[lower]
	}
	for i, a := range args {
		switch {
		case a.Err != nil:
			return a
		case isNumber(a) && !representable(e.t, a.Value):
			v := strconv.FormatFloat(a.Value, 'g', -1, 64)
			return e.fail(at, gpu.ErrInvalid, v, " in a computation of ", e.t.String())
		case isNumber(a) && !form:
			args[i] = numberNode(e.t, a.Value)
		}
	}
	var n *node
	switch {
	case arity == 0:
		return e.fail(at, ErrName, strconv.Quote(name))
	case arity < 0 && len(args) != 1 && len(args) != -arity: // the last one may be left out
		return e.fail(at, ErrSyntax, name, " takes 1 or ", itoa(-arity), " arguments")
	case arity > 0 && len(args) != arity:
		return e.fail(at, ErrSyntax, name, " takes ", itoa(arity), " arguments")
	case form:
		n = e.form(lower, args)
	default:
		n = operation(args)
	}
	switch {
	case n == nil:
		return e.fail(at, ErrSyntax, name, " does not take such arguments")
	case n.Err != nil:
		return expr.Failed(e.placed(at, n.Err))
	}
	return n
}

// form calls a function of textForms. It returns nil for arguments of the wrong sort.
func (e *evaluator) form(name string, args []*node) *node {
	var at [5]int
	for k, a := range args {
		if k == 0 && name != "fill" {
			continue
		}
		at[k] = int(a.Value)
		whole := float64(at[k]) == a.Value || name == "fill" && k == 2
		if !isNumber(a) || !whole {
			return nil
		}
	}
	m, _ := args[0].Source.(*core)
	op := "Slice"
	switch {
	case name == "fill":
		return fillNode(at[0], at[1], numberNode(e.t, args[2].Value))
	case m == nil:
		return nil
	case name == "row":
		op, at = "Row", [5]int{1: at[1], at[1] + 1, 0, m.Cols}
	case name == "col":
		op, at = "Col", [5]int{1: 0, m.Rows, at[1], at[1] + 1}
	}
	v := m.lentView(op, window(op, at[1], at[2], at[3], at[4])) // which nobody could close
	return v.operand("Eval")
}

// representable refuses fractions in integer arithmetic and numbers out of range.
func representable(t fuse.Type, v float64) bool {
	t = t.Compute()
	return t == fuse.F32 || t.Load(t.Store(v)) == v
}
