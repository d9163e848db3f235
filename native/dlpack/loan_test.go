// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/cgo"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/native/dlpack/internal/ctest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if a, b := loans.Load(), leases.Load(); code == 0 && (a != 0 || b != 0) {
		fmt.Println(a, "tensors were never given back to Go,", b, "never to C")
		code = 1
	}
	os.Exit(code)
}

// kinds are the two structures, behind the same calls.
var kinds = []struct {
	name    string
	legacy  bool
	export  func(*Tensor) (unsafe.Pointer, error)
	import_ func(unsafe.Pointer) (*Tensor, error)
}{
	{
		"versioned", false,
		func(t *Tensor) (unsafe.Pointer, error) { m, err := Export(t); return unsafe.Pointer(m), err },
		func(m unsafe.Pointer) (*Tensor, error) { return Import((*Managed)(m)) },
	},
	{
		"legacy", true,
		func(t *Tensor) (unsafe.Pointer, error) { m, err := ExportLegacy(t); return unsafe.Pointer(m), err },
		func(m unsafe.Pointer) (*Tensor, error) { return ImportLegacy((*Legacy)(m)) },
	},
}

var check = devtest.Check

func ramp(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i)
	}
	return v
}

// floats makes a tensor of Go memory that counts its releases.
func floats(v []float32, shape, strides []int64) (*Tensor, *atomic.Int32) {
	n := new(atomic.Int32)
	x := &Tensor{
		Device: Device{CPU, 0}, Type: dtype.Float32, Shape: shape, Strides: strides, Release: func() { n.Add(1) },
	}
	if len(v) > 0 {
		x.Data = unsafe.Pointer(&v[0])
	}
	return x, n
}

// TestExport has C read and write what Go lends.
func TestExport(t *testing.T) {
	for _, k := range kinds {
		for _, c := range []struct {
			name           string
			shape, strides []int64
			offset         uint64
			sum            float64
			touched        int
		}{
			{"scalar", nil, nil, 20, 5, 1},
			{"row", []int64{12}, nil, 0, 66, 12},
			{"matrix", []int64{3, 4}, nil, 0, 66, 12},
			{"columns", []int64{4, 3}, []int64{1, 4}, 0, 66, 12},
			{"part", []int64{2, 2}, []int64{4, 2}, 4, 1 + 3 + 5 + 7, 4},
			{"backwards", []int64{3}, []int64{-5}, 44, 11 + 6 + 1, 3},
			{"repeated", []int64{5, 2}, []int64{0, 1}, 0, 5, 2},
			{"empty", []int64{3, 0}, nil, 0, 0, 0},
			{"deep", slices.Repeat([]int64{1}, maxRank), nil, 8, 2, 1},
		} {
			t.Run(k.name+" "+c.name, func(t *testing.T) {
				v := ramp(12)
				x, released := floats(v, c.shape, c.strides)
				x.ByteOffset = c.offset
				m, err := k.export(x)
				check(t, err)
				if why := ctest.Check(m, k.legacy); why != "" {
					t.Error(why)
				}
				if sum := ctest.Sum(m, k.legacy); sum != c.sum {
					t.Errorf("the sum is %v, want %v", sum, c.sum)
				}
				ctest.Fill(m, k.legacy, -1)
				if n := len(slices.DeleteFunc(slices.Clone(v), func(f float32) bool { return f != -1 })); n != c.touched {
					t.Errorf("%d elements were written, want %d", n, c.touched)
				}
				if again, err := k.export(x); !errors.Is(err, gpu.ErrClosed) || again != nil {
					t.Errorf("lent twice: %v", err)
				}
				check(t, x.Close())
				if n := released.Load(); n != 0 {
					t.Errorf("released %d times while lent", n)
				}
				ctest.Delete(m, k.legacy)
				check(t, x.Close())
				if n := released.Load(); n != 1 {
					t.Errorf("released %d times", n)
				}
			})
		}
	}
}

