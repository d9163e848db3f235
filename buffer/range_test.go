// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// memories makes a buffer of each kind with the given content. Those of states that need a kernel have been through one.
func memories(t *testing.T, dev *gpu.Device, content []byte) map[string]*buffer.Buffer {
	t.Helper()
	made := map[string]*buffer.Buffer{}
	keep := func(name string, b *buffer.Buffer, err error) *buffer.Buffer {
		t.Helper()
		check(t, err)
		made[name] = b
		return b
	}
	b, err := buffer.FromHost(dev, gpu.HostBytes(content))
	keep("owned", b, err)
	b, err = buffer.Wrap(dev, gpu.HostBytes(bytes.Clone(content)), nil)
	keep("wrapped, on the host", b, err)
	b, err = buffer.Wrap(dev, gpu.HostBytes(bytes.Clone(content)), nil)
	check(t, second(keep("wrapped, on both", b, err).Memory(buffer.Reads)))
	b, err = buffer.Wrap(dev, gpu.HostBytes(make([]byte, len(content))), nil)
	check(t, keep("wrapped, on the device", b, err).Write(0, gpu.HostBytes(content)))
	b, err = buffer.Map(dev, len(content))
	check(t, keep("mapped", b, err).Access(t.Context(), buffer.Range(0, len(content)), buffer.Writes, func(m []byte) error { copy(m, content); return nil }))
	return made
}

// device returns what the device's side of a buffer holds.
func device(t *testing.T, b *buffer.Buffer) []byte {
	t.Helper()
	mem, err := b.Memory(buffer.Reads)
	check(t, err)
	out := make([]byte, b.Size())
	check(t, mem.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(out), Width: len(out), Pitch: len(out), Count: 1}))
	return out
}

// TestRanges writes and reads every range of memory of every kind, and compares with Go memory, on the device's side too.
func TestRanges(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, size := range []int{1, 6, 13, 16} {
			want := make([]byte, size)
			for name := range memories(t, dev, want) {
				for i := range want {
					want[i] = byte(rng.Uint32())
				}
				b := memories(t, dev, want)[name]
				model := bytes.Clone(want)
				for offset := range size + 1 {
					for end := offset; end <= size; end++ {
						part := make([]byte, end-offset)
						for i := range part {
							part[i] = byte(rng.Uint32())
						}
						switch rng.IntN(3) {
						case 0:
							check(t, b.Patch(t.Context(), offset, part))
						case 1:
							check(t, b.Access(t.Context(), buffer.Range(offset, len(part)), buffer.Replaces, func(m []byte) error { copy(m, part); return nil }))
						default:
							check(t, b.Access(t.Context(), buffer.Range(offset, len(part)), buffer.Writes, func(m []byte) error {
								if !bytes.Equal(m, model[offset:end]) {
									t.Errorf("%s %d:%d: sees %v, want %v", name, offset, end, m, model[offset:end])
								}
								copy(m, part)
								return nil
							}))
						}
						copy(model[offset:], part)
						r := buffer.Range(offset, len(part))
						check(t, b.Access(t.Context(), r, buffer.Reads, func(m []byte) error {
							if !bytes.Equal(m, part) {
								t.Errorf("%s %d:%d: %v, want %v", name, offset, end, m, part)
							}
							return nil
						}))
					}
				}
				if got := read(t, b); !bytes.Equal(got, model) {
					t.Fatalf("%s: %v, want %v", name, got, model)
				}
				if got := device(t, b); !bytes.Equal(got, model) {
					t.Fatalf("%s: the device has %v, want %v", name, got, model)
				}
			}
		}
	})
}

