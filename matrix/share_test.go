// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestShareBuffer works on a buffer through matrices, which keep it.
func TestShareBuffer(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		data := []float32{1, 2, 3, 4, 5, 6, 7, 8}
		buf, err := buffer.FromHost(dev, matrix.Host(data))
		if err != nil {
			t.Fatal(err)
		}
		share := func(buf *buffer.Buffer, rows, cols int, opts ...matrix.Options) (*matrix.Dense[matrix.Any], error) {
			return matrix.FromBuffer[matrix.Any](dev, rows, cols, buf, buffer.DontOwnBuffer, opts...)
		}
		m := must[*matrix.Dense[matrix.Any]](t)(share(buf, 2, 3, matrix.Options{Stride: 4, Offset: 1}))
		v := must[*matrix.Dense[matrix.Any]](t)(share(buf, 2, 2, matrix.Options{ColMajor: true}))
		if buf.Shares() != 3 || !m.External() {
			t.Errorf("%d shares, external %v", buf.Shares(), m.External())
		}
		if err := buf.Close(); err != nil {
			t.Fatal(err)
		}
		part := m.Slice(0, 2, 0, 2)
		check(t, v.Assign(part)) // it overlaps
		check(t, part.Close())
		got := must[[]matrix.Any](t)(m.Read(t.Context()))
		if want := []matrix.Any{6, 3, 7, 6, 7, 8}; !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
		if err := m.Resize(9, 9); err == nil {
			t.Error("it was resized")
		}
		for name, c := range map[string]struct {
			run  func() (*matrix.Dense[matrix.Any], error)
			want error
		}{
			"too small": {func() (*matrix.Dense[matrix.Any], error) { return share(m.Buffer(), 3, 3) }, buffer.ErrShort},
			"offset":    {func() (*matrix.Dense[matrix.Any], error) { return share(m.Buffer(), 2, 2, matrix.Options{Offset: 5}) }, buffer.ErrShort},
			"stride":    {func() (*matrix.Dense[matrix.Any], error) { return share(m.Buffer(), 2, 2, matrix.Options{Stride: 1}) }, buffer.ErrStride},
			"size":      {func() (*matrix.Dense[matrix.Any], error) { return share(m.Buffer(), -1, 2) }, buffer.ErrSize},
			"type":      {func() (*matrix.Dense[matrix.Any], error) { return share(m.Buffer(), 1, 1, matrix.Options{Type: 99}) }, gpu.ErrInvalid},
			"nil":       {func() (*matrix.Dense[matrix.Any], error) { return share(nil, 1, 1) }, buffer.ErrNil},
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
		_, err = share(last, 1, 1)
		wantErr(t, "closed", err, gpu.ErrClosed)
	})
}

// TestOverlappingResult computes block by block into memory that overlaps an operand's, which is another wrap.
func TestOverlappingResult(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		const rows, cols, shift = 100, 40, 900
		mem := make([]float32, rows*cols+shift)
		for i := range mem {
			mem[i] = float32(i%1013) - 500
		}
		a := must[*dense](t)(matrix.Wrap(dev, rows, cols, mem[:rows*cols]))
		c := must[*dense](t)(matrix.Wrap(dev, rows, cols, mem[shift:]))
		want := slices.Clone(mem)
		for i := range rows * cols {
			want[shift+i] = 2*mem[i] + 1
		}
		check(t, c.Assign(matrix.Scale(2, a).AddScalar(1)))
		check(t, errors.Join(c.Sync(background), a.Sync(background)))
		same(t, "the memory", mem, want)
		check(t, errors.Join(a.Close(), c.Close()))
	}, gpu.WithMaxBuffer(1<<12))
}
