// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
)

// The kernels of decompositions work on blocks of columns of float32 matrices that are stored row by row, in place. They are what is
// left of blocked algorithms when products of matrices have done the rest.

// FactorBlock is how many columns blocks have, and the size of the triangles that [Invert] inverts.
const FactorBlock = 32

// Eliminate describes a launch that eliminates a block of columns. Places are in elements of the memory that is bound.
type Eliminate struct {
	Items, Item   int // matrices of a stack and their distance
	Rows, Cols    int // of the block
	Width         int // columns that are updated, from the block's first one on
	Stride        int
	Offset        int // of the block
	Pivots        int // where the first pivot is written
	First         int // the block's first row, in the matrix
	Pivot, Jordan bool
}

// The words of the shape of [Eliminate] and of [Swap] that are places.
var (
	EliminatePlaces = []int{6, 7}
	SwapPlaces      = []int{4, 5}
)

// EliminateSize is how many rows a workgroup eliminates at once.
func (d *Device) EliminateSize() int { return d.groupOf() }

// groupOf is the size of a workgroup that works on one matrix: barriers cost software adapters more than they gain.
func (d *Device) groupOf() int {
	if d.Software {
		return 64
	}
	return 256
}

// EliminateCols returns how many columns a block of so many rows may have, so that no invocation takes too many turns; 0 if none.
func (d *Device) EliminateCols(rows int) int {
	return d.cols(func(cols int) int { return shaders.Ceil(rows, d.groupOf()) * cols * (cols/2 + 2) })
}

// ReflectCols is that of [Reflect].
func (d *Device) ReflectCols(rows int) int {
	return d.cols(func(cols int) int {
		return 2 * cols * (shaders.Ceil(rows*cols, d.groupOf()) + 2*shaders.Ceil(rows, d.groupOf()))
	})
}

func (d *Device) cols(turns func(cols int) int) int {
	cols := FactorBlock
	for cols > 0 && turns(cols)+32*cols > shaders.LoopLimit {
		cols /= 2
	}
	return cols
}

// Launch plans the launch.
func (e *Eliminate) Launch(d *Device) *Launch {
	k := Kernel{form: eliminateForm, params: []int{d.groupOf(), shaders.Bit(e.Pivot), shaders.Bit(e.Jordan)}}
	return k.launch(e.Items, e.Items, e.Item, e.Rows, e.Cols, e.Width, e.Stride, e.Offset, e.Pivots, e.First)
}

// Swap describes a launch that exchanges rows as an elimination did.
type Swap struct {
	Cols          int // of the matrix, without those of the block
	Skip, Skipped int // the block's first column, and how many it has
	Stride        int
	Offset        int // of the matrix
	Pivots        int // where the first pivot is
	First, Count  int // rows
	Reverse       bool
}

// Launch plans the launch.
func (s *Swap) Launch() *Launch {
	k := Kernel{form: swapForm, params: []int{shaders.Bit(s.Reverse)}}
	return k.launch(shaders.Ceil(s.Cols, 64), s.Cols, s.Skip, s.Skipped, s.Stride, s.Offset, s.Pivots, s.First, s.Count)
}

// Invert describes a launch that inverts the blocks on the diagonal of a triangle, of which it reads the part below the diagonal:
// its own binding. The inverses stand below each other, from To on.
type Invert struct {
	Rows             int // of the triangle
	Offset, Row, Col int // its place and steps
	To, ToRow, ToCol int
	ToBlock          int // the distance of two inverses
	Unit             bool
}

// The words of the shape of [Invert] that are places: of what it reads and of what it writes.
const (
	InvertFrom = 1
	InvertTo   = 4
)

// Launch plans the launch.
func (v *Invert) Launch() *Launch {
	k := Kernel{form: invertForm, params: []int{shaders.Bit(v.Unit)}}
	return k.launch(shaders.Ceil(v.Rows, FactorBlock), v.Rows, v.Offset, v.Row, v.Col, v.To, v.ToRow, v.ToCol, v.ToBlock)
}

// ReflectOffset is the word of the shape of [Reflect] that is a place.
const ReflectOffset = 3

// Reflect plans a launch that factorises a block of columns by reflections. lanes is how many columns it is made for.
func Reflect(d *Device, rows, cols, lanes, stride, offset int) *Launch {
	k := Kernel{form: reflectForm, params: []int{d.groupOf(), lanes}}
	return k.launch(1, rows, cols, stride, offset)
}

// RotateRows is what the number of rows of [Rotate] is a multiple of: two blocks.
const RotateRows = 8

// Rotate describes launches that make rows orthogonal: a round of a sweep. Rows begin vectors, and so do the marks, which are four
// elements apart. What fills up the last vector of a row is 0.
type Rotate struct {
	Rows, Cols            int
	Stride, Offset, Marks int
	Round, Sweep          int
}

// RotatePlaces are the words of the shape of [Rotate] that are places.
var RotatePlaces = []int{3, 4}

// Rounds returns how many rounds a sweep has, or 0 where rows are too long for an invocation.
func (r *Rotate) Rounds(d *Device) int {
	_, lanes := r.group(d)
	if 2*shaders.Ceil(quads(r.Cols), lanes)+32 > shaders.LoopLimit {
		return 0
	}
	return r.Rows/4 - 1
}

// group is how many pairs of blocks a workgroup takes, and how many invocations each of them has.
func (r *Rotate) group(d *Device) (pairs, lanes int) {
	if d.Software {
		return 8, 1
	}
	return 1, 64
}

// Launch plans the launch.
func (r *Rotate) Launch(d *Device) *Launch {
	pairs, lanes := r.group(d)
	k := Kernel{form: rotateForm, params: []int{pairs, lanes}}
	near := math.Float32bits(float32(math.Sqrt(float64(r.Cols)) / (1 << 24))) // that of LAPACK's sgesvj
	return k.launch(shaders.Ceil(r.Rows/8, pairs), r.Rows/4, quads(r.Cols), r.Stride, r.Offset, r.Marks, r.Round, r.Sweep, int(near))
}
