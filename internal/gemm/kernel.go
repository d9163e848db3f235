// SPDX-License-Identifier: Apache-2.0

package gemm

import "sync"

// kernel is the code of one instruction set.
type kernel struct {
	name string

	// rows and cols are the size of a tile of C, which stays in registers. A tile of at most half columns costs half.
	rows, cols, half int

	// depth is how many columns of A and rows of B a pass over C takes: as many as leave a panel of B in the nearest cache.
	// down and across bound the blocks of A and B that wait in the next caches.
	depth, down, across int

	tile      func(*tile)
	axpy, dot func(*vectors)
}

// tile is the operands of a tile's function: rows x depth numbers of A, depth x cols of B, and rows x cols of C. Assembly reads it
// by offset. Distances count numbers. B's columns follow each other, and so many as half or cols of the kernel can be read.
type tile struct {
	a           []float32
	aRow, aStep int
	b           []float32
	bStep       int
	c           []float32
	cRow        int
	depth       int // at least 1, like rows and cols
	rows, cols  int
	add         bool // to C's old numbers
}

// axpyRows and dotRows are how many rows of a matrix the vector functions read side by side. They also handle one row.
const (
	axpyRows = 8
	dotRows  = 4
)

// vectors is the operands of the functions axpy and dot. Assembly reads it by offset.
//
//	axpy: y[j] = sum of x[i] * m[i*row+j] over the rows, or y[j] += with add, for n columns
//	dot:  y[i] = sum of x[j] * m[i*row+j] over n columns, for each row
type vectors struct {
	m    []float32
	row  int
	x, y []float32
	n    int
	rows int
	add  bool
}

var known struct {
	once sync.Once // and not a variable with a value from the start, which programs would have that never multiply
	list []kernel
}

// kernels returns the kernels that this machine runs, best first.
func kernels() []kernel {
	known.once.Do(func() { known.list = append(machineKernels(), portable) })
	return known.list
}

// Kernel names the instruction set and the tile of the matrix product.
func Kernel() string { return kernels()[0].name }
