// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/modules"
)

// By hand, what the compiler does: modules with the function "run" of package internal/shaders/compile.

const (
	get, set, tee      = 0x20, 0x21, 0x22
	i32Const, i32Load  = 0x41, 0x28
	i32Store, i32Add   = 0x36, 0x6a
	i32Mul, i32GeU     = 0x6c, 0x4f
	i32Sub             = 0x6b
	i32LtU, i32Eq      = 0x49, 0x46
	block, loop, br    = 0x02, 0x03, 0x0c
	brIf, ret, end     = 0x0d, 0x0f, 0x0b
	sel, unreachable   = 0x1b, 0x00
	void, argsWord     = 0x40, 2
	args, from, to     = 0, 2, 3
	at, last, scratch0 = 4, 5, 1
)

// assemble makes a module of the code of its function, which has two variables beside its parameters.
func assemble(code ...byte) []byte {
	section := func(id byte, content []byte) []byte {
		return append(append([]byte{id}, leb(len(content))...), content...)
	}
	body := append([]byte{1, 2, 0x7f}, append(code, end)...)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte("\x01\x60\x04\x7f\x7f\x7f\x7f\x01\x7f")),
		section(2, []byte("\x01\x03env\x06memory\x02\x00\x01")),
		section(3, []byte{1, 0}),
		section(7, []byte("\x01\x03run\x00\x00")),
		section(10, append([]byte{1}, append(leb(len(body)), body...)...)),
	}, nil)
}

func word(index byte) []byte { return []byte{get, args, i32Load, 2, 4 * index} }

// affineModule computes v = v*3 + 1 for 64 words of each workgroup, as far as there are words in binding 0.
func affineModule() []byte {
	var c []byte
	add := func(parts ...any) {
		for _, p := range parts {
			switch p := p.(type) {
			case int:
				c = append(c, byte(p))
			case []byte:
				c = append(c, p...)
			}
		}
	}
	limit := func(of int) { // the address of a workgroup's first word, or of the binding's end
		add(get, of, i32Const, 0x80, 2, i32Mul, tee, last, word(9), get, last, word(9), i32LtU, sel, word(8), i32Add)
	}
	limit(from)
	add(set, at)
	limit(to)
	add(set, last, block, void, loop, void, get, at, get, last, i32GeU, brIf, 1)
	add(get, at, get, at, i32Load, 2, 0, i32Const, 3, i32Mul, i32Const, 1, i32Add, i32Store, 2, 0)
	add(get, at, i32Const, 4, i32Add, set, at, br, 0, end, end, i32Const, 0)
	return assemble(c...)
}

// endlessModule takes turns until the word to stop is set, or there were too many.
func endlessModule() []byte {
	var c []byte
	c = append(c, loop, void)
	c = append(c, word(4)...)
	c = append(c, i32Load, 2, 0, 0x04, void, i32Const, 1, ret, end)
	c = append(c, get, at, i32Const, 1, i32Add, tee, at)
	c = append(c, word(5)...)
	c = append(c, i32Eq, 0x04, void, i32Const, 2, ret, end, br, 0, end, unreachable)
	return assemble(c...)
}

// callsModule writes how many workgroups a call runs, into the word of the first.
func callsModule() []byte {
	c := append(word(8), get, from, i32Const, 4, i32Mul, i32Add)
	return assemble(append(c, get, to, get, from, i32Sub, i32Store, 2, 0, i32Const, 0)...)
}

var testLayout = driver.NewLayout(driver.AccessReadWrite)

// handmade are what tests compile: the label of a kernel is its name.
var handmade = map[string]func() []byte{
	"affine": affineModule, "endless": endlessModule, "calls": callsModule,
	"trap":    func() []byte { return assemble(unreachable) },
	"outside": func() []byte { return assemble(i32Const, 0x7c, i32Load, 2, 0) },
}

func byHand(k *driver.Kernel, _ driver.Limits) (*modules.Module, error) {
	return &modules.Module{Wasm: handmade[k.Source](), Scratch: 100, Bindings: []modules.Binding{{Write: true, Least: 4}}, Params: -1}, nil
}