// TestRangesOfParts does so with Go memory that the device holds in parts.
func TestRangesOfParts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		small, err := gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(1024))
		check(t, err)
		defer small.Close()
		mine := make([]byte, 5000)
		b, err := buffer.Wrap(small, gpu.HostBytes(mine), nil)
		check(t, err)
		touch := func(lo, hi int) { // as a kernel would
			mem, base, err := b.Use(t.Context(), b.Device(), one(lo, hi-lo), buffer.Writes)
			check(t, err)
			check(t, mem.Clear(uint64(lo-base), uint64(hi-lo)))
			b.Wrote(b.Device(), buffer.Range(lo, hi-lo))
		}
		check(t, b.Patch(t.Context(), 100, bytes.Repeat([]byte{1}, 4000)))
		touch(512, 1024)
		if err := second(b.Copy(t.Context())); !errors.Is(err, buffer.ErrUnsynced) {
			t.Errorf("a copy of results that were not synced: %v", err)
		}
		check(t, b.Access(t.Context(), buffer.Region{Offset: 99, Width: 4901, Count: 1}, buffer.Reads, func(m []byte) error {
			if m[0] != 0 || m[1] != 1 || m[413] != 0 || m[924] != 0 || m[925] != 1 {
				t.Errorf("after a kernel: %v", m[:8])
			}
			return nil
		}))
		touch(512, 1024)
		check(t, b.Access(t.Context(), buffer.Range(1000, 1000), buffer.Writes, func(m []byte) error {
			if m[0] != 0 || m[24] != 1 {
				t.Errorf("to update: %v", m[:32])
			}
			m[0] = 7
			return nil
		}))
		mem, base, err := b.Use(t.Context(), b.Device(), one(768, 256), buffer.Reads)
		check(t, err)
		word := make([]byte, 4)
		check(t, mem.Read(t.Context(), gpu.Transfer{Offset: uint64(1000 - base), Host: gpu.HostBytes(word), Width: 4, Pitch: 4, Count: 1}))
		if !bytes.Equal(word, []byte{7, 0, 0, 0}) {
			t.Errorf("the device has %v", word)
		}
		c, err := b.Copy(t.Context())
		check(t, err)
		check(t, b.Patch(t.Context(), 0, []byte("x")))
		if got := read(t, c); got[0] != 0 || got[1000] != 7 || got[4099] != 1 {
			t.Error("the copy holds other bytes")
		}
		check(t, errors.Join(b.Close(), c.Close()))
	})
}

// TestRangeMoves holds Patch and Access to moving what they name and nothing else.
func TestRangeMoves(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for name, c := range map[string]struct{ up, down uint64 }{
			"owned": {8, 8}, "wrapped, on the host": {0, 0}, "wrapped, on both": {8, 0}, "wrapped, on the device": {8, 8},
		} {
			b := memories(t, dev, make([]byte, 4096))[name]
			was, before := b.Location(), dev.Stats()
			check(t, b.Patch(t.Context(), 1024, []byte("12345678")))
			check(t, b.Access(t.Context(), buffer.Region{Offset: 1024, Width: 4, Pitch: 16, Count: 2}, buffer.Reads, func([]byte) error { return nil }))
			if was == buffer.Both { // the device gets it before the next kernel
				check(t, second(b.Memory(buffer.Reads)))
			}
			after := dev.Stats()
			if up, down := after.BytesUp-before.BytesUp, after.BytesDown-before.BytesDown; up != c.up || down != c.down {
				t.Errorf("%s: %d bytes up and %d down, want %d and %d", name, up, down, c.up, c.down)
			}
			at(t, b, was)
		}
	})
}

func TestCopy(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		content := []byte("hello, world!")
		for name, b := range memories(t, dev, content) {
			c, err := b.Copy(t.Context())
			check(t, err)
			check(t, b.Patch(t.Context(), 0, []byte("J")))
			if got := read(t, c); !bytes.Equal(got, content) {
				t.Errorf("%s: the copy holds %q", name, got)
			}
			check(t, errors.Join(c.Patch(t.Context(), 0, []byte("K")), c.Close()))
			if got := read(t, b); got[0] != 'J' {
				t.Errorf("%s: %q", name, got)
			}
			check(t, b.Close())
			if err := second(b.Copy(t.Context())); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("%s closed: %v", name, err)
			}
		}
		z, err := buffer.New(dev, 5)
		check(t, err)
		c, err := z.Copy(t.Context())
		check(t, err)
		if got := read(t, c); !bytes.Equal(got, make([]byte, 5)) {
			t.Errorf("a copy of zeros holds %v", got)
		}
	})
}

func TestRangeMistakes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		content := []byte("0123456789")
		nothing := func([]byte) error { return nil }
		stop := errors.New("stop")
		for name, b := range memories(t, dev, content) {
			for i, c := range []struct{ err, want error }{
				{b.Patch(t.Context(), -1, []byte("x")), gpu.ErrInvalid},
				{b.Patch(t.Context(), 10, []byte("x")), gpu.ErrInvalid},
				{b.Patch(t.Context(), math.MaxInt, []byte("x")), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Range(4, 7), buffer.Writes, nothing), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Range(4, -1), buffer.Writes, nothing), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Range(4, math.MaxInt), buffer.Writes, nothing), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Range(0, 1), buffer.Writes, nil), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Range(2, 3), buffer.Replaces, func([]byte) error { return stop }), stop},
				{b.Access(t.Context(), buffer.Region{Width: 1, Count: 1}, buffer.Reads, nil), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Region{Width: 11, Count: 1}, buffer.Reads, nothing), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Region{Width: 1, Pitch: math.MaxInt, Count: 3}, buffer.Reads, nothing), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Region{Width: 1, Pitch: 1 << 33, Count: 1<<31 + 1}, buffer.Reads, nothing), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Region{Width: math.MaxInt, Pitch: math.MaxInt, Count: math.MaxInt}, buffer.Reads, nothing), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Region{Offset: -1, Width: 1, Count: 1}, buffer.Reads, nothing), gpu.ErrInvalid},
				{b.Access(t.Context(), buffer.Region{Offset: 9, Width: 1, Count: 1}, buffer.Reads, func([]byte) error { return stop }), stop},
			} {
				if !errors.Is(c.err, c.want) {
					t.Errorf("%s, mistake %d: %v, want %v", name, i, c.err, c.want)
				}
			}
			if got := read(t, b); !bytes.Equal(got, content) {
				t.Errorf("%s: after mistakes: %q", name, got)
			}
			check(t, b.Close())
			if err := b.Patch(t.Context(), 0, []byte("x")); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("%s closed: %v", name, err)
			}
			if err := b.Access(t.Context(), buffer.Region{}, buffer.Reads, nothing); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("%s closed: %v", name, err)
			}
		}
	})
}

