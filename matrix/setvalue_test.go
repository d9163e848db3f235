// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// theirs is memory of somebody else's, with a counter of how often it was released.
type theirs struct {
	dev      *gpu.Device
	host     []float32   // of the CPU, or
	device   *gpu.Buffer // of the device
	released int
}

// storage makes memory with the values.
type storage func(t *testing.T, dev *gpu.Device, values ...float32) *theirs

func hostStorage(_ *testing.T, dev *gpu.Device, values ...float32) *theirs {
	return &theirs{dev: dev, host: append([]float32(nil), values...)}
}

func deviceStorage(t *testing.T, dev *gpu.Device, values ...float32) *theirs {
	b := must[*gpu.Buffer](t)(dev.NewBuffer(uint64(4 * len(values))))
	check(t, b.Write(0, matrix.Host(values)))
	t.Cleanup(func() { check(t, b.Close()) })
	return &theirs{dev: dev, device: b}
}

// source is what FromBuffer and SetValueFrom take.
func (s *theirs) source() any {
	if s.device != nil {
		return s.device.Handle()
	}
	return s.host
}

// flags are those of a copy.
func (s *theirs) copied() buffer.Flags {
	if s.device != nil {
		return buffer.SetValueOnDevice
	}
	return 0
}

// options adds the storage's release function.
func (s *theirs) options(opts ...matrix.Options) (o matrix.Options) {
	if len(opts) > 0 {
		o = opts[0]
	}
	o.Release = func() { s.released++ }
	return o
}

func (s *theirs) release() matrix.Options { return matrix.Options{Release: func() { s.released++ }} }

// wrap makes an external matrix.
func (s *theirs) wrap(t *testing.T, rows, cols int, opts ...matrix.Options) *dense {
	t.Helper()
	return must[*dense](t)(matrix.FromBuffer[float32](s.dev, rows, cols, s.source(), buffer.DontOwnBuffer, s.options(opts...)))
}

// holds fails unless the memory, once m's results are in it, has the values.
func (s *theirs) holds(t *testing.T, m *dense, want ...float32) {
	t.Helper()
	check(t, m.Sync(background))
	got := s.host
	if s.device != nil {
		got = make([]float32, len(want))
		check(t, s.device.Read(background, gpu.Transfer{Host: matrix.Host(got), Width: 4 * len(got), Count: 1}))
	}
	same(t, "memory", got, want)
}

// freed fails unless the memory was released so many times.
func (s *theirs) freed(t *testing.T, times int) {
	t.Helper()
	if s.released != times {
		t.Errorf("released %d times, want %d", s.released, times)
	}
}

// wants fails unless the matrix has the size, the elements and the flag.
func wants(t *testing.T, m *dense, rows, cols int, external bool, values ...float32) {
	t.Helper()
	if r, c := m.Dims(); r != rows || c != cols {
		t.Fatalf("%dx%d, want %dx%d", r, c, rows, cols)
	}
	if m.External() != external {
		t.Fatalf("External is %v", m.External())
	}
	got, err := m.Read(background)
	check(t, err)
	same(t, "elements", got, values)
}

// onStorages runs a test for memory of the CPU and of the device.
func onStorages(t *testing.T, test func(t *testing.T, dev *gpu.Device, of storage)) {
	t.Helper()
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		t.Run("host", func(t *testing.T) { test(t, dev, hostStorage) })
		t.Run("device", func(t *testing.T) { test(t, dev, deviceStorage) })
	})
}

func owned(t *testing.T, dev *gpu.Device, rows, cols int, values ...float32) *dense {
	t.Helper()
	return must[*dense](t)(matrix.FromSlice(dev, rows, cols, values))
}

func isError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

