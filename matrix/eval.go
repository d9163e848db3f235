// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Eval reads an expression with the operators of Go. Names stand for the matrices of vars; * and @ are the matrix product and % the
// element-wise one; + - / and comparisons work element by element, && || and ! on 0 and 1; numbers stand for themselves,
// and a number times a matrix scales it. ** is the power of each element; it binds tighter than a sign before it, and to the right.
// T(A) and A.T are the transpose. A[i, j], A[i:k, j:l] and A[::2] take rows and columns as NumPy does, of any expression; negative
// numbers count from the end, and what is not there is [buffer.ErrIndex]. A[i] is a row.
//
// Several statements, NAME = EXPRESSION and the last one without a name if need be, are separated by semicolons or ends of lines;
// the value is the last one's. Names of statements come before those of vars. See [EvalAll].
//
// Every operation of this package is a function under its name in small letters, as in exp(A), maxrows(A) and
// clamp(A, lo, hi), except that the operators are matmul (*), multiply (%), add, subtract or sub, and divide or div, and that
// numbers stand in these, not in functions of their own such as scale. Beside them there are fill(rows, cols, v),
// slice(A, i, k, j, l), row(A, i), col(A, j), rowindex(rows, cols), colindex(rows, cols), gather(A, rows, cols), and conversions
// such as int32(A). The case of a function's name does not matter.
// A call of mul, which is the product to some and element-wise to others, is [ErrName]; a matrix may have the name.
//
// A malformed text is [ErrSyntax], an unknown name [ErrName]; errors name the place in the text.
func Eval[T Elem](text string, vars map[string]*Dense[T]) *Expr[T] {
	return &Expr[T]{evaluatorOf(vars).run(text)}
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
	names  map[string]*node        // of statements
	define func(name string, x *node) *node
	scan   *wgsl.Scan
	next   int   // the next token
	open   int   // brackets
	err    error // the first mistake of syntax
}

func (e *evaluator) run(text string) *node {
	if len(text) > maxText {
		return expr.Failed(fail("Eval", ErrSyntax, "longer than ", itoa(maxText), " bytes"))
	}
	if at := strings.Index(text, "//"); at >= 0 {
		return expr.Failed(fail("Eval", ErrSyntax, "column ", itoa(at+1), ": // is no operator; floordiv(A, B) rounds quotients down"))
	}
	if at := strings.Index(text, "/*"); at >= 0 {
		return expr.Failed(fail("Eval", ErrSyntax, "column ", itoa(at+1), ": /* is no operator"))
	}
	var err error
	if e.scan, err = wgsl.Tokenize(text); err != nil {
		return expr.Failed(fail("Eval", ErrSyntax, err.Error()))
	}
	x := e.statements()
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
		detail = []string{"cannot use ", strconv.Quote(e.scan.At(e.next)), otherOperators[e.scan.Char(e.next)]}
	}
	x := e.fail(e.next, ErrSyntax, detail...)
	e.err = x.Err
	return x
}

// otherOperators are what to write in place of operators of other languages.
var otherOperators = map[byte]string{
	'^': "; A ** 2 is the power, bitxor(A, B) the exclusive or", '&': "; bitand(A, B), or A && B of truths",
	'|': "; bitor(A, B), or A || B of truths", '~': "; bitnot(A), or !A of truths", '\'': "; A.T is the transpose",
	'<': "; shiftleft(A, B) shifts bits", '>': "; shiftright(A, B) shifts bits", '=': "; A == B compares",
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
	{"**", "", 0}, // binds tighter than these
	{"*", "matmul", 5},
	{"@", "matmul", 5},
	{"/", "divide", 5},
	{"%", "multiply", 5},
}

// comparing is the precedence of comparisons.
const comparing = 3

// operator returns the number of the operator that comes next, or -1. A sign at the beginning of a line is another statement's,
// unless it is in brackets.
func (e *evaluator) operator() int {
	if c := e.scan.Char(e.next); (c == '+' || c == '-') && e.lineEnds() {
		return -1
	}
	rest := e.scan.Text[e.scan.Pos(e.next):]
	for i, o := range textOperators {
		if strings.HasPrefix(rest, o.text) {
			return i
		}
	}
	return -1
}

