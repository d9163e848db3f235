// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

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
// row. software avoids workgroup memory unless rows are very long.
func Softmax(rows, cols int, log, software bool) *Launch {
	form, size, groups := softmaxGroup, 32, rows
	if software && cols <= longestRow {
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
	log := k.params[0] == 1
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