// TestResultsOfParts writes more parts than a device keeps without results, and gets all of them.
func TestResultsOfParts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		small, err := gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(1024))
		check(t, err)
		defer small.Close()
		mine := make([]byte, 8192)
		b, err := buffer.Wrap(small, gpu.HostBytes(mine), nil)
		check(t, err)
		for i := range 16 {
			kernelWrites(t, b, small, one(512*i, 512), bytes.Repeat([]byte{byte(i + 1)}, 512))
		}
		check(t, b.Sync(t.Context()))
		for i, v := range mine {
			if v != byte(i/512+1) {
				t.Fatalf("byte %d is %d", i, v)
			}
		}
		for i := range 15 { // the results are on the host: few parts stay
			kernelReads(t, b, small, one(512*i+256, 512))
		}
		if n := small.Stats().LiveBytes; n > 4*512 {
			t.Errorf("%d bytes live", n)
		}
		check(t, b.Close())
	})
}

// TestResultsInTwoRanges has results in two ranges of memory which overlap. Of both one at least stays until the results are synced,
// however many other ranges are used.
func TestResultsInTwoRanges(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		small, err := gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(1024))
		check(t, err)
		defer small.Close()
		mem := make([]byte, 16<<10)
		b, err := buffer.Wrap(small, gpu.HostBytes(mem), nil)
		check(t, err)
		defer b.Close()
		kernelWrites(t, b, small, buffer.Range(0, 256), bytes.Repeat([]byte{7}, 256))
		kernelReads(t, b, small, buffer.Range(0, 512))
		for at := 1024; at < len(mem); at += 1024 {
			kernelReads(t, b, small, buffer.Range(at, 256))
		}
		check(t, b.Sync(t.Context()))
		if !bytes.Equal(mem[:256], bytes.Repeat([]byte{7}, 256)) {
			t.Errorf("the results are %v...", mem[:8])
		}
	})
}

// TestRangesElsewhere has another device use parts of a buffer, of which it gets no more, and sees what is written to them on either side.
func TestRangesElsewhere(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const size, at, n = 64 << 10, 5000, 300
		second := devtest.Open(t, dev.Info().Driver)
		kinds := map[string]func() (*buffer.Buffer, error){
			"wrapped": func() (*buffer.Buffer, error) { return buffer.Wrap(dev, gpu.HostBytes(make([]byte, size)), nil) },
		}
		if runtime.GOOS != "js" { // in a page that is ErrUnsynced
			kinds["owned"] = func() (*buffer.Buffer, error) { return buffer.FromHost(dev, gpu.HostBytes(make([]byte, size))) }
			kinds["mapped"] = func() (*buffer.Buffer, error) { return buffer.Map(dev, size) }
		}
		for kind, create := range kinds {
			b, err := create()
			check(t, err)
			for step := range byte(3) {
				check(t, b.Access(t.Context(), buffer.Range(0, size), buffer.Writes, func(mem []byte) error {
					for i := range mem {
						mem[i] = step + byte(i)
					}
					return nil
				}))
				want := bytes.Clone(read(t, b)[at : at+n])
				if got := kernelReads(t, b, second, one(at, n)); want[1] != step+(at+1)%256 || !bytes.Equal(got, want) {
					t.Fatalf("%s, step %d: %v, want %v", kind, step, got[:8], want[:8])
				}
			}
			if live := second.Stats().LiveBytes; live > size/4 {
				t.Errorf("%s: the other device has %d bytes", kind, live)
			}
			if runtime.GOOS != "js" {
				kernelWrites(t, b, second, one(at, 8), bytes.Repeat([]byte{9}, 8))
				if got := read(t, b)[at-1 : at+9]; got[0] == 9 || !bytes.Equal(got[1:9], bytes.Repeat([]byte{9}, 8)) || got[9] == 9 {
					t.Errorf("%s: after a write elsewhere %v", kind, got)
				}
			}
			check(t, b.Close())
		}
	})
}
