// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Eval reads an expression with the operators of Go. Names stand for the operands of vars, dense matrices, sparse ones or expressions; * or @ is the matrix product and % the
// element-wise one; + - / and comparisons work element by element, && || and ! on 0 and 1; numbers stand for themselves, 2i or 2j is an
// imaginary one, and a number times a matrix scales it. A**B is the element-wise power, which binds tighter than a sign before it, from the right;
// Go's ^ is refused. T(A) and A.T are the transpose, H(A) and A.H that of the complex conjugates. There are no comments and no chains of comparisons such as a < b < c.
//
// A[i, j] is an element, A[i] a row, A[i:k, j:l] rows i to k-1 and columns j to l-1 of any operand, in which both ends of a range
// may be missing, and A[i:k:step] every so many of them, backwards where the step is negative. All are numbers from 0; negative ones count from the end, -1 is the last. What lies outside is [buffer.ErrIndex].
//
// Every operation of this package is a function under its name in small letters, as in exp(A), maxrows(A) and
// clamp(A, lo, hi), except that the operators are matmul (*), multiply (%), add, subtract or sub, and divide or div, and that
// numbers stand in these, not in functions of their own such as scale. Beside them there are fill(rows, cols, v),
// slice(A, i, k, j, l), row(A, i) and col(A, j), rowindex(rows, cols), colindex(rows, cols) and gather(A, rows, cols), and
// conversions by the names of element types, as in float32(A). The case of a function's name does not matter. pi, e, inf and nan are
// numbers where no operand has the name.
//
// Numbers have the type of the operand that they stand beside, else T; those of an Eval[Any] the one that all of vars have, else float32.
// randombits is of uint32 in an Eval[Any] whose vars have no common type. Other operands of an Eval[Any] have one type, but for indices
// and the condition of where.
// A call of mul, which is the product to some and element-wise to others, is [ErrName]; a matrix may have the name.
//
// A malformed text is [ErrSyntax], an unknown name [ErrName], with what may have been meant; errors name the place in the text.
// [EvalAll] reads several statements. An expression without matrices takes its device from [Expr.On].
func Eval[T Elem](text string, vars map[string]Operand[T]) *Expr[T] {
	return &Expr[T]{newEvaluator(vars).run(text)}
}

// newEvaluator makes one that knows matrices.
func newEvaluator[T Elem](vars map[string]Operand[T]) *evaluator {
	e := &evaluator{t: typeOf[T]()}
	e.matrix = func(name string) *node {
		if m, ok := vars[name]; ok {
			return from("Eval", m)
		}
		return nil
	}
	e.names = func() []string { return slices.Sorted(maps.Keys(vars)) }
	if e.t == expr.Untyped {
		e.t = commonType(vars)
	}
	if e.free = e.t == expr.Untyped; e.free {
		e.t = fuse.F32
	}
	return e
}

// commonType is the element type that all operands have, none where they differ.
func commonType[T Elem](vars map[string]Operand[T]) fuse.Type {
	t := expr.Untyped
	for _, v := range vars {
		switch own := operandType(v); {
		case own == expr.Untyped:
		case t != expr.Untyped && t != own:
			return expr.Untyped
		default:
			t = own
		}
	}
	return t
}

// operandType is the element type of an operand, none of what has none yet or could not be made. It does not use the operand.
func operandType[T Elem](v Operand[T]) fuse.Type {
	switch v := v.(type) {
	case *Dense[T]:
		if c := v.core(); c.typed != 0 && c.err == nil {
			return c.t
		}
	case *Sparse[T]:
		if c := v.core(); c.err == nil {
			return c.t
		}
	case *Expr[T]:
		if n := v.expr("Eval").n; n.Err == nil {
			return n.Type
		}
	}
	return expr.Untyped
}

// The longest text and the deepest nesting that Eval reads.
const (
	maxText = 1 << 16
	maxNest = 1000
)

// evaluator makes nodes of a text while it reads it, by operator precedence. The tokens are those of WGSL. A number of the text
// has no type before it is an argument.
type evaluator struct {
	t      fuse.Type               // of what stands beside no operand
	free   bool                    // no matrix says that it is t
	matrix func(name string) *node // nil if there is none
	names  func() []string         // of all matrices
	lines  bool                    // a statement may end with its line
	// numbers are statements that are numbers, by their names.
	numbers map[string]*node
	// advised says that an unknown name was found, and others that may have been meant.
	advised bool
	scan    *wgsl.Scan
	next    int   // the next token
	err     error // the first mistake of syntax
}

