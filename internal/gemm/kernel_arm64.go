// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package gemm

func machineKernels() []kernel {
	return []kernel{{name: "neon 8x12", rows: 8, cols: 12, half: 12, depth: 256, down: 256, across: 768, tile: tileAnyNEON, axpy: axpyNEON, dot: dotNEON}}
}

// tileAnyNEON multiplies tiles of less than 12 columns beside C, since assembly stores whole ones.
func tileAnyNEON(t *tile) {
	if t.cols == 12 {
		tileNEON(t)
		return
	}
	var sums [8 * 12]float32
	whole := *t
	whole.c, whole.cRow, whole.add = sums[:], 12, false
	tileNEON(&whole)
	for i := range t.rows {
		for j, sum := range sums[12*i:][:t.cols] {
			if c := &t.c[i*t.cRow+j]; t.add {
				*c += sum
			} else {
				*c = sum
			}
		}
	}
}

//go:noescape
func tileNEON(p *tile)

//go:noescape
func axpyNEON(p *vectors)

//go:noescape
func dotNEON(p *vectors)
