// SPDX-License-Identifier: Apache-2.0

package sparse

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

// Own is how many storage bindings the kernel rows has before those of its function: the values, the indices, the pointers
// and the places, in this order. What it does not read may be any.
const Own = 4

// Rows describes a launch that multiplies. Its function loads the dense factor at (i, j), and stores at (i, j) of the
// product, or of the parts that "sum" adds.
type Rows struct {
	Placed     bool // values are where the places say, not in the order of the entries
	Rows, Cols int  // of the result, after cutting
	Inner      int  // rows of the dense factor
	Entries    int  // of the structure
	Base       int  // number of the value that is bound first
}

// Groups returns the workgroup counts.
func (r *Rows) Groups() [3]uint32 { return groups(r.Rows * shaders.Ceil(r.Cols, 4)) }

// Shape begins the parameter block.
func (r *Rows) Shape() []uint32 {
	return []uint32{
		uint32(r.Rows), uint32(r.Cols), uint32(shaders.Ceil(r.Cols, 4)), uint32(r.Inner), uint32(r.Entries), uint32(r.Base), 0, 0,
	}
}

// BuildRows writes the text of the kernel rows.
func BuildRows(placed bool, f *fuse.Func) (shaders.Program, error) {
	return plan.Program("sparse/rows", rowsSource, f.Text(1+Own, false), f, rowsReference{placed, f},
		[]shaders.Access{shaders.Read, shaders.Read, shaders.Read, shaders.Read}, shaders.Bool("PLACED", placed))
}

type rowsReference struct {
	placed bool
	f      *fuse.Func
}

// Run implements [shaders.Reference].
func (t rowsReference) Run(_ [3]uint32, params []byte, storage [][]byte) {
	switch t.f.Type {
	case fuse.F32:
		multiply(t.placed, t.f, params, storage, addFloat)
	case fuse.I32:
		multiply(t.placed, t.f, params, storage, addWrapped[int32])
	default:
		multiply(t.placed, t.f, params, storage, addWrapped[uint32])
	}
}

// addFloat sums in float64, to be a reference.
func addFloat(sum float64, bits uint32, y float32) float64 {
	return sum + float64(math.Float32frombits(bits))*float64(y)
}

// addWrapped sums as 32 bits do, which float64 holds exactly.
func addWrapped[N int32 | uint32](sum float64, bits uint32, y N) float64 {
	return float64(N(sum) + N(bits)*y)
}

// multiply computes the result row by row.
func multiply[N fuse.Num](placed bool, f *fuse.Func, params []byte, storage [][]byte, add func(float64, uint32, N) float64) {
	w := decode(params)
	r := Rows{Rows: int(w[0]), Cols: int(w[1]), Inner: int(w[3]), Entries: int(w[4]), Base: int(w[5])}
	e, ok := fuse.NewEval[N](f, params[32:], storage[Own:])
	if !ok {
		return
	}
	values, indices, pointers, places := storage[0], storage[1], storage[2], storage[3]
	factor, sums := make([]N, r.Cols), make([]float64, r.Cols)
	for row := range r.Rows {
		clear(sums)
		first, last := min(int(word(pointers, row)), r.Entries), min(int(word(pointers, row+1)), r.Entries)
		for q := first; q < last; q++ {
			l := int(word(indices, q))
			if l >= r.Inner {
				continue
			}
			at := q
			if placed {
				at = int(word(places, q))
			}
			e.Apply(l, 0, factor)
			for j, y := range factor {
				sums[j] = add(sums[j], word(values, at-r.Base), y)
			}
		}
		for j, s := range sums {
			factor[j] = N(s)
		}
		e.Store(row, 0, factor)
	}
}

// Sum describes a launch that adds rows of parts.
type Sum struct{ Rows, Cols int }

// Groups returns the workgroup counts.
func (s *Sum) Groups() [3]uint32 { return groups(s.Rows * shaders.Ceil(s.Cols, 4)) }

// Shape begins the parameter block.
func (s *Sum) Shape() []uint32 {
	return []uint32{uint32(s.Rows), uint32(s.Cols), uint32(shaders.Ceil(s.Cols, 4)), 0}
}

// BuildSum writes the text of the kernel sum. Before its function's storage bindings it has the parts, rows of whole
// vectors, and the pointers to them.
func BuildSum(f *fuse.Func) (shaders.Program, error) {
	return plan.Program("sparse/sum", sumSource, f.Text(3, false), f, sumReference{f}, []shaders.Access{shaders.Read, shaders.Read})
}

type sumReference struct{ f *fuse.Func }

// Run implements [shaders.Reference].
func (t sumReference) Run(_ [3]uint32, params []byte, storage [][]byte) {
	switch t.f.Type {
	case fuse.F32:
		addRows(t.f, params, storage, addFloat)
	case fuse.I32:
		addRows(t.f, params, storage, addWrapped[int32])
	default:
		addRows(t.f, params, storage, addWrapped[uint32])
	}
}

func addRows[N fuse.Num](f *fuse.Func, params []byte, storage [][]byte, add func(float64, uint32, N) float64) {
	e, ok := fuse.NewEval[N](f, params[16:], storage[2:])
	if !ok {
		return
	}
	rows, cols, stride := int(word(params, 0)), int(word(params, 1)), 4*int(word(params, 2))
	out := make([]N, cols)
	for i := range rows {
		first, last := int(word(storage[1], i)), int(word(storage[1], i+1))
		for j := range out {
			sum := 0.0
			for r := first; r < last; r++ {
				sum = add(sum, word(storage[0], r*stride+j), 1)
			}
			out[j] = N(sum)
		}
		e.Apply(i, 0, out)
		e.Store(i, 0, out)
	}
}
