// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

const (
	turns       = shaders.LoopLimit / 2 // loop turns of an invocation
	alone       = 256                   // vectors, or rows, that are folded without a second pass
	fewRows     = 1 << 12               // rows of a column that are folded in one pass where a second one takes longer
	manyVectors = 64                    // of a row, that an invocation of a software adapter takes four of
)

// FoldRows plans a pass that folds each row of rows x cols elements, or states, to parts partial results, side by side; of one part
// they are final, if last allows it.
func FoldRows(f Fold, rows, cols int, last bool, d *Device) (l *Launch, parts int) {
	vectors := max(quads(cols), 1)
	usual := d.shipped().rows
	v := usual
	if d.Tuned != nil {
		v, _ = d.choose(FamilyRows, f.Of, rows, cols, usual)
	}
	if parts = 1; vectors > alone {
		parts = min(shaders.Ceil(v.busy, max(rows, 1)), shaders.Ceil(vectors, v.each))
	}
	if v.form == foldTree {
		parts = max(parts, shaders.Ceil(vectors, turns*v.size), 1)
		k := Kernel{form: foldTree, fold: f.pass(last && parts == 1)}
		if v != usual {
			k.params = []int{v.size}
		}
		return k.launch(rows*parts, f.shape(rows, cols, parts, 0)...), parts
	}
	parts = max(parts, shaders.Ceil(vectors, turns), 1)
	k := Kernel{form: foldRows, fold: f.pass(last && parts == 1), params: []int{v.size}}
	return k.launch(shaders.Ceil(rows*parts, v.size), f.shape(rows, cols, parts, 0)...), parts
}

// FoldCols plans a pass that folds each column to parts partial results, one below the other.
func FoldCols(f Fold, rows, cols int, last bool, d *Device) (l *Launch, parts int) {
	across := max(quads(cols), 1)
	v := d.shipped().cols[shaders.Bit(across >= manyVectors)]
	if d.Tuned != nil {
		v, _ = d.choose(FamilyCols, f.Of, rows, cols, v)
	}
	lanes := shaders.Ceil(across, v.each)
	parts = 1
	if rows > alone && (rows > fewRows || rows*across > v.few) {
		parts = min(shaders.Ceil(v.busy, lanes), shaders.Ceil(rows, 8))
	}
	parts = max(parts, shaders.Ceil(rows, turns), 1)
	k := Kernel{form: foldCols, fold: f.pass(last && parts == 1), params: []int{v.each}}
	return k.launch(shaders.Ceil(lanes*parts, laneSize), f.shape(rows, cols, parts, across)...), parts
}

const (
	rowsSize = 16   // rows of a workgroup of the kernel that holds them
	manyRows = 2048 // that larger workgroups are worth it for
	heldRow  = 4    // vectors of a row that an invocation of a group keeps
	keptRow  = 4    // that one of a software adapter keeps, of a whole row; each number of them is a kernel of its own

	apartSoftmax = 1 << 14 // elements that are worth more launches than one
	// longestRow is the longest of the software family, whose invocations go along a row alone.
	longestRow = 3 * shaders.LoopLimit

	nan = 0x7fc00000
)

// Softmax plans the softmax of rows x cols elements, at least one, or its logarithm: exp(x - max) divided by its sum, row by
// row. vectors says that the result is float32 and stored in vectors, or neighbours side by side.
func Softmax(rows, cols int, log, vectors bool, d *Device) *Launch {
	if runsSIMD && d.SIMD != nil && vectors && !log {
		return d.SIMD.softmax(rows, cols)
	}
	v := d.shipped().softmax[shaders.Bit(rows >= manyRows)]
	if d.Tuned != nil {
		v, _ = d.choose(FamilySoftmax, fuse.F32, rows, cols, v)
	}
	if cols > longestRow {
		v = &softmaxLong
	}
	k, groups := Kernel{form: v.form, params: []int{shaders.Bit(log), v.size}}, rows
	switch {
	case v.form == softmaxRows:
		groups = shaders.Ceil(rows, v.size)
		if q := quads(cols); q <= keptRow {
			k.form, k.params = softmaxShort, append(k.params, q)
		}
	case v.size == 0: // as the row is long
		size := 32
		for size < 256 && 4*heldRow*size < cols {
			size *= 2
		}
		k.params[1] = size
	}
	return k.launch(groups, rows, cols, nan)
}

// SoftmaxApart reports whether the softmax of rows whose elements lie far apart is sooner there if the largest elements, the sums and the
// quotients are computed one after the other, by kernels that go through memory in its order.
func SoftmaxApart(rows, cols int, d *Device) bool {
	return d.SIMD != nil && rows*cols >= apartSoftmax
}

// softmax is the reference of these kernels.
func softmax[N fuse.Num](k *Kernel, e *fuse.Eval[N], rows, cols int) {
	log := k.form != softmaxHeld && k.params[0] == 1
	row := make([]N, cols)
	for i := range rows {
		clear(row)
		e.Apply(i, 0, row)
		top, sum := math.Inf(-1), 0.0
		for _, x := range row {
			top = math.Max(top, float64(x))
		}
		for _, x := range row {
			sum += math.Exp(float64(x) - top)
		}
		for j, x := range row {
			if log {
				row[j] = N(float64(x) - top - math.Log(sum))
			} else {
				row[j] = N(math.Exp(float64(x)-top) / sum)
			}
		}
		e.Store(i, 0, row)
	}
}
