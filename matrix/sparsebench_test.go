// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/matrix"
)

// BenchmarkSparseRows multiplies matrices whose rows have many entries or differ in how many they have. It is what the length
// of the parts that package sparse cuts long rows into was chosen by.
func BenchmarkSparseRows(b *testing.B) {
	all := func(n int) func(int) int { return func(int) int { return n } }
	for _, s := range []struct {
		name             string
		rows, cols, wide int
		entries          func(row int) int
	}{
		{"one of 100k by 1", 1, 100_000, 1, all(100_000)},
		{"one of 1M by 1", 1, 1_000_000, 1, all(1_000_000)},
		{"one of 1M by 16", 1, 1_000_000, 16, all(1_000_000)},
		{"4 of 250k by 16", 4, 250_000, 16, all(250_000)},
		{"1000 of 2k by 16", 1000, 100_000, 16, all(2000)},
		{"200 of 10k by 16", 200, 100_000, 16, all(10_000)},
		{"one of 500k among 50k of 10 by 4", 50_000, 500_000, 4, func(i int) int {
			if i == 25_000 {
				return 500_000
			}
			return 10
		}},
	} {
		b.Run(name(s.name), func(b *testing.B) {
			dev := benchDevice(b)
			var indices []int32
			pointers := make([]int32, 1, s.rows+1)
			for i := range s.rows {
				n := s.entries(i)
				for q := range n {
					indices = append(indices, int32(q*(s.cols/n)+i%(s.cols/n)))
				}
				pointers = append(pointers, int32(len(indices)))
			}
			a := must[*matrix.Sparse[float32]](b)(
				matrix.NewSparse(dev, matrix.CSR, s.rows, s.cols, random(newRand(2), len(indices)), indices, pointers))
			x, c := resident(b, dev, s.cols, s.wide), resident(b, dev, s.rows, s.wide)
			run(b, dev, func() error { return c.Mul(a, x) })
			b.ReportMetric(2*float64(len(indices)*s.wide*b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			check(b, a.Close())
		})
	}
}
