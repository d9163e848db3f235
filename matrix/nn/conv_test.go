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
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/nn"
)

var windows = []nn.Window{
	{Channels: 1, Height: 1, Width: 1, KernelHeight: 1, KernelWidth: 1},
	{Channels: 2, Height: 5, Width: 7, KernelHeight: 3, KernelWidth: 2},
	{Channels: 3, Height: 6, Width: 5, KernelHeight: 3, KernelWidth: 3, Top: 1, Bottom: 1, Left: 1, Right: 1},
	{Channels: 1, Height: 8, Width: 7, KernelHeight: 3, KernelWidth: 2, StrideHeight: 2, StrideWidth: 3, Left: 1},
	{
		Channels: 2, Height: 9, Width: 6, KernelHeight: 2, KernelWidth: 3, StrideHeight: 3, DilationHeight: 3, DilationWidth: 2,
		Top: 2, Right: 3,
	},
	{Channels: 2, Height: 4, Width: 4, KernelHeight: 2, KernelWidth: 2, StrideHeight: 2, StrideWidth: 2, Bottom: 3, Right: 3},
	{Channels: 2, Height: 4, Width: 5, KernelHeight: 1, KernelWidth: 1, StrideHeight: 3, StrideWidth: 2},
}

func outSize(t testing.TB, w nn.Window) (int, int) {
	t.Helper()
	h, v, err := w.OutputSize()
	check(t, err)
	return h, v
}

// below calls f for each element of an image below a place of the window; at is -1 for padding, k the element of the window.
func below(w nn.Window, oh, ow int, f func(k, at int)) {
	for kh := range w.KernelHeight {
		for kw := range w.KernelWidth {
			h := oh*max(w.StrideHeight, 1) + kh*max(w.DilationHeight, 1) - w.Top
			v := ow*max(w.StrideWidth, 1) + kw*max(w.DilationWidth, 1) - w.Left
			at := h*w.Width + v
			if h < 0 || h >= w.Height || v < 0 || v >= w.Width {
				at = -1
			}
			f(kh*w.KernelWidth+kw, at)
		}
	}
}

// places calls f for each image, channel and place of the window: with the element of the result and the first of the channel.
func places(t testing.TB, w nn.Window, n, channels int, f func(n, c, out, oh, ow int)) {
	h, v := outSize(t, w)
	for i := range n {
		for c := range channels {
			for oh := range h {
				for ow := range v {
					f(i, c, ((i*channels+c)*h+oh)*v+ow, oh, ow)
				}
			}
		}
	}
}

func convolved(t testing.TB, c nn.Conv, n int, x, w, b []float64) []float64 {
	h, v := outSize(t, c.Window)
	y := make([]float64, n*c.Outputs*h*v)
	per, kernel := c.Channels/max(c.Groups, 1), c.KernelHeight*c.KernelWidth
	places(t, c.Window, n, c.Outputs, func(n, m, out, oh, ow int) {
		y[out] = b[m]
		first := m / (c.Outputs / max(c.Groups, 1)) * per
		for ch := range per {
			below(c.Window, oh, ow, func(k, at int) {
				if at >= 0 {
					y[out] += w[(m*per+ch)*kernel+k] * x[(n*c.Channels+first+ch)*c.Height*c.Width+at]
				}
			})
		}
	})
	return y
}

func TestConv(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(1)
		for i, w := range windows {
			for _, groups := range []int{0, w.Channels} {
				for _, n := range []int{0, 1, 3} {
					c := nn.Conv{Window: w, Outputs: 2 * w.Channels, Groups: groups}
					testConv(t, fmt.Sprintf("%d groups %d batch %d", i, groups, n), dev, c, n, i, random(rng, 1<<12))
				}
			}
		}
	})
}

func testConv(t *testing.T, what string, dev *gpu.Device, c nn.Conv, n, form int, data []float32) {
	t.Helper()
	h, v := outSize(t, c.Window)
	image, out := c.Channels*c.Height*c.Width, c.Outputs*h*v
	wide := c.Channels / max(c.Groups, 1) * c.KernelHeight * c.KernelWidth
	take := func(rows, cols int) ([]float64, *nn.Dense) {
		part := data[:rows*cols]
		data = data[rows*cols:]
		return float64s(part), load(t, dev, rows, cols, part, layout(form, rows, cols))
	}
	xs, x := take(n, image)
	ws, w := take(c.Outputs, wide)
	bs, b := take(1, c.Outputs)
	ds, d := take(n, out)
	loss := func() float64 { return dot(convolved(t, c, n, xs, ws, bs), ds) }
	want := convolved(t, c, n, xs, ws, bs)
	near(t, what, c.Forward(x, w, b), dev, want, 1e-5)
	near(t, what+" column of biases", c.Forward(x, w, b.T()), dev, want, 1e-5)
	for i := range want {
		want[i] = math.Max(want[i], 0)
	}
	near(t, what+" relu", c.Forward(x, w, b).Relu(), dev, want, 1e-5)
	near(t, what+" by data", c.DataGrad(d, w), dev, differences(xs, loss), 1e-5)
	near(t, what+" by kernel", c.KernelGrad(d, x), dev, differences(ws, loss), 1e-5)
	near(t, what+" by bias", c.BiasGrad(d), dev, differences(bs, loss), 1e-5)
}

func TestPooling(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(2)
		for i, w := range windows {
			for _, n := range []int{0, 1, 3} {
				testPooling(t, fmt.Sprintf("%d batch %d", i, n), dev, w, n, i, random(rng, 1<<12))
			}
		}
	})
}

