// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// kernelWrites queues writes of bytes to the rows of a region, as a kernel that uses nothing else would do.
func kernelWrites(t *testing.T, b *buffer.Buffer, dev *gpu.Device, r buffer.Region, rows []byte) {
	t.Helper()
	mem, base, err := b.Use(t.Context(), dev, r, buffer.Writes)
	check(t, err)
	for i := range r.Count {
		row := rows[i*r.Width:][:r.Width]
		at := r.Offset + i*r.Pitch - base
		word := at &^ 3
		all := make([]byte, (at+r.Width-word+3)&^3)
		check(t, mem.Read(t.Context(), gpu.Transfer{Offset: uint64(word), Host: gpu.HostBytes(all), Width: len(all), Pitch: len(all), Count: 1}))
		copy(all[at-word:], row)
		check(t, mem.Write(uint64(word), gpu.HostBytes(all)))
	}
	b.Wrote(dev, r)
}

// kernelReads returns the rows of a region as a kernel sees them.
func kernelReads(t *testing.T, b *buffer.Buffer, dev *gpu.Device, r buffer.Region) []byte {
	t.Helper()
	mem, base, err := b.Use(t.Context(), dev, r, buffer.Reads)
	check(t, err)
	out := make([]byte, r.Span())
	check(t, mem.Read(t.Context(), gpu.Transfer{Offset: uint64(r.Offset - base), Host: gpu.HostBytes(out), Width: r.Width, Pitch: r.Pitch, Count: r.Count}))
	return out
}

func one(offset, n int) buffer.Region {
	return buffer.Range(offset, n)
}

// TestAliases writes through one of two wraps that overlap, and reads through the other.
func TestAliases(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		second := devtest.Open(t, dev.Info().Driver)
		for _, other := range []*gpu.Device{dev, second} {
			for _, shift := range []int{50, 52} { // the first has no words in common
				for _, sync := range []bool{false, true} {
					if runtime.GOOS == "js" && !sync && (other != dev || shift%4 != 0) {
						continue // ErrUnsynced
					}
					data := make([]byte, 160)
					a, err := buffer.Wrap(dev, gpu.HostBytes(data[:100]), nil)
					check(t, err)
					b, err := buffer.Wrap(other, gpu.HostBytes(data[shift:][:100]), nil)
					check(t, err)
					apart, err := buffer.Wrap(dev, gpu.HostBytes(data[:shift]), nil)
					check(t, err)
					if !a.Overlaps(b) || !b.Overlaps(a) || !a.Overlaps(a) || !apart.Overlaps(a) || apart.Overlaps(b) || a.Overlaps(nil) {
						t.Errorf("shift %d: overlaps", shift)
					}
					check(t, apart.Close())
					want := make([]byte, 160)
					step := func(from, to *buffer.Buffer, at int, v byte) {
						t.Helper()
						kernelWrites(t, from, from.Device(), one(at, 8), bytes.Repeat([]byte{v}, 8))
						if from == b {
							at += shift
						}
						copy(want[at:], bytes.Repeat([]byte{v}, 8))
						if sync {
							check(t, from.Sync(t.Context()))
							if data[at] != v {
								t.Errorf("the host has %d", data[at])
							}
						}
						off := 0
						if to == b {
							off = shift
						}
						if got := kernelReads(t, to, to.Device(), one(0, 100)); !bytes.Equal(got, want[off:][:100]) {
							t.Errorf("shift %d, sync %v: kernels see %v, want %v", shift, sync, got, want[off:][:100])
						}
						if got := read(t, to); !bytes.Equal(got, want[off:][:100]) {
							t.Errorf("shift %d, sync %v: read %v, want %v", shift, sync, got, want[off:][:100])
						}
					}
					step(a, b, 60, 1)
					step(b, a, 20, 2)
					step(a, b, 64, 3)
					step(b, a, 4, 4)
					check(t, b.Touch())
					for i := range data[shift : shift+100] {
						data[shift+i] = byte(i)
					}
					copy(want[shift:], data[shift:][:100])
					check(t, b.Touch())
					if got := kernelReads(t, a, a.Device(), one(0, 100)); !bytes.Equal(got[shift:], want[shift:100]) {
						t.Errorf("after Touch: %v", got)
					}
					check(t, errors.Join(a.Close(), b.Close()))
				}
			}
		}
	})
}

