// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/dlpack/internal/ctest"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

var open = devtest.Open

// onDevices fails if a test leaves buffers.
func onDevices(t *testing.T, test func(t *testing.T, dev *gpu.Device)) {
	t.Helper()
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		before := dev.Stats().Buffers
		test(t, dev)
		if after := dev.Stats().Buffers; after != before {
			t.Errorf("%d buffers are left", after-before)
		}
	})
}

func must[V any](t testing.TB) func(V, error) V { return devtest.Must[V](t) }

// replace has the device write into a part of the array's memory, as a kernel would.
func replace(t *testing.T, a *ndarray.Array, offset int, v ...float32) {
	t.Helper()
	b, err := a.Buffer()
	check(t, err)
	check(t, b.Write(offset, gpu.HostBytes(bytesOf(v))))
	check(t, b.Close())
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

func same(t *testing.T, a *ndarray.Array, want ...float32) {
	t.Helper()
	if got := must[[]float32](t)(ndarray.Data[float32](t.Context(), a)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestWrappedArray lends a slice that an array wraps: C sees what the device wrote, and the device what C wrote.
func TestWrappedArray(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, k := range kinds {
			v := ramp(12)
			released := 0
			a := must[*ndarray.Array](t)(ndarray.Wrap(dev, v, []int{3, 4}, ndarray.Placement{Release: func() { released++ }}))
			replace(t, a, 8, 100, 200)
			before := dev.Stats()
			x := must[*Tensor](t)(FromArray(t.Context(), a, InPlace))
			if x.Data != unsafe.Pointer(&v[0]) || x.Flags != 0 || x.Device != (Device{CPU, 0}) {
				t.Errorf("%+v", x)
			}
			if n := dev.Stats().BytesDown - before.BytesDown; n != 8 {
				t.Errorf("%d bytes came back, want those of two elements", n)
			}
			m := must[unsafe.Pointer](t)(k.export(x))
			check(t, a.Close())
			if why := ctest.Check(m, k.legacy); why != "" {
				t.Error(why)
			}
			if sum := ctest.Sum(m, k.legacy); sum != 66-2-3+300 {
				t.Errorf("the sum is %v", sum)
			}
			if released != 0 {
				t.Error("released while lent")
			}
			ctest.DeleteOnThread(m, k.legacy)
			if released != 1 {
				t.Errorf("released %d times", released)
			}
		}
		v := ramp(4)
		a := must[*ndarray.Array](t)(ndarray.Wrap(dev, v, []int{4}, ndarray.Placement{}))
		replace(t, a, 0, 9)
		m := must[*Managed](t)(Export(must[*Tensor](t)(FromArray(t.Context(), a, OnHost))))
		ctest.Fill(unsafe.Pointer(m), false, 5)
		ctest.Delete(unsafe.Pointer(m), false)
		check(t, a.Touch())
		same(t, a, 5, 5, 5, 5)
		check(t, a.Close())
	})
}

// TestViews lends views of all sorts.
func TestViews(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		v := ramp(24)
		a := must[*ndarray.Array](t)(ndarray.Wrap(dev, v, []int{2, 3, 4}, ndarray.Placement{}))
		views := map[string]*ndarray.Array{
			"all":       must[*ndarray.Array](t)(a.Share()),
			"transpose": must[*ndarray.Array](t)(a.Transpose()),
			"slice":     must[*ndarray.Array](t)(a.Slice(ndarray.Region{Starts: []int{0, 1, 1}, Ends: []int{2, 3, 4}, Steps: []int{1, 1, 2}})),
			"backwards": must[*ndarray.Array](t)(ndarray.Wrap(dev, v, []int{3, 2}, ndarray.Placement{Strides: []int{-4, -1}, Offset: 60})),
			"one":       must[*ndarray.Array](t)(a.Index(1, 2, 3)),
			"none":      must[*ndarray.Array](t)(a.Slice(ndarray.Region{Starts: []int{0, 3, 0}, Ends: []int{2, 3, 4}, Steps: []int{1, 1, 1}})),
			"repeated":  must[*ndarray.Array](t)(ndarray.Wrap(dev, v, []int{5, 2}, ndarray.Placement{Strides: []int{0, 1}})),
		}
		for name, a := range views {
			var want float64
			for _, x := range must[[]float32](t)(ndarray.Data[float32](t.Context(), a)) {
				want += float64(x)
			}
			for _, place := range []Place{InPlace, OnHost, AsCopy} {
				x := must[*Tensor](t)(FromArray(t.Context(), a, place))
				if got := x.Flags&Copied != 0; got != (place == AsCopy) {
					t.Errorf("%s at %d: copied: %v", name, place, got)
				}
				m := must[*Managed](t)(Export(x))
				if why := ctest.Check(unsafe.Pointer(m), false); why != "" {
					t.Errorf("%s: %s", name, why)
				}
				if sum := ctest.Sum(unsafe.Pointer(m), false); sum != want {
					t.Errorf("%s at %d: the sum is %v, want %v", name, place, sum, want)
				}
				back := must[*ndarray.Array](t)(ToArray(dev, must[*Tensor](t)(Import(m))))
				if !slices.Equal(back.Shape(), a.Shape()) {
					t.Errorf("%s came back as %v", name, back.Shape())
				}
				same(t, back, must[[]float32](t)(ndarray.Data[float32](t.Context(), a))...)
				check(t, back.Close())
			}
			check(t, a.Close())
		}
		check(t, a.Close())
	})
}

