// SPDX-License-Identifier: Apache-2.0

// Package tensor computes with arrays of any number of dimensions, as NumPy and CNTK's TensorView do: element by element with
// broadcasting, with reductions along any dimensions, slices, permutations of dimensions and products of stacks. It has no kernels and no
// operations of its own: a tensor is an expression of package matrix with a shape, and functions of package matrix are arguments of its
// functions:
//
//	x := tensor.New(images, n, height, width, channels)             // a matrix with as many elements
//	mean := tensor.Reduce(matrix.MeanRows[float32], x, 0, 1, 2)     // 1 x 1 x 1 x channels
//	y := tensor.Zip(matrix.Sub[float32], x, mean)                   // broadcasts
//	err := out.Assign(y.Expr())                                     // one matrix, queued
//
// If the dimensions of the operands can be combined to rows and columns, elements are read like those of matrices; otherwise kernels
// compute the place of each. Neither copies anything.
//
// # Errors
//
// A tensor carries its first error or that of its operands: shapes that do not fit are [buffer.ErrShape], dimensions that do not exist
// [buffer.ErrIndex], negative sizes [buffer.ErrSize], more than 16 dimensions or 2^31-1 elements [gpu.ErrLimit], nil operands
// [buffer.ErrNil], and other invalid arguments [gpu.ErrInvalid].
package tensor

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Tensor is an expression with a shape. Its elements are those of the expression row by row, so that the last dimension changes fastest.
type Tensor[T matrix.Elem] struct {
	e     *matrix.Expr[T]
	shape []int
	err   error
}

// maxRank is the most dimensions.
const maxRank = 16

func fail(op string, err error, detail ...string) error {
	return fault.Fail("tensor: "+op, err, detail...)
}

func failed[T matrix.Elem](err error) *Tensor[T] {
	return &Tensor[T]{e: matrix.Failed[T](err), err: err}
}

// shapeError says what would fit.
func shapeError(op, fits string, a, b []int) error {
	return fail(op, buffer.ErrShape, text(a), " with ", text(b), ": ", fits)
}

// fitsSpread is what element-wise operations need.
const fitsSpread = "dimensions have to be equal, or 1"

// fitsElements is what another shape needs.
func fitsElements(n int) string { return fault.Needs("another shape", n, "element") }

// text is a shape for people.
func text(shape []int) string {
	list := make([]string, len(shape))
	for i, d := range shape {
		list[i] = strconv.Itoa(d)
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// product multiplies sizes, which are not negative.
func product(op string, shape []int) (int, error) {
	n := 1 // of the dimensions that are not 0
	if len(shape) > maxRank {
		return 0, fail(op, gpu.ErrLimit, strconv.Itoa(len(shape)), " dimensions")
	}
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, fail(op, buffer.ErrSize, "negative size ", strconv.Itoa(d))
		case d > math.MaxInt32/n:
			return 0, fail(op, gpu.ErrLimit, text(shape), " has more than 2147483647 elements")
		}
		n *= max(d, 1)
	}
	if slices.Contains(shape, 0) {
		n = 0
	}
	return n, nil
}

// count is product for shapes that were checked.
func count(shape []int) int {
	n, _ := product("", shape)
	return n
}

// New makes a tensor of a matrix or an expression, whose elements it has row by row. Without a shape it is a scalar, from a 1x1 matrix.
func New[T matrix.Elem](a matrix.Operand[T], shape ...int) *Tensor[T] {
	const op = "New"
	if a == nil {
		return failed[T](fail(op, buffer.ErrNil, "nil operand"))
	}
	var e *matrix.Expr[T]
	switch x := a.(type) {
	case *matrix.Expr[T]:
		e = x
	case *matrix.Dense[T]:
		e = x.Expr()
	case *matrix.Sparse[T]:
		e = x.Expr()
	}
	if err := e.Err(); err != nil {
		return failed[T](err)
	}
	n, err := product(op, shape)
	if err != nil {
		return failed[T](err)
	}
	if rows, cols := e.Dims(); rows*cols != n {
		return failed[T](shapeError(op, fitsElements(rows*cols), []int{rows, cols}, shape))
	}
	return &Tensor[T]{e: e, shape: slices.Clone(shape)}
}

// use returns the tensor. For nil it is a tensor that carries an error.
func (t *Tensor[T]) use(op string) *Tensor[T] {
	if t == nil || t.e == nil {
		return failed[T](fail(op, buffer.ErrNil, "nil tensor"))
	}
	return t
}

// Err returns the error that the tensor was built with, or nil.
func (t *Tensor[T]) Err() error { return t.use("Err").err }

// Shape returns the sizes of the dimensions.
func (t *Tensor[T]) Shape() []int { return slices.Clone(t.use("Shape").shape) }

// Expr is the tensor as an expression, with the last dimension for its columns and all others for its rows; of one dimension it is a row.
func (t *Tensor[T]) Expr() *matrix.Expr[T] {
	t = t.use("Expr")
	if t.err != nil {
		return t.e
	}
	k := max(len(t.shape)-1, 0)
	return t.as(count(t.shape[:k]), count(t.shape[k:]))
}

// Read computes the tensor and returns its elements.
func (t *Tensor[T]) Read(ctx context.Context) ([]T, error) { return t.Expr().Read(ctx) }

// as is the tensor as a matrix of that size.
func (t *Tensor[T]) as(rows, cols int) *matrix.Expr[T] {
	if r, c := t.e.Dims(); r == rows && c == cols {
		return t.e
	}
	return matrix.Reshape(t.e, rows, cols)
}

