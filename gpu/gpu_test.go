// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

var (
	onDevices = devtest.Each
	check     = devtest.Check
)

// addKernel adds the parameter to every word of a buffer.
func addKernel() gpu.KernelDesc {
	return gpu.KernelDesc{
		Label: "add",
		Source: `struct Params { add: u32, count: u32, pad0: u32, pad1: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < p.count) { data[id.x] += p.add; }
}`,
		Bindings: []driver.Access{driver.AccessParams, driver.AccessReadWrite},
		Reference: func(_ [3]uint32, params []byte, storage [][]byte) {
			add, n := binary.LittleEndian.Uint32(params), binary.LittleEndian.Uint32(params[4:])
			for i := range int(n) {
				w := storage[0][4*i:]
				binary.LittleEndian.PutUint32(w, binary.LittleEndian.Uint32(w)+add)
			}
		},
	}
}

func params(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func words(t testing.TB, b *gpu.Buffer, n int) []uint32 {
	t.Helper()
	raw := make([]byte, 4*n)
	check(t, b.Read(context.Background(), gpu.Transfer{Host: gpu.HostBytes(raw), Width: len(raw), Count: 1}))
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return out
}

// adder is a kernel of the test's and zeros for it to add to.
func adder(t *testing.T, dev *gpu.Device) (*gpu.Kernel, *gpu.Buffer) {
	t.Helper()
	k, err := dev.Kernel(t.Context(), addKernel())
	check(t, err)
	b, err := dev.NewBuffer(400)
	check(t, errors.Join(err, b.Clear(0, b.Size())))
	return k, b
}

// TestTogether queues more commands than a batch holds by itself: they are one submission, and errors leave nothing behind.
func TestTogether(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		k, b := adder(t, dev)
		check(t, dev.Sync(t.Context()))
		start := dev.Stats().Submissions
		check(t, dev.Together(func() error {
			return dev.Together(func() error {
				for i := range 1000 {
					check(t, k.Dispatch([3]uint32{2, 1, 1}, params(uint32(i), 100, 0, 0), gpu.Arg{Buffer: b}))
				}
				return nil
			})
		}))
		check(t, dev.Sync(t.Context()))
		if n := dev.Stats().Submissions - start; n != 1 {
			t.Errorf("%d submissions", n)
		}
		mine := errors.New("mine")
		if err := dev.Together(func() error { return mine }); !errors.Is(err, mine) {
			t.Errorf("error %v", err)
		}
		for range 300 { // which is more than stays
			check(t, k.Dispatch([3]uint32{2, 1, 1}, params(1, 100, 0, 0), gpu.Arg{Buffer: b}))
		}
		if n := dev.Stats().Submissions - start; n < 2 && dev.Info().Driver == "cpu" {
			t.Errorf("%d submissions after that", n)
		}
		if err := dev.Together(nil); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("error %v of nothing", err)
		}
		check(t, errors.Join(b.Close(), k.Close()))
	})
}

func TestKernelOfTheUsers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		k, b := adder(t, dev)
		for i := range 1000 {
			check(t, k.Dispatch([3]uint32{2, 1, 1}, params(uint32(i), 100, 0, 0), gpu.Arg{Buffer: b}))
		}
		for _, v := range words(t, b, 100) {
			if v != 999*1000/2 {
				t.Fatalf("%d, want %d", v, 999*1000/2)
			}
		}
		s := dev.Stats()
		if s.Dispatches != 1000 || s.Compilations != 1 || s.Submissions >= 1000 {
			t.Errorf("%+v", s)
		}
		check(t, b.Close())
	})
}

// TestKernelCompilesOnce asks for one text from many goroutines.
func TestKernelCompilesOnce(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := dev.Kernel(t.Context(), addKernel()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s := dev.Stats(); s.Compilations != 1 || s.CacheHits != 7 {
			t.Errorf("%d compilations and %d hits", s.Compilations, s.CacheHits)
		}
	})
}