func openWith(t testing.TB, c config) driver.Device {
	t.Helper()
	if c.compile == nil {
		c.compile = byHand
	}
	list, err := newDriver(c).Adapters(t.Context())
	must(t, err)
	d, err := list[0].Open(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("got error %v, want %v", err, sentinel)
	}
}

// prepare makes kernel 1 of a module, and binding set 1 of buffer 1, of so many words.
func prepare(t testing.TB, d driver.Device, module string, words int) {
	t.Helper()
	must(t, d.NewBuffer(1, uint64(4*words), true))
	must(t, d.NewKernel(t.Context(), 1, &driver.Kernel{Label: "example", Source: module, Entry: "main", Layout: testLayout}))
	var l driver.CommandList
	l.Bind(1, testLayout, []driver.Binding{{Buffer: 1, Size: uint64(4 * words)}})
	must(t, d.Submit(&l))
}

func dispatch(number uint64, groups ...uint32) *driver.CommandList {
	l := &driver.CommandList{Number: number}
	for _, x := range groups {
		l.Dispatch(1, 1, [3]uint32{x, 1, 1}, nil)
	}
	return l
}

func words(t testing.TB, d driver.Device, n int) []uint32 {
	t.Helper()
	b := make([]byte, 4*n)
	must(t, d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: driver.HostBytes(b), Width: len(b), Count: 1}))
	w := make([]uint32, n)
	for i := range w {
		w[i] = uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24
	}
	return w
}

// TestDispatch runs a module with few and with many workgroups, by one goroutine and by several: each computes its words once.
func TestDispatch(t *testing.T) {
	for _, threads := range []int{1, 2, 7} {
		t.Run(strconv.Itoa(threads), func(t *testing.T) {
			const n = 1 << 18
			d := openWith(t, config{turns: 1000, threads: threads})
			prepare(t, d, "affine", n-5)
			must(t, d.Submit(dispatch(0, 0, 1, 3, 1<<12, 1<<12, 1<<13, 100, 1)))
			got := words(t, d, n-5)
			for i, v := range got {
				x := uint32(0)
				for _, groups := range []int{1, 3, 1 << 12, 1 << 12, 1 << 13, 100, 1} {
					if i < 64*groups {
						x = 3*x + 1
					}
				}
				if v != x {
					t.Fatalf("word %d is %d, want %d", i, v, x)
				}
			}
			must(t, d.Submit(dispatch(5, 1)))
			var l driver.CommandList
			l.Number = 7
			l.Dispatch(1, 1, [3]uint32{65535, 65535, 2}, nil)
			must(t, d.Submit(&l))
			want(t, d.Wait(t.Context()), fault.ErrLimit)
			if r, ok := errors.AsType[driver.Refusal](d.Submit(&l)); !ok || r.List != 7 {
				t.Errorf("refused %v", r)
			}
		})
	}
}

// TestEndless has kernels that take more turns than they may: their list and those behind it are refused, and the device goes on.
func TestEndless(t *testing.T) {
	for _, threads := range []int{1, 4} {
		d := openWith(t, config{turns: 100000, threads: threads})
		prepare(t, d, "endless", 64)
		must(t, d.NewKernel(t.Context(), 2, &driver.Kernel{Source: "affine", Entry: "main", Layout: testLayout}))
		good := func(number uint64) *driver.CommandList {
			l := &driver.CommandList{Number: number}
			l.Dispatch(2, 1, [3]uint32{1, 1, 1}, nil)
			return l
		}
		must(t, d.Submit(good(3)))
		if got := words(t, d, 1)[0]; got != 1 {
			t.Fatal(got)
		}
		must(t, d.Submit(dispatch(4, 1000)))
		for range 2 {
			err := d.Wait(t.Context())
			want(t, err, fault.ErrLimit)
			if r, ok := errors.AsType[driver.Refusal](err); !ok || r.List != 4 || !strings.Contains(err.Error(), "example (main)") {
				t.Errorf("refused %v: %v", r, err)
			}
			_, err = d.Map(t.Context(), 1, 0, 4)
			want(t, err, fault.ErrLimit)
			want(t, d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: driver.HostBytes(make([]byte, 4)), Width: 4, Count: 1}), fault.ErrLimit)
		}
		want(t, d.Submit(good(5)), fault.ErrLimit)
		must(t, d.Submit(good(5)))
		must(t, d.Wait(t.Context()))
		if got := words(t, d, 1)[0]; got != 4 {
			t.Errorf("afterwards %d, want 4", got)
		}
		must(t, d.Submit(dispatch(0, 1)))
		err := d.Wait(t.Context())
		want(t, err, fault.ErrLimit)
		if _, ok := errors.AsType[driver.Refusal](err); ok {
			t.Error("a list without a number is refused by it")
		}
	}
}

