// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/dlpack/internal/ctest"
)

// spec is a good matrix of float32 at an address.
func spec(address unsafe.Pointer) ctest.Spec {
	return ctest.Spec{
		Major: 1, Data: uintptr(address), DeviceType: 1, Rank: 2, Code: 2, Bits: 32, Lanes: 1,
		Shape: []int64{2, 3}, Strides: []int64{3, 1},
	}
}

// cMemory is not Go's, so that nothing needs to be pinned; its tensor counts itself.
func cMemory(t *testing.T) unsafe.Pointer {
	t.Helper()
	tally := ctest.NewTally()
	s := ctest.Spec{Major: 1, Shape: make([]int64, 64), NoDeleter: true}
	m := s.Make(false, tally)
	t.Cleanup(func() { ctest.Free(m, false); tally.Free() })
	return at((*Managed)(m).tensor.shape)
}

func TestImport(t *testing.T) {
	p := cMemory(t)
	v := unsafe.Slice((*float32)(p), 64)
	copy(v, ramp(64))
	for _, k := range kinds {
		for _, c := range []struct {
			name    string
			set     func(*ctest.Spec)
			shape   []int64
			strides []int64
			first   float32 // the first element
			at, n   int     // where it is in how many bytes of memory
			flags   uint64
		}{
			{"plain", func(*ctest.Spec) {}, []int64{2, 3}, []int64{3, 1}, 0, 0, 24, 0},
			{"no strides", func(s *ctest.Spec) { s.Strides = nil }, []int64{2, 3}, []int64{3, 1}, 0, 0, 24, 0},
			{"strided", func(s *ctest.Spec) { s.Strides = []int64{1, 10} }, []int64{2, 3}, []int64{1, 10}, 0, 0, 88, 0},
			{
				"backwards", func(s *ctest.Spec) { s.Strides, s.ByteOffset = []int64{-3, -1}, 40 },
				[]int64{2, 3},
				[]int64{-3, -1},
				10, 20, 24, 0,
			},
			{
				"scalar", func(s *ctest.Spec) { s.Rank, s.NoShape, s.Strides, s.ByteOffset = 0, true, nil, 8 },
				[]int64{},
				[]int64{},
				2, 0, 4, 0,
			},
			{
				"empty", func(s *ctest.Spec) { s.Shape, s.Strides, s.Data = []int64{0, 3}, []int64{math.MinInt64, 7}, 1 },
				[]int64{0, 3},
				[]int64{math.MinInt64, 7},
				0, 0, 0, 0,
			},
			{
				"read-only copy of tomorrow", func(s *ctest.Spec) { s.Flags, s.Minor = 1<<63|3, 99 },
				[]int64{2, 3},
				[]int64{3, 1},
				0, 0, 24, ReadOnly | Copied,
			},
			{"no deleter", func(s *ctest.Spec) { s.NoDeleter = true }, []int64{2, 3}, []int64{3, 1}, 0, 0, 24, 0},
		} {
			t.Run(k.name+" "+c.name, func(t *testing.T) {
				tally := ctest.NewTally()
				defer tally.Free()
				s := spec(p)
				c.set(&s)
				if k.legacy {
					c.flags = 0
				}
				m := s.Make(k.legacy, tally)
				x, err := k.import_(m)
				check(t, err)
				if x.Device != (Device{CPU, 0}) || x.Type != dtype.Float32 || !slices.Equal(x.Shape, c.shape) ||
					!slices.Equal(x.Strides, c.strides) || x.Flags != c.flags {
					t.Errorf("%+v", x)
				}
				mem, first, err := x.Host()
				check(t, err)
				if len(mem.Bytes) != c.n || first != c.at || mem.ReadOnly != (c.flags&ReadOnly != 0) {
					t.Errorf("%d bytes, the first element at %d, read-only %v", len(mem.Bytes), first, mem.ReadOnly)
				}
				if c.n > 0 && *(*float32)(unsafe.Pointer(&mem.Bytes[first])) != c.first {
					t.Errorf("the first element is not %v", c.first)
				}
				deletedAfter(t, tally, 0)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() { _ = x.Close() })
				}
				wg.Wait()
				x.Release() // nor does this call the deleter again
				if s.NoDeleter {
					deletedAfter(t, tally, 0)
					ctest.Free(m, k.legacy)
					return
				}
				deletedAfter(t, tally, 1)
				if _, err := k.export(x); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("exported after the end: %v", err)
				}
			})
		}
	}
}

func deletedAfter(t *testing.T, tally ctest.Tally, want int) {
	t.Helper()
	if calls, wrong := tally.Deleted(); calls != want || wrong != 0 {
		t.Errorf("the deleter was called %d times, %d of them with another tensor; want %d", calls, wrong, want)
	}
}

