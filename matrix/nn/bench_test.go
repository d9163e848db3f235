// SPDX-License-Identifier: Apache-2.0

package nn_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/nn"
)

// bench times a call with its operands and its result on the best device.
func bench(b *testing.B, prepare func(dev *gpu.Device) func() error) {
	b.Helper()
	dev, err := gpu.Open(b.Context())
	check(b, err)
	b.Cleanup(func() { check(b, dev.Close()) })
	call := prepare(dev)
	check(b, call())
	check(b, dev.Sync(b.Context()))
	for b.Loop() {
		check(b, call())
		check(b, dev.Sync(b.Context()))
	}
}

// BenchmarkConv is a layer of 16 to 32 channels of a batch of 8 images.
func BenchmarkConv(b *testing.B) {
	c := nn.Conv{Outputs: 32, Window: nn.Window{
		Channels: 16, Height: 28, Width: 28, KernelHeight: 3, KernelWidth: 3, Top: 1, Bottom: 1, Left: 1, Right: 1,
	}}
	const n, in, out, wide = 8, 16 * 28 * 28, 32 * 28 * 28, 16 * 9
	rng := newRand(1)
	for name, of := range map[string]func(x, w, d *nn.Dense) *nn.Expr{
		"forward": func(x, w, _ *nn.Dense) *nn.Expr { return c.Forward(x, w, nil).Relu() },
		"data":    func(_, w, d *nn.Dense) *nn.Expr { return c.DataGrad(d, w) },
		"kernel":  func(x, _, d *nn.Dense) *nn.Expr { return c.KernelGrad(d, x) },
		"pool":    func(x, _, _ *nn.Dense) *nn.Expr { return c.MaxPool(x) },
	} {
		b.Run(name, func(b *testing.B) {
			bench(b, func(dev *gpu.Device) func() error {
				x, w := load(b, dev, n, in, random(rng, n*in)), load(b, dev, 32, wide, random(rng, 32*wide))
				d := load(b, dev, n, out, random(rng, n*out))
				y := must[*nn.Dense](b)(of(x, w, d).Eval())
				b.Cleanup(func() { check(b, y.Close()) })
				return func() error { return y.Assign(of(x, w, d)) }
			})
		})
	}
}

// BenchmarkAdam is a step for a million weights.
func BenchmarkAdam(b *testing.B) {
	bench(b, func(dev *gpu.Device) func() error {
		data := random(newRand(2), 1<<20)
		p, g := load(b, dev, 1<<10, 1<<10, data), load(b, dev, 1<<10, 1<<10, data)
		o := &nn.Adam{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
		b.Cleanup(func() { check(b, o.Close()) })
		return func() error { return o.Step(p, g) }
	})
}
