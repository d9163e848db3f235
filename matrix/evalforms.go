// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// textForm is a function of a text that is no operation of the table: its operands come first, then whole numbers.
type textForm struct {
	operands, numbers int
	make              func(e *evaluator, args []*node, at []int) *node
}

// textForms are those by their names.
var textForms = map[string]textForm{
	"fill": {0, 3, nil}, // whose last number may be any
	"slice": {1, 4, func(_ *evaluator, a []*node, at []int) *node {
		return cutNode("Slice", a[0], at[0], at[1], at[2], at[3])
	}},
	"row": {1, 1, func(_ *evaluator, a []*node, at []int) *node { return lineNode("Row", a[0], at[0], true) }},
	"col": {1, 1, func(_ *evaluator, a []*node, at []int) *node { return lineNode("Col", a[0], at[0], false) }},
	"rowindex": {0, 2, func(_ *evaluator, _ []*node, at []int) *node {
		return expr.NewIndex("RowIndex", at[0], at[1], fuse.AxisRows)
	}},
	"colindex": {0, 2, func(_ *evaluator, _ []*node, at []int) *node {
		return expr.NewIndex("ColIndex", at[0], at[1], fuse.AxisCols)
	}},
	"float32": conversionForm(fuse.F32), "float16": conversionForm(fuse.F16),
	"int32": conversionForm(fuse.I32), "uint32": conversionForm(fuse.U32),
	"int16": conversionForm(fuse.I16), "uint16": conversionForm(fuse.U16),
	"int8": conversionForm(fuse.I8), "uint8": conversionForm(fuse.U8), "bool": conversionForm(fuse.Bool),
	"complex64": conversionForm(fuse.C64),
}

func conversionForm(t fuse.Type) textForm {
	return textForm{1, 0, func(_ *evaluator, a []*node, _ []int) *node { return expr.NewConversion("Convert", t, a[0]) }}
}

// form calls a function of textForms.
func (e *evaluator) form(at int, name string, f textForm, args []*node) *node {
	if failed := firstFailed(args, nil); failed != nil {
		return failed
	}
	if len(args) != f.operands+f.numbers {
		return e.fail(at, ErrSyntax, name, " takes ", fault.Count(f.operands+f.numbers, "argument"))
	}
	numbers := make([]int, f.numbers)
	for i, a := range args[f.operands:] {
		free := f.make == nil && i == f.numbers-1
		whole, ok := wholeNumber(a)
		if !ok && (!free || !isNumber(a)) {
			kind := " takes a whole number as its argument "
			if free {
				kind = " takes a number as its argument "
			}
			return e.fail(at, ErrSyntax, name, kind, itoa(f.operands+i+1))
		}
		numbers[i] = whole
	}
	var n *node
	if f.make == nil {
		value := args[2:]
		if failed := e.numbersTyped(at, value); failed != nil {
			return failed
		}
		n = fillNode(numbers[0], numbers[1], value[0])
	} else {
		for i, a := range args[:f.operands] {
			if f.operands == 1 || i == 0 {
				args[i] = a.Typed(e.t)
			}
		}
		n = f.make(e, args[:f.operands], numbers)
	}
	if n.Err != nil {
		return expr.Failed(e.placed(at, n.Err))
	}
	return n
}

// wholeNumber returns a number of the text that counts something.
func wholeNumber(n *node) (int, bool) {
	if !isNumber(n) || n.Value != math.Trunc(n.Value) || math.Abs(n.Value) >= 1<<63 {
		return 0, false
	}
	v := int(n.Value)
	return v, float64(v) == n.Value
}

// fromEnd counts a negative number from the end.
func fromEnd(i, length int) int {
	if i < 0 {
		return i + length
	}
	return i
}

// cutNode is rows i to k-1 and columns j to l-1 of anything. Negative numbers count from the end.
func cutNode(op string, n *node, i, k, j, l int) *node {
	return windowNode(op, n, fromEnd(i, n.Rows), fromEnd(k, n.Rows), fromEnd(j, n.Cols), fromEnd(l, n.Cols))
}

// windowNode is rows i to k-1 and columns j to l-1 of anything: a view of a matrix.
func windowNode(op string, n *node, i, k, j, l int) *node {
	if n.Err != nil {
		return n
	}
	change := window(op, i, k, j, l)
	if m, ok := n.Source.(*core); ok && (n.Kind == expr.Leaf || n.Kind == expr.Complex) {
		v := m.lentView(op, change) // which nobody could close
		return v.operand(op)
	}
	if _, err := change(expr.Layout{Rows: n.Rows, Cols: n.Cols}); err != nil {
		return expr.Failed(err)
	}
	switch {
	case k-i == n.Rows && l-j == n.Cols:
		return n
	case n.Kind == expr.Scalar:
		part := *n
		part.Rows, part.Cols = k-i, l-j
		return &part
	}
	s := &shaping{op: op}
	rows, cols := s.at(k-i, l-j)
	x := s.elements(n, s.from(rows, i), s.from(cols, j))
	if s.err != nil {
		return expr.Failed(s.err)
	}
	return x
}

