// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"
	"math/bits"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

func (s *shaping) slice() *node {
	i, k, j, l := s.whole(0, 0), s.whole(1, 0), s.whole(2, 0), s.whole(3, 0)
	if s.err != nil {
		return nil
	}
	return windowNode(s.op, s.args[0], i, k, j, l)
}

// vector returns the second operand, of integers, as a column or a row with count elements.
func (s *shaping) vector(column bool, count int) *node {
	v := s.labels(1)
	if v.Err == nil && (v.Rows == 1) == column && (v.Rows != 1 || v.Cols != 1) {
		v = expr.NewTranspose(s.op, v)
	}
	length, other := v.Cols, v.Rows
	if column {
		length, other = other, length
	}
	if v.Err == nil && (other != 1 || length != count) {
		s.misfit(fitsNumbers+" of "+itoa(count), s.args[1], s.args[len(s.args)-1])
	}
	return v
}

// same checks that two operands have as many columns, or rows.
func (s *shaping) same(cols bool) bool {
	a, b := s.args[0], s.args[2]
	length, unit, fits := a.Cols, "column", a.Cols == b.Cols
	if !cols {
		length, unit, fits = a.Rows, "row", a.Rows == b.Rows
	}
	if !fits {
		s.misfit(fault.Needs("the second", length, unit), a, b)
	}
	return s.err == nil
}

// putRows replaces rows. Of several numbers that name one row the last counts.
func (s *shaping) putRows() *node {
	a, b := s.args[0], s.args[2]
	numbers := s.vector(false, b.Rows)
	if !s.same(true) || b.Rows == 0 || numbers.Err != nil {
		return firstNode(numbers, a)
	}
	_, j := s.at(a.Rows, a.Cols)
	last := s.lastOf(numbers, a.Rows)
	return s.where(s.apply(fuse.OpGe, last, s.n(0)), s.elements(b, last, j), a)
}

func (s *shaping) putCols() *node {
	a, b := s.args[0], s.args[2]
	numbers := s.vector(true, b.Cols)
	if !s.same(false) || b.Cols == 0 || numbers.Err != nil {
		return firstNode(numbers, a)
	}
	i, _ := s.at(a.Rows, a.Cols)
	last := expr.NewTranspose(s.op, s.lastOf(expr.NewTranspose(s.op, numbers), a.Cols))
	return s.where(s.apply(fuse.OpGe, last, s.n(0)), s.elements(b, i, last), a)
}

// comparedMost is how often numbers are compared with all that they may be: sorting more of them is faster.
const comparedMost = 1 << 26

// lastOf returns for each number from 0 to count-1 the place of the last one in a row that is that number, -1 where there is none, as a
// column.
func (s *shaping) lastOf(numbers *node, count int) *node {
	i, _ := s.at(count, 1)
	if numbers.Cols <= comparedMost/max(count, 1) {
		_, k := s.at(1, numbers.Cols)
		return expr.NewReduction(s.op, fuse.ReduceMax, fuse.AxisRows, 0, s.where(s.apply(fuse.OpEq, numbers, i), k, s.n(-1)))
	}
	zero, order := s.n(0), expr.NewSort(s.op, false, true, -1, numbers) // which leaves equal ones in their order
	sorted := s.elements(numbers, zero, order)
	last := s.plus(s.placesIn(sorted, s.plus(i, 1)), -1)
	found := s.apply(fuse.OpAnd, s.apply(fuse.OpGe, last, zero), s.apply(fuse.OpEq, s.elements(sorted, zero, last), i))
	return s.where(found, s.elements(order, zero, last), s.n(-1))
}

// hotMost is the most elements of a one-hot matrix for which scattered uses a dense product.
const hotMost = 1 << 22

// hotRows is the most rows for which scattered uses a dense product.
const hotRows = 64

func (s *shaping) addToRows() *node {
	a, b := s.args[0], s.args[2]
	numbers := s.vector(false, b.Rows)
	if !s.same(true) || b.Rows == 0 || numbers.Err != nil {
		return firstNode(numbers, a)
	}
	return s.apply(fuse.OpAdd, a, s.scattered(a.Rows, numbers, b))
}

