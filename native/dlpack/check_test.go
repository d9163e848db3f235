// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// somewhere is an address that looks like memory.
const somewhere = 1 << 20

func TestTypes(t *testing.T) {
	good := map[uint8][]uint8{
		dtype.Int8.Code: {1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128}, dtype.Uint8.Code: {1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128},
		dtype.Float32.Code: {16, 32, 64, 128}, 3: {32, 64}, 4: {16}, 5: {32, 64, 128},
		6: {8}, 15: {6}, 16: {6}, 17: {4},
	}
	for c := uint8(7); c <= 14; c++ {
		good[c] = []uint8{8}
	}
	for code := range 256 {
		for bits := range 256 {
			for _, lanes := range []uint16{0, 1, 4, 65535} {
				x := &Tensor{Device: Device{CPU, 0}, Type: dtype.Type{Code: uint8(code), Bits: uint8(bits), Lanes: lanes}}
				_, err := x.judge("test", somewhere)
				want := lanes > 0 && slices.Contains(good[uint8(code)], uint8(bits))
				if want != (err == nil) || err != nil && !errors.Is(err, ErrType) {
					t.Errorf("code %d, %d bits, %d lanes: %v", code, bits, lanes, err)
				}
			}
		}
	}
}

func TestShapes(t *testing.T) {
	const huge = math.MaxInt64
	long := slices.Repeat([]int64{1}, maxRank)
	for _, c := range []struct {
		shape, strides []int64
		offset         uint64
		address        uintptr
		want           error
		low, high      int64
	}{
		{want: nil, high: 4},
		{shape: []int64{2, 3}, high: 24},
		{shape: []int64{2, 3}, strides: []int64{10, 1}, high: 52},
		{shape: []int64{2, 3}, strides: []int64{-3, -1}, low: -20, high: 4},
		{shape: []int64{2, 3}, strides: []int64{0, 0}, high: 4},
		{shape: []int64{1, 3}, strides: []int64{huge, 1}, high: 12}, // the stride of a single one means nothing
		{shape: long, high: 4},
		{shape: []int64{0, huge, huge}},
		{shape: []int64{0}, strides: []int64{math.MinInt64}},
		{shape: []int64{0}, address: 1},
		{shape: append(long, 1), want: ErrShape},
		{shape: []int64{-1}, want: ErrShape},
		{shape: []int64{0, -1}, want: ErrShape},
		{shape: []int64{-2, -2}, want: ErrShape},
		{shape: []int64{1 << 32, 1 << 32}, want: ErrShape},
		{shape: []int64{1<<62 + 1, 4}, want: ErrShape},
		{shape: []int64{huge}, want: ErrShape},
		{shape: []int64{2}, strides: []int64{huge}, want: ErrShape},
		{shape: []int64{2}, strides: []int64{math.MinInt64}, want: ErrShape},
		{shape: []int64{2, 2}, strides: []int64{1 << 62, 1 << 62}, want: ErrShape},
		{shape: []int64{2}, strides: []int64{1 << 57}, want: ErrShape}, // 2^62 bits
		{shape: []int64{2}, strides: []int64{}, want: ErrShape},
		{shape: []int64{2}, strides: []int64{1, 1}, want: ErrShape},
		{shape: []int64{2}, address: 4095, want: ErrMemory},
		{shape: []int64{2}, address: ^uintptr(0) - 3, want: ErrMemory},
		{shape: []int64{2}, address: ^uintptr(0) - 8, high: 8},
		{shape: []int64{2}, offset: math.MaxUint64, want: ErrMemory},
		{shape: []int64{2}, offset: math.MaxInt64 - 7, want: ErrMemory},
		{shape: []int64{2}, strides: []int64{-(1 << 19)}, want: ErrMemory}, // below the first page
		{shape: []int64{2}, strides: []int64{-(1 << 19)}, offset: 1 << 21, low: -(1 << 21), high: 4},
	} {
		x := &Tensor{Device: Device{CPU, 0}, Type: dtype.Float32, Shape: c.shape, Strides: c.strides, ByteOffset: c.offset}
		if c.address == 0 {
			c.address = somewhere
		}
		e, err := x.judge("test", c.address)
		if !errors.Is(err, c.want) || e.low != c.low || e.high != c.high {
			t.Errorf("%v, strides %v, offset %d at %#x: %d to %d, %v; want %d to %d, %v",
				c.shape, c.strides, c.offset, c.address, e.low, e.high, err, c.low, c.high, c.want)
		}
	}
}

// every calls f with the place of each element, counted in elements.
func every(shape, strides []int64, f func(int64)) {
	if len(shape) == 0 {
		f(0)
		return
	}
	for i := range shape[0] {
		every(shape[1:], strides[1:], func(at int64) { f(i*strides[0] + at) })
	}
}