func TestWriteOrder(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		k, err := dev.Kernel(t.Context(), addKernel())
		check(t, err)
		a, err := dev.NewBuffer(16)
		check(t, err)
		b, err := dev.NewBuffer(16)
		check(t, err)
		one := params(1, 1, 1, 1)
		for range 3 {
			check(t, a.Write(0, gpu.HostBytes(one)))
			check(t, k.Dispatch([3]uint32{1, 1, 1}, params(10, 4, 0, 0), gpu.Arg{Buffer: a}))
			check(t, b.CopyFrom(0, a, 0, 16))
			check(t, a.Write(0, gpu.HostBytes(params(5, 5, 5, 5))))
			check(t, k.Dispatch([3]uint32{1, 1, 1}, params(100, 4, 0, 0), gpu.Arg{Buffer: a}))
			if x, y := words(t, a, 4)[3], words(t, b, 4)[3]; x != 105 || y != 11 {
				t.Fatalf("a is %d, b is %d; want 105 and 11", x, y)
			}
		}
		check(t, errors.Join(a.Close(), b.Close(), k.Close()))
	})
}

// TestImportedTwice has two Buffers of one imported buffer: what is written through one does not overtake what was queued
// for the other, and the memory can be imported again while the batch in which the last of them was closed is collected.
func TestImportedTwice(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := devtest.Must[*gpu.Buffer](t)
		theirs, other, dst := must(dev.NewBuffer(16)), must(dev.NewBuffer(16)), must(dev.NewBuffer(16))
		fill := func(b *gpu.Buffer, v byte) { check(t, b.Write(0, gpu.HostBytes(bytes.Repeat([]byte{v}, 16)))) }
		fill(theirs, 1)
		one, two := must(dev.ImportBuffer(theirs.Handle())), must(dev.ImportBuffer(theirs.Handle()))
		check(t, dst.CopyFrom(0, one, 0, 16))
		fill(two, 2)
		if v := words(t, dst, 1)[0]; v != 0x01010101 {
			t.Errorf("the copy of what was there before has %#x", v)
		}
		check(t, errors.Join(one.Close(), dst.CopyFrom(0, other, 0, 16), two.Close())) // the copy waits in the batch
		again := must(dev.ImportBuffer(theirs.Handle()))
		if again.Size() != 16 {
			t.Errorf("imported again it has %d bytes", again.Size())
		}
		check(t, dev.Flush())
		if v := words(t, again, 1)[0]; v != 0x02020202 {
			t.Errorf("imported again it holds %#x", v)
		}
		check(t, errors.Join(again.Close(), theirs.Close(), other.Close(), dst.Close()))
		if s := dev.Stats(); s.Buffers != 0 || s.LiveBytes != 0 {
			t.Errorf("%d buffers with %d bytes are left", s.Buffers, s.LiveBytes)
		}
	})
}

func TestPool(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		gpu.LimitPool(dev, 64<<10)
		k, err := dev.Kernel(t.Context(), addKernel())
		check(t, err)
		for range 10000 {
			b, err := dev.NewBuffer(1024)
			check(t, err)
			check(t, k.Dispatch([3]uint32{1, 1, 1}, params(1, 4, 0, 0), gpu.Arg{Buffer: b}))
			check(t, b.Close())
			check(t, b.Close())
		}
		for i := range 100 { // sizes that are never asked for again must not pile up
			b, err := dev.NewBuffer(uint64(16 * (i + 1000)))
			check(t, err)
			check(t, b.Close())
		}
		s := dev.Stats()
		if s.LiveBytes != 0 || s.Buffers != 0 || s.PooledBytes > 64<<10 || s.PeakBytes > 64<<10 {
			t.Errorf("%+v", s)
		}
	})
}

func TestMemoryLimit(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, err := dev.NewBuffer(600)
		check(t, err)
		if _, err := dev.NewBuffer(600); !errors.Is(err, gpu.ErrNoMemory) {
			t.Errorf("second buffer: %v", err)
		}
		check(t, a.Close())
		b, err := dev.NewBuffer(1000)
		check(t, err)
		check(t, b.Close())
	}, gpu.WithMemory(1024))
}

