// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// handled is a matrix's GPU buffer, used past the matrix as a program that draws does. Close comes with the test's end.
func handled(t *testing.T, m *dense) (b *gpu.Buffer, offset int) {
	t.Helper()
	h, offset, err := m.Handle(background)
	check(t, err)
	b = must[*gpu.Buffer](t)(m.Device().ImportBuffer(h))
	t.Cleanup(func() { b.Close() })
	return b, offset
}

// onPlatforms runs a test on the devices that are objects of a platform, as those that compute on the CPU are not.
func onPlatforms(t *testing.T, test func(t *testing.T, dev *gpu.Device)) {
	t.Helper()
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		if dev.Info().Driver != "simd" {
			test(t, dev)
		}
	})
}

// TestHandle finds a result of the device, the caller's memory, and a view of either in the buffers that Handle returns.
func TestHandle(t *testing.T) {
	onPlatforms(t, func(t *testing.T, dev *gpu.Device) {
		values := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
		a := must[*dense](t)(matrix.New[float32](dev, 3, 4, matrix.Options{Stride: 5}))
		defer a.Close()
		check(t, a.SetSlice(values))
		w := must[*dense](t)(matrix.Wrap(dev, 3, 4, append([]float32(nil), values...)))
		defer w.Close()
		mapped := must[*dense](t)(matrix.Map[float32](dev, 3, 4))
		defer mapped.Close()
		check(t, mapped.Assign(w))
		for _, m := range []*dense{a, w, mapped} {
			check(t, m.Assign(matrix.Scale(2, m)))
			v := m.Slice(1, 3, 2, 4)
			defer v.Close()
			b, offset := handled(t, v)
			if want := 4 * (m.Stride() + 2); offset != want {
				t.Fatalf("offset %d, want %d", offset, want)
			}
			before := dev.Stats().Submissions
			check(t, dev.Flush())
			if n := dev.Stats().Submissions; n != before {
				t.Fatal("Handle left commands that were queued before")
			}
			got := make([]float32, 2)
			for i := range 2 {
				at := offset + 4*i*v.Stride()
				check(t, b.Read(background, gpu.Transfer{Offset: uint64(at), Width: 8, Pitch: 8, Count: 1, Host: matrix.Host(got)}))
				same(t, "a row of the buffer", got, []float32{values[6+4*i] * 2, values[7+4*i] * 2})
			}
		}
	})
}

// TestHandleMoves wants nothing to move for the buffer of a result, and the caller's memory once for each change of it.
func TestHandleMoves(t *testing.T) {
	onPlatforms(t, func(t *testing.T, dev *gpu.Device) {
		data := []float32{1, 2, 3, 4}
		m := must[*dense](t)(matrix.Wrap(dev, 2, 2, data))
		defer m.Close()
		moved := func(what string, want uint64) {
			t.Helper()
			before := dev.Stats()
			_, _, err := m.Handle(background)
			check(t, err)
			if now := dev.Stats(); now.BytesUp-before.BytesUp != want || now.BytesDown != before.BytesDown {
				t.Fatalf("%s: %d bytes up, want %d; %d down", what, now.BytesUp-before.BytesUp, want, now.BytesDown-before.BytesDown)
			}
		}
		moved("first use", 16)
		moved("again", 0)
		data[0] = 5
		check(t, m.Touch())
		moved("after Touch", 16)
		check(t, m.Assign(matrix.Scale(2, m)))
		moved("a result", 0)

		b, _ := handled(t, m)
		check(t, b.Write(8, gpu.HostBytes([]byte{0, 0, 0x80, 0x3f})))
		m.Buffer().Wrote(dev, buffer.Range(8, 4))
		check(t, m.Sync(background))
		same(t, "what the program wrote", data, []float32{10, 4, 1, 8})
	})
}

func TestHandleErrors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		refused := func(what string, m *dense, ctx context.Context, want error) {
			t.Helper()
			if h, _, err := m.Handle(ctx); !errors.Is(err, want) || h != nil {
				t.Errorf("%s: %v, %v, want %v", what, h, err, want)
			}
		}
		ended, end := context.WithCancel(background)
		end()
		m := must[*dense](t)(matrix.FromSlice(dev, 1, 2, []float32{1, 2}))
		refused("nil matrix", nil, background, buffer.ErrNil)
		refused("zero value", &dense{}, background, buffer.ErrNil)
		refused("nil context", m, nil, gpu.ErrInvalid)
		refused("ended context", m, ended, context.Canceled)
		refused("bad view", m.Row(5), background, buffer.ErrIndex)
		check(t, m.Access(background, buffer.Writes, func([]float32) error {
			refused("in Access", m, background, gpu.ErrMapped)
			return nil
		}))
		if dev.Handle() == nil {
			refused("a device that is no object", m, background, gpu.ErrUnsupported)
		}
		same(t, "after errors", must[[]float32](t)(m.Read(background)), []float32{1, 2})
		check(t, m.Close())
		refused("closed", m, background, gpu.ErrClosed)
	})
}

func TestHandleLimits(t *testing.T) {
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		m := must[*dense](t)(matrix.Wrap(dev, 256, 256, make([]float32, 1<<16)))
		defer m.Close()
		if _, _, err := m.Handle(background); !errors.Is(err, gpu.ErrLimit) {
			t.Errorf("memory larger than a buffer: %v", err)
		}
		n := must[*dense](t)(matrix.New[float32](dev, 2, 2))
		check(t, dev.Close())
		if _, _, err := n.Handle(background); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed device: %v", err)
		}
	}, gpu.WithMaxBuffer(1<<16))
}