// TestDeviceArray lends memory of the device, and takes it back as an array that shares it.
func TestDeviceArray(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		isGPU := dev.Handle() != nil
		a := must[*ndarray.Array](t)(ndarray.FromSlice(dev, ramp(8), 2, 4))
		part := must[*ndarray.Array](t)(a.Index(1))
		check(t, a.Close())
		for _, k := range kinds {
			before := dev.Stats()
			x := must[*Tensor](t)(FromArray(t.Context(), part, InPlace))
			if (x.Device.Type == WebGPU) != isGPU || isGPU && (x.Handle == 0 || x.Data != nil) || x.ByteOffset != 16 || x.Flags != 0 {
				t.Errorf("%+v", x)
			}
			x = must[*Tensor](t)(k.import_(must[unsafe.Pointer](t)(k.export(x))))
			back := must[*ndarray.Array](t)(ToArray(dev, x))
			check(t, x.Close()) // it is the array's now
			after := dev.Stats()
			if after.BytesUp != before.BytesUp || after.BytesDown != before.BytesDown {
				t.Error("bytes moved")
			}
			same(t, back, 4, 5, 6, 7)
			if isGPU {
				replace(t, back, 16, 40)
				same(t, part, 40, 5, 6, 7)
				// The library knows that the two are one memory.
				m, n := must[*matrix.Dense[float32]](t)(matrix.FromArray[float32](part)),
					must[*matrix.Dense[float32]](t)(matrix.FromArray[float32](back))
				check(t, m.Assign(matrix.Scale(0.5, n).Add(m)))
				same(t, back, 60, 7.5, 9, 10.5)
				check(t, errors.Join(m.Close(), n.Close()))
				replace(t, part, 16, 4, 5, 6, 7)
				same(t, back, 4, 5, 6, 7)
			}
			check(t, back.Close())
		}
		zeros := must[*ndarray.Array](t)(ndarray.Alloc(dev, dtype.Float32, 3)) // nobody wrote it, so nothing is there yet
		back := must[*ndarray.Array](t)(ToArray(dev, must[*Tensor](t)(FromArray(t.Context(), zeros, InPlace))))
		same(t, back, 0, 0, 0)
		check(t, errors.Join(zeros.Close(), back.Close()))

		x := must[*Tensor](t)(FromArray(t.Context(), part, OnHost))
		if (x.Flags == Copied) != isGPU || x.Device.Type != CPU {
			t.Errorf("on the host: %+v", x)
		}
		m := must[*Managed](t)(Export(x))
		if sum := ctest.Sum(unsafe.Pointer(m), false); sum != 22 {
			t.Errorf("the sum is %v", sum)
		}
		ctest.Delete(unsafe.Pointer(m), false)
		check(t, part.Close())
	})
}

// TestEmptyArray goes there and back with arrays without elements, of host and device.
func TestEmptyArray(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, a := range []*ndarray.Array{
			must[*ndarray.Array](t)(ndarray.Alloc(dev, dtype.Float32, 3, 0, 2)),
			must[*ndarray.Array](t)(ndarray.Wrap(dev, []float32{}, []int{3, 0, 2}, ndarray.Placement{})),
		} {
			m := must[*Managed](t)(Export(must[*Tensor](t)(FromArray(t.Context(), a, InPlace))))
			if m.tensor.data != 0 || m.tensor.strides == 0 {
				t.Errorf("%+v", m.tensor)
			}
			back := must[*ndarray.Array](t)(ToArray(dev, must[*Tensor](t)(Import(m))))
			if !slices.Equal(back.Shape(), []int{3, 0, 2}) {
				t.Errorf("it came back as %v", back.Shape())
			}
			check(t, errors.Join(a.Close(), back.Close()))
		}
	})
}

