// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Workgroup sizes, and how many invocations are enough to keep a device busy. Hardware takes many times what software
// takes, where more only make the second pass longer.
const (
	laneSize     = 64
	treeSize     = 256
	softwareBusy = 512
	hardwareBusy = 1 << 16
	simdSize     = 4                     // chunks of a workgroup
	chunkVectors = 2048                  // vectors of a chunk: enough for a launch to be shared by threads, few enough for a sum to be exact
	turns        = shaders.LoopLimit / 2 // loop turns of an invocation
	alone        = 256                   // vectors, or rows, that one invocation folds without a second pass
	fewRows      = 1 << 12               // rows of a column that a software adapter folds in one pass, since a second pass would take longer
	fewVectors   = 1 << 14               // vectors that such a matrix has at most
	manyVectors  = 64                    // of a row, that an invocation of a software adapter takes four of
)

// FoldRows plans a pass that folds each row of rows x cols elements, or states, to parts partial results, side by side; of one part
// they are final, if last allows it. Software avoids workgroup memory.
func FoldRows(f Fold, rows, cols int, last bool, d *Device) (l *Launch, parts int) {
	vectors := max(quads(cols), 1)
	if !d.Software {
		parts = min(shaders.Ceil(hardwareBusy/treeSize, max(rows, 1)), shaders.Ceil(vectors, 4*treeSize))
		parts = max(parts, shaders.Ceil(vectors, turns*treeSize), 1)
		k := Kernel{form: foldTree, fold: f.pass(last && parts == 1)}
		return k.launch(rows*parts, f.shape(rows, cols, parts, 0)...), parts
	}
	parts = 1
	size := laneSize
	switch {
	case runsSIMD && d.SIMD != nil:
		parts, size = shaders.Ceil(vectors, chunkVectors), simdSize
	case vectors > alone:
		parts = min(shaders.Ceil(softwareBusy, max(rows, 1)), shaders.Ceil(vectors, 16))
	}
	parts = max(parts, shaders.Ceil(vectors, turns), 1)
	k := Kernel{form: foldRows, fold: f.pass(last && parts == 1), params: []int{size}}
	return k.launch(shaders.Ceil(rows*parts, size), f.shape(rows, cols, parts, 0)...), parts
}

// FoldCols plans a pass that folds each column to parts partial results, one below the other.
func FoldCols(f Fold, rows, cols int, last bool, d *Device) (l *Launch, parts int) {
	across := max(quads(cols), 1)
	busy, wide := hardwareBusy, 1
	if d.Software {
		busy = softwareBusy
		if across >= manyVectors {
			wide = 4
		}
	}
	lanes := shaders.Ceil(across, wide)
	parts = 1
	if few := d.Software && rows <= fewRows && rows*across <= fewVectors; rows > alone && !few {
		parts = min(shaders.Ceil(busy, lanes), shaders.Ceil(rows, 8))
	}
	parts = max(parts, shaders.Ceil(rows, turns), 1)
	k := Kernel{form: foldCols, fold: f.pass(last && parts == 1), params: []int{wide}}
	return k.launch(shaders.Ceil(lanes*parts, laneSize), f.shape(rows, cols, parts, across)...), parts
}

const (
	rowsSize = 16   // leaves enough workgroups for all cores
	rowsMany = 64   // starts fewer
	manyRows = 2048 // that are worth it
	heldRow  = 4    // vectors of a row that an invocation of a group keeps
	// longestRow is the longest of the software family, whose invocations go along a row alone.
	longestRow = 3 * shaders.LoopLimit

	nan = 0x7fc00000
)

// Softmax plans the softmax of rows x cols elements, at least one, or its logarithm: exp(x - max) divided by its sum, row by
// row. Software avoids workgroup memory unless rows are very long. vectors says that the result is float32 and stored in vectors,
// or neighbours side by side.
func Softmax(rows, cols int, log, vectors bool, d *Device) *Launch {
	form, size, groups := softmaxGroup, 32, rows
	if runsSIMD && d.SIMD != nil && vectors && !log {
		return d.SIMD.softmax(rows, cols)
	}
	if d.Software && cols <= longestRow {
		form, size = softmaxRows, rowsSize
		if rows >= manyRows {
			size = rowsMany
		}
		groups = shaders.Ceil(rows, size)
	}
	for form == softmaxGroup && size < 256 && 4*heldRow*size < cols {
		size *= 2
	}
	k := Kernel{form: form, params: []int{shaders.Bit(log), size}}
	return k.launch(groups, rows, cols, nan)
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