// TestInterleaved has kernels write even columns through one wrap and odd ones through another: nothing has to move
// between them, and Sync brings the columns of both.
func TestInterleaved(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		data := make([]byte, 8*100)
		even, err := buffer.Wrap(dev, gpu.HostBytes(data[:8*99+4]), nil)
		check(t, err)
		odd, err := buffer.Wrap(dev, gpu.HostBytes(data[4:]), nil)
		check(t, err)
		column := buffer.Region{Width: 4, Pitch: 8, Count: 100}
		for round := range 3 {
			kernelWrites(t, even, dev, column, bytes.Repeat([]byte{1, 2, 3, byte(round)}, 100))
			kernelWrites(t, odd, dev, column, bytes.Repeat([]byte{5, 6, 7, byte(round)}, 100))
		}
		before := dev.Stats()
		if got := kernelReads(t, even, dev, column); got[0] != 1 || got[8*99+3] != 2 || got[8*50+2] != 3 {
			t.Errorf("even: %v", got[:16])
		}
		if n := dev.Stats().BytesUp - before.BytesUp; n != 0 {
			t.Errorf("%d bytes moved for columns that nobody else wrote", n)
		}
		check(t, even.Sync(t.Context()))
		check(t, odd.Sync(t.Context()))
		for i := range 100 {
			if !bytes.Equal(data[8*i:][:8], []byte{1, 2, 3, 2, 5, 6, 7, 2}) {
				t.Fatalf("row %d: %v", i, data[8*i:][:8])
			}
		}
		if n := dev.Stats().BytesDown - before.BytesDown; n != 400+2*400 {
			t.Errorf("%d bytes came back", n)
		}
		check(t, errors.Join(even.Close(), odd.Close()))
	})
}

// TestMemoryModel does what programs do with many wraps of one slice on several devices, some of which hold it in parts, and
// compares with plain memory. In a page, where no call waits for results of another wrap, every call finds them on the host.
func TestMemoryModel(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		devs := []*gpu.Device{dev, devtest.Open(t, dev.Info().Driver), devtest.Open(t, dev.Info().Driver, gpu.WithMaxBuffer(1024))}
		seeds := uint64(16)
		if runtime.GOOS == "js" {
			seeds = 4 // each call synchronises
		}
		for seed := range seeds {
			memoryModel(t, devs, rand.New(rand.NewPCG(seed, 3)))
		}
	})
}

