// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Matrices that are made of numbers, and matrices in another shape, are put together of the numbers of rows and columns, which
// kernels compute, and of elements that are read where those say. They take no kernels of their own and no memory.

// shaping is one that is being put together.
type shaping struct {
	op      string
	t       fuse.Type
	args    []*node
	numbers []float64
	err     error

	complexToo bool // it is defined for complex64
}

// shapingNode makes the node of a shaping by its number in the table of operations. Numbers that may be left out may be missing.
func shapingNode(op string, number int, t fuse.Type, args []*node, numbers ...float64) *node {
	if t == expr.Untyped {
		t = fuse.F32
	}
	s := &shaping{op: op, t: t, args: args, numbers: numbers}
	for i, a := range args {
		if a.Err != nil {
			return a
		}
		args[i] = a.Typed(t)
	}
	if shapingCounts[number].operands < 0 && len(args) == 0 {
		return expr.Failed(fail(op, gpu.ErrInvalid, "no operands"))
	}
	n := shapings[number](s)
	if s.err != nil {
		return expr.Failed(s.err)
	}
	return ofDevice(n, args)
}

// ofDevice is a node on the device of the operands, also where it reads none of them.
func ofDevice(n *node, args []*node) *node {
	for _, a := range args {
		if n.Err == nil && n.Dev == nil && a.Dev != nil {
			on := *n
			on.Dev = a.Dev
			n = &on
		}
	}
	return n
}

// Shaped is one of the functions of this package that make or shape matrices, for programs that decode expressions: number is
// that in the table of operations, t the element type of what has no operand. It does not take what they do not take.
func Shaped[T Elem](number int, t DType, args []Operand[T], numbers []float64) *Expr[T] {
	const op = "Shaped"
	if number < 0 || number >= len(shapings) || t >= fuse.Types {
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, "no such operation"))}
	}
	c := &shapingCounts[number]
	if c.operands >= 0 && len(args) != c.operands || len(numbers) < c.least || len(numbers) > c.most {
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, itoa(len(args)), " operands and ", itoa(len(numbers)), " numbers"))}
	}
	return &Expr[T]{shapingNode(c.name, number, t, nodes(op, args), numbers...)}
}

func (s *shaping) fail(sentinel error, detail ...string) int {
	if s.err == nil {
		s.err = fail(s.op, sentinel, detail...)
	}
	return 0
}

// misfit fails because two operands do not go together.
func (s *shaping) misfit(fits string, a, b *node) *node {
	n := expr.Misfit(s.op, fits, a, b)
	s.err = n.Err
	return n
}

// number returns the number at a place, or what stands for one that was left out.
func (s *shaping) number(at int, other float64) float64 {
	if at < len(s.numbers) {
		return s.numbers[at]
	}
	return other
}

// whole is number for one that counts something.
func (s *shaping) whole(at, other int) int {
	v := s.whole64(at, other)
	if int64(int(v)) != v {
		return s.fail(gpu.ErrInvalid, strconv.FormatInt(v, 10), " is beyond what this machine counts")
	}
	return int(v)
}

// whole64 is whole for one that machines of 32 bits need not count to.
func (s *shaping) whole64(at, other int) int64 {
	v := s.number(at, float64(other))
	if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		s.fail(gpu.ErrInvalid, strconv.FormatFloat(v, 'g', -1, 64), " is no whole number within 2^53")
		return 0
	}
	return int64(v)
}

// size is whole for one that is a size.
func (s *shaping) size(at, other int) int {
	v := s.whole(at, other)
	if v < 0 {
		return s.fail(buffer.ErrSize, "negative size ", itoa(v))
	}
	return v
}

// times multiplies sizes that may be too large together.
func (s *shaping) times(a, b int) int {
	n, ok := expr.Elements(a, b)
	if !ok {
		return s.fail(gpu.ErrLimit, itoa(a), " times ", itoa(b))
	}
	return n
}

// The following make nodes.

func (s *shaping) apply(op fuse.Op, args ...*node) *node { return expr.NewMap(s.op, op, args...) }

// at are the numbers of the rows and of the columns of a matrix of some size.
func (s *shaping) at(rows, cols int) (i, j *node) {
	return expr.NewIndex(s.op, rows, 1, fuse.AxisRows), expr.NewIndex(s.op, 1, cols, fuse.AxisCols)
}

// n is a number among those of rows and columns.
func (s *shaping) n(v int) *node {
	if v < math.MinInt32 || v > math.MaxInt32 {
		s.fail(gpu.ErrLimit, itoa(v), " is beyond int32")
	}
	return expr.Number(fuse.I32, 1, 1, float64(v))
}