// TestBytes looks at what is exported without the help of a header: at the offsets of the specification.
func TestBytes(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return // the offsets below are those of 64-bit machines
	}
	v := ramp(12)
	le := binary.NativeEndian
	for _, k := range kinds {
		x, _ := floats(v, []int64{2, 3}, []int64{6, 2})
		x.ByteOffset = 4
		tensor, size, contextAt, deleterAt := 32, 80, 8, 16
		if k.legacy {
			tensor, size, contextAt, deleterAt = 0, 64, 48, 56
		} else {
			x.Flags = ReadOnly | Copied | 1<<40 // the last is none
		}
		m, err := k.export(x)
		check(t, err)
		b := unsafe.Slice((*byte)(m), size)
		if !k.legacy && (le.Uint32(b) != 1 || le.Uint32(b[4:]) != 2 || le.Uint64(b[24:]) != 3) {
			t.Errorf("version and flags are % x", b[:32])
		}
		if le.Uint64(b[contextAt:]) == 0 || le.Uint64(b[deleterAt:]) == 0 {
			t.Error("no context or no deleter")
		}
		b = b[tensor:]
		dims := func(offset int) []int64 { return slices.Clone(unsafe.Slice(*(**int64)(unsafe.Pointer(&b[offset])), 2)) }
		if le.Uint64(b) != uint64(uintptr(unsafe.Pointer(&v[0]))) || le.Uint32(b[8:]) != 1 || le.Uint32(b[12:]) != 0 ||
			le.Uint32(b[16:]) != 2 || b[20] != 2 || b[21] != 32 || le.Uint16(b[22:]) != 1 || le.Uint64(b[40:]) != 4 ||
			!slices.Equal(dims(24), []int64{2, 3}) || !slices.Equal(dims(32), []int64{6, 2}) {
			t.Errorf("%s: the tensor is % x", k.name, b[:48])
		}
		ctest.Delete(m, k.legacy)
	}
}

// TestThread has a thread of C's read while the collector runs, and give back.
func TestThread(t *testing.T) {
	for _, k := range kinds {
		m, released := func() (unsafe.Pointer, *atomic.Int32) {
			x, released := floats(ramp(1000), []int64{10, 100}, nil)
			m, err := k.export(x)
			check(t, err)
			return m, released
		}() // nothing but the loan keeps the numbers now
		done := make(chan int)
		go func() { done <- ctest.SumsOnThread(m, k.legacy, 2000, 499500) }()
		for wrong, running := 0, true; running; {
			runtime.GC()
			_ = slices.Repeat([]float32{-1}, 1000) // falls into memory that was freed too early
			select {
			case wrong = <-done:
				running = false
				if wrong != 0 {
					t.Errorf("%s: %d sums are wrong", k.name, wrong)
				}
			default:
			}
		}
		if n := released.Load(); n != 1 {
			t.Errorf("released %d times", n)
		}
	}
}

// Memory stays where it is and is kept as long as it is lent, not longer.
func TestPinned(t *testing.T) {
	for _, k := range kinds {
		freed := make(chan struct{})
		m := func() unsafe.Pointer {
			v := new([1 << 12]float32)
			runtime.AddCleanup(v, func(c chan struct{}) { close(c) }, freed)
			x, _ := floats(v[:], []int64{1 << 12}, nil)
			m, err := k.export(x)
			check(t, err)
			return m
		}()
		for range 3 {
			runtime.GC()
		}
		select {
		case <-freed:
			t.Fatal("memory was freed while lent")
		case <-time.After(time.Millisecond): // cleanups run beside
		}
		if !ctest.DeleteOnThread(m, k.legacy) {
			t.Fatal("no thread")
		}
		for kept := true; kept; { // the test's own limit ends what never ends
			runtime.GC()
			select {
			case <-freed:
				kept = false
			default:
			}
		}
	}
}

// The handle by which C names a loan is as dead as the loan.
func TestHandleDeleted(t *testing.T) {
	for _, k := range kinds {
		x, _ := floats(ramp(4), []int64{4}, nil)
		m, err := k.export(x)
		check(t, err)
		h := cgo.Handle((*Managed)(m).context)
		if k.legacy {
			h = cgo.Handle((*Legacy)(m).context)
		}
		_ = h.Value().(*loan)
		ctest.Delete(m, k.legacy)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the handle %d is still there", k.name, h)
				}
			}()
			h.Value()
		}()
	}
}