func testPooling(t *testing.T, what string, dev *gpu.Device, w nn.Window, n, form int, data []float32) {
	t.Helper()
	h, v := outSize(t, w)
	image := w.Height * w.Width
	cols, outs := w.Channels*image, w.Channels*h*v
	xs, ds := float64s(data[:n*cols]), float64s(data[n*cols:][:n*outs])
	x, d := load(t, dev, n, cols, data[:n*cols], layout(form, n, cols)), load(t, dev, n, outs, data[n*cols:][:n*outs])
	largest, grad := make([]float64, n*outs), make([]float64, n*cols)
	means := map[bool][]float64{false: make([]float64, n*outs), true: make([]float64, n*outs)}
	grads := map[bool][]float64{false: make([]float64, n*cols), true: make([]float64, n*cols)}
	places(t, w, n, w.Channels, func(n, c, out, oh, ow int) {
		first, best, count, sum := (n*w.Channels+c)*image, -1, 0, 0.0
		below(w, oh, ow, func(_, at int) {
			if at >= 0 {
				if best < 0 || xs[first+at] > xs[first+best] {
					best = at
				}
				count++
				sum += xs[first+at]
			}
		})
		if largest[out] = math.Inf(-1); best >= 0 {
			largest[out] = xs[first+best]
			grad[first+best] += ds[out]
		}
		for pad, size := range map[bool]int{false: max(count, 1), true: w.KernelHeight * w.KernelWidth} {
			means[pad][out] = sum / float64(size)
			below(w, oh, ow, func(_, at int) {
				if at >= 0 {
					grads[pad][first+at] += ds[out] / float64(size)
				}
			})
		}
	})
	near(t, what+" max", w.MaxPool(x), dev, largest, 0)
	near(t, what+" max gradient", w.MaxPoolGrad(d, x), dev, grad, 1e-6)
	near(t, what+" unpooled", w.MaxUnpool(d, x), dev, grad, 1e-6)
	for _, pad := range []bool{false, true} {
		near(t, what+" average", w.AveragePool(x, pad), dev, means[pad], 1e-6)
		near(t, what+" average gradient", w.AveragePoolGrad(d, pad), dev, grads[pad], 1e-6)
	}
}

// TestPoolingSpecial has infinities and NaN below a window that also sees padding.
func TestPoolingSpecial(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		w := nn.Window{Channels: 1, Height: 1, Width: 4, KernelHeight: 1, KernelWidth: 2, StrideWidth: 2, Left: 1, Right: 1}
		x := load(t, dev, 2, 4, []float32{-inf, nan, 1, inf, -3, -2, -1, -inf})
		d := load(t, dev, 2, 3, []float32{1, 2, 3, 4, 5, 6})
		near(t, "max", w.MaxPool(x), dev, []float64{math.Inf(-1), math.NaN(), math.Inf(1), -3, -1, math.Inf(-1)}, 0)
		got := must[[]float32](t)(w.MaxPoolGrad(d, x).Read(t.Context()))
		for at, want := range map[int]float32{1: 2, 2: 0, 3: 3, 4: 4, 5: 0, 6: 5} {
			if got[at] != want {
				t.Errorf("gradient %d is %v, want %v", at, got[at], want)
			}
		}
	})
}

func TestConvMistakes(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	good := nn.Conv{Window: windows[2], Outputs: 3}
	x, w := load(t, dev, 2, 90, make([]float32, 180)), load(t, dev, 3, 27, make([]float32, 81))
	check(t, good.Forward(x, w, nil).Err())
	for what, change := range map[string]func(c *nn.Conv){
		"stride": func(c *nn.Conv) { c.StrideWidth = -1 }, "outputs": func(c *nn.Conv) { c.Outputs = 0 },
		"groups": func(c *nn.Conv) { c.Groups = 2 }, "padding": func(c *nn.Conv) { c.Top = -1 },
		"kernel": func(c *nn.Conv) { c.KernelHeight = 9 }, "zero": func(c *nn.Conv) { *c = nn.Conv{} },
	} {
		c := good
		change(&c)
		for _, err := range []error{c.Forward(x, w, nil).Err(), c.DataGrad(x, w).Err(), c.KernelGrad(x, x).Err(), c.BiasGrad(x).Err()} {
			if !errors.Is(err, gpu.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	big := good
	big.Height, big.Width = 1<<20, 1<<20
	huge := good
	huge.Height, huge.DilationWidth, huge.Top = math.MaxInt, math.MaxInt, math.MaxInt
	for _, c := range []nn.Conv{big, huge} {
		if err := c.Forward(x, w, nil).Err(); !errors.Is(err, gpu.ErrLimit) {
			t.Error(err)
		}
	}
	for _, w := range []nn.Window{big.Window, huge.Window, {}} {
		if height, width, err := w.OutputSize(); err == nil || height != 0 || width != 0 {
			t.Errorf("%d x %d places, %v", height, width, err)
		}
	}
	var none *nn.Dense
	for _, e := range []*nn.Expr{
		good.Forward(w, w, nil), good.Forward(x, x, nil), good.Forward(x, w, x), good.KernelGrad(w, x), good.KernelGrad(x, w),
		good.MaxPool(w), good.MaxPoolGrad(x, w), good.AveragePool(w, true), good.AveragePoolGrad(w, true),
	} {
		if !saysShape(e.Err()) {
			t.Error(e.Err())
		}
	}
	for _, e := range []*nn.Expr{
		good.Forward(nil, w, nil), good.Forward(x, none, nil), good.MaxPool((*nn.Expr)(nil)), matrix.Failed[float32](nil),
	} {
		if !errors.Is(e.Err(), buffer.ErrNil) {
			t.Error(e.Err())
		}
	}
}
