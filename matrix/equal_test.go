// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestEqual compares whole matrices.
func TestEqual(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, c := range []struct {
			name    string
			x, y    []float32
			eps     float32
			exactly bool
			nearly  bool
		}{
			{"same", []float32{1, -2, 0}, []float32{1, -2, 0}, 0, true, true},
			{"last differs", []float32{1, 2, 3}, []float32{1, 2, 4}, 0.1, false, false},
			{"within", []float32{0, 1, 1000}, []float32{1e-7, 1.0000005, 1000.0005}, 1e-6, false, true},
			{"absolutely beyond", []float32{0, 0, 0}, []float32{0, 0, 2e-6}, 1e-6, false, false},
			{"relatively beyond", []float32{0, 1000, 0}, []float32{0, 1000.01, 0}, 1e-6, false, false},
			{"no tolerance", []float32{0, 1, 0}, []float32{0, 1.0000001, 0}, 0, false, false},
			{"zeros", []float32{0, 0, 0}, []float32{float32(math.Copysign(0, -1)), 0, 0}, 0, true, true},
			{"infinite", []float32{inf, -inf, 1}, []float32{inf, -inf, 1}, 0, true, true},
			{"other infinities", []float32{inf, 0, 1}, []float32{-inf, 0, 1}, 10, false, false},
			{"infinite and large", []float32{inf, 0, 1}, []float32{math.MaxFloat32, 0, 1}, 10, false, false},
			{"NaN", []float32{nan, 0, 1}, []float32{nan, 0, 1}, 10, false, false},
		} {
			a, b := owned(t, dev, 3, 1, c.x...), owned(t, dev, 1, 3, c.y...)
			equals(t, c.name, c.exactly, c.nearly, a, b.T(), c.eps)
			equals(t, c.name+", turned", c.exactly, c.nearly, matrix.Transpose(a), b, c.eps)
		}
		a := owned(t, dev, 2, 3, 1, 2, 3, 4, 5, 6)
		for name, b := range map[string]*dense{
			"transposed": a.T(), "a row": a.Row(0), "one element": a.Slice(0, 1, 0, 1), "nothing": a.Slice(0, 0, 0, 3),
		} {
			equals(t, name, false, false, a, b, 1000)
		}
		equals(t, "nothing", true, true, a.Slice(0, 0, 0, 3), a.Slice(1, 1, 0, 3), 0)
		equals(t, "computed", true, true, matrix.Add(a, a), matrix.Scale(2, a), 0)

		ints := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 2, []int32{math.MaxInt32, 1 << 24}))
		next := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 2, []int32{math.MaxInt32, 1<<24 + 1}))
		if same := must[bool](t)(matrix.EqualAll(background, ints, ints)); !same {
			t.Error("integers differ from themselves")
		}
		if same := must[bool](t)(matrix.EqualAll(background, ints, next)); same {
			t.Error("neighbours beyond 2^24 are equal")
		}
		h := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, 1, 3, []matrix.Half{matrix.ToHalf(1), matrix.ToHalf(2), matrix.ToHalf(3)}))
		k := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, 1, 3, []matrix.Half{matrix.ToHalf(1), matrix.ToHalf(2.002), matrix.ToHalf(3)}))
		for eps, want := range map[float32]bool{0: false, 1e-4: false, 1e-2: true} {
			if near := must[bool](t)(matrix.EqualApprox(background, h, k, eps)); near != want {
				t.Errorf("halves within %v: %v", eps, near)
			}
		}
	})
}

func equals(t *testing.T, name string, exactly, nearly bool, a, b arg, eps float32) {
	t.Helper()
	if got := must[bool](t)(matrix.EqualAll(background, a, b)); got != exactly {
		t.Errorf("%s: EqualAll is %v", name, got)
	}
	if got := must[bool](t)(matrix.EqualApprox(background, a, b, eps)); got != nearly {
		t.Errorf("%s: EqualApprox is %v", name, got)
	}
}

func TestEqualErrors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		other := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
		defer other.Close()
		a, foreign, closed := owned(t, dev, 1, 1, 5), owned(t, other, 1, 1, 5), owned(t, dev, 2, 1, 5, 6)
		check(t, closed.Close())
		nan := float32(math.NaN())
		both := func(a, b arg, eps float32) []error {
			return []error{second(matrix.EqualAll(background, a, b)), second(matrix.EqualApprox(background, a, b, eps))}
		}
		for _, c := range []struct {
			name string
			errs []error
			want error
		}{
			{"nil", both(a, nil, 1), buffer.ErrNil},
			{"nil first", both((*dense)(nil), a, 1), buffer.ErrNil},
			{"closed", both(a, closed, 1), gpu.ErrClosed},
			{"two devices", both(foreign, a, 1), gpu.ErrForeign},
			{"no device", both(matrix.Fill[float32](2, 2, 1), matrix.Fill[float32](2, 2, 1), 1), gpu.ErrInvalid},
			{"epsilon", both(a, a, -1)[1:], gpu.ErrInvalid},
			{"epsilon NaN", both(a, a, nan)[1:], gpu.ErrInvalid},
		} {
			for _, err := range c.errs {
				isErrorNamed(t, c.name, err, c.want)
			}
		}
		check(t, dev.Close())
		for _, err := range both(a, a, 1) {
			isErrorNamed(t, "closed device", err, gpu.ErrClosed)
		}
	})
}
