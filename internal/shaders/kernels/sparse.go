// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/binary"
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// sparseSize is SIZE of the kernels' files, unless tuned.
const sparseSize = 64

// SparseRows describes a launch that multiplies a sparse matrix by a dense one. Its function loads the dense factor at (i, j),
// and stores at (i, j) of the product, or of the parts that [SparseSum] adds. The kernel's own storage bindings are the values,
// the indices, the pointers and the places, in this order; what it does not read may be any.
type SparseRows struct {
	Placed     bool // values are where the places say, not in the order of the entries
	Rows, Cols int  // of the result, after cutting
	Inner      int  // rows of the dense factor
	Entries    int  // of the structure
	Values     int  // the first of them
}

// SparseBase is the word of Shape that says where the first of the values is bound.
const SparseBase = 5

// Launch plans the launch, for elements of a type.
func (r *SparseRows) Launch(t fuse.Type, d *Device) *Launch {
	v := &sparse1
	if d.Software {
		v = &sparse4
	}
	var sooner *Launch
	if d.Tuned != nil {
		var later bool
		if v, later = d.chosen(newClass(FamilySparse, t, 0, r.Rows, r.Cols, r.Entries/max(r.Rows, 1)), v); later {
			sooner = r.Launch(t, d.untuned())
		}
	}
	wide, each := quads(r.Cols), v.each
	for each > max(wide, 1) {
		each /= 2
	}
	k := Kernel{form: sparseRows, params: []int{shaders.Bit(r.Placed), v.size, each}}
	l := k.launch(shaders.Ceil(r.Rows*shaders.Ceil(wide, each), v.size), r.Rows, r.Cols, wide, r.Inner, r.Entries, r.Values)
	l.Sooner = sooner
	return l
}

// SparseSum plans a launch that adds rows of parts. Its own storage bindings are the parts, rows of whole vectors, and the
// pointers to those of each row.
func SparseSum(rows, cols int) *Launch {
	wide := quads(cols)
	return Kernel{form: sparseSum}.launch(shaders.Ceil(rows*wide, sparseSize), rows, cols, wide)
}

// Scatter describes a launch that writes entries to a dense matrix of zeros. Its storage bindings are the values, their rows, their
// columns, and the dense matrix. It has no function.
type Scatter struct {
	Count                int // entries
	Rows, Cols           int // of the dense matrix
	Values, RowAt, ColAt int // the first value, its row and its column
	Offset               int // of the dense matrix
	RowStep, ColStep     int
}

// The words of Shape that say where the first value, its row, its column and the dense matrix are bound.
const (
	ScatterValues = 3
	ScatterRows   = 4
	ScatterCols   = 5
	ScatterOffset = 6
)

// Launch plans the launch.
func (s *Scatter) Launch() *Launch {
	return Kernel{form: sparseScatter}.launch(shaders.Ceil(s.Count, sparseSize),
		s.Count, s.Rows, s.Cols, s.Values, s.RowAt, s.ColAt, s.Offset, s.RowStep, s.ColStep)
}

// scatter is the reference of the kernel of that name.
func scatter(shape []int, storage [][]byte) {
	values, rows, cols, dense := storage[0], storage[1], storage[2], storage[3]
	for t := range shape[0] {
		i, j := int(word(rows, shape[ScatterRows]+t)), int(word(cols, shape[ScatterCols]+t))
		if i < shape[1] && j < shape[2] {
			binary.LittleEndian.PutUint32(dense[4*(shape[ScatterOffset]+i*shape[7]+j*shape[8]):], word(values, shape[ScatterValues]+t))
		}
	}
}

// addProduct adds the product of an element in bits and another to a sum: of floats in float64, to be a reference; integers wrap
// as 32 bits do, which float64 holds exactly.
func addProduct[N fuse.Num](sum float64, bits uint32, y N) float64 {
	if f, ok := any(y).(float32); ok {
		return sum + float64(float64(math.Float32frombits(bits))*float64(f))
	}
	return float64(N(sum) + N(N(bits)*y)) //nolint:unconvert // keeps Go from fusing
}

// multiplySparse is the reference of [SparseRows].
func multiplySparse[N fuse.Num](k *Kernel, e *fuse.Eval[N], shape []int, storage [][]byte) {
	rows, cols, inner, entries, base := shape[0], shape[1], shape[3], shape[4], shape[5]
	values, indices, pointers, places := storage[0], storage[1], storage[2], storage[3]
	factor, sums := make([]N, cols), make([]float64, cols)
	for row := range rows {
		clear(sums)
		first, last := min(int(word(pointers, row)), entries), min(int(word(pointers, row+1)), entries)
		for q := first; q < last; q++ {
			l, at := int(word(indices, q)), q
			if l >= inner {
				continue
			}
			if k.params[0] == 1 {
				at = int(word(places, q))
			}
			e.Apply(l, 0, factor)
			for j, y := range factor {
				sums[j] = addProduct(sums[j], word(values, int(int32(at+base))), y)
			}
		}
		for j, s := range sums {
			factor[j] = N(s)
		}
		e.Store(row, 0, factor)
	}
}

// Rows of up to shortRow entries are summed by one invocation for each vector of the result. Longer ones are cut, into
// maxCuts parts at most, so that neither an invocation of "rows" nor one of "sum" comes near [shaders.LoopLimit]: a part
// of the longest row there can be, 2^31 entries, has 42950.
//
// A launch is done when its longest row is, so rows far below that limit are cut too: on llvmpipe, parts of 1024 entries are faster
// than longer ones where one row is long, and shorter ones gain nothing and need more memory (BenchmarkSparseRows of package matrix).
const (
	shortRow = 1024
	maxCuts  = 50000
)

// Chunk returns how many entries the parts of rows are to have, or 0 if no row need be cut.
func Chunk(pointers []int32) int {
	longest := 0
	for i := 1; i < len(pointers); i++ {
		longest = max(longest, int(pointers[i]-pointers[i-1]))
	}
	if longest <= shortRow {
		return 0
	}
	return max(shortRow, shaders.Ceil(longest, maxCuts))
}

// Cut cuts rows into parts of up to chunk entries. parts points to the entries of each part as pointers did to those of each
// row, and rows to the parts of each row, of which there is one at least.
func Cut(pointers []int32, chunk int) (parts, rows []int32) {
	rows = make([]int32, 1, len(pointers))
	parts = make([]int32, 1, len(pointers))
	for i := 1; i < len(pointers); i++ {
		for at := int(pointers[i-1]) + chunk; at < int(pointers[i]); at += chunk {
			parts = append(parts, int32(at))
		}
		parts = append(parts, pointers[i])
		rows = append(rows, int32(len(parts)-1))
	}
	return parts, rows
}