// TestSpan compares the bytes that a tensor is said to span with those of its elements, one by one.
func TestSpan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	types := []dtype.Type{
		dtype.Int8, dtype.Float32, dtype.Complex128, dtype.Bool1,
		{Code: dtype.Int8.Code, Bits: 4, Lanes: 1},
		{Code: dtype.Uint8.Code, Bits: 3, Lanes: 1},
		{Code: 15, Bits: 6, Lanes: 1},
		{Code: dtype.Int8.Code, Bits: 4, Lanes: 3},
		{Code: dtype.Float32.Code, Bits: 32, Lanes: 4},
	}
	for range 20000 {
		x := &Tensor{Device: Device{CPU, 0}, Type: types[r.IntN(len(types))], Flags: uint64(r.IntN(8))}
		for range r.IntN(4) {
			x.Shape = append(x.Shape, r.Int64N(5))
			x.Strides = append(x.Strides, r.Int64N(13)-6)
		}
		if r.IntN(4) == 0 {
			x.Strides = nil
		}
		strides := x.Strides
		if strides == nil {
			strides = x.strides()
		}
		width := int64(x.Type.Bits) * int64(x.Type.Lanes)
		if x.Flags&Padded != 0 || width%8 == 0 {
			width = (width + 7) / 8 * 8
		}
		var n int64
		low, high := int64(math.MaxInt64), int64(math.MinInt64)
		every(x.Shape, strides, func(at int64) {
			n++
			low = min(low, int64(math.Floor(float64(at*width)/8)))
			high = max(high, int64(math.Ceil(float64((at+1)*width)/8)))
		})
		if n == 0 {
			low, high = 0, 0
		}
		e, err := x.judge("test", somewhere)
		if err != nil || e != (extent{n, low, high}) {
			t.Fatalf("%v %v, strides %v, flags %d: %+v, %v; want %+v", x.Type, x.Shape, x.Strides, x.Flags, e, err, extent{n, low, high})
		}
	}
}

func TestMemory(t *testing.T) {
	v := make([]float32, 6)
	p := unsafe.Pointer(&v[0])
	for _, c := range []struct {
		name string
		t    *Tensor
		want error
	}{
		{"nil", nil, gpu.ErrInvalid},
		{"no memory", &Tensor{Device: Device{CPU, 0}, Type: dtype.Float32, Shape: []int64{2, 3}}, ErrMemory},
		{"handle", &Tensor{Device: Device{CPU, 0}, Type: dtype.Float32, Shape: []int64{2, 3}, Data: p, Handle: 1}, ErrMemory},
		{"pointer", &Tensor{Device: Device{2, 0}, Type: dtype.Float32, Shape: []int64{2, 3}, Data: p}, ErrMemory},
		{"device", &Tensor{Device: Device{WebGPU, 0}, Type: dtype.Float32, Shape: []int64{2, 3}, Handle: 1}, gpu.ErrUnsupported},
		{"type", &Tensor{Device: Device{CPU, 0}, Shape: []int64{2, 3}, Data: p}, ErrType},
		{"shape", &Tensor{Device: Device{CPU, 0}, Type: dtype.Float32, Shape: []int64{-2, 3}, Data: p}, ErrShape},
	} {
		if _, _, err := c.t.Host(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	x := &Tensor{
		Device: Device{CPU, 0}, Type: dtype.Float32, Data: p, Shape: []int64{2, 2}, Strides: []int64{-3, 1}, ByteOffset: 16,
		Flags: ReadOnly,
	}
	mem, first, err := x.Host()
	if err != nil || len(mem.Bytes) != 20 || mem.Size != 20 || first != 12 || !mem.ReadOnly ||
		unsafe.Pointer(&mem.Bytes[0]) != unsafe.Pointer(&v[1]) {
		t.Errorf("%d bytes from %p, the first at %d, read-only %v, %v; memory at %p", len(mem.Bytes), mem.Bytes, first, mem.ReadOnly, err, v)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := x.Host(); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	var none *Tensor
	if none.Close() != nil {
		t.Error("a nil tensor is something")
	}
	empty := &Tensor{Device: Device{CPU, 0}, Type: dtype.Float32, Shape: []int64{0, 3}}
	if mem, first, err := empty.Host(); err != nil || mem.Bytes == nil || mem.Size != 0 || first != 0 {
		t.Errorf("empty: %+v, %d, %v", mem, first, err)
	}
}

// FuzzRead feeds what a foreign library may write.
func FuzzRead(f *testing.F) {
	f.Add(int32(1), int32(2), uint8(2), uint8(32), uint16(1), uint64(0), uint64(0), int64(3), int64(4), int64(4), int64(1), true)
	f.Add(int32(15), int32(2), uint8(17), uint8(4), uint16(2), uint64(4), uint64(7), int64(-3), int64(4), int64(0), int64(-1), false)
	f.Add(int32(1), int32(-1), uint8(99), uint8(0), uint16(0), uint64(math.MaxUint64), uint64(1), int64(1<<62), int64(9), int64(1), int64(1), true)
	f.Add(int32(1), int32(33), uint8(0), uint8(8), uint16(1), uint64(0), uint64(0), int64(0), int64(0), int64(0), int64(0), true)
	f.Fuzz(func(t *testing.T, device, rank int32, code, bits uint8, lanes uint16, offset, flags uint64, d0, d1, s0, s1 int64, strided bool) {
		if rank > 2 && rank <= maxRank {
			rank = 2 // there is memory for two
		}
		shape, strides := []int64{d0, d1}, []int64{s0, s1}
		var pins runtime.Pinner
		defer pins.Unpin()
		pins.Pin(&shape[0])
		pins.Pin(&strides[0])
		raw := tensor{
			data: somewhere, device: Device{device, 0}, ndim: rank, dtype: dtype.Type{Code: code, Bits: bits, Lanes: lanes},
			shape: uintptr(unsafe.Pointer(&shape[0])), byteOffset: offset,
		}
		if strided {
			raw.strides = uintptr(unsafe.Pointer(&strides[0]))
		}
		x, err := raw.read("test", flags)
		if err != nil {
			if !errors.Is(err, ErrType) && !errors.Is(err, ErrShape) && !errors.Is(err, ErrMemory) {
				t.Errorf("%v", err)
			}
			return
		}
		if len(x.Shape) != int(rank) || len(x.Strides) != int(rank) || x.Flags&^known != 0 {
			t.Errorf("%+v", x)
		}
		e, err := x.judge("test", somewhere)
		if err != nil || e.low > 0 || e.high < e.low || e.elements > 0 && e.high <= 0 {
			t.Errorf("%v, strides %v: %+v, %v", x.Shape, x.Strides, e, err)
		}
	})
}
