// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestColumnSlice has CNTK's rows of column slices: they share the memory, are where the matrix is, and keep it alive.
func TestColumnSlice(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		for _, order := range []matrix.Options{{}, {ColMajor: true}} {
			s := of(t, dev, 1, 2, 3, 4, 5, 6, 7, 8)
			m := s.wrap(t, 2, 4, order)
			check(t, m.SetSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8}))
			v := m.ColumnSlice(1, 3)
			w := v.ColumnSlice(1, 2) // offsets add
			wants(t, v, 2, 3, true, 2, 3, 4, 6, 7, 8)
			wants(t, w, 2, 2, true, 3, 4, 7, 8)
			if w.Buffer() != m.Buffer() || w.ColMajor() != m.ColMajor() || w.Stride() != m.Stride() || w.Device() != dev || w.Buffer().Mode() != buffer.External {
				t.Error("a slice is not of the same memory")
			}
			check(t, m.Sync(background))
			if v.Buffer().Location() != m.Buffer().Location() {
				t.Errorf("the slice is on %v, the matrix on %v", v.Buffer().Location(), m.Buffer().Location())
			}
			check(t, w.Fill(0))
			if v.Buffer().Location() != buffer.Device || m.Buffer().Location() != buffer.Device {
				t.Errorf("written on %v and %v", v.Buffer().Location(), m.Buffer().Location())
			}
			wants(t, m, 2, 4, true, 1, 2, 0, 0, 5, 6, 0, 0)
			check(t, m.Col(0).Fill(9))
			wants(t, v, 2, 3, true, 2, 0, 0, 6, 0, 0)
			for _, n := range []int{0, 4} {
				wants(t, m.ColumnSlice(4, 0), 2, 0, true)
				check(t, m.ColumnSlice(0, n).Err())
			}
			for _, bad := range [][2]int{{2, 3}, {-1, 1}, {5, 0}, {0, -1}, {1, math.MaxInt}, {math.MaxInt, 1}, {math.MinInt, math.MaxInt}} {
				isErrorNamed(t, name(bad), m.ColumnSlice(bad[0], bad[1]).Err(), buffer.ErrIndex)
			}
			check(t, m.Close())
			wants(t, w, 2, 2, true, 0, 0, 0, 0) // CNTK of the document: dangling
			check(t, v.Close())
			s.freed(t, 0)
			check(t, w.Close())
		}
	})
}

// TestColumns sets columns in CNTK's three ways, takes a slice over for good, and copies every second column and a section.
func TestColumns(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		s := of(t, dev, 1, 2, 3, 4, 5, 6)
		m := s.wrap(t, 2, 3)
		check(t, m.SetCol(0, []float32{7, 8}))
		check(t, m.Col(1).Fill(9))
		check(t, m.Col(2).Assign(owned(t, dev, 2, 1, 5, 4)))
		wants(t, m, 2, 3, true, 7, 9, 5, 8, 9, 4)
		isError(t, m.Col(2).Assign(owned(t, dev, 3, 1, 0, 0, 0)), buffer.ErrShape)
		isError(t, m.SetCol(-1, []float32{0, 0}), buffer.ErrIndex)
		s.holds(t, m, 7, 9, 5, 8, 9, 4)

		a := owned(t, dev, 1, 1, 0)
		check(t, a.Take(m.ColumnSlice(1, 2))) // AssignColumnSlice: a becomes a view
		check(t, a.Scale(2, a))
		wants(t, m, 2, 3, true, 7, 18, 10, 8, 18, 8)
		check(t, a.Take(m.ColumnSlice(0, 0)))
		wants(t, a, 2, 0, true)

		r := m.Row(1)
		check(t, r.SetShape(3, 1)) // a view gets another shape, its matrix does not
		wants(t, r, 3, 1, true, 8, 18, 8)
		wants(t, m, 2, 3, true, 7, 18, 10, 8, 18, 8)
		isError(t, a.Reshape(1, 1).Err(), buffer.ErrShape)

		to := owned(t, dev, 2, 2, 0, 0, 0, 0)
		for j := range 2 { // CopyColumnsStrided
			check(t, to.Col(j).Assign(m.Col(2*j)))
		}
		wants(t, to, 2, 2, false, 7, 10, 8, 8)

		mem := []float32{1, 1, 1, 1, 1, 1, 1}
		section := must[*dense](t)(matrix.Wrap(dev, 2, 2, mem, matrix.Options{Stride: 4, Offset: 1})) // CopySection
		check(t, section.Assign(m.Slice(0, 2, 0, 2)))
		check(t, section.Sync(background))
		same(t, "section", mem, []float32{1, 7, 18, 1, 1, 8, 18})
	})
}