// binary reads operands and the operators between them that bind tighter than a precedence.
func (e *evaluator) binary(outer, depth int) *node {
	start := e.next
	x := e.unary(depth)
	compared := false
	for e.err == nil {
		i := e.operator()
		if i < 0 || textOperators[i].precedence <= outer {
			break
		}
		if precedence := textOperators[i].precedence; precedence == comparing && compared {
			return e.malformed("comparisons in a row; write (a < b) && (b < c)")
		} else if precedence == comparing {
			compared = true
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
	case "**":
		v = math.Pow(v, y.Value)
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
	x := e.postfix(depth)
	if e.err == nil && strings.HasPrefix(e.scan.Text[e.scan.Pos(e.next):], "**") {
		e.next += 2
		return e.combine(start, "**", "pow", x, e.unary(depth+1))
	}
	return x
}

// postfix reads an operand with the transposes and indices after it.
func (e *evaluator) postfix(depth int) *node {
	start := e.next
	x := e.operand(depth)
	for e.err == nil && !e.lineEnds() {
		switch {
		case e.accept('['):
			x = e.index(start, x, depth)
		case e.accept('.'):
			if e.scan.At(e.next) != "T" {
				return e.malformed()
			}
			e.next++
			x = e.apply(start, "T", x)
		default:
			return x
		}
	}
	return x
}

// operand reads a number, a name, a call or an expression in parentheses.
func (e *evaluator) operand(depth int) *node {
	start := e.next
	text := e.scan.At(start)
	switch {
	case e.accept('('):
		e.open++
		x := e.binary(0, depth+1)
		if !e.accept(')') {
			return e.malformed()
		}
		e.open--
		return x
	case e.scan.IsWord(start):
		e.next++
		if e.accept('(') {
			return e.call(start, text, depth)
		}
		if x := e.names[text]; x != nil {
			return x
		}
		if m := e.matrix(text); m != nil {
			return m
		}
		return e.fail(start, ErrName, strconv.Quote(text), e.meant(text))
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
	e.open++
	for !e.accept(')') {
		args = append(args, e.binary(0, depth+1))
		if !e.accept(',') && e.scan.Char(e.next) != ')' {
			return e.malformed()
		}
	}
	e.open--
	if strings.EqualFold(name, "mul") {
		return e.fail(start, ErrName, strconv.Quote(name), ": matmul(A, B) is the matrix product, multiply(A, B) the element-wise one")
	}
	return e.apply(start, name, args...)
}

// textForms are the functions that are no operations, and how many arguments they have.
var textForms = map[string]int{
	"fill": 3, "slice": 5, "row": 2, "col": 2, "rowindex": 2, "colindex": 2, "gather": 3, "int32": 1, "uint32": 1, "float32": 1,
	"float16": 1, "int8": 1, "uint8": 1, "int16": 1, "uint16": 1, "bool": 1,
}

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
		return e.fail(at, ErrName, strconv.Quote(name), meantFunction(lower))
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
	x := args[0]
	switch name {
	case "fill":
		if n := numbersAmong(args[:2]); n != nil && isNumber(args[2]) {
			return fillNode(n[0], n[1], numberNode(e.t, args[2].Value))
		}
		return nil
	case "rowindex", "colindex":
		axis := fuse.AxisRows
		if name == "colindex" {
			axis = fuse.AxisCols
		}
		if n := numbersAmong(args); n != nil {
			return expr.NewConversion(name, e.t, expr.NewIndex(name, n[0], n[1], axis))
		}
		return nil
	case "gather":
		at := func(n *node) *node { return expr.NewConversion("Gather", fuse.I32, n.Typed(e.t)) }
		return expr.NewGather("Gather", x.Typed(e.t), at(args[1]), at(args[2]))
	case "slice", "row", "col":
		n := numbersAmong(args[1:])
		if n == nil || isNumber(x) {
			return nil
		}
		return sliceOf(x, spansOf(name, n)[0], spansOf(name, n)[1])
	}
	for t := range DType(fuse.Types) {
		if t.String() == name {
			return expr.NewConversion(name, t, x.Typed(e.t))
		}
	}
	return nil
}

// numbersAmong returns arguments that are whole numbers; nil if some are not.
func numbersAmong(args []*node) []int {
	var list []int
	for _, a := range args {
		if !isNumber(a) || float64(int(a.Value)) != a.Value {
			return nil
		}
		list = append(list, int(a.Value))
	}
	return list
}

// spansOf are the rows and columns of a call with these numbers.
func spansOf(name string, n []int) [2]span {
	switch name {
	case "row":
		return [2]span{single(n[0]), every}
	case "col":
		return [2]span{every, single(n[0])}
	}
	return [2]span{between(n[0], n[1]), between(n[2], n[3])}
}

// representable refuses fractions in integer arithmetic and numbers out of range.
func representable(t fuse.Type, v float64) bool {
	t = t.Compute()
	return t == fuse.F32 || t.Load(t.Store(v)) == v
}