// TestFirstWorkgroup has kernels whose loops are watched begin with one workgroup, however short those of the dispatch before were: a call
// may take so many turns, and cannot be ended before.
func TestFirstWorkgroup(t *testing.T) {
	d := openWith(t, config{turns: 1000, threads: 1})
	prepare(t, d, "calls", 64)
	for range 20 {
		must(t, d.Submit(dispatch(1, 64, 64)))
		if got := words(t, d, 1)[0]; got != 1 {
			t.Fatalf("the first call runs %d workgroups", got)
		}
	}
}

// TestCloseAtWork closes devices whose kernels do not end by themselves for a long time, while somebody waits.
func TestCloseAtWork(t *testing.T) {
	for _, groups := range []uint32{1, 50000} {
		d := openWith(t, config{turns: 1<<32 - 1, threads: 3})
		prepare(t, d, "endless", 64)
		must(t, d.Submit(dispatch(1, groups)))
		must(t, d.Submit(dispatch(2, groups)))
		d.FreeBuffer(1)
		d.FreeKernel(1)
		errs := make(chan error)
		go func() { errs <- d.Wait(context.Background()) }()
		must(t, d.Close())
		want(t, <-errs, fault.ErrClosed)
	}
}

// TestTraps lose the device, whichever goroutine meets them.
func TestTraps(t *testing.T) {
	for _, module := range []string{"trap", "outside"} {
		for _, groups := range []uint32{1, 60000} {
			d := openWith(t, config{turns: 1000, threads: 3})
			prepare(t, d, module, 64)
			must(t, d.Submit(dispatch(1, groups)))
			want(t, d.Wait(t.Context()), fault.ErrDeviceLost)
			if r := d.LostReason(); !strings.Contains(r, "example (main)") {
				t.Error(r)
			}
		}
	}
}

// TestMapped uses mapped memory after Close until it is unmapped.
func TestMapped(t *testing.T) {
	d := openWith(t, config{turns: 1000, threads: 1})
	must(t, d.NewBuffer(1, 64, true))
	mem, err := d.Map(t.Context(), 1, 0, 64)
	must(t, err)
	must(t, d.Close())
	for i := range mem {
		mem[i]++
	}
	want(t, d.Unmap(1), fault.ErrClosed)
	want(t, d.Unmap(1), fault.ErrClosed)
}

// TestHandles uses what handles stand for after the device is closed.
func TestHandles(t *testing.T) {
	d := openWith(t, config{turns: 1000, threads: 1})
	const size = 4 << 20
	var handles [][]byte
	for id := range driver.BufferID(4) {
		must(t, d.NewBuffer(id+1, size, false))
		if id == 3 {
			break // nobody asks for the last one
		}
		h, ok := d.Handle(id + 1).([]byte)
		if !ok || len(h) != size || cap(h) != size {
			t.Fatalf("the handle is %d bytes", len(h))
		}
		h[0], h[size-1], h[size/2] = 1, 2, 3
		handles = append(handles, h)
	}
	known, n, err := d.ImportBuffer(7, handles[1])
	if known != 7 || n != size || err != nil {
		t.Fatalf("imported as %d, %d bytes, %v", known, n, err)
	}
	if known, _, err = d.ImportBuffer(8, handles[0]); known != 8 || err != nil {
		t.Fatalf("imported as %d, %v", known, err)
	}
	d.FreeBuffer(2)
	b := make([]byte, 1)
	must(t, d.Read(t.Context(), driver.Transfer{Buffer: 7, Host: driver.HostBytes(b), Width: 1, Count: 1}))
	must(t, d.NewBuffer(2, size, false)) // is elsewhere
	d.FreeBuffer(3)
	must(t, d.Close())
	for _, h := range handles[:2] {
		if b[0] != 1 || h[0] != 1 || h[size-1] != 2 || h[size/2] != 3 {
			t.Errorf("a handle has %d, %d, %d after Close", h[0], h[size-1], h[size/2])
		}
	}
	if !goMemory && handles[2][0] != 0 {
		t.Errorf("the handle of a buffer that was freed has %d", handles[2][0])
	}
}

