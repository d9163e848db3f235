// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestReadOnly assigns to matrices of read-only memory, which no call may change. Package mapfile has more of it, with
// memory that really cannot be written.
func TestReadOnly(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := []float32{1, 2, 3, 4, 5, 6, 7, 8}
		mem := matrix.Host(x)
		mem.ReadOnly = true
		m := must[*dense](t)(matrix.WrapHost[float32](dev, 2, 4, mem))
		before := dev.Stats()
		for name, err := range map[string]error{
			"Assign": m.Assign(matrix.Scale(2, m)),
			"view":   m.Col(1).Fill(0),
			"Set":    m.Set(0, 0, 9),
			"Slice":  m.SetSlice(make([]float32, 8)),
			"padded": second(matrix.WrapHost[float32](dev, 2, 2, mem, matrix.Stride(4), matrix.Padded())),
		} {
			if !errors.Is(err, gpu.ErrReadOnly) {
				t.Errorf("%s: %v, want %v", name, err, gpu.ErrReadOnly)
			}
		}
		if s := dev.Stats(); s.Dispatches != before.Dispatches {
			t.Errorf("%d kernels ran", s.Dispatches-before.Dispatches)
		}
		if err := m.Assign(matrix.Fill[float32](3, 3, 1)); !errors.Is(err, matrix.ErrShape) {
			t.Errorf("another size: %v, want %v", err, matrix.ErrShape)
		}
		check(t, m.Sync(background))
		if !slices.Equal(x, []float32{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("the memory holds %v", x)
		}
		check(t, m.Close())
	})
}

func second[V any](_ V, err error) error { return err }

// TestReleases gives several release functions.
func TestReleases(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		var order []int
		call := func(i int) matrix.Option { return matrix.Release(func() { order = append(order, i) }) }
		x := make([]float32, 4)
		m := must[*dense](t)(matrix.Wrap(dev, 2, 2, x, call(0), matrix.Release(nil), call(1), call(2)))
		v := m.Row(0)
		check(t, m.Close())
		if order != nil {
			t.Error("released while there is a view")
		}
		check(t, errors.Join(v.Close(), m.Close()))
		if !slices.Equal(order, []int{2, 1}) {
			t.Errorf("released %v, want [2 1]", order)
		}
	})
}
