// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestShareAny works on a buffer through matrices, which keep it.
func TestShareAny(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const f32 = matrix.Float32
		data := []float32{1, 2, 3, 4, 5, 6, 7, 8}
		buf, err := buffer.FromHost(dev, matrix.Host(data))
		if err != nil {
			t.Fatal(err)
		}
		m := must[*matrix.Any](t)(matrix.ShareAny(buf, f32, 2, 3, matrix.Stride(4), matrix.Offset(1)))
		v := must[*matrix.Any](t)(matrix.ShareAny(buf, f32, 2, 2, matrix.ColMajor()))
		if buf.Shares() != 3 || m.External() {
			t.Errorf("%d shares, external %v", buf.Shares(), m.External())
		}
		if err := buf.Close(); err != nil {
			t.Fatal(err)
		}
		if err := v.Expr().Matrix().Assign(m.Expr().Matrix().Slice(0, 2, 0, 2)); err != nil { // it overlaps
			t.Fatal(err)
		}
		got := make([]float32, 6)
		if err := m.ReadHost(t.Context(), matrix.Host(got)); err != nil {
			t.Fatal(err)
		}
		if want := []float32{6, 3, 7, 6, 7, 8}; !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
		if err := m.Resize(9, 9); err == nil {
			t.Error("it was resized")
		}
		for name, c := range map[string]struct {
			run  func() (*matrix.Any, error)
			want error
		}{
			"too small": {func() (*matrix.Any, error) { return matrix.ShareAny(m.Buffer(), f32, 3, 3) }, matrix.ErrShort},
			"offset":    {func() (*matrix.Any, error) { return matrix.ShareAny(m.Buffer(), f32, 2, 2, matrix.Offset(5)) }, matrix.ErrShort},
			"stride":    {func() (*matrix.Any, error) { return matrix.ShareAny(m.Buffer(), f32, 2, 2, matrix.Stride(1)) }, matrix.ErrStride},
			"size":      {func() (*matrix.Any, error) { return matrix.ShareAny(m.Buffer(), f32, -1, 2) }, matrix.ErrSize},
			"type":      {func() (*matrix.Any, error) { return matrix.ShareAny(m.Buffer(), 9, 1, 1) }, matrix.ErrInvalid},
			"nil":       {func() (*matrix.Any, error) { return matrix.ShareAny(nil, f32, 1, 1) }, matrix.ErrClosed},
		} {
			_, err := c.run()
			wantErr(t, name, err, c.want)
		}
		if n := m.Buffer().Shares(); n != 2 {
			t.Errorf("%d shares after errors", n)
		}
		last := m.Buffer()
		if m.Close() != nil || v.Close() != nil || last.Shares() != 0 {
			t.Errorf("%d shares in the end", last.Shares())
		}
		_, err = matrix.ShareAny(last, f32, 1, 1)
		wantErr(t, "closed", err, matrix.ErrClosed)
	})
}
