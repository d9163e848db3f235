// SPDX-License-Identifier: Apache-2.0

//go:build !js && cgo

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestAdoptedLoops computes with functions that have loops, and with more and more matrices, on a device with WebGPU's default limits: the
// binding through which its loops are watched is one of eight. A kernel of matrices leaves one.
func TestAdoptedLoops(t *testing.T) {
	dev := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDevice(devtest.UserDevice(t, false))))
	t.Cleanup(func() { check(t, dev.Close()) })
	f := matrix.NewFunc("fn thrice(x: f32) -> f32 { var v = 0.0; for (var i = 0; i < 3; i++) { v += x; } return v; }")
	one := must[*dense](t)(matrix.FromSlice(dev, 1, 1, []float32{1}))
	all := make([]*dense, 12)
	for i := range all {
		all[i] = must[*dense](t)(matrix.FromSlice(dev, 1, 2, []float32{float32(i), 1}))
	}
	for n := 1; n <= len(all); n++ {
		sum := matrix.Apply(f, matrix.Mul(one, all[0])) // what follows is computed by the product's kernel
		for _, m := range all[1:n] {
			sum = sum.Add(m)
		}
		to := must[*dense](t)(matrix.New[float32](dev, 1, 2))
		check(t, to.Assign(sum))
		got, err := to.Read(t.Context())
		if want := float32(n * (n - 1) / 2); err != nil || got[0] != want || got[1] != float32(n+2) {
			t.Errorf("%d matrices: %v, %v", n, got, err)
		}
	}
}
