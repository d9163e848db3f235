// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestKernelsOfSizes evaluates expressions of a thousand random sizes and numbers: the kernels do not depend on these, but for how vectors
// fit into rows and which variant suits a size.
func TestKernelsOfSizes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rounds := 1000
		switch {
		case few:
			rounds = 20
		case some && dev.Info().Driver != "cpu":
			rounds = 100
		}
		for what, c := range map[string]struct {
			make func(a, b, row *dense, v float32) *expr
			most uint64
		}{
			"chain": {func(a, b, row *dense, v float32) *expr {
				return matrix.Exp(matrix.Scale(v, matrix.Add(matrix.MulElem(a, b), row))).AddScalar(v).Abs().Sqrt()
			}, 24},
			"columns": {func(a, b, _ *dense, v float32) *expr { return matrix.SumCols(matrix.Scale(v, matrix.Sub(a, b))) }, 16},
			"product": {func(a, b, row *dense, v float32) *expr {
				return matrix.Tanh(matrix.Add(matrix.Mul(matrix.Transpose(a), b), row)).AddScalar(v)
			}, 40},
			"softmax": {func(a, _, row *dense, v float32) *expr { return matrix.Softmax(matrix.Scale(v, matrix.Add(a, row))) }, 16},
		} {
			rng := newRand(110)
			start := dev.Stats().Compilations
			d := &dense{}
			for range rounds {
				rows, cols := 1+rng.IntN(60), 1+rng.IntN(60)
				a, b := must[*dense](t)(matrix.New[float32](dev, rows, cols)), must[*dense](t)(matrix.New[float32](dev, rows, cols))
				row := must[*dense](t)(matrix.New[float32](dev, 1, cols))
				check(t, d.Assign(c.make(a, b, row, rng.Float32())))
				check(t, errors.Join(a.Close(), b.Close(), row.Close()))
			}
			check(t, errors.Join(d.Close(), dev.Sync(background)))
			if n := dev.Stats().Compilations - start; n > c.most {
				t.Errorf("%s: %d kernels for %d sizes", what, n, rounds)
			} else {
				t.Logf("%s: %d kernels for %d sizes", what, n, rounds)
			}
		}
	})
}
