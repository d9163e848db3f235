// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Layout places a matrix in a buffer. Offset and Stride are in elements; Stride is the distance of two rows (of two
// columns in column-major order).
type Layout struct {
	Rows, Cols     int
	Offset, Stride int
	ColMajor       bool // columns lie one after the other, not rows
}

// Major is how many rows, in column-major order columns, lie one after the other in memory.
func (l Layout) Major() int {
	if l.ColMajor {
		return l.Cols
	}
	return l.Rows
}

// Minor is the length of what lies together in memory: of a row, in column-major order of a column.
func (l Layout) Minor() int {
	if l.ColMajor {
		return l.Rows
	}
	return l.Cols
}

// Empty reports whether there are no elements.
func (l Layout) Empty() bool { return l.Rows == 0 || l.Cols == 0 }

// Span returns how many elements lie between the first and the last, both included.
func (l Layout) Span() int {
	if l.Empty() {
		return 0
	}
	return (l.Major()-1)*l.Stride + l.Minor()
}

// Contiguous reports whether there are no gaps.
func (l Layout) Contiguous() bool { return l.Major() <= 1 || l.Stride == l.Minor() }

// T is the transpose: the same memory read the other way round.
func (l Layout) T() Layout {
	l.Rows, l.Cols, l.ColMajor = l.Cols, l.Rows, !l.ColMajor
	return l
}

// Steps returns the distance in memory of two rows and of two columns.
func (l Layout) Steps() (row, col int) {
	if l.ColMajor {
		return 1, l.Stride
	}
	return l.Stride, 1
}

// Normal writes a single row of neighbours in the one way kernels look for: row-major, without a gap.
func (l Layout) Normal() Layout {
	if l.Rows == 1 && (!l.ColMajor || l.Stride == 1) {
		l.ColMajor, l.Stride = false, l.Cols
	}
	return l
}

// Shape returns the dimensions, for errors.
func (l Layout) Shape() fault.Shape { return fault.Shape{l.Rows, l.Cols} }

// Slice returns rows i to k-1 and columns j to l-1, which the caller has checked.
func (l Layout) Slice(i, k, j, m int) Layout {
	r, c := l.Steps()
	l.Offset += i*r + j*c
	l.Rows, l.Cols = k-i, m-j
	return l
}

// Reshape gives a Layout without gaps another shape.
func (l Layout) Reshape(op string, rows, cols int) (Layout, error) {
	if err := CheckDims(op, rows, cols); err != nil {
		return l, err
	}
	if rows*cols != l.Rows*l.Cols {
		return l, ShapeError(op, FitsElements(l.Shape()), l.Shape(), fault.Shape{rows, cols})
	}
	if !l.Contiguous() {
		return l, Fail(op, buffer.ErrStride, "the matrix has gaps")
	}
	l.Rows, l.Cols = rows, cols
	l.Stride = l.Minor()
	return l, nil
}

// Region returns the bytes that the matrix covers.
func (l Layout) Region(size int) buffer.Region {
	if l.Empty() {
		return buffer.Region{}
	}
	return buffer.Region{Offset: l.Offset * size, Width: l.Minor() * size, Pitch: l.Stride * size, Count: l.Major()}.Joined()
}

// Overlaps reports whether two layouts of one buffer share an element. It may say so of two that interleave in a way
// that no slicing produces.
func (l Layout) Overlaps(m Layout) bool {
	if l.Empty() || m.Empty() {
		return false
	}
	if l.Offset+l.Span() <= m.Offset || m.Offset+m.Span() <= l.Offset {
		return false
	}
	if l.ColMajor != m.ColMajor || l.Stride != m.Stride || l.Stride == 0 {
		return true
	}
	// Both lie on one grid of rows of the stride: compare where in a row they begin and end.
	d := m.Offset - l.Offset
	down, along := d/l.Stride, d%l.Stride
	if along < 0 {
		down, along = down-1, along+l.Stride
	}
	if along+m.Minor() <= l.Stride { // m does not wrap round the row's end
		return along < l.Minor() && down < l.Major() && down+m.Major() > 0
	}
	return true
}

// MaxElements is how many elements a matrix may have. Of more than 4294967295 it is used in blocks, since kernels count
// with 32 bits.
const MaxElements = math.MaxInt / 16

// Elements multiplies dimensions and reports overflow.
func Elements(rows, cols int) (n int, ok bool) {
	hi, lo := bits.Mul64(uint64(rows), uint64(cols))
	return int(lo), hi == 0 && lo <= MaxElements
}

// CheckDims refuses negative dimensions and those too large to count.
func CheckDims(op string, rows, cols int) error {
	if rows < 0 || cols < 0 {
		return Fail(op, buffer.ErrSize, "negative dimensions ", fault.Shape{rows, cols}.String())
	}
	if _, ok := Elements(rows, cols); !ok {
		return Fail(op, fault.ErrLimit, fault.Shape{rows, cols}.String(), " has too many elements")
	}
	return nil
}

// CheckVirtual is CheckDims for what takes no memory: expressions, which may have no more elements than a kernel can
// count or, if that is more, than an operand.
func CheckVirtual(op string, rows, cols int, args ...*Node) error {
	if err := CheckDims(op, rows, cols); err != nil {
		return err
	}
	most := min(math.MaxUint32, math.MaxInt)
	for _, a := range args {
		most = max(most, a.Rows*a.Cols)
	}
	if rows*cols > most {
		return Fail(op, fault.ErrLimit, fault.Shape{rows, cols}.String(), " has more than ", strconv.Itoa(most), " elements")
	}
	return nil
}