func (s *shaping) addToCols() *node {
	a, b := s.args[0], s.args[2]
	numbers := s.vector(true, b.Cols)
	if !s.same(false) || b.Cols == 0 || numbers.Err != nil {
		return firstNode(numbers, a)
	}
	turned := func(n *node) *node { return expr.NewTranspose(s.op, n) }
	return s.apply(fuse.OpAdd, a, turned(s.scattered(a.Cols, turned(numbers), turned(b))))
}

// sumMost is how many rows are added up at a time: the limit of the kernel for rows of sparse matrices.
const sumMost = 56 << 10

// scattered returns count rows: row i is the sum of the rows of b whose number is i. This is the product of b and a sparse one-hot matrix,
// whose structure comes from sorting the numbers. A small one-hot matrix takes a dense product.
func (s *shaping) scattered(count int, numbers, b *node) (sum *node) {
	v, _ := s.at(count, 1)
	if b.Rows <= hotMost/max(count, 1) && b.Rows <= hotRows {
		return expr.NewProduct(s.op, expr.NewConversion(s.op, b.Type, s.apply(fuse.OpEq, numbers, v)), b)
	}
	zero := s.n(0)
	for first := 0; first < b.Rows; first += sumMost {
		some := windowNode(s.op, numbers, 0, 1, first, min(first+sumMost, b.Rows))
		order := expr.NewSort(s.op, false, true, -1, some)
		_, ends := s.at(1, count+1)
		search := &shaping{op: s.op, args: []*node{s.elements(some, zero, order), ends}}
		part := expr.NewRowSums(s.op, s.plus(order, first), search.searchSorted(), b)
		if sum == nil {
			sum = part
		} else {
			sum = s.apply(fuse.OpAdd, sum, part)
		}
	}
	return sum
}

// elementsAt returns the places of elements, counted row by row, as a row of int32 with -1 for those outside the matrix, and their new
// values.
func (s *shaping) elementsAt() (places, values *node) {
	a, rows, cols, b := s.args[0], s.labels(1), s.labels(2), s.args[3]
	if s.times(a.Rows, a.Cols) > math.MaxInt32 {
		s.fail(gpu.ErrLimit, a.Shape().String(), " has more elements than int32 counts")
	}
	at := expr.Join(s.op, rows, cols)
	one := b.Rows == 1 && b.Cols == 1
	switch {
	case at.Err != nil:
		s.err = at.Err
	case rows.Rows != cols.Rows || rows.Cols != cols.Cols:
		s.misfit(expr.FitsEqual, rows, cols)
	case !one && (b.Rows != rows.Rows || b.Cols != rows.Cols):
		s.misfit("the second needs to be "+rows.Shape().String()+" or 1x1", rows, b)
	}
	if s.err != nil {
		return nil, nil
	}
	inside := s.apply(fuse.OpAnd, s.apply(fuse.OpGe, rows, s.n(0)), s.apply(fuse.OpLt, rows, s.n(a.Rows)))
	inside = s.apply(fuse.OpAnd, inside, s.apply(fuse.OpAnd, s.apply(fuse.OpGe, cols, s.n(0)), s.apply(fuse.OpLt, cols, s.n(a.Cols))))
	place := s.apply(fuse.OpAdd, s.apply(fuse.OpMul, rows, s.n(max(a.Cols, 1))), cols)
	places = s.flat(s.apply(fuse.OpWhere, inside, place, s.n(-1)))
	if values = b; !one {
		values = s.flat(b)
	}
	return places, values
}

// reshaped is Reshape of a matrix.
func (s *shaping) reshaped(a *node, rows, cols int) *node {
	of := &shaping{op: s.op, t: s.t, args: []*node{a}, numbers: []float64{float64(rows), float64(cols)}}
	n := of.reshape()
	if of.err != nil {
		s.err = of.err
		return a
	}
	return n
}

func (s *shaping) addToElements() *node {
	a := s.args[0]
	places, values := s.elementsAt()
	if s.err != nil || places.Cols == 0 || a.Rows*a.Cols == 0 {
		return a
	}
	column := s.sized(expr.NewTranspose(s.op, values), places.Cols, 1)
	sums := s.scattered(a.Rows*a.Cols, places, column)
	return s.apply(fuse.OpAdd, a, s.reshaped(expr.NewTranspose(s.op, sums), a.Rows, a.Cols))
}