// made is a tensor of a computed matrix, whose elements must be as many.
func made[T matrix.Elem](op string, e *matrix.Expr[T], shape []int) *Tensor[T] {
	switch {
	case e == nil:
		return failed[T](fail(op, buffer.ErrNil, "the function returned nil"))
	case e.Err() != nil:
		return failed[T](e.Err())
	}
	if rows, cols := e.Dims(); rows*cols != count(shape) {
		return failed[T](fail(op, gpu.ErrInvalid, "the function's result is of another size"))
	}
	return &Tensor[T]{e: e, shape: shape}
}

// Reshape is the tensor with the same elements in another shape. One size may be -1: it follows from the others.
func (t *Tensor[T]) Reshape(shape ...int) *Tensor[T] {
	const op = "Reshape"
	t = t.use(op)
	if t.err != nil {
		return t
	}
	shape = slices.Clone(shape)
	if at := slices.Index(shape, -1); at >= 0 {
		shape[at] = 1
		rest, err := product(op, shape)
		if err != nil {
			return failed[T](err)
		}
		if rest == 0 || count(t.shape)%rest != 0 {
			return failed[T](shapeError(op, "the rest has to divide "+strconv.Itoa(count(t.shape)), t.shape, shape))
		}
		shape[at] = count(t.shape) / rest
	}
	n, err := product(op, shape)
	switch {
	case err != nil:
		return failed[T](err)
	case n != count(t.shape):
		return failed[T](shapeError(op, fitsElements(count(t.shape)), t.shape, shape))
	}
	return &Tensor[T]{e: t.e, shape: shape}
}

// Permute is the tensor with its dimensions in another order: dimension i of the result is dimension axes[i]. Without axes their order
// is reversed. Negative numbers count from the end.
func (t *Tensor[T]) Permute(axes ...int) *Tensor[T] {
	const op = "Permute"
	t = t.use(op)
	if t.err != nil {
		return t
	}
	if len(axes) == 0 {
		for i := range t.shape {
			axes = append(axes, len(t.shape)-1-i)
		}
	}
	order, err := t.axes(op, axes)
	switch {
	case err != nil:
		return failed[T](err)
	case len(order) != len(t.shape):
		return failed[T](fail(op, gpu.ErrInvalid, strconv.Itoa(len(order)), " of ", strconv.Itoa(len(t.shape)), " dimensions"))
	}
	strides, shape, along := stridesOf(t.shape), make([]int, len(order)), make([]int, len(order))
	for i, a := range order {
		shape[i], along[i] = t.shape[a], strides[a]
	}
	if last := len(order) - 1; last > 0 && order[last] == last-1 && order[last-1] == last && slices.IsSorted(order[:last-1]) {
		items := count(shape[:last-1]) // of which products read the transposes where they are
		return made(op, matrix.TransposeStack(t.as(items*shape[last], shape[last-1]), items), shape)
	}
	return t.read(op, place{shape, along, 0})
}

// axes resolves numbers of dimensions, each of which is there once.
func (t *Tensor[T]) axes(op string, axes []int) ([]int, error) {
	list := make([]int, len(axes))
	for i, a := range axes {
		at := a
		if at < 0 {
			at += len(t.shape)
		}
		switch {
		case at < 0 || at >= len(t.shape):
			return nil, fail(op, buffer.ErrIndex, "dimension ", strconv.Itoa(a), " of ", strconv.Itoa(len(t.shape)))
		case slices.Contains(list[:i], at):
			return nil, fail(op, gpu.ErrInvalid, "dimension ", strconv.Itoa(a), " twice")
		}
		list[i] = at
	}
	return list, nil
}

// Slice is a part of the tensor: of dimension i the elements from ranges[i][0] to ranges[i][1]-1. Dimensions without a range are whole.
func (t *Tensor[T]) Slice(ranges ...[2]int) *Tensor[T] {
	const op = "Slice"
	t = t.use(op)
	switch {
	case t.err != nil:
		return t
	case len(ranges) > len(t.shape):
		return failed[T](fail(op, buffer.ErrIndex, strconv.Itoa(len(ranges)), " ranges of ", strconv.Itoa(len(t.shape)), " dimensions"))
	}
	strides, shape, offset := stridesOf(t.shape), slices.Clone(t.shape), 0
	for i, r := range ranges {
		if r[0] < 0 || r[1] < r[0] || r[1] > t.shape[i] {
			return failed[T](fail(op, buffer.ErrIndex, strconv.Itoa(r[0]), ":", strconv.Itoa(r[1]), " of ", strconv.Itoa(t.shape[i])))
		}
		shape[i], offset = r[1]-r[0], offset+r[0]*strides[i]
	}
	return t.read(op, place{shape, strides, offset})
}

// Broadcast is the tensor with dimensions of 1 stretched to a shape, and dimensions before the first added, as in NumPy.
func (t *Tensor[T]) Broadcast(shape ...int) *Tensor[T] {
	const op = "Broadcast"
	t = t.use(op)
	if t.err != nil {
		return t
	}
	if _, err := product(op, shape); err != nil {
		return failed[T](err)
	}
	common, ok := stretched(t.shape, shape)
	if !ok || !slices.Equal(common, shape) {
		return failed[T](shapeError(op, fitsSpread, t.shape, shape))
	}
	return t.read(op, t.placed(shape))
}
