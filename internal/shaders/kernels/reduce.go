// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"math"
	"strconv"

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
	turns        = shaders.LoopLimit / 2 // loop turns of an invocation
	alone        = 256                   // vectors, or rows, that one invocation folds without a second pass
	manyVectors  = 64                    // of a row, that an invocation of a software adapter takes four of
)

// FoldRows plans a pass that folds each row of rows x cols elements to parts partial results, side by side; of one part they are
// final. software avoids workgroup memory.
func FoldRows(op fuse.Reduction, rows, cols int, software bool) (l *Launch, parts int) {
	vectors := max(quads(cols), 1)
	if !software {
		parts = min(shaders.Ceil(hardwareBusy/treeSize, max(rows, 1)), shaders.Ceil(vectors, 4*treeSize))
		parts = max(parts, shaders.Ceil(vectors, turns*treeSize), 1)
		return Kernel{form: foldTree, op: op}.launch(rows*parts, rows, cols, parts), parts
	}
	parts = 1
	if vectors > alone {
		parts = min(shaders.Ceil(softwareBusy, max(rows, 1)), shaders.Ceil(vectors, 16))
	}
	parts = max(parts, shaders.Ceil(vectors, turns), 1)
	return Kernel{form: foldRows, op: op}.launch(shaders.Ceil(rows*parts, laneSize), rows, cols, parts), parts
}

// FoldCols plans a pass that folds each column to parts partial results, one below the other.
func FoldCols(op fuse.Reduction, rows, cols int, software bool) (l *Launch, parts int) {
	across := max(quads(cols), 1)
	busy, wide := hardwareBusy, 1
	if software {
		busy = softwareBusy
		if across >= manyVectors {
			wide = 4
		}
	}
	lanes := shaders.Ceil(across, wide)
	parts = 1
	if rows > alone {
		parts = min(shaders.Ceil(busy, lanes), shaders.Ceil(rows, 8))
	}
	parts = max(parts, shaders.Ceil(rows, turns), 1)
	k := Kernel{form: foldCols, op: op, params: []int{wide}}
	return k.launch(shaders.Ceil(lanes*parts, laneSize), rows, cols, parts, across), parts
}

// Identity returns the bits of the result of folding nothing, in a type that is computed in.
func Identity(op fuse.Reduction, t fuse.Type) uint32 {
	return [...][3]uint32{
		fuse.ReduceSum:  {0, 0, 0},
		fuse.ReduceMax:  {fuse.F32: 0xff800000, fuse.I32: 1 << 31, fuse.U32: 0},
		fuse.ReduceMin:  {fuse.F32: 0x7f800000, fuse.I32: math.MaxInt32, fuse.U32: math.MaxUint32},
		fuse.ReduceProd: {fuse.F32: 0x3f800000, fuse.I32: 1, fuse.U32: 1},
	}[op&3][t.Compute()]
}

// foldText writes identity and combine. Identities are made at run time: compilers refuse constants that are not finite.
func foldText(op fuse.Reduction, t fuse.Type) string {
	combine := [...]fuse.Op{fuse.OpAdd, fuse.OpMax, fuse.OpMin, fuse.OpMul}[op&3].Text(t, "x", "y")
	return shaders.Fill("fn identity() -> V { return $0(vec4<u32>($1u | (p.shape.rows & 0u))); }\n"+
		"fn combine(x: V, y: V) -> V { return $2; }\n", t.FromBits("V"), strconv.FormatUint(uint64(Identity(op, t)), 10), combine)
}

// fold is the reference of these kernels.
func fold[N fuse.Num](r reference, e *fuse.Eval[N], rows, cols, parts int) {
	row := make([]N, cols)
	lines, width := rows, parts // of the result
	if r.k.form == foldCols {
		lines, width = parts, cols
	}
	held, out := make([]float64, width), make([]N, width)
	start := float64(fuse.FromBits[N](Identity(r.k.op, r.f.Type)))
	for i := range lines {
		for k := range held {
			held[k] = start
		}
		for from := i; from < rows; from += lines {
			clear(row)
			e.Apply(from, 0, row)
			for j, v := range row {
				k := j
				if r.k.form != foldCols {
					k = j / 4 % parts
				}
				held[k] = combine(r.k.op, held[k], v)
			}
		}
		for k, h := range held {
			out[k] = N(h)
		}
		e.Store(i, 0, out)
	}
}

// combine folds an element in. It computes in float64, to be a reference; integers wrap at every step, which float64 holds
// exactly.
func combine[N fuse.Num](op fuse.Reduction, h float64, v N) float64 {
	x := float64(v)
	_, float := any(v).(float32)
	switch {
	case op == fuse.ReduceMax:
		return max(h, x)
	case op == fuse.ReduceMin:
		return min(h, x)
	case op == fuse.ReduceSum && float:
		return h + x
	case op == fuse.ReduceSum:
		return float64(N(h) + v)
	case float:
		return h * x
	}
	return float64(N(h) * v)
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
