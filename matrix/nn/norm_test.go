// SPDX-License-Identifier: Apache-2.0

package nn_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix/nn"
)

// moments are the mean and the variance of each feature.
func moments(x []float64, n, features, places int) (mean, variance []float64) {
	mean, variance = make([]float64, features), make([]float64, features)
	count := float64(n * places)
	for i, v := range x {
		mean[i/places%features] += v / count
	}
	for i, v := range x {
		f := i / places % features
		variance[f] += (v - mean[f]) * (v - mean[f]) / count
	}
	return mean, variance
}

func normalised(x, scale, bias, mean, variance []float64, places int) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		f := i / places % len(scale)
		y[i] = scale[f]*(v-mean[f])/math.Sqrt(variance[f]+0.01) + bias[f]
	}
	return y
}

func TestBatchNorm(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		for i, size := range [][3]int{{4, 3, 1}, {3, 2, 5}, {1, 4, 9}, {67, 5, 3}} {
			for _, spatial := range []bool{false, true} {
				testBatchNorm(t, fmt.Sprint(size, spatial), dev, size, i, spatial)
			}
		}
	})
}

func testBatchNorm(t *testing.T, what string, dev *gpu.Device, size [3]int, form int, spatial bool) {
	n, features, places := size[0], size[1], size[2]
	cols := features * places
	b := nn.BatchNorm{Channels: features, Epsilon: 0.01}
	if !spatial {
		b.Channels, features, places = 0, cols, 1
	}
	rng := newRand(4)
	take := func(rows, cols int) ([]float64, *nn.Dense) {
		v := random(rng, rows*cols)
		return float64s(v), load(t, dev, rows, cols, v, layout(form, rows, cols))
	}
	xs, x := take(n, cols)
	ds, d := take(n, cols)
	ss, scale := take(1, features)
	bs, bias := take(1, features)
	ms, mean := take(1, features)
	vs, variance := take(1, features)
	for f := range vs {
		vs[f] += 3
	}
	check(t, variance.Assign(variance.Expr().AddScalar(3)))
	near(t, what+" inference", b.Infer(x, scale, bias, mean, variance), dev, normalised(xs, ss, bs, ms, vs, places), 1e-5)

	y := load(t, dev, n, cols, make([]float32, n*cols), layout(form+1, n, cols))
	s := must[*nn.Statistics](t)(b.Train(y, x, scale, bias, mean, variance, 0.25))
	batchMean, batchVariance := moments(xs, n, features, places)
	near(t, what+" training", y.Expr(), dev, normalised(xs, ss, bs, batchMean, batchVariance, places), 1e-5)
	count := float64(n * places)
	for f := range ms {
		ms[f] = 0.75*ms[f] + 0.25*batchMean[f]
		vs[f] = 0.75*vs[f] + 0.25*batchVariance[f]*count/max(count-1, 1)
	}
	near(t, what+" running mean", mean.Expr(), dev, ms, 1e-5)
	near(t, what+" running variance", variance.Expr(), dev, vs, 1e-5)

	loss := func() float64 {
		m, v := moments(xs, n, features, places)
		return dot(normalised(xs, ss, bs, m, v, places), ds)
	}
	dx, dscale, dbias := b.Backward(d, x, scale, s)
	near(t, what+" by data", dx, dev, differences(xs, loss), 1e-4)
	near(t, what+" by scale", dscale, dev, differences(ss, loss), 1e-5)
	near(t, what+" by bias", dbias, dev, differences(bs, loss), 1e-5)
	check(t, s.Close())
}

func TestBatchNormMistakes(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	x, v := load(t, dev, 2, 6, make([]float32, 12)), load(t, dev, 1, 3, make([]float32, 3))
	b := nn.BatchNorm{Channels: 3}
	for _, err := range []error{
		nn.BatchNorm{Channels: 4}.Infer(x, v, v, v, v).Err(), b.Infer(x, x, v, v, v).Err(), second(b.Train(x, x, v, x, nil, nil, 0)),
		second(b.Train(x, x, v, v, x, v, 0)),
	} {
		if !saysShape(err) {
			t.Error(err)
		}
	}
	for _, err := range []error{
		nn.BatchNorm{Channels: -1}.Infer(x, v, v, v, v).Err(), nn.BatchNorm{Epsilon: float32(math.NaN())}.Infer(x, v, v, v, v).Err(),
		second(b.Train(x, x, v, v, v, nil, 0)),
	} {
		if !errors.Is(err, gpu.ErrInvalid) {
			t.Error(err)
		}
	}
	if _, err := b.Train(nil, x, v, v, nil, nil, 0); !errors.Is(err, buffer.ErrNil) {
		t.Error(err)
	}
	if dx, _, _ := b.Backward(x, x, v, nil); dx.Err() == nil {
		t.Error("no statistics")
	}
	empty := load[float32](t, dev, 0, 6, nil)
	s, err := b.Train(&nn.Dense{}, empty, v, v, v, v, 0.5)
	check(t, err)
	near(t, "running mean after an empty batch", v.Expr(), dev, make([]float64, 3), 0)
	check(t, s.Close())
	check(t, (*nn.Statistics)(nil).Close())
	check(t, (&nn.Statistics{}).Close())
}

func second[V any](_ V, err error) error { return err }
