// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Sorting a row takes its elements for whole numbers in the same order, each with its index, and merges runs of them that are
// twice as long from pass to pass. Keys are in as many rows as there are, indices in as many below them.

// SortedKeys is the width of the first runs.
const SortedKeys = 4

const (
	// How many keys an invocation writes: most adapters want more invocations than there are long runs.
	mergedKeys         = 8
	mergedKeysSoftware = 32
)

// SortKeys plans the pass that makes keys and indices of rows x cols elements, in runs of [SortedKeys]; descending if down is set.
func SortKeys(rows, cols int, down bool) *Launch {
	k := Kernel{form: sortKeysForm, params: []int{shaders.Bit(down)}}
	return k.launch(shaders.Ceil(rows*quads(cols), laneSize), rows, cols, 0, 0)
}

// SortMerge plans the pass that merges runs of a width, at least [SortedKeys]. stride is that of the rows that are read.
func SortMerge(rows, cols, width, stride int, d *Device) *Launch {
	each := mergedKeys
	if d.Software {
		each = min(mergedKeysSoftware, 2*width)
	}
	return Kernel{form: sortMergeForm}.launch(shaders.Ceil(rows*shaders.Ceil(cols, each), laneSize), rows, cols, width, stride, each)
}

// SortTake plans the pass that writes the elements in their order, or their indices. cols is how many of each row.
func SortTake(rows, cols, stride int, index bool) *Launch {
	k := Kernel{form: sortTakeForm, params: []int{shaders.Bit(index)}}
	return k.launch(shaders.Ceil(rows*cols, laneSize), rows, cols, 0, stride)
}

// keyText writes the function that makes a key.
func keyText(_ *Kernel, f *fuse.Func) string {
	body := "x"
	switch f.Type {
	case fuse.I32:
		body = "bitcast<vec4<u32>>(x) ^ vec4<u32>(0x80000000u)"
	case fuse.F32:
		body = "select(select(b ^ vec4<u32>(0x80000000u), ~b, b > vec4<u32>(0x80000000u)), vec4<u32>(0xffffffffu), nan4(x))"
		return "fn key(x: V) -> vec4<u32> {\n  let d = bitcast<vec4<u32>>(x);\n" +
			"  let b = select(d, vec4<u32>(), d == vec4<u32>(0x80000000u));\n  return " + body + ";\n}\n"
	}
	return "fn key(x: V) -> vec4<u32> { return " + body + "; }\n"
}

// keyOf is the same in Go.
func keyOf[N fuse.Num](x N) uint32 {
	switch v := any(x).(type) {
	case int32:
		return uint32(v) ^ 1<<31
	case float32:
		b := math.Float32bits(v)
		switch {
		case v != v:
			return math.MaxUint32
		case v == 0:
			return 1 << 31
		case v < 0:
			return ^b
		}
		return b | 1<<31
	}
	return uint32(x)
}

// sortKeys is the reference of that kernel.
func sortKeys[N fuse.Num](k *Kernel, e *fuse.Eval[N], rows, cols int) {
	row, runs := make([]N, cols), make([][2]uint32, cols)
	for i := range rows {
		clear(row)
		e.Apply(i, 0, row)
		for j, x := range row {
			runs[j] = [2]uint32{keyOf(x), uint32(j)}
			if k.params[0] == 1 {
				runs[j][0] ^= math.MaxUint32
			}
		}
		for run := range slices.Chunk(runs, SortedKeys) {
			slices.SortStableFunc(run, func(a, b [2]uint32) int { return cmp.Compare(a[0], b[0]) })
		}
		for j, run := range runs {
			e.StoreBits(i, j, run[0])
			e.StoreBits(i+rows, j, run[1])
		}
	}
}

// sortMerge is the reference of that kernel.
func sortMerge[N fuse.Num](e *fuse.Eval[N], shape []int, keys []byte) {
	rows, cols, width, stride := shape[0], shape[1], shape[2], shape[3]
	for i := range rows {
		at := func(j int) uint32 { return word(keys, i*stride+j) }
		for begin := 0; begin < cols; begin += 2 * width {
			n := min(2*width, cols-begin)
			order := make([]int, n)
			for j := range order {
				order[j] = begin + j
			}
			sort.SliceStable(order, func(a, b int) bool { return at(order[a]) < at(order[b]) })
			for j, from := range order {
				e.StoreBits(i, begin+j, at(from))
				e.StoreBits(i+rows, begin+j, word(keys, (i+rows)*stride+from))
			}
		}
	}
}

// sortTake is the reference of that kernel.
func sortTake[N fuse.Num](k *Kernel, e *fuse.Eval[N], shape []int, keys []byte) {
	rows, cols, stride := shape[0], shape[1], shape[3]
	one := make([]N, 1)
	for i := range rows {
		for j := range cols {
			at := word(keys, (i+rows)*stride+j)
			one[0] = N(at)
			if k.params[0] == 0 {
				e.Apply(i, int(at), one)
			}
			e.Store(i, j, one)
		}
	}
}