func TestFromBuffer(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		s := of(t, dev, 1, 2, 3, 4, 5, 6)
		m := s.wrap(t, 2, 3)
		wants(t, m, 2, 3, true, 1, 2, 3, 4, 5, 6)
		check(t, m.Scale(2, m))
		s.holds(t, m, 2, 4, 6, 8, 10, 12)

		c := must[*dense](t)(matrix.FromBuffer[float32](dev, 3, 2, s.source(), s.copied()))
		wants(t, c, 3, 2, false, 2, 4, 6, 8, 10, 12)
		check(t, c.Zero())
		s.holds(t, m, 2, 4, 6, 8, 10, 12)

		turned := must[*dense](t)(matrix.FromBuffer[float32](dev, 2, 3, s.source(), s.copied(), matrix.Options{ColMajor: true, RowMajorInput: true}))
		wants(t, turned, 2, 3, false, 2, 4, 6, 8, 10, 12)
		if !turned.ColMajor() {
			t.Error("by rows")
		}
		none := must[*dense](t)(matrix.FromBuffer[float32](dev, 0, 3, s.source(), s.copied()))
		wants(t, none, 0, 3, false)
		check(t, turned.Close())
		check(t, none.Close())
		check(t, m.Close())
		check(t, c.Close())
		s.freed(t, 1)
	})
}

var errHandle = errors.New("not a handle")

func TestFromBufferErrors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		released := 0
		r := matrix.Options{Release: func() { released++ }}
		x := make([]float32, 6)
		for _, c := range []struct {
			name  string
			src   any
			flags buffer.Flags
			want  error
		}{
			{"nothing", nil, buffer.DontOwnBuffer, buffer.ErrNil},
			{"a nil slice", []float32(nil), 0, buffer.ErrNil},
			{"a nil slice, wrapped", []float32(nil), buffer.DontOwnBuffer, buffer.ErrNil},
			{"too short", x[:5], buffer.DontOwnBuffer, buffer.ErrShort},
			{"too short, copied", x[:5], 0, buffer.ErrShort},
			{"host memory on the device", x, buffer.SetValueOnDevice, gpu.ErrInvalid},
			{"both flags", x, buffer.SetValueOnDevice | buffer.DontOwnBuffer, gpu.ErrInvalid},
			{"unknown flags", x, 64, gpu.ErrInvalid},
			{"another type", []float64{1}, buffer.DontOwnBuffer, gpu.ErrInvalid},
			{"no handle", 7, buffer.DontOwnBuffer, errHandle},
			{"a handle without flags", 7, 0, gpu.ErrInvalid},
		} {
			if errors.Is(c.want, errHandle) { // what computes on the CPU has handles of its own kind
				c.want = gpu.ErrUnsupported
				if d := dev.Info().Driver; d == "cpu" || d == "simd" {
					c.want = gpu.ErrForeign
				}
			}
			m := owned(t, dev, 1, 2, 8, 9)
			if _, err := matrix.FromBuffer[float32](dev, 2, 3, c.src, c.flags, r); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			if err := m.SetValueFrom(2, 3, c.src, c.flags, r); !errors.Is(err, c.want) {
				t.Errorf("%s: SetValueFrom: %v, want %v", c.name, err, c.want)
			}
			wants(t, m, 1, 2, false, 8, 9)
			check(t, m.Close())
		}
		// CNTK ignores the row-major bit where nothing is copied.
		turned := matrix.Options{ColMajor: true, RowMajorInput: true, Release: r.Release}
		m := owned(t, dev, 1, 2, 8, 9)
		for _, err := range []error{
			second(matrix.FromBuffer[float32](dev, 2, 3, x, buffer.DontOwnBuffer, turned)),
			second(matrix.Wrap(dev, 2, 3, x, turned)),
			second(matrix.FromSlice(dev, 2, 3, x, turned)),
			m.SetValueFrom(2, 3, x, buffer.DontOwnBuffer, turned),
		} {
			isError(t, err, gpu.ErrInvalid)
		}
		wants(t, m, 1, 2, false, 8, 9)
		check(t, m.Close())
		if released != 0 {
			t.Errorf("memory that was not taken over was released %d times", released)
		}
		if s := dev.Stats(); s.Buffers != 0 {
			t.Errorf("%d buffers are left", s.Buffers)
		}
	})
}

