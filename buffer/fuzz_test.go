// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// inside reports whether a region lies in so many bytes, counted without overflow: rows that do not overlap, from the first on.
func inside(r buffer.Region, size int) bool {
	if r.Offset < 0 || r.Width < 0 || r.Count < 0 || r.Count > 1 && r.Pitch < r.Width || r.Offset > size {
		return false
	}
	if r.Count > 1 && r.Pitch > 0 && (r.Count-1) > size/r.Pitch {
		return false // even of rows without bytes
	}
	if r.Count == 0 || r.Width == 0 {
		return true
	}
	end := new(big.Int).Mul(big.NewInt(int64(r.Count-1)), big.NewInt(int64(r.Pitch)))
	end.Add(end, big.NewInt(int64(r.Width)))
	end.Add(end, big.NewInt(int64(r.Offset)))
	return end.Cmp(big.NewInt(int64(size))) <= 0
}

// FuzzRegions: reading and changing any region of memory of each kind is an error, or moves exactly the region's bytes.
func FuzzRegions(f *testing.F) {
	dev := devtest.Open(f, "cpu")
	f.Add(uint8(0), 20, 4, 4, 8, 2, 0)
	f.Add(uint8(1), 20, 3, 5, 5, 3, 2)
	f.Add(uint8(6), 16, 0, 16, 16, 1, 0)
	f.Add(uint8(7), 1, 1, 0, 0, 1<<62, 0)
	f.Add(uint8('Z'), 1, 1, 0, 0, 1<<62, 0)
	f.Add(uint8(3), 33, 1, math.MaxInt, math.MaxInt, 2, 0)
	f.Add(uint8(8), 33, math.MaxInt, 1, math.MinInt, 1, math.MaxInt)
	f.Add(uint8(5), 33, 8, 2, math.MaxInt/2+2, 3, 1)
	f.Add(uint8(2), 33, -8, 16, 16, 1, -1)
	f.Fuzz(func(t *testing.T, kind uint8, size, offset, width, pitch, count, at int) {
		size = max(1, size%64)
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i + 1)
		}
		all := bytes.Repeat([]byte{0xee}, 3*64)
		mem := all[64 : 64+size : 64+size]
		copy(mem, want)
		b, err := buffer.Wrap(dev, gpu.HostBytes(mem), nil)
		if kind%2 == 1 {
			b, err = buffer.FromHost(dev, gpu.HostBytes(mem))
		}
		check(t, err)
		defer b.Close()
		if kind%3 == 1 { // on both sides
			check(t, second(b.Memory(buffer.Reads)))
		}
		r := buffer.Region{Offset: offset, Width: width, Pitch: pitch, Count: count}
		ok := inside(r, size)
		readRegion(t, b, r, at, want, ok)
		check(t, errors.Join(b.Sync(t.Context())))
		changeRegion(t, b, kind/6, r, want, ok)
		check(t, b.Sync(t.Context()))
		got := make([]byte, size)
		check(t, b.Read(t.Context(), buffer.Range(0, size), gpu.HostBytes(got), 0))
		if !bytes.Equal(got, want) {
			t.Fatalf("kind %d, %+v of %d bytes: %v, want %v", kind, r, size, got, want)
		}
		for i, v := range all {
			if (i < 64 || i >= 64+size) && v != 0xee {
				t.Fatalf("kind %d, %+v of %d bytes: byte %d beside the memory was written", kind, r, size, i-64)
			}
		}
	})
}

// readRegion reads a region to a place in other memory.
func readRegion(t *testing.T, b *buffer.Buffer, r buffer.Region, at int, want []byte, ok bool) {
	t.Helper()
	got := bytes.Repeat([]byte{0xdd}, 100)
	model := bytes.Clone(got)
	dst := got[20:80:80]
	fits := ok && at >= 0 && at <= len(dst) && r.Span() <= len(dst)-at
	err := b.Read(t.Context(), r, gpu.HostBytes(dst), at)
	if (err == nil) != fits && (!ok || r.Span() > 0) {
		t.Fatalf("%+v of %d bytes to %d: %v, want success: %v", r, len(want), at, err, fits)
	}
	if err == nil && r.Span() > 0 {
		for i := range r.Count {
			copy(model[20+at+i*r.Pitch:][:r.Width], want[r.Offset+i*r.Pitch:])
		}
	}
	if !bytes.Equal(got, model) {
		t.Fatalf("%+v of %d bytes to %d: %v, want %v", r, len(want), at, got, model)
	}
}

// changeRegion changes a region, and the model where that is to succeed.
func changeRegion(t *testing.T, b *buffer.Buffer, how uint8, r buffer.Region, want []byte, ok bool) {
	t.Helper()
	one := ok && r.Count == 1
	var err error
	switch how % 4 {
	case 0:
		if err = b.Touch(r); (err == nil) != ok {
			t.Fatalf("Touch %+v of %d bytes: %v, want success: %v", r, len(want), err, ok)
		}
	case 1:
		err = b.Access(t.Context(), r, buffer.Writes, func(mem []byte) error {
			for i := range mem {
				mem[i] ^= 0xff
				want[r.Offset+i] ^= 0xff
			}
			return nil
		})
		if (err == nil) != one {
			t.Fatalf("Access %+v of %d bytes: %v, want success: %v", r, len(want), err, one)
		}
	case 2:
		src := bytes.Repeat([]byte{0x99}, max(0, min(r.Width, 100)))
		fits := r.Offset >= 0 && r.Offset <= len(want) && len(src) <= len(want)-r.Offset
		if err = b.Patch(t.Context(), r.Offset, src); (err == nil) != fits {
			t.Fatalf("Patch %d bytes at %d of %d: %v, want success: %v", len(src), r.Offset, len(want), err, fits)
		}
		if fits {
			copy(want[r.Offset:], src)
		}
	default:
		if b.ClearHost(r) {
			if !ok {
				t.Fatalf("ClearHost %+v of %d bytes", r, len(want))
			}
			for i := 0; i < r.Count && r.Width > 0; i++ {
				clear(want[r.Offset+i*r.Pitch:][:r.Width])
			}
		}
	}
	if err != nil {
		if _, typed := errors.AsType[*gpu.OpError](err); !typed {
			t.Fatalf("%v has no type", err)
		}
	}
}