// What is refused is given back.
func TestImportRefused(t *testing.T) {
	p := cMemory(t)
	for _, k := range kinds {
		for _, c := range []struct {
			name string
			set  func(*ctest.Spec)
			want error
		}{
			{"rank -1", func(s *ctest.Spec) { s.Rank = -1 }, ErrShape},
			{"least rank", func(s *ctest.Spec) { s.Rank = math.MinInt32 }, ErrShape},
			{"rank 33", func(s *ctest.Spec) { s.Rank = 33 }, ErrShape},
			{"most rank", func(s *ctest.Spec) { s.Rank = math.MaxInt32 }, ErrShape},
			{"no shape", func(s *ctest.Spec) { s.NoShape = true }, ErrShape},
			{"negative", func(s *ctest.Spec) { s.Shape = []int64{2, -3} }, ErrShape},
			{"twice negative", func(s *ctest.Spec) { s.Shape = []int64{-2, -3} }, ErrShape},
			{"negative and empty", func(s *ctest.Spec) { s.Shape = []int64{0, -3} }, ErrShape},
			{"product", func(s *ctest.Spec) { s.Shape = []int64{1 << 40, 1 << 40} }, ErrShape},
			{"bytes", func(s *ctest.Spec) { s.Shape = []int64{1 << 31, 1 << 31} }, ErrShape},
			{"product without strides", func(s *ctest.Spec) { s.Shape, s.Strides = []int64{1 << 62, 8}, nil }, ErrShape},
			{"strides", func(s *ctest.Spec) { s.Strides = []int64{math.MaxInt64, 1} }, ErrShape},
			{"least stride", func(s *ctest.Spec) { s.Strides = []int64{math.MinInt64, 1} }, ErrShape},
			{"code", func(s *ctest.Spec) { s.Code = 18 }, ErrType},
			{"last code", func(s *ctest.Spec) { s.Code = 255 }, ErrType},
			{"no bits", func(s *ctest.Spec) { s.Bits = 0 }, ErrType},
			{"float24", func(s *ctest.Spec) { s.Bits = 24 }, ErrType},
			{"no lanes", func(s *ctest.Spec) { s.Lanes = 0 }, ErrType},
			{"bool1", func(s *ctest.Spec) { s.Code, s.Bits = 6, 1 }, ErrType},
			{"fp8 of 16 bits", func(s *ctest.Spec) { s.Code, s.Bits = 10, 16 }, ErrType},
			{"fp6 of 8 bits", func(s *ctest.Spec) { s.Code, s.Bits = 15, 8 }, ErrType},
			{"other fp6 of 4 bits", func(s *ctest.Spec) { s.Code, s.Bits = 16, 4 }, ErrType},
			{"fp4 of 8 bits", func(s *ctest.Spec) { s.Code, s.Bits, s.Flags = 17, 8, 4 }, ErrType},
			{"no data", func(s *ctest.Spec) { s.Data = 0 }, ErrMemory},
			{"first page", func(s *ctest.Spec) { s.Data = 4095 }, ErrMemory},
			{"end of memory", func(s *ctest.Spec) { s.Data = ^uintptr(0) - 22 }, ErrMemory},
			{"offset", func(s *ctest.Spec) { s.ByteOffset = math.MaxUint64 }, ErrMemory},
			{"below memory", func(s *ctest.Spec) { s.Data, s.Strides = 1<<20, []int64{-(1 << 20), 1} }, ErrMemory},
		} {
			t.Run(k.name+" "+c.name, func(t *testing.T) {
				tally := ctest.NewTally()
				defer tally.Free()
				s := spec(p)
				c.set(&s)
				x, err := k.import_(s.Make(k.legacy, tally))
				if !errors.Is(err, c.want) || x != nil {
					t.Errorf("%v, want %v", err, c.want)
				}
				deletedAfter(t, tally, 1)

				s.NoDeleter = true
				m := s.Make(k.legacy, tally)
				if _, err := k.import_(m); !errors.Is(err, c.want) {
					t.Errorf("without deleter: %v, want %v", err, c.want)
				}
				deletedAfter(t, tally, 1)
				ctest.Free(m, k.legacy)
			})
		}
	}
}

// Of another major version nothing is looked at but the deleter.
func TestImportVersion(t *testing.T) {
	for _, major := range []uint32{0, 2, math.MaxUint32} {
		tally := ctest.NewTally()
		s := ctest.Spec{Major: major, Rank: 7, NoShape: true, Data: 3, Code: 200}
		if _, err := Import((*Managed)(s.Make(false, tally))); !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("version %d: %v", major, err)
		}
		deletedAfter(t, tally, 1)
		tally.Free()
	}
}

// What is no tensor is left alone.
func TestImportNothing(t *testing.T) {
	for _, k := range kinds {
		if _, err := k.import_(nil); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("nil: %v", err)
		}
	}
	if _, err := take("test", unsafe.Add(cMemory(t), 1), false); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("misaligned: %v", err)
	}
}

// TestSubByte imports elements of less than a byte, packed and not.
func TestSubByte(t *testing.T) {
	p := cMemory(t)
	for _, c := range []struct {
		code, bits uint8
		flags      uint64
		n, packed  int
	}{
		{17, 4, 0, 3, 1},
		{17, 4, 4, 6, 0},
		{15, 6, 0, 5, 1},
		{16, 6, 4, 6, 0},
		{0, 4, 0, 3, 1},
		{1, 1, 0, 1, 1},
		{1, 1, 4, 6, 0},
		{0, 8, 4, 6, 0},
	} {
		tally := ctest.NewTally()
		s := spec(p)
		s.Code, s.Bits, s.Flags = c.code, c.bits, c.flags
		x, err := Import((*Managed)(s.Make(false, tally)))
		check(t, err)
		mem, _, err := x.Host()
		if err != nil || len(mem.Bytes) != c.n || x.packed() != (c.packed == 1) {
			t.Errorf("code %d, %d bits, flags %d: %d bytes, packed %v, %v", c.code, c.bits, c.flags, len(mem.Bytes), x.packed(), err)
		}
		check(t, x.Close())
		deletedAfter(t, tally, 1)
		tally.Free()
	}
}
