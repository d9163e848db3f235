// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

// FuzzRange: a call over any range is a typed error that changes nothing, or adds 1 to the elements of exactly its items, as often as
// it repeats, and leaves the memory around the array alone.
func FuzzRange(f *testing.F) {
	cr := newCruncher(f, 2, checksSource)
	f.Add(64, 0, 0, 0, 1, uint8(0))
	f.Add(5, 8, 59, 3, 2, uint8(1))
	f.Add(7, 1, 60, 0, 0, uint8(2))
	f.Add(math.MaxInt, 1, 1, 0, 0, uint8(0))
	f.Add(1, 1, math.MaxInt, math.MaxInt, 0, uint8(1))
	f.Add(33, math.MinInt, 0, -1, 1, uint8(4))
	f.Add(64, 4, 0, math.MaxInt, 1, uint8(9))
	f.Add(0, 90, 93, 199, 209, uint8(3))
	f.Fuzz(func(t *testing.T, global, local, offset, blobs, repeat int, flags uint8) {
		if repeat > 2 {
			repeat %= 3 // it may take long because it is to
		}
		words := make([]uint32, 3*64)
		for i := range words {
			words[i] = uint32(1000 + i)
		}
		a := must[*cruncher.Array[uint32]](t)(cruncher.Wrap("a", words[64:128:128]))
		defer a.Close()
		r := cruncher.Range{Global: global, Local: local, Offset: offset, Blobs: blobs, Repeat: repeat, Strict: flags&8 != 0}
		edit(a).Read(flags&1 == 0).PartialRead(flags&1 != 0)
		if flags&2 != 0 {
			edit(a).Halo(int(flags >> 4))
		}
		if flags&4 != 0 {
			r.Inner = []int{int(flags>>4) - 1}
		}
		want := slices.Clone(words)
		err := a.Compute(t.Context(), cr, 1, "inc", r)
		possible := global >= 0 && global <= 64 && offset >= 0 && offset <= 64-global && len(r.Inner) == 0 && repeat >= 0 && blobs >= 0 && local >= 0
		if global == 0 && offset > 64 { // no items, wherever that is, if they could be numbered
			possible = offset <= math.MaxUint32 && len(r.Inner) == 0 && repeat >= 0 && blobs >= 0 && local >= 0
		}
		switch {
		case err == nil && !possible:
			t.Fatalf("%+v was taken", r)
		case err == nil:
			for i := range global {
				want[64+offset+i] += uint32(max(1, repeat))
			}
		default:
			if _, ok := errors.AsType[*gpu.OpError](err); !ok {
				t.Fatalf("%+v: %v has no type", r, err)
			}
			if possible && !r.Strict && local <= 256 {
				t.Fatalf("%+v: %v", r, err)
			}
		}
		if !slices.Equal(words, want) {
			t.Fatalf("%+v, %v: %v, want %v", r, err, words, want)
		}
	})
}

// TestEarlierOwners has kernels that write every other element of arrays that never went up, on devices whose pools are full of other
// arrays' bytes: what no kernel wrote is zero.
func TestEarlierOwners(t *testing.T) {
	devices := openDevices(t, 2)
	for _, d := range devices {
		var all []*gpu.Buffer
		for size := 16; size <= 2048; size += 16 {
			for range 3 {
				b := must[*gpu.Buffer](t)(d.NewBuffer(uint64(size)))
				check(t, b.Write(0, gpu.HostBytes(bytes.Repeat([]byte{0xa5}, size))))
				all = append(all, b)
			}
		}
		for _, b := range all {
			check(t, b.Close())
		}
	}
	cr := onDevices(t, devices, 2, "fn even(i: u32) { if (i % 2u == 0u) { a[i] = i; } }")
	for n := 1; n < 300; n += 13 {
		for _, partial := range []bool{false, true} {
			a := newArray[uint32](t, "a", n)
			edit(a).Read(false).PartialRead(partial).Write(true)
			if !partial {
				f := a.Flags()
				f.WriteOnly = true
				check(t, a.SetFlags(f))
			}
			check(t, a.Compute(t.Context(), cr, 1, "even", cruncher.Range{Global: n}))
			for i, v := range a.Data() {
				if want := uint32(1-i%2) * uint32(i); v != want {
					t.Fatalf("%d elements, partial %v: element %d is %#x, want %#x", n, partial, i, v, want)
				}
			}
			check(t, a.Close())
		}
	}
}
