// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestLocation has CNTK's rows of where the current bits are, for matrices of every mode. Reads add a side, a write leaves
// the written one.
func TestLocation(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		is := func(what string, m *dense, want buffer.Location) {
			t.Helper()
			if l := m.Buffer().Location(); l != want {
				t.Errorf("%s: %v, want %v", what, l, want)
			}
			if m.Device() != dev && m.Buffer() != nil {
				t.Errorf("%s: on another device", what)
			}
		}
		read := func([]float32) error { return nil }
		is("zero value", &dense{}, buffer.None)
		is("new", must[*dense](t)(matrix.New[float32](dev, 1, 2)), buffer.None)
		x := []float32{1, 2}
		c := must[*dense](t)(matrix.FromSlice(dev, 1, 2, x))
		is("copied", c, buffer.Device)
		m := must[*dense](t)(matrix.Wrap(dev, 1, 2, x))
		is("wrapped", m, buffer.Host)
		wants(t, m, 1, 2, true, 1, 2)
		is("read by the host", m, buffer.Host)
		check(t, c.Add(c, m))
		check(t, dev.Flush())
		is("read by a kernel", m, buffer.Both)
		check(t, m.Scale(2, m))
		is("written by a kernel", m, buffer.Device)
		wants(t, m, 1, 2, true, 2, 4)
		is("read past the host", m, buffer.Device)
		check(t, m.Sync(background))
		is("synced", m, buffer.Both)
		check(t, m.Set(0, 0, 9))
		is("set", m, buffer.Device)
		check(t, m.Access(background, buffer.Reads, read))
		is("accessed to read", m, buffer.Both)
		check(t, m.Access(background, buffer.Writes, read))
		is("accessed to write", m, buffer.Host)
		check(t, c.Add(c, m))
		is("read by a kernel again", m, buffer.Both)
		check(t, m.Touch())
		is("touched", m, buffer.Host)
		same(t, "memory", x, []float32{9, 4})
		wants(t, c, 1, 2, false, 2+9, 4+4)
		check(t, c.Access(background, buffer.Reads, read))
		is("owned, accessed", c, buffer.Device)
	})
}

// TestTransfers has CNTK's rows of transfers from device to device.
func TestTransfers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		other := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver(dev.Info().Driver)))
		defer other.Close()
		m := owned(t, dev, 1, 2, 1, 2)
		c := must[*dense](t)(m.CopyTo(background, other)) // not being moved: it is on both
		check(t, m.Fill(5))
		wants(t, c, 1, 2, false, 1, 2)
		check(t, m.MoveTo(background, other)) // being moved: it is there alone
		if s := dev.Stats(); m.Device() != other || s.Buffers != 0 {
			t.Errorf("%d buffers are left behind", s.Buffers)
		}
		up := other.Stats().BytesUp
		check(t, m.MoveTo(background, other))
		if n := other.Stats().BytesUp - up; n != 0 {
			t.Errorf("%d bytes moved to where they are", n)
		}
		wants(t, m, 1, 2, false, 5, 5)
	})
}
