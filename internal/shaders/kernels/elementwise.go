// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Size of the workgroups of the one-dimensional kernels, and of Grid's and Block's.
const (
	linearSize = 256
	wordsSize  = 64
	gridSize   = 64

	// Block reads whole cache lines with workgroups that are no wider.
	blockWide = 16
	// To [SIMD], reading the parameters is a good part of an invocation's time: it computes several blocks where there are many.
	blockSIMD     = 8
	severalBlocks = 4
	manyBlocks    = 1024
)

// Linear plans a pass over n elements, at least one: operands and a result that are contiguous in one order, as a single row.
func Linear(n int) *Launch {
	vectors := quads(n)
	k := Kernel{form: mapLinear, params: []int{shaders.Bit(n%4 != 0)}}
	return k.launch(shaders.Ceil(vectors, linearSize), n, vectors)
}

// width is that of a workgroup in vectors, at most as wide as the rows are. It is more than most only for what is too thin to fill
// a workgroup of that width.
func width(high, cols, most int) int {
	wide := 1
	for wide < gridSize && wide < quads(cols) && (wide < most || gridSize/wide > high) {
		wide *= 2
	}
	return wide
}

// Grid plans a pass over a result of any layout, with at least one element.
func Grid(rows, cols int) *Launch {
	wide := width(rows, cols, gridSize)
	high := gridSize / wide
	across := shaders.Ceil(cols, 4*wide)
	k := Kernel{form: mapGrid, params: []int{shaders.Bit(cols%4 != 0), wide, high}}
	return k.launch(across*shaders.Ceil(rows, high), rows, cols, across)
}

// Block plans a pass with operands that are stored the other way round than the result.
func Block(rows, cols int, d *Device) *Launch {
	each, most := 1, blockWide
	if runsSIMD && d.SIMD != nil {
		most = blockSIMD
		if rows*cols >= manyBlocks*16 {
			each = severalBlocks
		}
	}
	wide := width(quads(rows), cols, most)
	high := gridSize / wide
	across := shaders.Ceil(cols, 4*wide*each)
	k := Kernel{form: mapBlock, params: []int{shaders.Bit(cols%4 != 0), wide, high, each}}
	return k.launch(across*shaders.Ceil(rows, 4*high), rows, cols, across)
}

// Words plans a pass with a packed result that is not aligned to vectors: rows of stride elements of size bytes from offset on.
func Words(rows, cols, offset, stride, size int) *Launch {
	each := 4 / size
	n := (offset+(rows-1)*stride+cols-1)/each - offset/each + 1
	return Kernel{form: mapWords, params: []int{each}}.launch(shaders.Ceil(n, wordsSize), rows, cols, n)
}

// apply is the reference of these kernels.
func apply[N fuse.Num](e *fuse.Eval[N], rows, cols int) {
	const step = 1024
	row := make([]N, min(cols, step))
	for i := range rows {
		for j := 0; j < cols; j += step {
			part := row[:min(step, cols-j)]
			clear(part)
			e.Apply(i, j, part)
			e.Store(i, j, part)
		}
	}
}
