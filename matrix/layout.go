// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"
	"math/bits"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Order tells which index runs fastest in memory.
type Order uint8

// The orders. RowMajorOrder is the default.
const (
	RowMajorOrder Order = iota
	ColMajorOrder
)

// String returns "row-major" or "column-major".
func (o Order) String() string { return [...]string{"row-major", "column-major"}[o&1] }

func (o Order) other() Order { return o ^ 1 }

// layout places a matrix in a buffer. offset and stride are in elements; stride is the distance of two rows (of two
// columns in column-major order).
type layout struct {
	rows, cols     int
	offset, stride int
	order          Order
}

// major and minor are the dimensions in memory: rows and columns, the other way round in column-major order.
func (l layout) major() int {
	if l.order == ColMajorOrder {
		return l.cols
	}
	return l.rows
}

func (l layout) minor() int {
	if l.order == ColMajorOrder {
		return l.rows
	}
	return l.cols
}

func (l layout) empty() bool { return l.rows == 0 || l.cols == 0 }

// span returns how many elements lie between the first and the last, both included.
func (l layout) span() int {
	if l.empty() {
		return 0
	}
	return (l.major()-1)*l.stride + l.minor()
}

// contiguous reports whether there are no gaps.
func (l layout) contiguous() bool { return l.major() <= 1 || l.stride == l.minor() }

// t is the transpose: the same memory read the other way round.
func (l layout) t() layout {
	l.rows, l.cols, l.order = l.cols, l.rows, l.order.other()
	return l
}

// steps returns the distance in memory of two rows and of two columns.
func (l layout) steps() (row, col int) {
	if l.order == ColMajorOrder {
		return 1, l.stride
	}
	return l.stride, 1
}

// normal writes a single row of neighbours in the one way kernels look for: row-major, without a gap.
func (l layout) normal() layout {
	if l.rows == 1 && (l.order == RowMajorOrder || l.stride == 1) {
		l.order, l.stride = RowMajorOrder, l.cols
	}
	return l
}

func (l layout) shape() gpu.Shape { return gpu.Shape{l.rows, l.cols} }

// slice returns rows i to k-1 and columns j to l-1, which the caller has checked.
func (l layout) slice(i, k, j, m int) layout {
	r, c := l.steps()
	l.offset += i*r + j*c
	l.rows, l.cols = k-i, m-j
	return l
}

// reshape gives a layout without gaps another shape.
func (l layout) reshape(op string, rows, cols int) (layout, error) {
	if err := checkDims(op, rows, cols); err != nil {
		return l, err
	}
	if rows*cols != l.rows*l.cols {
		return l, shapeError(op, l.shape(), gpu.Shape{rows, cols})
	}
	if !l.contiguous() {
		return l, fail(op, ErrStride, "the matrix has gaps")
	}
	l.rows, l.cols = rows, cols
	l.stride = l.minor()
	return l, nil
}

// region returns the bytes that the matrix covers.
func (l layout) region(size int) buffer.Region {
	if l.empty() {
		return buffer.Region{}
	}
	if l.contiguous() {
		n := l.rows * l.cols * size
		return buffer.Region{Offset: l.offset * size, Width: n, Pitch: n, Count: 1}
	}
	return buffer.Region{Offset: l.offset * size, Width: l.minor() * size, Pitch: l.stride * size, Count: l.major()}
}

// overlaps reports whether two layouts of one buffer share an element. It may say so of two that interleave in a way
// that no slicing produces.
func (l layout) overlaps(m layout) bool {
	if l.empty() || m.empty() {
		return false
	}
	if l.offset+l.span() <= m.offset || m.offset+m.span() <= l.offset {
		return false
	}
	if l.order != m.order || l.stride != m.stride || l.stride == 0 {
		return true
	}
	// Both lie on one grid of rows of the stride: compare where in a row they begin and end.
	d := m.offset - l.offset
	down, along := d/l.stride, d%l.stride
	if along < 0 {
		down, along = down-1, along+l.stride
	}
	if along+m.minor() <= l.stride { // m does not wrap round the row's end
		return along < l.minor() && down < l.major() && down+m.major() > 0
	}
	return true
}

// place converts a layout for a kernel: distances along the result's rows and columns; 0 where the operand is stretched.
func (l layout) place(rows, cols int) fuse.Place {
	r, c := l.steps()
	if l.rows == 1 && rows != 1 {
		r = 0
	}
	if l.cols == 1 && cols != 1 {
		c = 0
	}
	return fuse.Place{Offset: uint32(l.offset), Row: uint32(r), Col: uint32(c)}
}

// maxElements is how many elements a matrix may have. Of more than 4294967295 it is used in blocks, since kernels count
// with 32 bits.
const maxElements = math.MaxInt / 16

// elements multiplies dimensions and reports overflow.
func elements(rows, cols int) (n int, ok bool) {
	hi, lo := bits.Mul64(uint64(rows), uint64(cols))
	return int(lo), hi == 0 && lo <= maxElements
}

// checkDims refuses negative dimensions and those too large to count.
func checkDims(op string, rows, cols int) error {
	if rows < 0 || cols < 0 {
		return fail(op, ErrSize, "negative dimensions ", itoa(rows), "x", itoa(cols))
	}
	if _, ok := elements(rows, cols); !ok {
		return fail(op, ErrLimit, itoa(rows), "x", itoa(cols), " has too many elements")
	}
	return nil
}

// checkVirtual is checkDims for what takes no memory: expressions, which may have no more elements than a kernel can
// count or, if that is more, than an operand.
func checkVirtual(op string, rows, cols int, args ...*node) error {
	if err := checkDims(op, rows, cols); err != nil {
		return err
	}
	most := math.MaxUint32
	for _, a := range args {
		most = max(most, a.rows*a.cols)
	}
	if rows*cols > most {
		return fail(op, ErrLimit, itoa(rows), "x", itoa(cols), " has more than ", itoa(most), " elements")
	}
	return nil
}