func (e *evaluator) run(text string) *node {
	if err := e.tokenize(text); err != nil {
		return expr.Failed(err)
	}
	x := e.binary(0, 0)
	if e.next < len(e.scan.Tokens) {
		e.malformed()
	}
	return e.finished(x)
}

// tokenize cuts the text. What would be comments is refused: Python's // is no way to end a text.
func (e *evaluator) tokenize(text string) (err error) {
	if len(text) > maxText {
		return fail("Eval", ErrSyntax, "longer than ", itoa(maxText), " bytes")
	}
	for _, comment := range []string{"//", "/*"} {
		if at := strings.Index(text, comment); at >= 0 {
			return fail("Eval", ErrSyntax, placeIn(text, at), "cannot use ", strconv.Quote(comment),
				": there are no comments; floordiv(A, B) is the quotient rounded down")
		}
	}
	if e.scan, err = wgsl.Tokenize(text); err != nil {
		return fail("Eval", ErrSyntax, err.Error())
	}
	return nil
}

// finished is what an expression that was read is.
func (e *evaluator) finished(x *node) *node {
	switch {
	case e.err != nil: // before what is wrong with the values: they may be those of another text
		return expr.Failed(e.err)
	case isNumber(x):
		return numberNode(e.t, x.Value)
	}
	return x
}

// place names the place of a token in the text.
func (e *evaluator) place(token int) string { return placeIn(e.scan.Text, e.scan.Pos(token)) }

// placeIn names a position of a text, with the line if there are several.
func placeIn(text string, at int) string {
	line := strings.Count(text[:at], "\n")
	column := "column " + itoa(at-strings.LastIndexByte(text[:at], '\n')) + ": "
	if strings.Contains(text, "\n") {
		return "line " + itoa(line+1) + ", " + column
	}
	return column
}

func (e *evaluator) fail(token int, sentinel error, detail ...string) *node {
	return expr.Failed(fail("Eval", sentinel, e.place(token)+strings.Join(detail, "")))
}

// textHints say what stands for operators of other languages.
var textHints = map[string]string{
	"^":   ": A**B or pow(A, B) is the power, bitxor(A, B) the exclusive or",
	"&":   ": A && B works on 0 and 1, bitand(A, B) on bits",
	"|":   ": A || B works on 0 and 1, bitor(A, B) on bits",
	"~":   ": !A works on 0 and 1, bitnot(A) on bits",
	"<":   ": shiftleft(A, B) shifts bits",
	">":   ": shiftright(A, B) shifts bits",
	"=":   ": A == B compares, NAME = names a whole statement, and sumrows and sumcols are sums along an axis",
	";":   ": a statement ends before it, if the text may have several",
	"'":   ": T(A) or A.T is the transpose",
	"\\":  ": solve(A, B) is what B is divided by A from the left",
	"?":   ": where(C, A, B) is A where C holds, and B elsewhere",
	"if":  ": where(C, A, B) is A where C holds, and B elsewhere",
	"and": ": A && B is the logical and",
	"or":  ": A || B is the logical or",
	"not": ": !A is the logical not",
}

// malformed notes a mistake of syntax, the first one: what is wrong at the next token, which cannot be there if nothing else is said.
func (e *evaluator) malformed(detail ...string) *node {
	at := e.next
	switch {
	case e.err != nil:
		return expr.Failed(e.err)
	case len(detail) > 0:
	case at == len(e.scan.Tokens):
		detail = []string{"cannot use the end of the text"}
	default:
		if before := e.scan.At(max(at-1, 0)); before == "not" || before == "if" { // which was taken for an operand
			at--
		}
		detail = []string{"cannot use ", strconv.Quote(e.scan.At(at)), textHints[e.scan.At(at)]}
	}
	x := e.fail(at, ErrSyntax, detail...)
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
	if strings.HasSuffix(at.Detail, expr.ConvertOne) {
		at.Detail += ", as in float32(A)"
	}
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
	{"@", "matmul", 5},
	{"/", "divide", 5},
	{"%", "multiply", 5},
}

// comparison is the precedence of comparisons.
const comparison = 3

// binary reads operands and the operators between them that bind tighter than a precedence.
func (e *evaluator) binary(outer, depth int) *node {
	start := e.next
	x := e.unary(depth)
	for last := 0; e.err == nil; {
		i := 0
		for i < len(textOperators) && !strings.HasPrefix(e.scan.Text[e.scan.Pos(e.next):], textOperators[i].text) {
			i++
		}
		if i == len(textOperators) || textOperators[i].precedence <= outer {
			break
		}
		if last == comparison && textOperators[i].precedence == comparison {
			return e.malformed("a comparison of a comparison: a < b < c is (a < b) && (b < c)")
		}
		last = textOperators[i].precedence
		e.next += len(textOperators[i].text) // each character is a token
		y := e.binary(textOperators[i].precedence, depth+1)
		x = e.combine(start, textOperators[i].text, textOperators[i].function, x, y)
		depth++ // what follows is another operation on top
	}
	return x
}