// putElements replaces elements. Of several places that name one element the last counts.
func (s *shaping) putElements() *node {
	a := s.args[0]
	places, values := s.elementsAt()
	if s.err != nil || places.Cols == 0 || a.Rows*a.Cols == 0 {
		return a
	}
	zero := s.n(0)
	order := expr.NewSort(s.op, false, true, -1, places)
	sorted := s.elements(places, zero, order)
	_, e := s.at(1, a.Rows*a.Cols)
	search := &shaping{op: s.op, args: []*node{sorted, s.plus(e, 1)}}
	last := s.plus(search.searchSorted(), -1)
	found := s.apply(fuse.OpAnd, s.apply(fuse.OpGe, last, zero), s.apply(fuse.OpEq, s.elements(sorted, zero, last), e))
	from := zero
	if values.Cols > 1 {
		from = s.elements(order, zero, last)
	}
	row := s.where(found, s.elements(values, zero, from), s.flat(a))
	return s.reshaped(row, a.Rows, a.Cols)
}

func (s *shaping) putDiag() *node { return s.onDiag(func(_, d *node) *node { return d }) }

func (s *shaping) addToDiag() *node { return s.onDiag(s.sum) }

func (s *shaping) put() *node { return s.onRegion(func(_, b *node) *node { return b }) }

func (s *shaping) addTo() *node { return s.onRegion(s.sum) }

func (s *shaping) sum(a, b *node) *node { return s.apply(fuse.OpAdd, a, b) }

// onRegion returns the first operand with f of both operands in the region that the second one covers, which begins at a row and a column.
func (s *shaping) onRegion(f func(a, b *node) *node) *node {
	a, b, row, col := s.args[0], s.args[1], s.whole(0, 0), s.whole(1, 0)
	switch {
	case s.err != nil:
	case b.Rows > a.Rows || b.Cols > a.Cols:
		return s.misfit("the region can have no more rows and columns than the matrix", a, b)
	case row < 0 || col < 0 || row > a.Rows-b.Rows || col > a.Cols-b.Cols:
		s.fail(buffer.ErrIndex, b.Shape().String(), " from ", itoa(row), ", ", itoa(col), " on of ", a.Shape().String())
	}
	if s.err != nil || b.Rows == 0 || b.Cols == 0 {
		return a
	}
	i, j := s.at(a.Rows, a.Cols)
	within := func(i *node, first, count int) *node {
		return s.apply(fuse.OpAnd, s.apply(fuse.OpGe, i, s.n(first)), s.apply(fuse.OpLt, i, s.n(first+count)))
	}
	inside := s.apply(fuse.OpAnd, within(i, row, b.Rows), within(j, col, b.Cols))
	return s.where(inside, f(a, s.elements(b, s.plus(i, -row), s.plus(j, -col))), a)
}

// onDiag returns the first operand with f of its k-th diagonal and the second operand on that diagonal.
func (s *shaping) onDiag(f func(a, d *node) *node) *node {
	a, d, k := s.args[0], s.args[1], s.whole(0, 0)
	count := max(min(a.Rows+min(k, 0), a.Cols-max(k, 0)), 0)
	switch {
	case d.Rows == 1 && d.Cols == 1 || d.Rows == 1 && d.Cols == count:
	case d.Cols == 1 && d.Rows == count:
		d = expr.NewTranspose(s.op, d)
	default:
		return s.misfit("the diagonal needs to be a row or a column of "+itoa(count)+", or 1x1", a, d)
	}
	i, j := s.at(a.Rows, a.Cols)
	from := s.plus(j, -max(k, 0))
	if d.Cols == 1 {
		from = s.n(0)
	}
	if s.err != nil || d.Cols == 0 {
		return a
	}
	return s.where(s.apply(fuse.OpEq, j, s.plus(i, k)), f(a, s.elements(d, s.n(0), from)), a)
}

func (s *shaping) gather() *node { return s.elements(s.args[0], s.labels(1), s.labels(2)) }

