// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestForgottenViews resizes a matrix whose views stood inside expressions only.
func TestForgottenViews(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for range 5 {
			m := owned(t, dev, 2, 2, 1, 2, 3, 4)
			c := must[*dense](t)(matrix.New[float32](dev, 2, 2))
			check(t, c.Mul(m, m.T()))
			check(t, c.Add(m.Slice(0, 2, 0, 2), m.T()))
			check(t, m.Assign(owned(t, dev, 1, 3, 1, 2, 3)))
			wants(t, m, 1, 3, false, 1, 2, 3)
			v := m.Row(0)
			isError(t, m.Resize(4, 4), matrix.ErrView)
			check(t, v.Close())
			check(t, m.Resize(4, 4))
		}
	})
}

// TestEvalKeepsNothing closes matrices of which texts took parts.
func TestEvalKeepsNothing(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for text, want := range map[string][]float32{"slice(A, 1, 2, 0, 2)": {3, 4}, "row(A, 1)": {3, 4}, "col(A, 1).T - 1": {1, 3}} {
			released := 0
			mem := []float32{1, 2, 3, 4}
			m := must[*dense](t)(matrix.Wrap(dev, 2, 2, mem, matrix.Options{Release: func() { released++ }}))
			x := matrix.Eval(text, map[string]arg{"A": m})
			got := must[[]float32](t)(x.Read(t.Context()))
			same(t, text, got, want)
			check(t, m.Close())
			if released != 1 {
				t.Errorf("%s: released %d times", text, released)
			}
			_, err := x.Read(t.Context())
			isError(t, err, gpu.ErrClosed)
		}
	})
}

// TestForgottenDevices closes devices and not the matrices on them, of which each evaluation was the last of its device.
func TestForgottenDevices(t *testing.T) {
	for name, compute := range map[string]func(t *testing.T, m *dense){
		"map":     func(t *testing.T, m *dense) { check(t, m.Assign(matrix.AddScalar(m, 1))) },
		"product": func(t *testing.T, m *dense) { check(t, m.Mul(m, m)) },
		"sum":     func(t *testing.T, m *dense) { must[float32](t)(matrix.Sum(m).Value(t.Context())) },
		"softmax": func(t *testing.T, m *dense) { must[[]float32](t)(matrix.Softmax(m).Read(t.Context())) },
		"view":    func(t *testing.T, m *dense) { check(t, m.T().Fill(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			use := func() weak.Pointer[gpu.Device] {
				dev := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver("cpu")))
				compute(t, must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4})))
				check(t, dev.Close())
				return weak.Make(dev)
			}
			dev := use()
			for n := 0; dev.Value() != nil; n++ {
				if n == 20 {
					t.Fatal("the device is kept")
				}
				runtime.GC()
			}
		})
	}
}