// plus adds a number.
func (s *shaping) plus(x *node, v int) *node {
	if v == 0 {
		return x
	}
	return s.apply(fuse.OpAdd, x, s.n(v))
}

// from is the numbers of rows or columns, counted from another one than 0. Unlike a number that is added it is part of what a plan is
// made for, so that parts of expressions can be computed by themselves.
func (s *shaping) from(x *node, v int) *node {
	if s.n(v); s.err != nil || x.Err != nil || v == 0 {
		return x
	}
	n := *x
	n.Value += float64(v)
	return &n
}

func (s *shaping) elements(a, i, j *node) *node { return expr.NewGather(s.op, a, i, j) }

// where is a where a condition of whole numbers holds, and b elsewhere.
func (s *shaping) where(cond, a, b *node) *node {
	if a.Err != nil {
		return a
	}
	return s.apply(fuse.OpWhere, expr.NewConversion(s.op, a.Type, cond), a, b)
}

// sized stretches what may be stretched to a size.
func (s *shaping) sized(x *node, rows, cols int) *node {
	if x.Err != nil || x.Rows == rows && x.Cols == cols {
		return x
	}
	i, j := s.at(rows, cols)
	if x.Rows == 1 {
		i = expr.Number(fuse.I32, rows, 1, 0)
	}
	if x.Cols == 1 {
		j = expr.Number(fuse.I32, 1, cols, 0)
	}
	return s.elements(x, i, j)
}

// constant is a number of the type that is made.
func (s *shaping) constant(v float64) *node {
	if !representable(s.t, v) {
		s.fail(gpu.ErrInvalid, text(v), " among elements of ", s.t.String())
	}
	return numberNode(s.t, v)
}

func (s *shaping) eye() *node {
	rows := s.size(0, 0)
	cols := s.size(1, rows)
	i, j := s.at(rows, cols)
	return expr.NewConversion(s.op, s.t, s.apply(fuse.OpEq, j, s.plus(i, s.whole(2, 0))))
}

// arange is NumPy's: of one number the naturals below it, of two the whole numbers between them.
func (s *shaping) arange() *node {
	start, stop, step := s.number(0, 0), s.number(1, 0), s.number(2, 1)
	if len(s.numbers) == 1 {
		start, stop = 0, start
	}
	count := math.Ceil((stop - start) / step)
	switch {
	case step == 0 || math.IsNaN(count) || math.IsInf(count, 0):
		s.fail(gpu.ErrInvalid, "from ", text(start), " to ", text(stop), " by ", text(step))
	case count > math.MaxInt32:
		s.fail(gpu.ErrLimit, text(count), " elements")
	}
	if s.err != nil {
		return nil
	}
	return s.steps(start, step, max(int(count), 0))
}

// steps is a row of start, start + step, and so on.
func (s *shaping) steps(start, step float64, count int) *node {
	if s.t.Packed() && count > 0 { // others hold numbers that are as large as their constants
		s.hold(start, start+math.Trunc(step)*float64(count-1))
	}
	_, j := s.at(1, count)
	x := expr.NewConversion(s.op, s.t, j)
	if step != 1 {
		x = s.apply(fuse.OpMul, x, s.constant(step))
	}
	if start != 0 {
		x = s.apply(fuse.OpAdd, x, s.constant(start))
	}
	return s.sized(x, 1, count)
}