// TestToArray makes arrays of C memory, computes in them and brings results back.
func TestToArray(t *testing.T) {
	p := cMemory(t)
	v := unsafe.Slice((*float32)(p), 64)
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, k := range kinds {
			copy(v, ramp(64))
			tally := ctest.NewTally()
			s := spec(p)
			s.Strides, s.ByteOffset = []int64{-10, 2}, 80
			x := must[*Tensor](t)(k.import_(s.Make(k.legacy, tally)))
			a := must[*ndarray.Array](t)(ToArray(dev, x))
			check(t, x.Close())
			same(t, a, 20, 22, 24, 10, 12, 14)
			replace(t, a, 0, -1) // the lowest element, v[10]
			other := must[*ndarray.Array](t)(a.Transpose())
			check(t, a.Close())
			same(t, other, 20, -1, 22, 12, 24, 14)
			check(t, other.Sync(t.Context()))
			if v[10] != -1 || v[9] != 9 || v[11] != 11 {
				t.Errorf("C memory holds %v", v[9:12])
			}
			deletedAfter(t, tally, 0)
			check(t, other.Close())
			check(t, other.Close())
			deletedAfter(t, tally, 1)
			tally.Free()
		}
	})
}

func TestReadOnlyArray(t *testing.T) {
	p := cMemory(t)
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		tally := ctest.NewTally()
		defer tally.Free()
		s := spec(p)
		s.Flags = ReadOnly
		a := must[*ndarray.Array](t)(ToArray(dev, must[*Tensor](t)(Import((*Managed)(s.Make(false, tally))))))
		if err := a.CopyFromBytes(t.Context(), make([]byte, 24)); !errors.Is(err, gpu.ErrReadOnly) {
			t.Errorf("written: %v", err)
		}
		x := must[*Tensor](t)(FromArray(t.Context(), a, InPlace))
		if x.Flags != ReadOnly || x.Data != p {
			t.Errorf("%+v", x)
		}
		if _, err := ExportLegacy(x); !errors.Is(err, gpu.ErrReadOnly) {
			t.Errorf("legacy: %v", err)
		}
		check(t, errors.Join(a.Close(), x.Close()))
		deletedAfter(t, tally, 1)
	})
}

// TestTrust takes a WGPUBuffer that somebody else made.
func TestTrust(t *testing.T) {
	dev, other := open(t, devtest.Native()), open(t, devtest.Native())
	raw := must[any](t)(devtest.User.Buffer(dev.Handle(), 64, false))
	ref, release := core.Raw(raw)
	devtest.User.Release(raw)
	released := 0
	x := &Tensor{
		Device: Device{WebGPU, 0}, Handle: uintptr(ref), Type: dtype.Float32, Shape: []int64{4}, Strides: []int64{-1},
		ByteOffset: 28, Release: func() { released++; release(); release() },
	}
	for i, want := range []error{gpu.ErrForeign, gpu.ErrForeign, gpu.ErrReadOnly, buffer.ErrShort} {
		switch i {
		case 1:
			x.Trust(other)
		case 2:
			x.Trust(dev)
			x.Flags = ReadOnly
		case 3:
			x.Flags, x.ByteOffset = 0, 64
		}
		if _, err := ToArray(dev, x); !errors.Is(err, want) || released != 0 {
			t.Errorf("%d: %v, want %v; released %d times", i, err, want, released)
		}
	}
	x.ByteOffset = 28
	a := must[*ndarray.Array](t)(ToArray(dev, x))
	replace(t, a, 16, 4, 5, 6, 7)
	same(t, a, 7, 6, 5, 4)
	check(t, errors.Join(x.Close(), a.Close()))
	if released != 1 {
		t.Errorf("released %d times", released)
	}
	x.Trust(nil)
	(*Tensor)(nil).Trust(dev)
	if ref, release := core.Raw(nil); ref != nil || core.FromRaw(nil, nil) != nil {
		t.Error("there is something in nothing")
	} else {
		release()
	}
}

// A device that is closed while its memory is lent takes nothing along that its consumer has in hand.
func TestClosedDevice(t *testing.T) {
	for _, name := range gpu.Drivers() {
		dev := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(name)))
		a := must[*ndarray.Array](t)(ndarray.FromSlice(dev, ramp(8)))
		m := must[*Managed](t)(Export(must[*Tensor](t)(FromArray(t.Context(), a, InPlace))))
		check(t, dev.Close())
		x := must[*Tensor](t)(Import(m))
		if _, err := ToArray(dev, x); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := FromArray(t.Context(), a, InPlace); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		check(t, errors.Join(x.Close(), a.Close()))
	}
}