// combine applies a binary operator.
func (e *evaluator) combine(start int, operator, function string, x, y *node) *node {
	v, real := constantOf(x)
	w, also := constantOf(y)
	if real && also && (!isNumber(x) || !isNumber(y)) {
		if u, ok := complexNumber(operator, v, w); ok {
			return u
		}
	}
	if !isNumber(x) || !isNumber(y) {
		if function == "matmul" && (real || also) {
			function = "multiply"
		}
		if single := x.Rows*x.Cols == 1 || y.Rows*y.Cols == 1; function == "matmul" && single && x.Cols != y.Rows && firstFailed([]*node{x, y}, nil) == nil {
			return e.fail(start, buffer.ErrShape, x.Shape().String(), " by ", y.Shape().String(), "; A % B multiplies by a single element")
		}
		return e.apply(start, function, x, y)
	}
	u := x.Value
	switch operator {
	case "+":
		u += y.Value
	case "-":
		u -= y.Value
	case "*":
		u *= y.Value
	case "/":
		u /= y.Value
	case "**":
		u = math.Pow(u, y.Value)
	default:
		return e.fail(start, ErrSyntax, "operator ", operator, " between numbers")
	}
	return numberNode(expr.Untyped, u)
}

// isNumber reports whether a node is a number of the text.
func isNumber(n *node) bool {
	return n.Err == nil && n.Kind == expr.Scalar && n.Type == expr.Untyped && n.Rows == 1 && n.Cols == 1
}

// unary reads an operand with the operators before and the transposes after it.
func (e *evaluator) unary(depth int) *node {
	if depth > maxNest {
		return e.malformed("more than ", itoa(maxNest), " operations on top of each other")
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
		if v, ok := constantOf(x); ok {
			return constantNode(-v)
		}
		return e.apply(start, "neg", x)
	}
	x := e.suffixed(start, e.operand(depth), depth)
	if at := e.scan.Pos(e.next); e.err == nil && strings.HasPrefix(e.scan.Text[at:], "**") {
		e.next += 2
		return e.combine(start, "**", "pow", x, e.unary(depth+1)) // it binds from the right
	}
	return x
}

// suffixed reads the transposes and the brackets after an operand.
func (e *evaluator) suffixed(start int, x *node, depth int) *node {
	for e.err == nil {
		switch {
		case e.accept('.'):
			turn := e.scan.At(e.next)
			if turn != "T" && turn != "H" {
				return e.malformed("cannot use ", strconv.Quote(e.scan.At(e.next)), " after a dot: there are only A.T and A.H, A % B is the element-wise product, and functions have no prefix")
			}
			e.next++
			x = e.apply(start, turn, x)
		case e.follows('['):
			if depth++; depth > maxNest {
				return e.malformed("nested too deeply")
			}
			x = e.indexed(start, x, depth)
		default:
			return x
		}
	}
	return x
}

// follows is accept for a bracket behind an operand, which stands in the same line where lines are statements.
func (e *evaluator) follows(bracket byte) bool {
	return (!e.lines || !e.newLine()) && e.accept(bracket)
}

// newLine reports whether the next token is the first one of a line.
func (e *evaluator) newLine() bool {
	return e.next > 0 && strings.Contains(e.scan.Text[e.scan.Tokens[e.next-1].End:e.scan.Pos(e.next)], "\n")
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
		if e.follows('(') {
			return e.call(start, text, depth)
		}
		if n := e.numbers[text]; n != nil {
			return n
		}
		if m := e.matrix(text); m != nil {
			return m
		}
		if v, ok := constantNamed(text); ok {
			return numberNode(expr.Untyped, v)
		}
		return e.fail(start, ErrName, strconv.Quote(text), e.meantMatrix(text))
	case e.accept('.'):
		text += e.scan.At(e.next)
	}
	if e.next == len(e.scan.Tokens) || e.scan.Tokens[e.next].Kind != wgsl.Number {
		return e.malformed()
	}
	text, imaginary := withoutUnit(text)
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if i, whole := strconv.ParseInt(text, 0, 64); whole == nil {
		v, err = float64(i), nil
	}
	if err != nil {
		return e.malformed()
	}
	e.next++
	if imaginary || e.imaginaryUnit() {
		return imaginaryNode(v)
	}
	return numberNode(expr.Untyped, v)
}
