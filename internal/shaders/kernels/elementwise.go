// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

const (
	linearSize = 256     // invocations of a workgroup of linear, unless tuned
	wordsSize  = 64      // and of words
	gridSize   = 64      // the narrowest workgroup of grid that is halved, in vectors
	manyBlocks = 1024    // blocks of 4x4 from which on there are many
	manyOfRow  = 1 << 14 // vectors of linear from which on there are many

	// The most invocations side by side in a workgroup of block.
	blockWide  = 16
	blockSIMD  = 8
	blockSwift = 4
)

// Linear plans a pass over n elements of a type, at least one: operands and a result that are contiguous in one order, as a single row.
// whole says that the last vector may be written as a whole, whatever n is.
func Linear(n int, whole bool, t fuse.Type, d *Device) *Launch {
	vectors := quads(n)
	v := d.shipped().linear[shaders.Bit(vectors >= manyOfRow)]
	var sooner *Launch
	if d.Tuned != nil {
		var later bool
		if v, later = d.choose(FamilyLinear, t, 1, n, v); later {
			sooner = Linear(n, whole, t, d.untuned())
		}
	}
	k := Kernel{form: mapLinear, params: []int{shaders.Bit(n%4 != 0 && !whole), v.size, v.each}}
	l := k.launch(shaders.Ceil(vectors, v.size*v.each), n, vectors)
	l.Sooner = sooner
	return l
}

// width is that of a workgroup of size invocations in vectors, at most as wide as the rows are. It is more than most only for what is too
// thin to fill a workgroup of that width.
func width(size, high, cols, most int) int {
	wide := 1
	for wide < size && wide < quads(cols) && (wide < most || size/wide > high) {
		wide *= 2
	}
	return wide
}

// wastes reports whether more than an eighth of the invocations of workgroups of a width have nothing to do.
func wastes(cols, wide int) bool {
	n := quads(cols)
	return 8*(shaders.Ceil(n, wide)*wide-n) > n
}

// Grid plans a pass over a result of any layout, with at least one element.
func Grid(rows, cols int, t fuse.Type, d *Device) *Launch {
	v := d.shipped().grid
	if d.Tuned != nil {
		v, _ = d.choose(FamilyGrid, t, rows, cols, v)
	}
	wide := width(v.size, rows, cols, v.size)
	for wide > gridSize && v.size/wide < rows && wastes(cols, wide) {
		wide /= 2
	}
	high := v.size / wide
	across := shaders.Ceil(cols, 4*wide)
	k := Kernel{form: mapGrid, params: []int{shaders.Bit(cols%4 != 0), wide, high}}
	down := shaders.Ceil(rows, high)
	return k.launch(across*down, rows, cols, across).plane(across, down)
}

// plane has workgroups lie side by side and one above the other, unless a dimension has too many: then they stay folded.
func (l *Launch) plane(across, down int) *Launch {
	fold := max(across, down) > shaders.MaxGroups
	l.params = append(l.params, shaders.Bit(fold))
	if !fold {
		l.Groups[0], l.Groups[1] = uint32(across), uint32(down)
	}
	return l
}

// Block plans a pass with operands that are stored the other way round than the result.
func Block(rows, cols int, t fuse.Type, d *Device) *Launch {
	var sooner *Launch
	v := d.shipped().block[shaders.Bit(rows*cols >= manyBlocks*16)]
	if d.Tuned != nil {
		var later bool
		if v, later = d.choose(FamilyBlock, t, rows, cols, v); later {
			sooner = Block(rows, cols, t, d.untuned())
		}
	}
	most := blockWide
	switch {
	case runsSIMD && d.SIMD != nil:
		most = blockSIMD
	case d.SwiftShader:
		most = blockSwift
	}
	wide := width(v.size, quads(rows), cols, most)
	high := v.size / wide
	across := shaders.Ceil(cols, 4*wide*v.each)
	k := Kernel{form: mapBlock, params: []int{shaders.Bit(cols%4 != 0), wide, high, v.each, shaders.Bit(cols%4 != 0 || rows%4 != 0)}}
	down := shaders.Ceil(rows, 4*high)
	l := k.launch(across*down, rows, cols, across).plane(across, down)
	l.Sooner = sooner
	return l
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