func TestArrayRefused(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx := t.Context()
		a := must[*ndarray.Array](t)(ndarray.FromSlice(dev, ramp(4)))
		closed := must[*ndarray.Array](t)(a.Share())
		check(t, closed.Close())
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		for name, c := range map[string]struct {
			ctx   context.Context
			a     *ndarray.Array
			place Place
			want  error
		}{
			"no context": {nil, a, InPlace, gpu.ErrInvalid},
			"no array":   {ctx, nil, InPlace, gpu.ErrInvalid},
			"no place":   {ctx, a, AsCopy + 1, gpu.ErrInvalid},
			"closed":     {ctx, closed, InPlace, gpu.ErrClosed},
			"no copy":    {ctx, closed, AsCopy, gpu.ErrClosed},
			"canceled":   {canceled, a, AsCopy, context.Canceled},
		} {
			if x, err := FromArray(c.ctx, c.a, c.place); !errors.Is(err, c.want) || x != nil {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		check(t, a.Close())

		v := ramp(4)
		for name, c := range map[string]struct {
			set  func(*Tensor)
			want error
		}{
			"packed":  {func(x *Tensor) { x.Type = dtype.Bool1 }, gpu.ErrUnsupported},
			"fp4":     {func(x *Tensor) { x.Type, x.Flags = dtype.Type{Code: 17, Bits: 4, Lanes: 1}, Padded }, ndarray.ErrType},
			"type":    {func(x *Tensor) { x.Type = dtype.Type{} }, ErrType},
			"shape":   {func(x *Tensor) { x.Shape = []int64{-1} }, ErrShape},
			"memory":  {func(x *Tensor) { x.Data = nil }, ErrMemory},
			"vulkan":  {func(x *Tensor) { x.Data, x.Device.Type, x.Handle = nil, 7, 7 }, gpu.ErrUnsupported},
			"foreign": {func(x *Tensor) { x.Data, x.Device.Type, x.Handle = nil, WebGPU, 7 }, gpu.ErrForeign},
			"closed":  {func(x *Tensor) { _ = x.Close() }, gpu.ErrClosed},
			"offset": {func(x *Tensor) {
				x.Data, x.Device.Type, x.Handle, x.ByteOffset = nil, WebGPU, 7, math.MaxInt64-16
			}, gpu.ErrForeign},
		} {
			x, released := floats(v, []int64{4}, nil)
			c.set(x)
			if b, err := ToArray(dev, x); !errors.Is(err, c.want) || b != nil {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
			check(t, x.Close()) // still the caller's
			if n := released.Load(); n != 1 {
				t.Errorf("%s: released %d times", name, n)
			}
		}
		for _, err := range []error{
			func() error { _, err := ToArray(nil, &Tensor{}); return err }(),
			func() error { _, err := ToArray(dev, nil); return err }(),
		} {
			if !errors.Is(err, gpu.ErrInvalid) {
				t.Errorf("nil: %v", err)
			}
		}
	})
}

// A padded bool of TVM's passes both ways.
func TestPaddedArray(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*ndarray.Array](t)(ndarray.FromBytes(dev, dtype.Bool1, []byte{1, 0, 1}, 3))
		x := must[*Tensor](t)(FromArray(t.Context(), a, AsCopy))
		if x.Flags != Padded|Copied {
			t.Errorf("flags %d", x.Flags)
		}
		b := must[*ndarray.Array](t)(ToArray(dev, must[*Tensor](t)(Import(must[*Managed](t)(Export(x))))))
		if got := must[[]byte](t)(b.Bytes(t.Context())); !slices.Equal(got, []byte{1, 0, 1}) || b.DType() != dtype.Bool1 {
			t.Errorf("%v of %v", got, b.DType())
		}
		check(t, errors.Join(a.Close(), b.Close()))
	})
}

// TestParallelArrays goes round from several goroutines on one device.
func TestParallelArrays(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 40 {
					k, place := kinds[i%2], Place((g+i)%3)
					if err := roundTrip(t.Context(), dev, k.export, k.import_, place); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		check(t, dev.Sync(t.Context()))
	})
}

func roundTrip(
	ctx context.Context, dev *gpu.Device,
	export func(*Tensor) (unsafe.Pointer, error), import_ func(unsafe.Pointer) (*Tensor, error), place Place,
) error {
	a, err := ndarray.FromSlice(dev, ramp(16), 4, 4)
	if err != nil {
		return err
	}
	x, err := FromArray(ctx, a, place)
	if err := errors.Join(err, a.Close()); err != nil {
		return err
	}
	m, err := export(x)
	if err != nil {
		return err
	}
	if x, err = import_(m); err != nil {
		return err
	}
	if a, err = ToArray(dev, x); err != nil {
		return err
	}
	got, err := ndarray.Data[float32](ctx, a)
	if err == nil && !slices.Equal(got, ramp(16)) {
		err = errors.New("other numbers came back")
	}
	return errors.Join(err, a.Close())
}
