// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// OneHot plans a pass over rows x cols elements of a type. The function gives the index of the one that is 1; that of an element is
// its row times down and its column times along.
func OneHot(t fuse.Type, rows, cols, down, along int) *Launch {
	return Kernel{form: oneHotForm}.launch(shaders.Ceil(rows*quads(cols), laneSize), rows, cols, down, along, int(t.Store(1)))
}

// oneHot is the reference.
func oneHot[N fuse.Num](e *fuse.Eval[N], shape []int) {
	row := make([]N, shape[1])
	for i := range shape[0] {
		clear(row)
		e.Apply(i, 0, row)
		for j, at := range row {
			bits := uint32(0)
			if uint32(at) == uint32(i*shape[2]+j*shape[3]) {
				bits = uint32(shape[4])
			}
			e.StoreBits(i, j, bits)
		}
	}
}
