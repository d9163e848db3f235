// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestSetRows has Blaze's rows of assigning nested lists: short ones are filled up, what does not fit is an error, and gaps
// between rows stay as they are.
func TestSetRows(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		list := [][]float32{{1}, {4, 5, 6}}
		seven := func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = 7
			}
			return x
		}
		for _, c := range []struct {
			name string
			n    int
			opts matrix.Options
			want []float32
		}{
			{"contiguous", 7, matrix.Options{}, []float32{1, 0, 0, 4, 5, 6, 7}},
			{"gaps", 11, matrix.Options{Stride: 8}, []float32{1, 0, 0, 7, 7, 7, 7, 7, 4, 5, 6}},
			{"pads", 8, matrix.Options{Stride: 4, Padded: true}, []float32{1, 0, 0, 0, 4, 5, 6, 0}},
			{
				"by columns", 10,
				matrix.Options{ColMajor: true, Stride: 3, Offset: 1},
				[]float32{7, 1, 4, 7, 0, 5, 7, 0, 6, 7},
			},
		} {
			s := of(t, dev, seven(c.n)...)
			m := s.wrap(t, 2, 3, c.opts)
			check(t, m.SetRows(list))
			s.holds(t, m, c.want...)
			for name, bad := range map[string][][]float32{
				"few rows": {{1, 2, 3}}, "many rows": {{}, {}, {}}, "a long row": {{1, 2, 3, 4}, {1}}, "nil": nil,
			} {
				isErrorNamed(t, name, m.SetRows(bad), buffer.ErrShape)
			}
			wants(t, m, 2, 3, true, 1, 0, 0, 4, 5, 6)
			s.holds(t, m, c.want...)
			check(t, m.SetRows([][]float32{nil, {}}))
			wants(t, m, 2, 3, true, 0, 0, 0, 0, 0, 0)
		}
		// Blaze writes beyond a view whose list has a row that is too long.
		big := owned(t, dev, 3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		v := big.Slice(0, 2, 0, 2)
		isError(t, v.SetRows([][]float32{{1, 2, 3}, {1}}), buffer.ErrShape)
		check(t, v.SetRows([][]float32{{0}, {-1, -2}}))
		wants(t, big, 3, 3, false, 0, 0, 3, -1, -2, 6, 7, 8, 9)
	})
}

// TestFromRows makes matrices of nested slices.
func TestFromRows(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		list := [][]float32{{1, 2}, {}, {3, 4, 5}}
		for _, opts := range []matrix.Options{{}, {ColMajor: true}, {Padded: true, Aligned: true}, {Offset: 3, Stride: 7}} {
			m := must[*dense](t)(matrix.FromRows(dev, list, opts))
			list[0][0] = 99 // it was copied
			wants(t, m, 3, 3, false, 1, 2, 0, 0, 0, 0, 3, 4, 5)
			list[0][0] = 1
			check(t, m.Close())
		}
		for rows, nothing := range [][][]float32{nil, {nil}, {{}, {}}} {
			m := must[*dense](t)(matrix.FromRows(dev, nothing))
			wants(t, m, rows, 0, false)
			check(t, m.Close())
		}
		isError(t, second(matrix.FromRows[float32](nil, nil)), gpu.ErrInvalid)
		isError(t, second(matrix.FromRows(dev, list, matrix.Options{Stride: 2})), buffer.ErrStride)
		isError(t, (*dense)(nil).SetRows(nil), buffer.ErrNil)
		isError(t, (&dense{}).SetRows(list), buffer.ErrShape)
		check(t, (&dense{}).SetRows(nil))
		closed := owned(t, dev, 1, 1, 1)
		check(t, closed.Close())
		isError(t, closed.SetRows([][]float32{{1}}), gpu.ErrClosed)
		nothingLeft(t, dev)
	})
}
