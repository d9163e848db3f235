// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestMatrixExp compares exponentials with gonum's: of matrices of all norms, of rotations, of nilpotent ones and of those whose
// exponential underflows.
func TestMatrixExp(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(77)
		for turn, size := range []float32{0, 1e-6, 0.3, 1, 7, 40} {
			n := 1 + 8*turn
			if sparing(dev) && turn%2 == 1 {
				continue
			}
			values := random(rng, n*n)
			for k := range values {
				values[k] *= size / float32(n)
			}
			a, _ := wrapped(t, dev, forms[turn%len(forms)], n, n, values)
			var want mat.Dense
			want.Exp(mat.NewDense(n, n, float64s(values)))
			residual(t, name([3]int{n, n, turn}), wide(t, dev, "exp", matrix.MatrixExp[float32](a)), &want, mat.Norm(&want, 2), 64)
			check(t, a.Close())
		}
		const angle = 1.25
		for what, c := range map[string]struct {
			rows       int
			from, want []float64
		}{
			"rotation":   {2, []float64{0, -angle, angle, 0}, []float64{math.Cos(angle), -math.Sin(angle), math.Sin(angle), math.Cos(angle)}},
			"nilpotent":  {2, []float64{0, 1000, 0, 0}, []float64{1, 1000, 0, 1}},
			"underflow":  {2, []float64{-3e5, 0, 0, -1}, []float64{0, 0, 0, math.Exp(-1)}},
			"overflow":   {1, []float64{100}, []float64{math.Inf(1)}},
			"too large":  {1, []float64{-3e6}, []float64{math.NaN()}},
			"NaN":        {1, []float64{math.NaN()}, []float64{math.NaN()}},
			"no numbers": {0, nil, nil},
		} {
			x := make([]float32, len(c.from))
			for k, v := range c.from {
				x[k] = float32(v)
			}
			a := must[*dense](t)(matrix.FromSlice(dev, c.rows, c.rows, x))
			for k, v := range must[[]float32](t)(matrix.MatrixExp[float32](a).Read(background)) {
				if w := c.want[k]; !(math.Abs(float64(v)-w) <= 1e-5*math.Max(1, math.Abs(w))) && !(float64(v) == w) && !(v != v && w != w) {
					t.Errorf("%s: element %d is %v, want %v", what, k, v, w)
				}
			}
			check(t, a.Close())
		}
		isError(t, matrix.MatrixExp[float32](matrix.Fill[float32](2, 3, 1).On(dev)).Err(), matrix.ErrNotSquare)
		isError(t, matrix.MatrixExp[int32](matrix.Fill[int32](2, 2, 1).On(dev)).Err(), gpu.ErrUnsupported)
		nothingLeft(t, dev)
	})
}
