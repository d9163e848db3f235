// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestTake has the rows of move assignment and of the move constructor, of both systems.
func TestTake(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		t.Run("owned takes external", func(t *testing.T) {
			s := of(t, dev, 1, 2, 3)
			m, src := owned(t, dev, 2, 2, 9, 9, 9, 9), s.wrap(t, 1, 3)
			before := must[*gpu.Buffer](t)(m.Buffer().Memory(buffer.Reads))
			check(t, m.Take(src))
			isError(t, before.Clear(0, 4), gpu.ErrClosed)
			wants(t, m, 1, 3, true, 1, 2, 3)
			wants(t, src, 0, 0, false)
			check(t, m.Fill(4))
			s.holds(t, m, 4, 4, 4)
			check(t, src.Assign(m)) // as good as new
			wants(t, src, 1, 3, false, 4, 4, 4)
			check(t, src.Close())
			check(t, m.Close())
			s.freed(t, 1)
		})
		t.Run("external takes owned", func(t *testing.T) {
			s := of(t, dev, 1, 2, 3)
			m := s.wrap(t, 1, 3)
			check(t, m.Take(owned(t, dev, 2, 1, 5, 6)))
			wants(t, m, 2, 1, false, 5, 6)
			again := s.wrap(t, 1, 3)
			wants(t, again, 1, 3, true, 1, 2, 3)
			s.freed(t, 1)
		})
		t.Run("itself", func(t *testing.T) {
			m := of(t, dev, 1, 2).wrap(t, 1, 2)
			check(t, m.Take(m))
			wants(t, m, 1, 2, true, 1, 2)
		})
		t.Run("a view", func(t *testing.T) {
			parent, m := owned(t, dev, 1, 3, 1, 2, 3), owned(t, dev, 1, 1, 0)
			check(t, m.Take(parent.ColumnSlice(1, 2)))
			check(t, m.Fill(7))
			wants(t, parent, 1, 3, false, 1, 7, 7)
			isError(t, parent.Resize(1, 1), matrix.ErrView)
			check(t, m.Close())
			check(t, parent.Resize(1, 1))
		})
		t.Run("move", func(t *testing.T) {
			s := of(t, dev, 1, 2)
			src := s.wrap(t, 2, 1)
			m := must[*dense](t)(src.Move())
			wants(t, m, 2, 1, true, 1, 2)
			wants(t, src, 0, 0, false)
			check(t, src.Close())
			s.freed(t, 0)
			_, err := src.Move()
			isError(t, err, gpu.ErrClosed)
			isError(t, m.Take(nil), buffer.ErrNil)
		})
	})
}

// TestShare has Blaze's rows of copies, swap, reset and clear: the last sharer releases, once.
func TestShare(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		s, other := of(t, dev, 1, 2, 3, 4), of(t, dev, 5, 6)
		a := s.wrap(t, 2, 2)
		b, c := a.Alias(), a.Alias()
		check(t, b.Fill(7))
		wants(t, a, 2, 2, true, 7, 7, 7, 7)
		check(t, a.Close())
		wants(t, c, 2, 2, true, 7, 7, 7, 7)
		d := other.wrap(t, 1, 2)
		check(t, matrix.Swap(b, d))
		wants(t, b, 1, 2, true, 5, 6)
		wants(t, d, 2, 2, true, 7, 7, 7, 7)
		check(t, matrix.Swap(b, b))
		check(t, d.Reset())
		wants(t, d, 0, 0, false)
		s.freed(t, 0)
		other.freed(t, 0)
		deep, err := c.Clone()
		check(t, err)
		check(t, deep.Zero())
		wants(t, c, 2, 2, true, 7, 7, 7, 7)
		wants(t, deep, 2, 2, false, 0, 0, 0, 0)
		row := c.Row(1)
		check(t, c.Close())
		s.freed(t, 0)
		wants(t, row, 1, 2, true, 7, 7)
		check(t, row.Close())
		check(t, row.Close())
		s.freed(t, 1)
		other.freed(t, 0)
		check(t, d.Assign(b)) // takes what is assigned to it after Reset
		wants(t, d, 1, 2, false, 5, 6)
	})
}

