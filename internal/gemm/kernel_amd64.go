// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package gemm

import "golang.org/x/sys/cpu"

//go:generate go run -C asm . ..

func machineKernels() (all []kernel) {
	if cpu.X86.HasAVX512F {
		all = append(all, kernel{name: "avx512 14x32", rows: 14, cols: 32, half: 16, depth: 384, down: 224, across: 1024, tile: tileAVX512, axpy: axpyAVX512, dot: dotAVX512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, kernel{name: "avx2 6x16", rows: 6, cols: 16, half: 8, depth: 256, down: 96, across: 1024, tile: tileAVX2, axpy: axpyAVX2, dot: dotAVX2})
	}
	return all
}

//go:noescape
func tileAVX512(p *tile)

//go:noescape
func axpyAVX512(p *vectors)

//go:noescape
func dotAVX512(p *vectors)

//go:noescape
func tileAVX2(p *tile)

//go:noescape
func axpyAVX2(p *vectors)

//go:noescape
func dotAVX2(p *vectors)
