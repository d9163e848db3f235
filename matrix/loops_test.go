// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestApplyLongLoops applies functions with loops that some adapters end early: the result is right, or there is an error. An invocation
// computes four elements.
func TestApplyLongLoops(t *testing.T) {
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		limited := dev.Info().Limits.MaxLoopsPerInvoking-1 < 1e5 // not 0 either
		f := matrix.NewFunc("fn f(x: f32, n: f32) -> f32 { var v = x; for (var i = 0.0; i < n; i += 1.0) { v += 1.0; } return v; }")
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
		eye := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 0, 0, 1}))
		for _, c := range []struct {
			turns float32
			x     *matrix.Expr[float32]
			fails bool
		}{
			{15000, matrix.Apply(f, a, matrix.Fill[float32](2, 2, 15000)), false},
			{40000, matrix.Apply(f, a, matrix.Fill[float32](2, 2, 40000)), limited},
			{70000, matrix.Apply(f, a, matrix.Fill[float32](2, 2, 70000)), limited},
			{80000, matrix.Mul(eye, matrix.Apply(f, a, matrix.Fill[float32](2, 2, 80000))), limited},
			{3, matrix.Apply(f, a, matrix.Fill[float32](2, 2, 3)), false},
		} {
			to := must[*dense](t)(matrix.New[float32](dev, 2, 2))
			check(t, to.Assign(c.x))
			got, err := to.Read(t.Context())
			if c.fails {
				if !errors.Is(err, gpu.ErrLimit) {
					t.Errorf("%v turns: %v, %v", c.turns, got, err)
				}
				continue
			}
			if err != nil || got[0] != 1+c.turns || got[3] != 4+c.turns {
				t.Errorf("%v turns: %v, %v", c.turns, got, err)
			}
		}
		got, err := a.Read(t.Context())
		if err != nil || got[3] != 4 {
			t.Errorf("a bystander: %v, %v", got, err)
		}
	})
}