func memoryModel(t *testing.T, devs []*gpu.Device, rng *rand.Rand) {
	t.Helper()
	const size = 3000
	data, model := make([]byte, size), make([]byte, size)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	copy(model, data)
	type wrap struct {
		b  *buffer.Buffer
		at int
	}
	var wraps []wrap
	open := func() {
		at := rng.IntN(size - 700)
		n := 500 + rng.IntN(min(size-at-500, 1500)+1)
		if rng.IntN(2) == 0 {
			at, n = at&^3, n&^3
		}
		b, err := buffer.Wrap(devs[rng.IntN(len(devs))], gpu.HostBytes(data[at:][:n]), nil)
		check(t, err)
		wraps = append(wraps, wrap{b, at})
	}
	region := func(n int) buffer.Region {
		r := buffer.Region{Offset: rng.IntN(n - 400), Width: 1 + rng.IntN(16), Count: 1 + rng.IntN(12)}
		r.Pitch = r.Width + rng.IntN(16)
		if rng.IntN(3) == 0 {
			r = one(r.Offset, r.Span())
		}
		if rng.IntN(2) == 0 {
			r = buffer.Region{Offset: r.Offset &^ 3, Width: (r.Width + 3) &^ 3, Pitch: (r.Pitch + 3) &^ 3, Count: r.Count}
		}
		return r
	}
	rows := func(r buffer.Region) []byte {
		out := make([]byte, r.Width*r.Count)
		for i := range out {
			out[i] = byte(rng.Uint32())
		}
		return out
	}
	put := func(to []byte, r buffer.Region, rows []byte) {
		for i := range r.Count {
			copy(to[r.Offset+i*r.Pitch:], rows[i*r.Width:][:r.Width])
		}
	}
	ready := func() {
		for _, w := range wraps {
			if runtime.GOOS == "js" {
				check(t, w.b.Sync(t.Context()))
			}
		}
	}
	often := rng.IntN(4) // how often the host gets everything
	for step := range 600 {
		if len(wraps) < 3 {
			open()
		}
		i := rng.IntN(len(wraps))
		w := wraps[i]
		r := region(w.b.Size())
		dev := devs[rng.IntN(len(devs))]
		op := rng.IntN(10)
		if op >= 6 && rng.IntN(4) > often {
			op = 1 + rng.IntN(5)
		}
		ready()
		switch op {
		case 0, 1, 2:
			n := 1
			if rng.IntN(40) == 0 {
				n = 70 // more than are noted one by one
			}
			for range n {
				v := rows(r)
				kernelWrites(t, w.b, dev, r, v)
				put(model[w.at:], r, v)
				r = region(w.b.Size())
				ready()
			}
		case 3, 4:
			got := kernelReads(t, w.b, dev, r)
			for i := range r.Count {
				if row, want := got[i*r.Pitch:][:r.Width], model[w.at+r.Offset+i*r.Pitch:][:r.Width]; !bytes.Equal(row, want) {
					t.Fatalf("step %d, row %d of %+v: a kernel sees %v, want %v", step, i, r, row, want)
				}
			}
		case 5:
			v := rows(r)
			put(data[w.at:], r, v)
			check(t, w.b.Touch(r))
			put(model[w.at:], r, v)
		case 6:
			check(t, w.b.Sync(t.Context()))
			if n := w.b.Size(); !bytes.Equal(data[w.at:][:n], model[w.at:][:n]) {
				t.Fatalf("step %d: Sync left the host with other bytes", step)
			}
		case 7:
			if got := read(t, w.b); !bytes.Equal(got, model[w.at:][:w.b.Size()]) {
				t.Fatalf("step %d: Read returns other bytes", step)
			}
		case 8:
			v := rows(one(0, r.Span()))
			check(t, w.b.Patch(t.Context(), r.Offset, v))
			copy(model[w.at+r.Offset:], v)
		default:
			if len(wraps) < 6 {
				open()
				break
			}
			check(t, errors.Join(w.b.Sync(t.Context()), w.b.Close()))
			wraps = append(wraps[:i], wraps[i+1:]...)
		}
	}
	for _, w := range wraps {
		check(t, errors.Join(w.b.Sync(t.Context()), w.b.Close()))
	}
	if !bytes.Equal(data, model) {
		t.Fatal("at the end the host has other bytes")
	}
	for _, dev := range devs {
		if n := dev.Stats().LiveBytes; n != 0 {
			t.Errorf("%d bytes live", n)
		}
	}
}

// TestAliasWithin uses one wrap in functions that are given the other's bytes.
func TestAliasWithin(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		data := make([]byte, 64)
		a, err := buffer.Wrap(dev, gpu.HostBytes(data), nil)
		check(t, err)
		b, err := buffer.Wrap(dev, gpu.HostBytes(data[16:48]), nil)
		check(t, err)
		for _, written := range []bool{false, true} {
			if written {
				kernelWrites(t, a, dev, one(0, 64), bytes.Repeat([]byte{5}, 64))
			}
			want := read(t, b)
			use := func([]byte) error {
				if got := kernelReads(t, b, dev, one(0, 32)); !bytes.Equal(got, want) {
					t.Errorf("a kernel sees %v", got)
				}
				return nil
			}
			check(t, a.Access(t.Context(), one(0, 64), buffer.Reads, use))
			check(t, a.Access(t.Context(), buffer.Range(0, 64), buffer.Writes, use))
			check(t, a.Access(t.Context(), buffer.Range(0, a.Size()), buffer.Writes, use))
		}
		check(t, errors.Join(a.Close(), b.Close()))
	})
}
