// SPDX-License-Identifier: Apache-2.0

package tensor

import (
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// callable returns the operand's error, or one that says that there is no function.
func callable(op string, err error, none bool) error {
	if err == nil && none {
		err = fail(op, gpu.ErrInvalid, "no function")
	}
	return err
}

// Map applies an element-wise function of package matrix, such as matrix.Exp[float32].
func Map[T, U matrix.Elem](f func(a matrix.Operand[T]) *matrix.Expr[U], a *Tensor[T]) *Tensor[U] {
	const op = "Map"
	a = a.use(op)
	if err := callable(op, a.err, f == nil); err != nil {
		return failed[U](err)
	}
	return made(op, f(a.e), a.shape)
}

// Zip applies an element-wise function of two operands, such as matrix.Add[float32]. Shapes are broadcast: they are aligned at their
// last dimensions, and dimensions of 1, or that are not there, stretch.
func Zip[T, U matrix.Elem](f func(a, b matrix.Operand[T]) *matrix.Expr[U], a, b *Tensor[T]) *Tensor[U] {
	if err := callable("Zip", nil, f == nil); err != nil {
		return failed[U](err)
	}
	return zipped("Zip", func(x []*matrix.Expr[T]) *matrix.Expr[U] { return f(x[0], x[1]) }, a, b)
}

// Zip3 is [Zip] of three operands, such as matrix.Where[float32].
func Zip3[T, U matrix.Elem](f func(a, b, c matrix.Operand[T]) *matrix.Expr[U], a, b, c *Tensor[T]) *Tensor[U] {
	if err := callable("Zip3", nil, f == nil); err != nil {
		return failed[U](err)
	}
	return zipped("Zip3", func(x []*matrix.Expr[T]) *matrix.Expr[U] { return f(x[0], x[1], x[2]) }, a, b, c)
}

func zipped[T, U matrix.Elem](op string, f func([]*matrix.Expr[T]) *matrix.Expr[U], args ...*Tensor[T]) *Tensor[U] {
	var shape []int
	for i, a := range args {
		if a = a.use(op); a.err != nil {
			return failed[U](a.err)
		}
		common, ok := stretched(shape, a.shape)
		if i == 0 {
			common, ok = a.shape, true
		}
		if !ok {
			return failed[U](shapeError(op, fitsSpread, shape, a.shape))
		}
		shape = common
	}
	if _, err := product(op, shape); err != nil {
		return failed[U](err)
	}
	k, places := split(shape, args)
	parts := make([]*matrix.Expr[T], len(args))
	for i, a := range args {
		if rows, cols, ok := places[i].asMatrix(k); ok {
			parts[i] = a.as(rows, cols)
		} else {
			parts[i] = a.gathered(places[i], k)
		}
	}
	e := f(parts)
	if e != nil && e.Err() == nil { // all may be stretched together
		if rows, cols := e.Dims(); rows*cols != count(shape) {
			e = matrix.BroadcastTo(e, count(shape[:k]), count(shape[k:]))
		}
	}
	return made(op, e, shape)
}

// split finds where to divide the dimensions into rows and columns, so that as many operands as possible are plain matrices, of which rows
// or columns may be stretched. It also returns where the elements of each operand are.
func split[T matrix.Elem](shape []int, args []*Tensor[T]) (best int, places []place) {
	for _, a := range args {
		places = append(places, a.placed(shape))
	}
	most := -1
	for i := range len(shape) + 1 {
		k, n := len(shape)-1-i, 0
		if k < 0 {
			k = len(shape) // a single column, if nothing else
		}
		for _, p := range places {
			if _, _, ok := p.asMatrix(k); ok {
				n++
			}
		}
		if n > most {
			most, best = n, k
		}
	}
	return best, places
}

// asMatrix reports whether a place is a matrix of rows and columns that stretch, the dimensions from k on being its columns, and its size.
func (p place) asMatrix(k int) (rows, cols int, ok bool) {
	whole := func(from, to, inner int) (int, bool) {
		q := place{p.shape[from:to], p.strides[from:to], 0}.joined()
		switch {
		case len(q.shape) == 0 || len(q.shape) == 1 && q.strides[0] == 0:
			return 1, true
		case len(q.shape) == 1 && q.strides[0] == inner:
			return q.shape[0], true
		}
		return 0, false
	}
	cols, across := whole(k, len(p.shape), 1)
	rows, down := whole(0, k, cols)
	return rows, cols, across && down && !slices.Contains(p.shape, 0)
}

// Reduce applies a reduction of rows, such as matrix.SumRows[float32] or matrix.ArgMaxRows[float32], along dimensions, all of them if none
// is named: these are of size 1 in the result. Several are taken together in their order, row by row.
func Reduce[T, U matrix.Elem](f func(a matrix.Operand[T]) *matrix.Expr[U], a *Tensor[T], axes ...int) *Tensor[U] {
	const op = "Reduce"
	a = a.use(op)
	if err := callable(op, a.err, f == nil); err != nil {
		return failed[U](err)
	}
	if len(axes) == 0 {
		for i := range a.shape {
			axes = append(axes, i)
		}
	}
	gone, err := a.axes(op, axes)
	if err != nil {
		return failed[U](err)
	}
	slices.Sort(gone)
	shape := slices.Clone(a.shape)
	var order []int
	for i := range shape {
		if slices.Contains(gone, i) {
			shape[i] = 1
		} else {
			order = append(order, i)
		}
	}
	length := 1
	for _, i := range gone {
		length *= a.shape[i]
	}
	if len(gone) > 0 {
		a = a.Permute(append(order, gone...)...)
	}
	if a.err != nil {
		return failed[U](a.err)
	}
	return made(op, f(a.as(count(shape), length)), shape)
}

// Along applies a function of rows that keeps their length, such as matrix.Softmax[float32] or matrix.CumSumRows[float32], along a
// dimension.
func Along[T, U matrix.Elem](f func(a matrix.Operand[T]) *matrix.Expr[U], a *Tensor[T], axis int) *Tensor[U] {
	const op = "Along"
	a = a.use(op)
	if err := callable(op, a.err, f == nil); err != nil {
		return failed[U](err)
	}
	list, err := a.axes(op, []int{axis})
	if err != nil {
		return failed[U](err)
	}
	last := len(a.shape) - 1
	order := make([]int, len(a.shape)) // exchanges the dimension and the last one
	for i := range order {
		order[i] = i
	}
	order[list[0]], order[last] = last, list[0]
	if a = a.Permute(order...); a.err != nil {
		return failed[U](a.err)
	}
	return made(op, f(a.as(count(a.shape[:last]), a.shape[last])), a.shape).Permute(order...)
}

// MatMul is the product of the matrices in the last two dimensions, as many as the others count; those are broadcast.
func MatMul[T matrix.Elem](a, b *Tensor[T]) *Tensor[T] {
	const op = "MatMul"
	a, b = a.use(op), b.use(op)
	switch {
	case a.err != nil:
		return a
	case b.err != nil:
		return b
	case len(a.shape) < 2 || len(b.shape) < 2:
		return failed[T](fail(op, gpu.ErrInvalid, strconv.Itoa(min(len(a.shape), len(b.shape))), " dimensions, of which two are a matrix"))
	}
	la, lb := len(a.shape)-2, len(b.shape)-2
	m, k, n := a.shape[la], a.shape[la+1], b.shape[lb+1]
	stack, ok := stretched(a.shape[:la], b.shape[:lb])
	switch {
	case k != b.shape[lb]:
		return failed[T](shapeError(op, fault.Needs("the second factor", k, "row"), a.shape, b.shape))
	case !ok:
		return failed[T](shapeError(op, fitsSpread+", before the last two", a.shape, b.shape))
	}
	shape := append(slices.Clone(stack), m, n)
	if _, err := product(op, shape); err != nil {
		return failed[T](err)
	}
	items := count(stack)
	if count(b.shape[:lb]) == 1 && len(a.shape) >= len(b.shape) { // one product of all rows
		return made(op, matrix.Mul(a.as(items*m, k), b.as(k, n)), shape)
	}
	a, b = a.Broadcast(append(slices.Clone(stack), m, k)...), b.Broadcast(append(slices.Clone(stack), k, n)...)
	switch {
	case a.err != nil:
		return a
	case b.err != nil:
		return b
	case items == 0:
		return made(op, matrix.Mul(a.as(0, k), matrix.Fill(k, n, *new(T))), shape)
	}
	return made(op, matrix.MulStack(a.as(items*m, k), b.as(items*k, n), items), shape)
}