func TestSizes(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		m := owned(t, dev, 2, 3, 1, 2, 3, 4, 5, 6)
		check(t, m.Resize(2, 3))
		wants(t, m, 2, 3, false, 1, 2, 3, 4, 5, 6)
		check(t, m.SetShape(3, 2))
		wants(t, m, 3, 2, false, 1, 2, 3, 4, 5, 6)
		isError(t, m.SetShape(4, 2), buffer.ErrShape)
		isError(t, m.Resize(-1, 2), buffer.ErrSize)
		before := dev.Stats().Buffers
		check(t, m.Resize(1, 4)) // fits
		check(t, m.Fill(1))
		check(t, m.Resize(7, 9))
		check(t, m.Fill(2))
		if r, c := m.Dims(); r != 7 || c != 9 || dev.Stats().Buffers != before {
			t.Errorf("%dx%d in %d buffers, %d before", r, c, dev.Stats().Buffers, before)
		}
		check(t, m.Resize(2, 2)) // the memory is kept
		if n := dev.Stats().Buffers; m.Capacity() != 63 || n != before {
			t.Errorf("capacity %d, %d buffers", m.Capacity(), n)
		}
		x := of(t, dev, 1, 2, 3, 4).wrap(t, 2, 2)
		isError(t, x.Resize(1, 2), matrix.ErrExternalResize)
		isError(t, x.Resize(3, 3), matrix.ErrExternalResize)
		check(t, x.Resize(2, 2))
		check(t, x.SetShape(1, 4))
		check(t, x.SetCol(1, []float32{8}))
		isError(t, x.SetCol(4, []float32{8}), buffer.ErrIndex)
		isError(t, x.SetCol(0, []float32{8, 8}), buffer.ErrShape)
		check(t, x.Row(0).SetSlice([]float32{4, 3, 2, 1}))
		wants(t, x, 1, 4, true, 4, 3, 2, 1)

		q := owned(t, dev, 3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		check(t, q.SetColumnSlice(owned(t, dev, 3, 2, 10, 11, 12, 13, 14, 15), 1, 1))
		wants(t, q, 3, 3, false, 1, 10, 3, 4, 12, 6, 7, 14, 9)
		isError(t, q.SetColumnSlice(q, 2, 2), buffer.ErrIndex)
		isError(t, q.SetColumnSlice(owned(t, dev, 2, 1, 0, 0), 0, 1), buffer.ErrShape)
		isError(t, q.SetColumnSlice(owned(t, dev, 3, 1, 0, 0, 0), 0, 2), buffer.ErrIndex)
		check(t, q.SetColumnSlice(q, 1, 2)) // onto itself
		wants(t, q, 3, 3, false, 1, 1, 10, 4, 4, 12, 7, 7, 14)
		check(t, q.SetRows([][]float32{{1, 10, 3}, {4, 12, 6}, {7, 14, 9}}))
		d := must[*dense](t)(q.DiagView().Clone())
		wants(t, d, 1, 3, false, 1, 12, 9)
		check(t, q.DiagView().Fill(5))
		wants(t, q, 3, 3, false, 5, 10, 3, 4, 5, 6, 7, 14, 5)
		_, err := x.DiagView().Clone()
		isError(t, err, buffer.ErrShape)
		empty := q.ColumnSlice(3, 0)
		check(t, empty.Err())
		wants(t, empty, 3, 0, false)
	})
}

// TestDevices assigns, copies and moves between two devices.
func TestDevices(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		other := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver(dev.Info().Driver)))
		defer other.Close()
		there := must[*dense](t)(matrix.FromSlice(other, 2, 2, []float32{1, 2, 3, 4}, matrix.Options{ColMajor: true}))
		m := owned(t, dev, 2, 2, 0, 0, 0, 0)
		check(t, m.Assign(there))
		wants(t, m, 2, 2, false, 1, 3, 2, 4)
		check(t, m.Assign(matrix.Mul(there, there).AddScalar(1)))
		wants(t, m, 2, 2, false, 8, 16, 11, 23)
		x := of(t, dev, 0, 0, 0, 0).wrap(t, 2, 2)
		check(t, x.SetValue(there))
		wants(t, x, 2, 2, true, 1, 3, 2, 4)
		c := must[*dense](t)(x.CopyTo(background, other))
		wants(t, c, 2, 2, false, 1, 3, 2, 4)
		if c.Device() != other {
			t.Error("the copy is elsewhere")
		}
		down := other.Stats().BytesDown
		zeros := must[*dense](t)(must[*dense](t)(matrix.New[float32](other, 1, 3)).CopyTo(background, dev))
		if other.Stats().BytesDown != down { // what nobody has used is not brought by way of the host
			t.Error("zeros came by way of the host")
		}
		wants(t, zeros, 1, 3, false, 0, 0, 0)
		isError(t, x.MoveTo(background, other), matrix.ErrExternalResize)
		wants(t, x, 2, 2, true, 1, 3, 2, 4) // it was not moved, its memory not freed
		v := m.Row(0)
		isError(t, v.MoveTo(background, other), matrix.ErrView)
		isError(t, m.MoveTo(background, other), matrix.ErrView)
		check(t, v.Close())
		check(t, m.MoveTo(background, other))
		wants(t, m, 2, 2, false, 8, 16, 11, 23)
		check(t, m.Add(m, there))
		check(t, m.MoveTo(background, other))
		isError(t, m.MoveTo(background, nil), gpu.ErrInvalid)
	})
}