// lineNode is a row or a column of anything.
func lineNode(op string, n *node, at int, row bool) *node {
	length := n.Cols
	if row {
		length = n.Rows
	}
	i := fromEnd(at, length)
	switch {
	case i < 0 || i >= length:
		return expr.Failed(fail(op, buffer.ErrIndex, itoa(at), " of ", n.Shape().String()))
	case row:
		return windowNode(op, n, i, i+1, 0, n.Cols)
	}
	return windowNode(op, n, 0, n.Rows, i, i+1)
}

// span is which rows or columns stand between brackets: count of them from first on, so far apart.
type span struct{ first, step, count int }

// indexed reads the rest of brackets behind an operand, of which the first one was read.
func (e *evaluator) indexed(start int, x *node, depth int) *node {
	what := "row "
	rows, problem := e.selection(x.Rows, depth)
	cols := span{0, 1, x.Cols}
	if problem == "" && e.accept(',') {
		what = "column "
		cols, problem = e.selection(x.Cols, depth)
	}
	switch {
	case e.err != nil:
		return expr.Failed(e.err)
	case e.scan.Char(e.next) == ',':
		return e.malformed("a matrix has two dimensions")
	case !e.accept(']'):
		return e.malformed()
	case x.Err != nil:
		return x
	case problem == notWhole:
		return e.fail(start, ErrSyntax, "between brackets stand whole numbers; takerows(A, ROWS) takes a matrix of them")
	case problem != "":
		return e.fail(start, buffer.ErrIndex, what, problem, " of ", x.Shape().String())
	}
	n := spread(x.Typed(e.t), rows, cols)
	if n.Err != nil {
		return expr.Failed(e.placed(start, n.Err))
	}
	return n
}

// spread is rows and columns of anything, each of which may be so far apart, or backwards.
func spread(x *node, rows, cols span) *node {
	const op = "Slice"
	if rows.step == 1 && cols.step == 1 {
		return windowNode(op, x, rows.first, rows.first+rows.count, cols.first, cols.first+cols.count)
	}
	s := &shaping{op: op}
	i, j := s.at(rows.count, cols.count)
	at := func(index *node, of span) *node {
		if of.step != 1 {
			index = s.apply(fuse.OpMul, index, s.n(of.step))
		}
		return s.plus(index, of.first)
	}
	n := s.elements(x, at(i, rows), at(j, cols))
	if s.err != nil {
		return expr.Failed(s.err)
	}
	return n
}

// notWhole is the problem of a selection that is no whole number.
const notWhole = "not whole"

// selection reads a number or first:last:step below a length, as Python has them; numbers are counted from 0 or from the end. It
// returns what is wrong with them.
func (e *evaluator) selection(length, depth int) (of span, problem string) {
	var at [3]int
	var given [3]bool
	colons := 0
	for begin := e.next; ; {
		if c := e.scan.Char(e.next); c != ':' && c != ',' && c != ']' {
			n := e.binary(0, depth+1)
			whole, ok := wholeNumber(n)
			if !ok {
				problem = notWhole
			}
			at[colons], given[colons] = whole, true
		} else if e.next == begin && c != ':' {
			e.malformed()
		}
		if e.err != nil || colons == 2 || !e.accept(':') {
			break
		}
		colons++
	}
	switch {
	case problem != "" || e.err != nil:
		return of, problem
	case colons == 0:
		i := fromEnd(at[0], length)
		if i < 0 || i >= length {
			return of, itoa(at[0])
		}
		return span{i, 1, 1}, ""
	case given[2] && at[2] == 0:
		e.malformed("a step of 0")
		return of, ""
	}
	return ranged(at, given, length)
}

// ranged resolves first:last:step.
func ranged(at [3]int, given [3]bool, length int) (of span, problem string) {
	step := 1
	if given[2] {
		step = at[2]
	}
	first, last, lowest, highest := 0, length, 0, length
	if step < 0 {
		first, last, lowest, highest = length-1, -1, -1, length-1
	}
	if given[0] {
		first = fromEnd(at[0], length)
	}
	if given[1] {
		last = fromEnd(at[1], length)
	}
	wrong := first < min(lowest, 0) || first > highest || last < lowest || last > highest || given[0] && first < 0
	if wrong || step > 0 && first > last {
		return of, rangeText(at, given)
	}
	count := last - first
	if step < 0 {
		count, step = -count, -step
		return span{first, -step, max((count+step-1)/step, 0)}, ""
	}
	return span{first, step, (count + step - 1) / step}, ""
}

// rangeText is first:last:step as it was written.
func rangeText(at [3]int, given [3]bool) string {
	part := func(k int) string {
		if !given[k] {
			return ""
		}
		return itoa(at[k])
	}
	text := part(0) + ":" + part(1)
	if given[2] {
		text += ":" + part(2)
	}
	return text
}
