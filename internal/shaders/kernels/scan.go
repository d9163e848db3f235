// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// scanChunk is how many elements of a row one invocation goes along.
const scanChunk = 256

// ScanParts returns how many chunks rows of so many elements have.
func ScanParts(cols int) int { return max(shaders.Ceil(cols, scanChunk), 1) }

// scanning completes the launch of one invocation for each chunk.
func scanning(k *form, op fuse.Reduction, rows, cols, stride int) *Launch {
	parts := ScanParts(cols)
	kernel := Kernel{form: k, fold: fold{op: op}}
	return kernel.launch(shaders.Ceil(rows*parts, laneSize), rows, cols, parts, stride)
}

// ScanFold plans the pass that folds each chunk of rows.
func ScanFold(op fuse.Reduction, rows, cols int) *Launch {
	return scanning(scanPartsForm, op, rows, cols, 0)
}

// Scan plans the pass that writes running sums or products. Of rows of several chunks the ends of those are in rows of a stride.
func Scan(op fuse.Reduction, rows, cols, stride int) *Launch {
	if ScanParts(cols) > 1 {
		return scanning(scanChunksForm, op, rows, cols, stride)
	}
	return scanning(scanRowsForm, op, rows, cols, 0)
}

// scanText writes what is folded, in elements.
func scanText(k *Kernel, f *fuse.Func) string {
	t, value := f.Type, "bits"
	if t != fuse.U32 {
		value = "bitcast<T>(bits)"
	}
	of := fold{op: k.fold.op, of: t}
	return shaders.Fill("fn identity() -> T { return $0.x; }\nfn combine(x: T, y: T) -> T { return $1; }\n"+
		"fn value(bits: u32) -> T { return $2; }\n", made(t, of.identity()), of.merging().Text(t, "x", "y"), value)
}

// scan is the reference of the kernels that write running sums or products, and of the one that folds chunks.
func scan[N fuse.Num](k *Kernel, e *fuse.Eval[N], shape []int) {
	row := make([]N, shape[1])
	whole := fuse.I32
	if _, ok := any(N(0)).(float32); ok {
		whole = fuse.F32
	}
	start := fold{op: k.fold.op, of: whole}
	for i := range shape[0] {
		clear(row)
		e.Apply(i, 0, row)
		held := whole.Load(start.identity())
		for j, x := range row {
			if k.form == scanPartsForm && j%scanChunk == 0 {
				held = whole.Load(start.identity())
			}
			held = combine[N](start.kind(), held, float64(x))
			row[j] = N(held)
			if k.form == scanPartsForm && (j%scanChunk == scanChunk-1 || j == len(row)-1) {
				e.Store(i, j/scanChunk, row[j:j+1])
			}
		}
		if k.form != scanPartsForm {
			e.Store(i, 0, row)
		}
	}
}