// TestReleaseAfterDevice closes the device first. The memory is released all the same, once, by the last sharer.
func TestReleaseAfterDevice(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		own := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver(dev.Info().Driver)))
		s := of(t, own, 1, 2)
		m := s.wrap(t, 1, 2)
		check(t, m.Add(m, m))
		a := m.Alias()
		check(t, own.Close())
		isError(t, m.Fill(1), gpu.ErrClosed)
		isError(t, m.SetValueFrom(1, 2, []float32{1, 2}, buffer.DontOwnBuffer), gpu.ErrClosed)
		check(t, m.Close())
		s.freed(t, 0)
		check(t, a.Close())
		s.freed(t, 1)
	})
}

// TestDestroy lets the last sharer of a GPU buffer destroy it. What was queued before still sees it.
func TestDestroy(t *testing.T) {
	onPlatforms(t, func(t *testing.T, dev *gpu.Device) {
		h, _ := foreignBuffer(t, dev, 12)
		b := must[*gpu.Buffer](t)(dev.ImportBuffer(h))
		t.Cleanup(func() { check(t, b.Close()) })
		check(t, b.Write(0, matrix.Host([]float32{1, 2, 3})))
		s := &theirs{dev: dev, device: b}
		m := s.wrap(t, 1, 3, matrix.Options{Destroy: true})
		twice := must[*dense](t)(matrix.New[float32](dev, 1, 3))
		check(t, twice.Add(m, m))
		v := m.Alias()
		check(t, m.Close())
		s.freed(t, 0)
		check(t, v.Close())
		s.freed(t, 1)
		wants(t, twice, 1, 3, false, 2, 4, 6)
		if err := s.device.Read(background, gpu.Transfer{Host: matrix.Host(make([]float32, 3)), Width: 12, Count: 1}); err == nil {
			t.Error("the buffer is still there")
		}
	})
}

// lose makes the oracle lose its device, by a kernel that panics.
func lose(t *testing.T, dev *gpu.Device) {
	t.Helper()
	k, err := dev.Kernel(background, gpu.KernelDesc{
		Source: "@compute @workgroup_size(1) fn main() {}", Reference: func([3]uint32, []byte, [][]byte) { panic("lost") },
	})
	check(t, err)
	check(t, k.Dispatch([3]uint32{1, 1, 1}, nil))
	isError(t, dev.Sync(background), gpu.ErrDeviceLost)
	<-dev.Lost()
}

// TestLoss loses the device. What the host has is not lost, and memory is released as
// ever.
func TestLoss(t *testing.T) {
	dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
	host, written := hostStorage(t, dev, 1, 2), hostStorage(t, dev, 3, 4)
	m, w, own := host.wrap(t, 1, 2), written.wrap(t, 1, 2), owned(t, dev, 1, 1, 5)
	check(t, w.Add(w, m))
	lose(t, dev)
	wants(t, m, 1, 2, true, 1, 2)
	isError(t, w.Sync(background), gpu.ErrDeviceLost)
	isError(t, m.Fill(0), gpu.ErrDeviceLost)
	_, err := own.Read(background)
	isError(t, err, gpu.ErrDeviceLost)
	_, err = matrix.Wrap(dev, 1, 2, host.host)
	isError(t, err, gpu.ErrDeviceLost)
	check(t, m.Close())
	check(t, w.Close())
	check(t, own.Close())
	host.freed(t, 1)
	written.freed(t, 1)
	check(t, dev.Close())
}