func text(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (s *shaping) linspace() *node {
	start, stop, count := s.number(0, 0), s.number(1, 0), s.size(2, 50)
	if count > math.MaxInt32 {
		s.fail(gpu.ErrLimit, itoa(count), " elements")
	}
	if s.err != nil || count < 2 {
		return fillNode(1, min(count, 1), s.constant(start))
	}
	_, j := s.at(1, count)
	last := s.apply(fuse.OpEq, j, s.n(count-1))
	return s.where(last, s.constant(stop), s.steps(start, (stop-start)/float64(count-1), count))
}

// diag makes a square matrix of a vector, and takes the diagonal of another matrix, as NumPy does.
func (s *shaping) diag() *node {
	a, k := s.args[0], s.whole(0, 0)
	if a.Rows != 1 && a.Cols != 1 {
		return s.diagonal()
	}
	side := s.times(a.Rows, a.Cols) + max(k, -k)
	i, j := s.at(side, side)
	at := s.where(s.apply(fuse.OpEq, j, s.plus(i, k)), s.plus(j, -max(k, 0)), s.n(-1))
	if a.Rows == 1 {
		return s.elements(a, s.n(0), at)
	}
	return s.elements(a, at, s.n(0))
}

func (s *shaping) diagonal() *node {
	a, k := s.args[0], s.whole(0, 0)
	_, j := s.at(1, max(min(a.Rows+min(k, 0), a.Cols-max(k, 0)), 0))
	return s.elements(a, s.from(j, max(-k, 0)), s.from(j, max(k, 0)))
}

// kept has the diagonals from lower below the main one to upper above it, all of a side where that is negative.
func (s *shaping) kept(lower, upper int, below, above bool) *node {
	a := s.args[0]
	i, j := s.at(a.Rows, a.Cols)
	zero := expr.Number(a.Type, 1, 1, 0)
	if below {
		a = s.where(s.apply(fuse.OpLe, i, s.plus(j, lower)), a, zero)
	}
	if above {
		a = s.where(s.apply(fuse.OpLe, j, s.plus(i, upper)), a, zero)
	}
	return a
}

func (s *shaping) tril() *node { return s.kept(0, s.whole(0, 0), false, true) }
func (s *shaping) triu() *node { return s.kept(-s.whole(0, 0), 0, true, false) }

func (s *shaping) band() *node {
	lower, upper := s.whole(0, 0), s.whole(1, 0)
	return s.kept(lower, upper, lower >= 0, upper >= 0)
}

func (s *shaping) oneHot() *node {
	labels, classes := s.labels(0), s.size(0, 0)
	if labels.Err == nil && labels.Rows != 1 && labels.Cols != 1 {
		s.err = expr.ShapeError(s.op, fitsNumbers, labels.Shape())
		return nil
	}
	i, j := s.at(classes, classes)
	if labels.Rows == 1 && labels.Cols != 1 {
		j = i // a column for each
	}
	return expr.NewConversion(s.op, s.t, s.apply(fuse.OpEq, labels, j))
}

// labels is an operand of whole numbers, which a text gives in the type that it computes in.
func (s *shaping) labels(at int) *node {
	a := s.args[at]
	switch {
	case a.Type == fuse.I32:
		return a
	case a.Type.Compute() == fuse.F32: // NaN, which a conversion makes 0, is none
		a = s.apply(fuse.OpWhere, s.apply(fuse.OpEq, a, a), a, expr.Number(a.Type, 1, 1, -1))
	}
	return expr.NewConversion(s.op, fuse.I32, a)
}

func (s *shaping) repeatRows() *node {
	a, n := s.args[0], s.size(0, 1)
	i, j := s.at(s.times(a.Rows, n), a.Cols)
	return s.elements(a, s.apply(fuse.OpDiv, i, s.n(max(n, 1))), j)
}

func (s *shaping) repeatCols() *node {
	a, n := s.args[0], s.size(0, 1)
	i, j := s.at(a.Rows, s.times(a.Cols, n))
	return s.elements(a, i, s.apply(fuse.OpDiv, j, s.n(max(n, 1))))
}

func (s *shaping) tile() *node {
	a := s.args[0]
	i, j := s.at(s.times(a.Rows, s.size(0, 1)), s.times(a.Cols, s.size(1, 1)))
	return s.elements(a, s.apply(fuse.OpMod, i, s.n(max(a.Rows, 1))), s.apply(fuse.OpMod, j, s.n(max(a.Cols, 1))))
}

func (s *shaping) vStack() *node { return expr.NewConcat(s.op, fuse.AxisRows, s.args...) }
func (s *shaping) hStack() *node { return expr.NewConcat(s.op, fuse.AxisCols, s.args...) }

func (s *shaping) flipRows() *node {
	a := s.args[0]
	i, j := s.at(a.Rows, a.Cols)
	return s.elements(a, s.apply(fuse.OpSub, s.n(a.Rows-1), i), j)
}

func (s *shaping) flipCols() *node {
	a := s.args[0]
	i, j := s.at(a.Rows, a.Cols)
	return s.elements(a, i, s.apply(fuse.OpSub, s.n(a.Cols-1), j))
}

func (s *shaping) roll() *node {
	a := s.args[0]
	i, j := s.at(a.Rows, a.Cols)
	return s.elements(a, s.turned(i, s.whole(0, 0), a.Rows), s.turned(j, s.whole(1, 0), a.Cols))
}

// turned is x - by, round the end of a length.
func (s *shaping) turned(x *node, by, length int) *node {
	if length == 0 || by%length == 0 {
		return x
	}
	by = (by%length + length) % length
	return s.where(s.apply(fuse.OpLt, x, s.n(by)), s.plus(x, length-by), s.plus(x, -by))
}

func (s *shaping) pad() *node {
	a, top, bottom, left, right := s.args[0], s.size(0, 0), s.size(1, 0), s.size(2, 0), s.size(3, 0)
	i, j := s.at(a.Rows+top+bottom, a.Cols+left+right)
	i, j = s.plus(i, -top), s.plus(j, -left)
	inner := s.elements(a, i, j)
	if value := s.number(4, 0); value != 0 {
		inside := func(x *node, n int) *node { // compared as unsigned numbers, those below 0 are large
			u := expr.NewConversion(s.op, fuse.U32, x)
			return expr.NewConversion(s.op, fuse.I32, s.apply(fuse.OpLt, u, expr.Number(fuse.U32, 1, 1, float64(n))))
		}
		return s.where(s.apply(fuse.OpAnd, inside(i, a.Rows), inside(j, a.Cols)), inner, s.constant(value))
	}
	return inner
}

// reshape gives the elements, read row by row, another shape. A size of -1 is what is left for it.
func (s *shaping) reshape() *node {
	a, rows, cols := s.args[0], s.whole(0, 0), s.whole(1, -1)
	all := s.times(a.Rows, a.Cols)
	if rows == -1 && cols > 0 {
		rows = all / cols
	} else if cols == -1 && rows > 0 {
		cols = all / rows
	}
	switch {
	case s.err != nil:
		return nil
	case rows < 0 || cols < 0 || s.times(rows, cols) != all:
		s.err = expr.ShapeError(s.op, expr.FitsElements(a.Shape()), a.Shape(), fault.Shape{rows, cols})
		return nil
	case all > math.MaxInt32:
		s.fail(gpu.ErrLimit, a.Shape().String(), " has more elements than int32 counts")
		return nil
	case rows == a.Rows && cols == a.Cols:
		return a
	}
	from, _ := expr.Resolve(a, false)
	switch m, ok := a.Source.(*core); {
	case (a.Kind == expr.Leaf || a.Kind == expr.Complex) && ok && !m.ColMajor && m.Contiguous():
		v := m.lentView(s.op, func(l expr.Layout) (expr.Layout, error) { return l.Reshape(s.op, rows, cols) })
		return v.operand(s.op)
	case from.Kind != expr.Leaf && from.Kind != expr.Gather && from.Kind != expr.Scalar && from.Kind != expr.Complex: // it is computed first anyway
		return expr.NewReshape(s.op, rows, cols, a)
	}
	i, j := s.at(rows, cols)
	if cols > 1 {
		i = s.apply(fuse.OpMul, i, s.n(cols))
	}
	place := s.apply(fuse.OpAdd, i, j)
	width := s.n(max(a.Cols, 1))
	n := s.elements(a, s.apply(fuse.OpDiv, place, width), s.apply(fuse.OpMod, place, width))
	if n.Kind == expr.Gather && a.Kind == expr.Leaf && a.Rows > 0 && rows%a.Rows == 0 {
		n.Stack = &expr.Stack{Count: a.Rows, Of: a}
	}
	return n
}

// fitsNumbers is what numbers of rows or columns need.
const fitsNumbers = "the numbers need to be a row or a column"

func (s *shaping) takeRows() *node {
	a, rows := s.args[0], s.labels(1)
	if rows.Err != nil {
		return rows
	}
	if rows.Rows == 1 {
		rows = expr.NewTranspose(s.op, rows)
	}
	if rows.Cols != 1 {
		return s.misfit(fitsNumbers, a, s.args[1])
	}
	_, j := s.at(1, a.Cols)
	return s.elements(a, rows, j)
}

func (s *shaping) takeCols() *node {
	a, cols := s.args[0], s.labels(1)
	if cols.Err != nil {
		return cols
	}
	if cols.Cols == 1 {
		cols = expr.NewTranspose(s.op, cols)
	}
	if cols.Rows != 1 {
		return s.misfit(fitsNumbers, a, s.args[1])
	}
	i, _ := s.at(a.Rows, 1)
	return s.elements(a, i, cols)
}

func (s *shaping) broadcastTo() *node {
	a, rows, cols := s.args[0], s.size(0, 0), s.size(1, 0)
	if a.Rows != rows && a.Rows != 1 || a.Cols != cols && a.Cols != 1 {
		s.err = expr.ShapeError(s.op, expr.FitsSpread, a.Shape(), fault.Shape{rows, cols})
		return nil
	}
	return s.sized(a, rows, cols)
}
