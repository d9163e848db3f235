// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestKernelsKept evaluates more expressions than kernels are kept: one goes for each new one, and never the one in use all the
// time.
func TestKernelsKept(t *testing.T) {
	const most, rounds = 5, 12
	run := func(t *testing.T, dev *gpu.Device, expr func(i int, a *dense) *matrix.Expr[float32], want func(i int) float32) {
		matrix.KeepKernels(dev, most)
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 1, 1, 1}))
		value := func(i int) {
			t.Helper()
			got, err := expr(i, a).Read(t.Context())
			check(t, err)
			if w := want(i); !slices.Equal(got, []float32{w, w, w, w}) {
				t.Fatalf("expression %d is %v, want %v", i, got, w)
			}
		}
		value(0)
		for i := range rounds {
			value(i)
			value(0)
			s := dev.Stats()
			if s.Kernels != min(i+1, most) || s.Compilations != uint64(i+1) {
				t.Fatalf("after %d expressions: %+v", i+1, s)
			}
		}
		before := dev.Stats()
		for i := rounds - most + 1; i < rounds; i++ {
			value(i)
		}
		if s := dev.Stats(); s.Compilations != before.Compilations || s.CacheHits != before.CacheHits+most-1 {
			t.Errorf("the last expressions again: %+v, before %+v", s, before)
		}
		value(1)
		if s := dev.Stats(); s.Compilations != before.Compilations+1 || s.Kernels != most {
			t.Errorf("the first one again: %+v, before %+v", s, before)
		}
		check(t, a.Close())
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		run(t, dev, func(i int, a *dense) *matrix.Expr[float32] {
			x := matrix.Add(a, a)
			for range i {
				x = matrix.Add(x, a)
			}
			return x
		}, func(i int) float32 { return float32(i + 2) })
	})
	onGPUs(t, func(t *testing.T, dev *gpu.Device) { // with texts of the user's
		run(t, dev, func(i int, a *dense) *matrix.Expr[float32] {
			return matrix.Apply(matrix.NewFunc("fn f(x: f32) -> f32 { return x + "+strconv.Itoa(i)+".0; }"), a)
		}, func(i int) float32 { return float32(i + 1) })
	})
}