func (s *shaping) dotRows() *node {
	return expr.NewReduction(s.op, fuse.ReduceSum, fuse.AxisRows, 0, s.apply(fuse.OpMul, s.args[0], s.args[1]))
}

func (s *shaping) dotCols() *node {
	return expr.NewReduction(s.op, fuse.ReduceSum, fuse.AxisCols, 0, s.apply(fuse.OpMul, s.args[0], s.args[1]))
}

// stackMost is the most products of a stack that are launched one by one.
const stackMost = 4096

// largeProduct is the number of multiplications from which on one product is enough work for any device.
const largeProduct = 1 << 27

// mulStack multiplies the matrices of two stacks. Large products are launched one by one.
func (s *shaping) mulStack() *node {
	a, b, count := s.args[0], s.args[1], s.size(0, 1)
	if s.err != nil {
		return nil
	}
	product := expr.NewStackProduct(s.op, count, a, b)
	if product.Err != nil || count == 0 {
		return product
	}
	inner, high := a.Cols, a.Rows/count
	switch {
	case count == 1:
		return expr.NewProduct(s.op, a, b)
	case count <= stackMost && s.times(s.times(high, inner), b.Cols) > largeProduct:
		products := make([]*node, count)
		for k := range products {
			products[k] = expr.NewProduct(s.op, s.rowsOf(a, k*high, high), s.rowsOf(b, k*inner, inner))
		}
		return expr.NewConcat(s.op, fuse.AxisRows, products...)
	}
	return product
}

// transposeStack transposes each matrix of a stack.
func (s *shaping) transposeStack() *node {
	a, count := s.args[0], s.size(0, 1)
	if s.err == nil && (count == 0 && a.Rows > 0 || count > 0 && a.Rows%count != 0) {
		s.err = expr.ShapeError(s.op, expr.FitsStack(count), a.Shape())
	}
	if s.err != nil {
		return nil
	}
	high := a.Rows / max(count, 1)
	row, col := s.at(s.times(count, a.Cols), high)
	width := s.n(max(a.Cols, 1))
	above := s.apply(fuse.OpMul, s.apply(fuse.OpDiv, row, width), s.n(high))
	n := s.elements(a, s.apply(fuse.OpAdd, above, col), s.apply(fuse.OpMod, row, width))
	if n.Kind == expr.Gather {
		n.Stack = &expr.Stack{Count: count, Turned: [2]bool{true}, Of: a}
	}
	return n
}

func (s *shaping) symmetricLower() *node { return s.symmetric(fuse.OpMax, fuse.OpMin) }
func (s *shaping) symmetricUpper() *node { return s.symmetric(fuse.OpMin, fuse.OpMax) }

// symmetric copies one triangle to the other.
func (s *shaping) symmetric(row, col fuse.Op) *node {
	a := s.args[0]
	if a.Rows != a.Cols {
		s.err = expr.ShapeError(s.op, expr.FitsSquare, a.Shape())
		return nil
	}
	i, j := s.at(a.Rows, a.Cols)
	return s.elements(a, s.apply(row, i, j), s.apply(col, i, j))
}

// rowsOf returns rows of an operand, as a view if it is a matrix.
func (s *shaping) rowsOf(x *node, first, count int) *node {
	return windowNode(s.op, x, first, first+count, 0, x.Cols)
}

// flat returns the elements as one row.
func (s *shaping) flat(a *node) *node {
	if a.Err != nil || a.Rows == 1 {
		return a
	}
	return s.reshaped(a, 1, a.Rows*a.Cols)
}

// counted returns a row with the number of elements of a row that equal 0, 1, ..., classes-1.
func (s *shaping) counted(row *node, classes int) *node {
	if row.Cols > comparedMost/max(classes, 1) {
		sorted := expr.NewSort(s.op, false, false, -1, expr.NewConversion(s.op, fuse.I32, row))
		_, j := s.at(1, classes)
		return s.apply(fuse.OpSub, s.placesIn(sorted, s.plus(j, 1)), s.placesIn(sorted, j))
	}
	i, _ := s.at(classes, 1)
	counts := expr.NewReduction(s.op, fuse.ReduceSum, fuse.AxisRows, 0, s.apply(fuse.OpEq, i, row))
	return expr.NewTranspose(s.op, counts)
}