func TestExportRefused(t *testing.T) {
	v := ramp(4)
	for _, k := range kinds {
		for _, c := range []struct {
			name string
			set  func(*Tensor)
			want error
		}{
			{"type", func(x *Tensor) { x.Type.Bits = 33 }, ErrType},
			{"rank", func(x *Tensor) { x.Shape = slices.Repeat([]int64{1}, maxRank+1) }, ErrShape},
			{"dimension", func(x *Tensor) { x.Shape = []int64{-4} }, ErrShape},
			{"strides", func(x *Tensor) { x.Strides = []int64{1, 1} }, ErrShape},
			{"memory", func(x *Tensor) { x.Data = nil }, ErrMemory},
			{"handle", func(x *Tensor) { x.Handle = 1 }, ErrMemory},
			{"device", func(x *Tensor) { x.Device.Type = 8 }, ErrMemory},
		} {
			x, released := floats(v, []int64{4}, nil)
			c.set(x)
			if m, err := k.export(x); !errors.Is(err, c.want) || m != nil {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			if released.Load() != 0 {
				t.Errorf("%s: released", c.name)
			}
			check(t, x.Close()) // it is still the caller's
			if n := released.Load(); n != 1 {
				t.Errorf("%s: released %d times", c.name, n)
			}
		}
		if m, err := k.export(nil); !errors.Is(err, gpu.ErrInvalid) || m != nil {
			t.Errorf("nil: %v", err)
		}
		x, released := floats(v, []int64{4}, nil)
		check(t, x.Close())
		if _, err := k.export(x); !errors.Is(err, gpu.ErrClosed) || released.Load() != 1 {
			t.Errorf("closed: %v, released %d times", err, released.Load())
		}
	}
	x, _ := floats(v, []int64{4}, nil)
	x.Flags = ReadOnly
	if _, err := ExportLegacy(x); !errors.Is(err, gpu.ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	x.Flags, x.Type = Padded, dtype.Type{Code: dtype.Int8.Code, Bits: 4, Lanes: 1}
	if _, err := ExportLegacy(x); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("padded: %v", err)
	}
}

// Handles of other devices pass through as they are.
func TestHandle(t *testing.T) {
	for _, k := range kinds {
		for _, h := range []uintptr{0, 1, ^uintptr(0)} {
			x := &Tensor{Handle: h, Device: Device{7, 3}, Type: dtype.Float16, Shape: []int64{8}, ByteOffset: 256}
			m, err := k.export(x)
			check(t, err)
			y, err := k.import_(m)
			check(t, err)
			runtime.GC() // it is no pointer
			if y.Handle != h || y.Data != nil || y.Device != x.Device || y.ByteOffset != 256 || y.Type != x.Type {
				t.Errorf("%+v", y)
			}
			check(t, y.Close())
		}
	}
}

// TestParallel lends, passes on and gives back from several goroutines.
func TestParallel(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				k := kinds[(g+i)%2]
				x, released := floats(ramp(64), []int64{8, 8}, nil)
				m, err := k.export(x)
				if err != nil {
					t.Error(err)
					return
				}
				y, err := k.import_(m)
				if err != nil {
					t.Error(err)
					return
				}
				m, err = k.export(y) // an imported tensor can be lent in its turn
				if err != nil || y.Close() != nil || released.Load() != 0 {
					t.Error("passed on:", err, released.Load())
					return
				}
				if sum := ctest.Sum(m, k.legacy); sum != 2016 {
					t.Errorf("the sum is %v", sum)
				}
				if i%10 == 0 {
					ctest.DeleteOnThread(m, k.legacy)
				} else {
					ctest.Delete(m, k.legacy)
				}
				if n := released.Load(); n != 1 {
					t.Errorf("released %d times", n)
				}
			}
		})
	}
	wg.Wait()
}

// TestLeak lends and gives back very often: C memory and handles are afterwards what they were.
func TestLeak(t *testing.T) {
	v := ramp(6)
	cycle := func(n int) {
		for i := range n {
			k := kinds[i%2]
			x, _ := floats(v, []int64{2, 3}, nil)
			m, err := k.export(x)
			check(t, err)
			y, err := k.import_(m)
			check(t, err)
			check(t, y.Close())
		}
	}
	cycle(1000)
	heap, out, in := ctest.Heap(), loans.Load(), leases.Load()
	cycle(100_000)
	if a, b := loans.Load(), leases.Load(); a != out || b != in {
		t.Errorf("%d loans and %d leases are left, %d and %d before", a, b, out, in)
	}
	// A structure has more than 100 bytes, so one in a thousand would show.
	if now := ctest.Heap(); now > heap+10_000 {
		t.Errorf("%d bytes of C memory are in use, %d before", now, heap)
	}
}