func TestOpen(t *testing.T) {
	for what, opts := range map[string][]gpu.Option{
		"driver":  {gpu.WithDriver("nonesuch")},
		"adapter": {gpu.WithAdapter("nonesuch 3000")},
	} {
		if _, err := gpu.Open(t.Context(), opts...); !errors.Is(err, gpu.ErrNoAdapter) || !strings.Contains(err.Error(), "fits "+what+` "nonesuch`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := gpu.Open(t.Context(), nil); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("nil option: %v", err)
	}
	if _, err := gpu.Open(t.Context(), gpu.WithDevice(42)); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("strange device: %v", err)
	}
	n := 0
	for a, err := range gpu.Adapters(t.Context()) {
		check(t, err)
		n++
		i := a.Info
		if i.Name == "" || i.Driver == "" || i.Limits.MaxBufferSize == 0 {
			t.Errorf("%+v", i)
		}
		x, err := a.Open(t.Context())
		check(t, err)
		y, err := a.Open(t.Context()) // the same adapter twice
		check(t, err)
		check(t, errors.Join(x.Close(), y.Close(), x.Close()))
	}
	if n < 1 {
		t.Errorf("%d adapters", n)
	}
}

func TestMistakes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		other, err := gpu.Open(t.Context(), gpu.WithDriver("cpu"))
		check(t, err)
		defer other.Close()
		foreign, err := other.NewBuffer(64)
		check(t, err)
		k, err := dev.Kernel(t.Context(), addKernel())
		check(t, err)
		b, err := dev.NewBuffer(64)
		check(t, err)
		closed, err := dev.NewBuffer(64)
		check(t, err)
		check(t, closed.Close())
		one := [3]uint32{1, 1, 1}
		var none *gpu.Kernel
		cases := []struct {
			name string
			err  error
			want error
		}{
			{"too large", second(dev.NewBuffer(1 << 60)), gpu.ErrLimit},
			{"no arguments", k.Dispatch(one, params(1, 1, 1, 1)), gpu.ErrInvalid},
			{"no parameters", k.Dispatch(one, nil, gpu.Arg{Buffer: b}), gpu.ErrInvalid},
			{"foreign buffer", k.Dispatch(one, params(1, 1, 1, 1), gpu.Arg{Buffer: foreign}), gpu.ErrForeign},
			{"nil buffer", k.Dispatch(one, params(1, 1, 1, 1), gpu.Arg{}), gpu.ErrForeign},
			{"closed buffer", k.Dispatch(one, params(1, 1, 1, 1), gpu.Arg{Buffer: closed}), gpu.ErrClosed},
			{"offset", k.Dispatch(one, params(1, 1, 1, 1), gpu.Arg{Buffer: b, Offset: 4}), gpu.ErrInvalid},
			{"beyond the end", k.Dispatch(one, params(1, 1, 1, 1), gpu.Arg{Buffer: b, Size: 68}), gpu.ErrInvalid},
			{"groups", k.Dispatch([3]uint32{1 << 20, 1, 1}, params(1, 1, 1, 1), gpu.Arg{Buffer: b}), gpu.ErrLimit},
			{"large parameters", k.Dispatch(one, make([]byte, 2000), gpu.Arg{Buffer: b}), gpu.ErrLimit},
			{"nil kernel", none.Dispatch(one, nil), gpu.ErrInvalid},
			{"write beyond", b.Write(60, gpu.HostBytes(make([]byte, 8))), gpu.ErrInvalid},
			{"write misaligned", b.Write(2, gpu.HostBytes(make([]byte, 8))), gpu.ErrInvalid},
			{"write closed", closed.Write(0, gpu.HostBytes(make([]byte, 8))), gpu.ErrClosed},
			{"copy itself", b.CopyFrom(0, b, 0, 16), gpu.ErrInvalid},
			{"copy foreign", b.CopyFrom(0, foreign, 0, 16), gpu.ErrForeign},
			{"copy nil", b.CopyFrom(0, nil, 0, 16), gpu.ErrForeign},
			{"clear beyond", b.Clear(0, 1000), gpu.ErrInvalid},
			{"import nothing", second(dev.ImportBuffer(nil)), gpu.ErrInvalid},
			{"map what is not mappable", b.Map(t.Context(), 0, b.Size(), func([]byte) error { return nil }), gpu.ErrUnsupported},
		}
		for _, c := range cases {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
			}
		}
		if dev.Info().Features.Has(driver.FeatureWGSL) {
			bad := addKernel()
			bad.Source = strings.Replace(bad.Source, "p.add", "p.nothing", 1)
			if _, err := dev.Kernel(t.Context(), bad); !errors.Is(err, gpu.ErrCompile) || !strings.Contains(err.Error(), "nothing") {
				t.Errorf("bad kernel: %v", err)
			}
		}
		check(t, b.Clear(0, 64))
		check(t, k.Dispatch(one, params(3, 16, 0, 0), gpu.Arg{Buffer: b}))
		if v := words(t, b, 16)[15]; v != 3 {
			t.Errorf("after the mistakes: %d, want 3", v)
		}
		check(t, k.Close())
		if err := k.Dispatch(one, params(3, 16, 0, 0), gpu.Arg{Buffer: b}); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed kernel: %v", err)
		}
		check(t, dev.Close())
		if _, err := dev.NewBuffer(4); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed device: %v", err)
		}
		if err := b.Write(0, gpu.HostBytes(make([]byte, 4))); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("buffer of a closed device: %v", err)
		}
		check(t, b.Close())
	})
}

