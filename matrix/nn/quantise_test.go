// SPDX-License-Identifier: Apache-2.0

package nn_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/nn"
)

// requantised is a column quantised and back, in float64.
func requantised(v []float64, bits int) []float64 {
	mean, variance := moments(v, len(v), 1, 1)
	out := make([]float64, len(v))
	var sums, counts [2]float64
	for _, x := range v {
		side := 0
		if x >= mean[0] {
			side = 1
		}
		sums[side] += x
		counts[side]++
	}
	for i, x := range v {
		switch {
		case bits > 1:
			reach, levels := 4*math.Sqrt(variance[0]), math.Exp2(float64(bits))
			level := min(max(math.Floor((x-mean[0]+reach)*levels/(2*reach)), 0), levels-1)
			out[i] = mean[0] - reach + (level+0.5)*2*reach/levels
		case x >= mean[0]:
			out[i] = sums[1] / counts[1]
		default:
			out[i] = sums[0] / counts[0]
		}
	}
	return out
}

func TestQuantise(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(7)
		for i, size := range [][3]int{{2, 1, 8}, {13, 5, 8}, {64, 3, 4}, {13, 5, 1}, {16, 2, 1}, {67, 9, 1}} {
			rows, cols, bits := size[0], size[1], size[2]
			data, old := random(rng, rows*cols), random(rng, rows*cols)
			x := load(t, dev, rows, cols, data, layout(i, rows, cols))
			residual := load(t, dev, rows, cols, old, layout(i+1, rows, cols))
			want, lost := make([]float64, rows*cols), make([]float64, rows*cols)
			step := 0.0
			for j := range cols {
				col := make([]float64, rows)
				for i := range col {
					col[i] = float64(data[i*cols+j] + old[i*cols+j])
				}
				for i, v := range requantised(col, bits) {
					want[i*cols+j], lost[i*cols+j] = v, col[i]-v
				}
				_, variance := moments(col, rows, 1, 1)
				step = max(step, 8*math.Sqrt(variance[0])/math.Exp2(float64(bits)))
			}
			q := must[*nn.Quantised](t)(nn.Quantise(x, bits, residual))
			tol := 1e-5
			if bits > 1 {
				tol = 1.001 * step // at a level's edge rounding decides
			}
			near(t, "quantised", q.Dequantise(), dev, want, tol)
			near(t, "residual", residual.Expr(), dev, lost, tol)
			sum := must[[]float32](t)(q.Dequantise().Add(residual).Sub(x).Read(t.Context()))
			nearSlice(t, "nothing is lost", sum, float64s(old), 1e-5)
			check(t, q.Close())
		}
	})
}

func TestQuantiseMistakes(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	x, y := load(t, dev, 2, 3, []float32{1, 1, 1, 1, 1, 1}), load(t, dev, 3, 2, make([]float32, 6))
	for _, bits := range []int{-1, 0, 9, math.MaxInt} {
		if _, err := nn.Quantise(x, bits, nil); !errors.Is(err, gpu.ErrInvalid) {
			t.Error(bits, err)
		}
	}
	if _, err := nn.Quantise(x, 8, y); !saysShape(err) {
		t.Error(err)
	}
	if _, err := nn.Quantise(nil, 8, nil); !errors.Is(err, buffer.ErrNil) {
		t.Error(err)
	}
	check(t, (*nn.Quantised)(nil).Close())
	for _, q := range []*nn.Quantised{nil, {}, {Levels: &matrix.Dense[uint8]{}, Lower: x, Upper: x, Bits: 3}} {
		if q.Dequantise().Err() == nil {
			t.Error("no error")
		}
	}
	for _, bits := range []int{1, 2, 8} { // columns of one number come back as they are
		q := must[*nn.Quantised](t)(nn.Quantise(x, bits, nil))
		near(t, "constant", q.Dequantise(), dev, []float64{1, 1, 1, 1, 1, 1}, 0)
		check(t, q.Close())
	}
}