// TestSetValue has a row for each of the seed's of SetValue and assignment.
func TestSetValue(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		src := owned(t, dev, 2, 2, 1, 2, 3, 4)
		t.Run("owned, resized", func(t *testing.T) {
			m := owned(t, dev, 1, 1, 0)
			check(t, m.SetValue(of(t, dev, 5, 6, 7, 8).wrap(t, 2, 2)))
			wants(t, m, 2, 2, false, 5, 6, 7, 8)
			check(t, m.Assign(of(t, dev, 1, 2, 3).wrap(t, 1, 3)))
			wants(t, m, 1, 3, false, 1, 2, 3)
		})
		t.Run("external, equal", func(t *testing.T) {
			s := of(t, dev, 0, 0, 0, 0)
			m := s.wrap(t, 2, 2)
			check(t, m.SetValue(src))
			wants(t, m, 2, 2, true, 1, 2, 3, 4)
			s.holds(t, m, 1, 2, 3, 4)
		})
		t.Run("external, fits", func(t *testing.T) {
			s := of(t, dev, 9, 9, 9, 9, 9, 9)
			m := s.wrap(t, 2, 3)
			check(t, m.SetValue(src))
			wants(t, m, 2, 2, true, 1, 2, 3, 4)
			s.holds(t, m, 1, 2, 3, 4, 9, 9)
		})
		t.Run("external, too small", func(t *testing.T) {
			s := of(t, dev, 9, 9)
			m := s.wrap(t, 1, 2)
			isError(t, m.SetValue(src), matrix.ErrExternalResize)
			isError(t, m.Assign(src), buffer.ErrShape)
			wants(t, m, 1, 2, true, 9, 9)
		})
		t.Run("external does not follow an expression", func(t *testing.T) {
			m := of(t, dev, 9, 9, 9, 9, 9).wrap(t, 1, 5)
			isError(t, m.Assign(src), buffer.ErrShape)
			wants(t, m, 1, 5, true, 9, 9, 9, 9, 9)
		})
		t.Run("itself and nothing", func(t *testing.T) {
			m := of(t, dev, 5, 6).wrap(t, 1, 2)
			check(t, m.SetValue(m))
			wants(t, m, 1, 2, true, 5, 6)
			check(t, m.SetValue(must[*dense](t)(matrix.New[float32](dev, 0, 0))))
			wants(t, m, 0, 0, true)
			isError(t, m.SetValue(nil), buffer.ErrNil)
			check(t, m.SetValue(owned(t, dev, 2, 1, 3, 4))) // the memory was kept
			wants(t, m, 2, 1, true, 3, 4)
			isError(t, m.SetValue(src), matrix.ErrExternalResize)
			wants(t, m, 2, 1, true, 3, 4)
		})
		t.Run("owned, smaller, keeps its memory", func(t *testing.T) {
			m := owned(t, dev, 3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9)
			before := must[*gpu.Buffer](t)(m.Buffer().Memory(buffer.Reads))
			check(t, m.SetValue(src))
			wants(t, m, 2, 2, false, 1, 2, 3, 4)
			if after := must[*gpu.Buffer](t)(m.Buffer().Memory(buffer.Reads)); m.Capacity() != 9 || after != before {
				t.Errorf("capacity %d, the same memory: %v", m.Capacity(), after == before)
			}
		})
		t.Run("another order", func(t *testing.T) {
			s := of(t, dev, 0, 0, 0, 0, 0, 0)
			m := s.wrap(t, 3, 2, matrix.Options{ColMajor: true})
			check(t, m.SetValue(owned(t, dev, 3, 2, 1, 2, 3, 4, 5, 6)))
			s.holds(t, m, 1, 3, 5, 2, 4, 6)
			check(t, m.SetValue(src))
			wants(t, m, 2, 2, true, 1, 2, 3, 4)
			s.holds(t, m, 1, 3, 2, 4, 4, 6)
		})
		t.Run("a sparse matrix", func(t *testing.T) {
			s := of(t, dev, 9, 9, 9, 9, 9, 9, 9)
			m := s.wrap(t, 2, 3)
			sp := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, 3, []float32{1, 2}, []int32{2, 0}, []int32{0, 1, 2}))
			check(t, m.Assign(sp))
			wants(t, m, 2, 3, true, 0, 0, 1, 2, 0, 0)
			s.holds(t, m, 0, 0, 1, 2, 0, 0, 9)
			check(t, m.SetShape(3, 2))
			isError(t, m.Assign(sp), buffer.ErrShape)
			wants(t, m, 3, 2, true, 0, 0, 1, 2, 0, 0)
			check(t, sp.Close())
		})
		t.Run("views", func(t *testing.T) {
			m := owned(t, dev, 3, 2, 1, 2, 3, 4, 5, 6)
			v := m.Slice(0, 2, 0, 2)
			check(t, v.SetValue(src))
			isError(t, m.SetValue(src), matrix.ErrView)
			isError(t, v.SetValue(owned(t, dev, 1, 1, 7)), matrix.ErrView)
			check(t, v.Close())
			wants(t, m, 3, 2, false, 1, 2, 3, 4, 5, 6)
			check(t, m.SetValue(src))
			wants(t, m, 2, 2, false, 1, 2, 3, 4)
		})
	})
}

