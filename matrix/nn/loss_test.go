// SPDX-License-Identifier: Apache-2.0

package nn_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix/nn"
)

// entropies are the losses of rows.
func entropies(x []float64, labels []int32, classes int) []float64 {
	out := make([]float64, len(labels))
	for i, l := range labels {
		if l < 0 || int(l) >= classes {
			continue
		}
		sum := 0.0
		for _, v := range x[i*classes:][:classes] {
			sum += math.Exp(v)
		}
		out[i] = math.Log(sum) - x[i*classes+int(l)]
	}
	return out
}

func labelsFor(n, classes int) []int32 {
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32((i*i*7+3)%(classes+2)) - 1 // -1 and classes are none
	}
	return labels
}

func TestLosses(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(5)
		for i, size := range [][2]int{{0, 3}, {1, 1}, {5, 7}, {33, 65}, {4, 2}} {
			n, classes := size[0], size[1]
			data := random(rng, 2*n*classes)
			x := load(t, dev, n, classes, data[:n*classes], layout(i, n, classes))
			y := load(t, dev, n, classes, data[n*classes:], layout(i+1, n, classes))
			labels := labelsFor(n, classes)
			l := load(t, dev, n, 1, labels)
			xs, ys := float64s(data[:n*classes]), float64s(data[n*classes:])
			near(t, "cross entropy", nn.CrossEntropy(x, l), dev, entropies(xs, labels, classes), 1e-5)
			near(t, "row of labels", nn.CrossEntropy(x, l.T()), dev, entropies(xs, labels, classes), 1e-5)
			near(t, "cross entropy gradient", nn.CrossEntropyGrad(x, l), dev, differences(xs, func() float64 {
				sum := 0.0
				for _, v := range entropies(xs, labels, classes) {
					sum += v
				}
				return sum
			}), 1e-5)
			mse := func() float64 {
				sum := 0.0
				for i := range xs {
					sum += (xs[i] - ys[i]) * (xs[i] - ys[i])
				}
				return sum / float64(len(xs))
			}
			near(t, "MSE", nn.MSE(x, y), dev, []float64{mse()}, 1e-6)
			near(t, "MSE gradient", nn.MSEGrad(x, y), dev, differences(xs, mse), 1e-5)
			mask := make([]float32, n*classes)
			kept := make([]float64, n*classes)
			for i := range mask {
				if mask[i] = float32(i % 3); mask[i] != 0 {
					kept[i] = xs[i] / 0.75
				}
			}
			near(t, "dropout", nn.Dropout(x, load(t, dev, n, classes, mask), 0.75), dev, kept, 1e-6)
		}
	})
}

func TestEmbedding(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(6)
		for i, size := range [][3]int{{0, 4, 3}, {1, 1, 1}, {9, 4, 5}, {33, 7, 2}, {257, 17000, 3}, {300, 15000, 1}} {
			n, vocabulary, width := size[0], size[1], size[2]
			labels := labelsFor(n, min(vocabulary, 50))
			if vocabulary > 50 {
				labels[0], labels[1] = int32(vocabulary-1), 1<<30
			}
			data, grad := random(rng, vocabulary*width), random(rng, n*width)
			table, d := load(t, dev, vocabulary, width, data, layout(i, vocabulary, width)), load(t, dev, n, width, grad, layout(i, n, width))
			l := load(t, dev, 1, n, labels)
			rows, sums := make([]float64, n*width), make([]float64, vocabulary*width)
			for i, label := range labels {
				for j := 0; j < width && label >= 0 && int(label) < vocabulary; j++ {
					rows[i*width+j] = float64(data[int(label)*width+j])
					sums[int(label)*width+j] += float64(grad[i*width+j])
				}
			}
			near(t, "embedding", nn.Embedding(table, l), dev, rows, 0)
			near(t, "embedding gradient", nn.EmbeddingGrad(d, l, vocabulary), dev, sums, 1e-5)
		}
	})
}

func TestLossMistakes(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	x, y := load(t, dev, 2, 3, make([]float32, 6)), load(t, dev, 3, 2, make([]float32, 6))
	l := load(t, dev, 3, 1, make([]int32, 3))
	for _, e := range []*nn.Expr{
		nn.CrossEntropy(x, l), nn.CrossEntropyGrad(x, l), nn.MSE(x, y), nn.MSEGrad(x, y), nn.Dropout(x, y, 1), nn.EmbeddingGrad(x, l, 2),
	} {
		if !saysShape(e.Err()) {
			t.Error(e.Err())
		}
	}
	for _, e := range []*nn.Expr{nn.Dropout(x, x, 0), nn.Dropout(x, x, float32(math.NaN())), nn.EmbeddingGrad(y, l, -1)} {
		if !errors.Is(e.Err(), gpu.ErrInvalid) {
			t.Error(e.Err())
		}
	}
	if err := nn.EmbeddingGrad(y, l, math.MaxInt).Err(); !errors.Is(err, gpu.ErrLimit) {
		t.Error(err)
	}
	for _, e := range []*nn.Expr{
		nn.CrossEntropy(nil, l), nn.CrossEntropy(x, nil), nn.MSE(x, nil), nn.Embedding(x, nil), nn.Embedding(nil, l),
	} {
		if !errors.Is(e.Err(), buffer.ErrNil) {
			t.Error(e.Err())
		}
	}
}