func second[T any](_ T, err error) error { return err }

// TestSharedByGoroutines has several goroutines use one device, each with buffers of its own.
func TestSharedByGoroutines(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		k, err := dev.Kernel(t.Context(), addKernel())
		check(t, err)
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				b, err := dev.NewBuffer(256)
				if err != nil {
					t.Error(err)
					return
				}
				defer b.Close()
				for range 20 {
					err := errors.Join(b.Clear(0, 256), k.Dispatch([3]uint32{1, 1, 1}, params(uint32(g), 64, 0, 0), gpu.Arg{Buffer: b}))
					if err != nil {
						t.Error(err)
						return
					}
					if v := words(t, b, 64)[63]; v != uint32(g) {
						t.Errorf("goroutine %d read %d", g, v)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// TestMapRange writes ranges of all kinds through mappings, and refuses those that are not ranges of the buffer.
func TestMapRange(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		if !dev.Info().Features.Has(driver.FeatureMappable) {
			if _, err := dev.NewMappable(64); !errors.Is(err, gpu.ErrUnsupported) {
				t.Errorf("%v, want %v", err, gpu.ErrUnsupported)
			}
			return
		}
		b, err := dev.NewMappable(64)
		check(t, err)
		want := make([]byte, 64)
		for from := uint64(0); from <= 64; from++ {
			for to := from; to <= 64; to++ {
				check(t, b.Map(t.Context(), from, to-from, func(m []byte) error {
					if !bytes.Equal(m, want[from:to]) || cap(m) != len(m) {
						t.Errorf("%d to %d: %v, want %v", from, to, m, want[from:to])
					}
					for i := range m {
						m[i]++
						want[from+uint64(i)]++
					}
					return nil
				}))
			}
		}
		got := make([]byte, 64)
		check(t, b.Read(t.Context(), gpu.Transfer{Host: gpu.HostBytes(got), Width: 64, Count: 1}))
		if !bytes.Equal(got, want) {
			t.Errorf("the buffer holds %v, want %v", got, want)
		}
		never := func([]byte) error { t.Error("mapped"); return nil }
		for _, r := range [][2]uint64{{65, 0}, {0, 65}, {64, 1}, {60, 8}, {8, math.MaxUint64}, {math.MaxUint64, 8}} {
			if err := b.Map(t.Context(), r[0], r[1], never); !errors.Is(err, gpu.ErrInvalid) {
				t.Errorf("%d bytes at %d: %v, want %v", r[1], r[0], err, gpu.ErrInvalid)
			}
		}
		if err := b.Map(t.Context(), 0, 64, nil); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("no function: %v, want %v", err, gpu.ErrInvalid)
		}
		check(t, b.Close())
		if err := b.Map(t.Context(), 0, 0, never); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed: %v, want %v", err, gpu.ErrClosed)
		}
	})
}
