// SPDX-License-Identifier: Apache-2.0

package tensor_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/tensor"
)

// BenchmarkTensor computes with a million elements of 16 x 32 x 32 x 64.
func BenchmarkTensor(b *testing.B) {
	check := func(b *testing.B, err error) {
		if b.Helper(); err != nil {
			b.Fatal(err)
		}
	}
	type t = tensor.Tensor[float32]
	const n = 1 << 20
	for name, f := range map[string]func(x, row, channel *t) *t{
		"add":                func(x, _, _ *t) *t { return tensor.Zip(matrix.Add[float32], x, x) },
		"broadcast last":     func(x, row, _ *t) *t { return tensor.Zip(matrix.Add[float32], x, row) },
		"broadcast middle":   func(x, _, channel *t) *t { return tensor.Zip(matrix.Add[float32], x, channel) },
		"mean but the last":  func(x, _, _ *t) *t { return tensor.Reduce(matrix.MeanRows[float32], x, 0, 1, 2) },
		"mean of the middle": func(x, _, _ *t) *t { return tensor.Reduce(matrix.MeanRows[float32], x, 1, 2) },
		"permute":            func(x, _, _ *t) *t { return x.Permute(0, 3, 1, 2) },
		"products":           func(x, _, _ *t) *t { return tensor.MatMul(x, x.Permute(0, 1, 3, 2)) },
	} {
		b.Run(name, func(b *testing.B) {
			dev, err := gpu.Open(b.Context())
			check(b, err)
			b.Cleanup(func() { check(b, dev.Close()) })
			values := make([]float32, n)
			for i := range values {
				values[i] = float32(i%1000) / 1000
			}
			m, err := matrix.FromSlice(dev, 16*32, 32*64, values)
			check(b, err)
			x := tensor.New[float32](m, 16, 32, 32, 64)
			row, channel := x.Slice([2]int{0, 1}, [2]int{0, 1}, [2]int{0, 1}), x.Slice([2]int{0, 1}, [2]int{0, 32}, [2]int{0, 1}, [2]int{0, 1})
			c := &matrix.Dense[float32]{}
			b.SetBytes(4 * n)
			step := func() {
				check(b, c.Assign(f(x, row, channel).Expr()))
				check(b, dev.Sync(b.Context()))
			}
			step()
			for b.Loop() {
				step()
			}
			check(b, c.Close())
			check(b, m.Close())
		})
	}
}
