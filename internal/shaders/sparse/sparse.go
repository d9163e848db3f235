// SPDX-License-Identifier: Apache-2.0

// Package sparse holds the kernels for sparse matrices: scatter writes one to a dense matrix, rows multiplies one by a dense
// matrix, and sum finishes products with long rows.
package sparse

import (
	_ "embed"
	"encoding/binary"

	"github.com/sublet-gpu/sublet/internal/shaders"
)

//go:embed scatter.wgsl
var scatterSource string

//go:embed rows.wgsl
var rowsSource string

//go:embed sum.wgsl
var sumSource string

// groupSize is SIZE of the kernels' files.
const groupSize = 64

// decode reads the words that begin the parameter blocks of scatter and rows, for the references.
func decode(params []byte) (w [12]uint32) {
	for k := range w {
		w[k] = word(params, k)
	}
	return w
}

// word returns number k of some memory, and 0 beyond its end.
func word(mem []byte, k int) uint32 {
	if k < 0 || k >= len(mem)/4 {
		return 0
	}
	return binary.LittleEndian.Uint32(mem[4*k:])
}

// groups spreads one invocation for each of n items.
func groups(n int) [3]uint32 { return shaders.Fold(shaders.Ceil(n, groupSize)) }