// TestSetValueFrom has the seed's six rows, and what happens to slices.
func TestSetValueFrom(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		t.Run("DontOwnBuffer, owned", func(t *testing.T) {
			m, s := owned(t, dev, 1, 3, 1, 2, 3), of(t, dev, 4, 5)
			before := dev.Stats().Buffers
			check(t, m.SetValueFrom(2, 1, s.source(), buffer.DontOwnBuffer, s.release()))
			wants(t, m, 2, 1, true, 4, 5)
			if n := dev.Stats().Buffers; n > before {
				t.Errorf("%d buffers, %d before", n, before)
			}
			check(t, m.Scale(3, m))
			s.holds(t, m, 12, 15)
			check(t, m.Close())
			s.freed(t, 1)
		})
		t.Run("DontOwnBuffer, external", func(t *testing.T) {
			old, s := of(t, dev, 1, 2), of(t, dev, 4, 5, 6)
			m := old.wrap(t, 1, 2)
			check(t, m.SetValueFrom(1, 3, s.source(), buffer.DontOwnBuffer, s.release()))
			wants(t, m, 1, 3, true, 4, 5, 6)
			old.freed(t, 1)
			s.freed(t, 0)
		})
		t.Run("copy, owned", func(t *testing.T) {
			m, s := owned(t, dev, 1, 1, 0), of(t, dev, 4, 5, 6, 7)
			check(t, m.SetValueFrom(2, 2, s.source(), s.copied()))
			wants(t, m, 2, 2, false, 4, 5, 6, 7)
		})
		t.Run("copy, external", func(t *testing.T) {
			there, s := of(t, dev, 0, 0, 0), of(t, dev, 4, 5)
			m := there.wrap(t, 1, 3)
			check(t, m.SetValueFrom(2, 1, s.source(), s.copied()))
			wants(t, m, 2, 1, false, 4, 5)
			there.holds(t, m, 4, 5, 0)
			// The flag says owned now. The memory is still the other's, and the matrix stays in it.
			check(t, m.Fill(6))
			isError(t, m.SetValue(owned(t, dev, 2, 2, 1, 2, 3, 4)), matrix.ErrExternalResize)
			isError(t, m.SetValueFrom(2, 2, []float32{1, 2, 3, 4}, 0), matrix.ErrExternalResize)
			isError(t, m.Resize(4, 4), matrix.ErrExternalResize)
			wants(t, m, 2, 1, false, 6, 6)
			there.freed(t, 0)
			there.holds(t, m, 6, 6, 0)
		})
		t.Run("copy, external, equal", func(t *testing.T) {
			there, s := of(t, dev, 0, 0, 0), of(t, dev, 4, 5)
			m := there.wrap(t, 1, 2)
			check(t, m.SetValueFrom(1, 2, s.source(), s.copied()))
			wants(t, m, 1, 2, false, 4, 5)
			there.holds(t, m, 4, 5, 0)
			check(t, m.Close())
			there.freed(t, 1)
			s.freed(t, 0)
		})
		t.Run("copy of nothing", func(t *testing.T) {
			there, s := of(t, dev, 7, 8), of(t, dev, 4, 5)
			for _, m := range []*dense{there.wrap(t, 1, 2), owned(t, dev, 1, 2, 7, 8)} {
				check(t, m.SetValueFrom(0, 0, s.source(), s.copied()))
				wants(t, m, 0, 0, false)
				check(t, m.Close())
			}
			there.freed(t, 1)
		})
		t.Run("copy, turned", func(t *testing.T) {
			there, s := of(t, dev, 0, 0, 0, 0), of(t, dev, 1, 2, 3, 4)
			m := there.wrap(t, 2, 2, matrix.Options{ColMajor: true})
			check(t, m.SetValueFrom(2, 2, s.source(), s.copied(), matrix.Options{ColMajor: true, RowMajorInput: true}))
			wants(t, m, 2, 2, false, 1, 2, 3, 4)
			there.holds(t, m, 1, 3, 2, 4)
		})
		t.Run("copy, external, too small", func(t *testing.T) {
			there, s := of(t, dev, 7), of(t, dev, 4, 5)
			m := there.wrap(t, 1, 1)
			isError(t, m.SetValueFrom(1, 2, s.source(), s.copied()), matrix.ErrExternalResize)
			wants(t, m, 1, 1, true, 7)
		})
		t.Run("slice", func(t *testing.T) {
			m, s := owned(t, dev, 2, 2, 1, 2, 3, 4), of(t, dev, 8)
			v := m.Slice(0, 1, 0, 1)
			check(t, v.SetValueFrom(1, 1, s.source(), buffer.DontOwnBuffer))
			check(t, v.Fill(5))
			wants(t, m, 2, 2, false, 1, 2, 3, 4)
			check(t, m.Resize(5, 5)) // it has no views any more
			s.holds(t, v, 5)
		})
		t.Run("rebind while there is a sharer", func(t *testing.T) {
			old, s := of(t, dev, 1, 2), of(t, dev, 4)
			m := old.wrap(t, 1, 2)
			al := m.Alias()
			check(t, m.SetValueFrom(1, 1, s.source(), buffer.DontOwnBuffer, s.release()))
			wants(t, m, 1, 1, true, 4)
			wants(t, al, 1, 2, true, 1, 2)
			old.freed(t, 0)
			check(t, al.Close())
			old.freed(t, 1)
			s.freed(t, 0)
		})
		t.Run("rebind keeps what it has if it fails", func(t *testing.T) {
			old, s := of(t, dev, 1, 2), of(t, dev, 4)
			m := old.wrap(t, 1, 2)
			isError(t, m.SetValueFrom(5, 1, s.source(), buffer.DontOwnBuffer, s.release()), buffer.ErrShort)
			wants(t, m, 1, 2, true, 1, 2)
			old.freed(t, 0)
			s.freed(t, 0)
		})
	})
}

// TestRepoint points one matrix at a thousand buffers in turn, as a task graph does.
func TestRepoint(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		blocks := make([]*theirs, 1000)
		for i := range blocks {
			blocks[i] = of(t, dev, float32(i), 1)
		}
		before := dev.Stats()
		m := must[*dense](t)(matrix.New[float32](dev, 0, 0))
		for _, b := range blocks {
			check(t, m.SetValueFrom(1, 2, b.source(), buffer.DontOwnBuffer))
			check(t, m.Add(m, m))
			check(t, m.Sync(background))
		}
		check(t, m.Close())
		for i, b := range blocks {
			again := b.wrap(t, 1, 2)
			wants(t, again, 1, 2, true, float32(2*i), 2)
			check(t, again.Close())
		}
		if s := dev.Stats(); s.Buffers != before.Buffers || s.LiveBytes != before.LiveBytes {
			t.Errorf("%d buffers with %d bytes, before %d with %d", s.Buffers, s.LiveBytes, before.Buffers, before.LiveBytes)
		}
	})
}
