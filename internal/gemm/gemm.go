// SPDX-License-Identifier: Apache-2.0

// Package gemm multiplies matrices of 32-bit floating-point numbers on the CPU, with the vector instructions of the machine.
//
// It follows BLIS (https://doi.org/10.1145/2764454): C is computed in tiles that stay in registers, from panels of A and B that
// stay in caches, where blocks are packed so that they are read in the order of their addresses.
//
// A product's numbers do not depend on how many goroutines share the work: an element is always the sum over the same passes of
// the same sequence of fused multiplications and additions.
package gemm

import "slices"

// Matrix is float32 numbers in memory: element (i, j) at Data[i*Row+j*Col]. The steps are not negative.
type Matrix struct {
	Data       []float32
	Rows, Cols int
	Row, Col   int
}

// T is the transposed matrix, of the same numbers.
func (m Matrix) T() Matrix { return Matrix{m.Data, m.Cols, m.Rows, m.Col, m.Row} }

// part is the matrix's rows from i and columns from j on, so many as given: at least one of each.
func (m Matrix) part(i, j, rows, cols int) Matrix {
	return Matrix{m.Data[i*m.Row+j*m.Col:], rows, cols, m.Row, m.Col}
}

// valid tells whether all elements are in Data.
func (m Matrix) valid() bool {
	if m.Rows < 0 || m.Cols < 0 || m.Row < 0 || m.Col < 0 {
		return false
	}
	if m.Rows == 0 || m.Cols == 0 {
		return true
	}
	last := len(m.Data) - 1 // divisions, as products may overflow
	if last < 0 || m.Rows > 1 && m.Row > last/(m.Rows-1) {
		return false
	}
	last -= (m.Rows - 1) * m.Row
	return m.Cols == 1 || m.Col <= last/(m.Cols-1)
}

// Multiply sets dst to the product of a and b. Up to so many goroutines as threads says share the work, the caller's included.
// The columns of dst follow each other (Col is 1), its rows do not overlap, and its numbers are not in a or b.
// It panics if the matrices do not fit each other or their data.
func Multiply(dst, a, b Matrix, threads int) { multiply(&kernels()[0], dst, a, b, threads) }

func multiply(k *kernel, dst, a, b Matrix, threads int) {
	switch {
	case !dst.valid() || !a.valid() || !b.valid():
		panic("gemm: a matrix is larger than its data")
	case dst.Rows != a.Rows || dst.Cols != b.Cols || a.Cols != b.Rows:
		panic("gemm: the matrices do not fit each other")
	case dst.Cols > 1 && dst.Col != 1 || dst.Rows > 1 && dst.Row < dst.Cols:
		panic("gemm: the product is not row-major")
	}
	if dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	if a.Cols == 0 {
		for i := range dst.Rows {
			clear(dst.Data[i*dst.Row:][:dst.Cols])
		}
		return
	}
	if !multiplyVector(k, dst, a, b, threads) {
		multiplyBlocks(k, dst, a, b, threads)
	}
}

// multiplyVector multiplies if a or b is a vector and the other matrix has neighbours in memory.
func multiplyVector(k *kernel, dst, a, b Matrix, threads int) bool {
	y := vector{dst.Data, dst.Row}
	x, m := vector{b.Data, b.Row}, a
	switch {
	case dst.Rows == 1: // the transposed product
		y.step = 1
		x, m = vector{a.Data, a.Col}, b.T()
	case dst.Cols != 1:
		return false
	}
	work := 8 * m.Rows * m.Cols // memory makes an operation take some four times as long as elsewhere
	switch {
	case m.Col == 1 || m.Cols == 1:
		share(threads, work, m.Rows, 1, dotRows, 1, func(s *scratch, i, _, rows, _ int) {
			s.dots(k, vector{y.data[i*y.step:], y.step}, x, m.part(i, 0, rows, m.Cols))
		})
	case m.Row == 1:
		share(threads, work, m.Rows, 1, 64, 1, func(s *scratch, i, _, rows, _ int) {
			s.combine(k, vector{y.data[i*y.step:], y.step}, x, m.part(i, 0, rows, m.Cols).T())
		})
	default:
		return false
	}
	return true
}

// vector is numbers a step apart.
type vector struct {
	data []float32
	step int
}

// gather is n numbers from the first-th on, which follow each other: the vector's own, or copies of them.
func (v vector) gather(first, n int, space *[]float32) []float32 {
	if v.step == 1 {
		return v.data[first:][:n]
	}
	*space = slices.Grow((*space)[:0], n)[:n]
	for i := range *space {
		(*space)[i] = v.data[(first+i)*v.step]
	}
	return *space
}

// vectorChunk is how many numbers of a vector wait in the nearest cache for the matrix's rows.
const vectorChunk = 2048

// dots sets y to the product of m, whose rows are contiguous, and x.
func (s *scratch) dots(k *kernel, y, x vector, m Matrix) {
	v := &s.vectors
	for first := 0; first < m.Cols; first += vectorChunk {
		n := min(vectorChunk, m.Cols-first)
		*v = vectors{row: m.Row, x: x.gather(first, n, &s.x), y: s.y[:], n: n}
		for i := 0; i < m.Rows; i += v.rows {
			if v.rows = dotRows; i+dotRows > m.Rows {
				v.rows = 1
			}
			v.m = m.Data[i*m.Row+first:]
			k.dot(v)
			for r, sum := range s.y[:v.rows] {
				if to := &y.data[(i+r)*y.step]; first == 0 {
					*to = sum
				} else {
					*to += sum
				}
			}
		}
	}
}

// combine sets y to the sum of m's rows, which are contiguous, times the numbers of x.
func (s *scratch) combine(k *kernel, y, x vector, m Matrix) {
	v := &s.vectors
	for first := 0; first < m.Cols; first += vectorChunk {
		n := min(vectorChunk, m.Cols-first)
		*v = vectors{row: m.Row, n: n}
		if v.y = s.sums[:]; y.step == 1 {
			v.y = y.data[first:]
		}
		for i := 0; i < m.Rows; i += v.rows {
			if v.rows = axpyRows; i+axpyRows > m.Rows {
				v.rows = 1
			}
			v.m, v.x, v.add = m.Data[i*m.Row+first:], x.gather(i, v.rows, &s.x), i > 0
			k.axpy(v)
		}
		if y.step != 1 {
			for j, sum := range s.sums[:n] {
				y.data[(first+j)*y.step] = sum
			}
		}
	}
}
