// SPDX-License-Identifier: Apache-2.0

package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

func random(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = rand.Float32() - 0.5
	}
	return x
}

func dense(rows, cols int) Matrix { return Matrix{random(rows * cols), rows, cols, cols, 1} }

// BenchmarkMultiply reports the speed of each kernel on one thread, and gonum's.
func BenchmarkMultiply(b *testing.B) {
	for _, s := range [][3]int{{64, 64, 64}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {777, 777, 777}, {300, 500, 700}, {2000, 17, 31}, {4096, 64, 64}, {4, 2048, 2048}, {2048, 2048, 4}, {1, 2048, 2048}, {2048, 2048, 1}} {
		m, k, n := s[0], s[1], s[2]
		x, y, z := dense(m, k), dense(k, n), dense(m, n)
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, k, n, name), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(2*float64(m)*float64(k)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		for i := range kernels() {
			run(kernels()[i].name, func() { multiply(&kernels()[i], z, x, y, 1) })
		}
		run("two threads", func() { Multiply(z, x, y, 2) })
		run("gonum", func() {
			g := func(m Matrix) blas32.General {
				return blas32.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Row, Data: m.Data}
			}
			blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, g(x), g(y), 0, g(z))
		})
	}
}
