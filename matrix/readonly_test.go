// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
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
		m := must[*dense](t)(matrix.FromBuffer[float32](dev, 2, 4, mem, buffer.DontOwnBuffer))
		before := dev.Stats()
		for name, err := range map[string]error{
			"Assign": m.Assign(matrix.Scale(2, m)),
			"view":   m.Col(1).Fill(0),
			"Set":    m.Set(0, 0, 9),
			"Slice":  m.SetSlice(make([]float32, 8)),
			"padded": second(matrix.FromBuffer[float32](dev, 2, 2, mem, buffer.DontOwnBuffer, matrix.Options{Stride: 4, Padded: true})),
		} {
			if !errors.Is(err, gpu.ErrReadOnly) {
				t.Errorf("%s: %v, want %v", name, err, gpu.ErrReadOnly)
			}
		}
		if s := dev.Stats(); s.Dispatches != before.Dispatches {
			t.Errorf("%d kernels ran", s.Dispatches-before.Dispatches)
		}
		if err := m.Assign(matrix.Fill[float32](3, 3, 1)); !errors.Is(err, buffer.ErrShape) {
			t.Errorf("another size: %v, want %v", err, buffer.ErrShape)
		}
		check(t, m.Sync(background))
		if !slices.Equal(x, []float32{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("the memory holds %v", x)
		}
		check(t, m.Close())
	})
}

func second[V any](_ V, err error) error { return err }

// TestReleases has the last share call the release function.
func TestReleases(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		released := 0
		o := matrix.Options{Release: func() { released++ }}
		m := must[*dense](t)(matrix.Wrap(dev, 2, 2, make([]float32, 4), o))
		v := m.Row(0)
		check(t, m.Close())
		if released != 0 {
			t.Error("released while there is a view")
		}
		check(t, errors.Join(v.Close(), m.Close()))
		if released != 1 {
			t.Errorf("released %d times", released)
		}
		isError(t, second(matrix.Wrap(dev, 2, 2, make([]float32, 4), o, o)), gpu.ErrInvalid)
	})
}