// TestZeros finds zeros in memory that was used before, in small and large buffers, while work that uses it may go on.
func TestZeros(t *testing.T) {
	d := openWith(t, config{turns: 1000, threads: 2})
	must(t, d.NewKernel(t.Context(), 1, &driver.Kernel{Source: "affine", Entry: "main", Layout: testLayout}))
	for round := range 60 {
		n := 64 << (round % 3 * 7)
		must(t, d.NewBuffer(1, uint64(4*n), false))
		if got := words(t, d, n); got[0] != 0 || got[n-1] != 0 || got[n/2] != 0 {
			t.Fatalf("round %d: %d words begin with %d", round, n, got[0])
		}
		var l driver.CommandList
		l.Bind(1, testLayout, []driver.Binding{{Buffer: 1, Size: uint64(4 * n)}})
		for range 3 {
			l.Dispatch(1, 1, [3]uint32{uint32(n / 64), 1, 1}, nil)
		}
		l.Unbind(1)
		must(t, d.Submit(&l))
		d.FreeBuffer(1)
	}
}

// TestManyGoroutines has goroutines use one device, each with objects of its own.
func TestManyGoroutines(t *testing.T) {
	d := openWith(t, config{turns: 1000, threads: 2})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			buffer, kernel, set := driver.BufferID(g+1), driver.KernelID(g+1), driver.BindingsID(g+1)
			for round := range 20 {
				size := uint64(256 << (g + round%3))
				err := errors.Join(
					d.NewBuffer(buffer, size, false),
					d.NewKernel(context.Background(), kernel, &driver.Kernel{Source: "affine", Entry: "main", Layout: testLayout}))
				var l driver.CommandList
				l.Bind(set, testLayout, []driver.Binding{{Buffer: buffer, Size: size}})
				for range 4 {
					l.Dispatch(kernel, set, [3]uint32{uint32(size / 256), 1, 1}, nil)
				}
				l.Unbind(set)
				b := make([]byte, size)
				err = errors.Join(err, d.Submit(&l), d.Read(context.Background(),
					driver.Transfer{Buffer: buffer, Host: driver.HostBytes(b), Width: len(b), Count: 1}))
				if err != nil || !bytes.Equal(b, bytes.Repeat([]byte{40, 0, 0, 0}, len(b)/4)) {
					t.Errorf("goroutine %d: % x, %v", g, b[:8], err)
					return
				}
				d.FreeBuffer(buffer)
				d.FreeKernel(kernel)
			}
		})
	}
	all.Wait()
}

// BenchmarkDispatch measures what a dispatch costs beside its kernel: alone and in a list.
func BenchmarkDispatch(b *testing.B) {
	for _, groups := range []uint32{1, 16} {
		b.Run(strconv.FormatUint(uint64(groups), 10), func(b *testing.B) {
			d := openWith(b, config{turns: 1000, threads: threads()})
			prepare(b, d, "affine", 1)
			l := new(driver.CommandList)
			for range 1000 {
				l.Dispatch(1, 1, [3]uint32{groups, 1, 1}, nil)
			}
			for b.Loop() {
				must(b, d.Submit(l))
				must(b, d.Wait(b.Context()))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/dispatch")
		})
	}
	b.Run("submitted alone", func(b *testing.B) {
		d := openWith(b, config{turns: 1000, threads: threads()})
		prepare(b, d, "affine", 1)
		l := dispatch(0, 1)
		for b.Loop() {
			must(b, d.Submit(l))
			must(b, d.Wait(b.Context()))
		}
	})
}