func (s *shaping) histogram() *node {
	a, bins, low, high := s.args[0], s.size(0, 10), s.number(1, 0), s.number(2, 1)
	switch {
	case !expr.Floats(a.Type):
		s.undefined(a.Type)
	case !(low < high) || math.IsInf(high-low, 0) || bins == 0:
		s.fail(gpu.ErrInvalid, itoa(bins), " bins from ", text(low), " to ", text(high))
	}
	if s.err != nil {
		return nil
	}
	x := s.flat(expr.NewConversion(s.op, fuse.F32, a))
	inside := s.apply(fuse.OpAnd, s.apply(fuse.OpGe, x, s.float(low)), s.apply(fuse.OpLe, x, s.float(high)))
	scaled := s.apply(fuse.OpMul, s.apply(fuse.OpSub, x, s.float(low)), s.float(float64(bins)/(high-low)))
	bin := s.apply(fuse.OpMin, expr.NewConversion(s.op, fuse.I32, scaled), s.n(bins-1))
	return s.counted(s.apply(fuse.OpWhere, expr.NewConversion(s.op, fuse.I32, inside), bin, s.n(-1)), bins)
}

func (s *shaping) binCount() *node {
	a, classes := s.args[0], s.size(0, 0)
	x := s.flat(a)
	label := s.labels(0)
	if label != a { // fractions are no labels
		whole := s.apply(fuse.OpEq, expr.NewConversion(s.op, a.Type, expr.NewConversion(s.op, fuse.I32, x)), x)
		return s.counted(s.where32(whole, expr.NewConversion(s.op, fuse.I32, x)), classes)
	}
	return s.counted(x, classes)
}

// where32 returns x where a condition holds, and -1 elsewhere.
func (s *shaping) where32(cond, x *node) *node {
	return s.apply(fuse.OpWhere, expr.NewConversion(s.op, fuse.I32, cond), x, s.n(-1))
}

// searchSorted finds the places of elements in a sorted row by bisection.
func (s *shaping) searchSorted() *node {
	row, a := s.args[0], s.args[1]
	if row.Rows != 1 {
		return s.misfit(fault.Needs("the first", 1, "row"), row, a)
	}
	if row.Type != a.Type {
		return expr.Join(s.op, row, a) // whose error says so
	}
	return s.placesIn(row, a)
}

// placesIn returns how many elements of a sorted row are less than each element of a.
func (s *shaping) placesIn(row, a *node) *node {
	zero := s.n(0)
	low, high := zero, s.n(row.Cols)
	if row.Cols == 0 { // 0, on its device
		low = expr.NewConversion(s.op, fuse.I32, s.elements(row, zero, zero))
	}
	for range bits.Len(uint(row.Cols)) {
		middle := s.apply(fuse.OpDiv, s.apply(fuse.OpAdd, low, high), s.n(2))
		open := s.apply(fuse.OpLt, low, high)
		less := s.sortsBefore(s.elements(row, zero, middle), a)
		right := s.apply(fuse.OpAnd, open, less)
		left := s.apply(fuse.OpAnd, open, s.apply(fuse.OpNot, less))
		low, high = s.apply(fuse.OpWhere, right, s.plus(middle, 1), low), s.apply(fuse.OpWhere, left, middle, high)
	}
	return s.sized(low, a.Rows, a.Cols)
}

// sortsBefore is 1 where an element is less than another one, of type int32. NaN comes after all numbers, as when sorting.
func (s *shaping) sortsBefore(a, b *node) *node {
	less := expr.NewConversion(s.op, fuse.I32, s.apply(fuse.OpLt, a, b))
	if b.Type != fuse.F32 && b.Type != fuse.F16 {
		return less
	}
	last := s.apply(fuse.OpAnd, s.apply(fuse.OpIsNaN, b), s.apply(fuse.OpNot, s.apply(fuse.OpIsNaN, a)))
	return s.apply(fuse.OpOr, less, expr.NewConversion(s.op, fuse.I32, last))
}
