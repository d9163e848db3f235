// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// TestOrder runs a list in which every command depends on the one before. Twice in one list, because writes overtake an
// encoder that is still open.
func TestOrder(t *testing.T) {
	d := openDevice(t)
	newBuffer(t, d, 1, 16)
	newBuffer(t, d, 2, 16)
	newKernel(t, d, 1, &scale)
	newKernel(t, d, 2, &add)
	submit(t, d, func(l *driver.CommandList) {
		l.Bind(1, scale.Layout, []driver.Binding{{Buffer: 1, Size: 16}})
		l.Bind(2, add.Layout, []driver.Binding{{Buffer: 1, Size: 16}, {Buffer: 2, Size: 16}})
		for i := range 2 {
			f := float32(10 * i)
			l.Write(1, 0, driver.HostBytes(floats(f+1, f+2, f+3, f+4)))
			l.Dispatch(1, 1, [3]uint32{1, 1, 1}, scaleParams(2, 4)) // 1 *= 2
			l.Dispatch(2, 2, [3]uint32{1, 1, 1}, nil)               // 2 += 1
			l.Write(1, 4, driver.HostBytes(floats(100)))
			l.Dispatch(2, 2, [3]uint32{1, 1, 1}, nil) // 2 += 1
			l.Clear(1, 12, 4)
			l.Dispatch(1, 1, [3]uint32{1, 1, 1}, scaleParams(3, 4)) // 1 *= 3
			l.Dispatch(2, 2, [3]uint32{0, 1, 1}, nil)               // nothing
		}
		l.Unbind(1)
		l.Bind(1, scale.Layout, []driver.Binding{{Buffer: 2, Size: 16}})
		l.Copy(1, 0, 2, 8, 4)
		l.Dispatch(1, 1, [3]uint32{1, 1, 1}, scaleParams(10, 4)) // 2 *= 10
	})
	if got, want := readFloats(t, d, 2, 4), []float32{480, 2280, 640, 720}; !slices.Equal(got, want) {
		t.Errorf("sums are %v, want %v", got, want)
	}
	if got, want := readFloats(t, d, 1, 4), []float32{64, 300, 78, 0}; !slices.Equal(got, want) {
		t.Errorf("last state is %v, want %v", got, want)
	}
}

// TestParamsGrow makes the parameter buffer grow, so that the bind groups that show it are made anew.
func TestParamsGrow(t *testing.T) {
	d := openDevice(t)
	newBuffer(t, d, 1, 4096)
	newKernel(t, d, 1, &scale)
	submit(t, d, func(l *driver.CommandList) {
		for i := range driver.BindingsID(16) {
			l.Bind(1+i, scale.Layout, []driver.Binding{{Buffer: 1, Offset: 256 * uint64(i), Size: 256}})
			l.Write(1, 256*uint64(i), driver.HostBytes(floats(1)))
		}
	})
	want := make([]float32, 16)
	for i := range want {
		want[i] = 1
	}
	for _, rounds := range []int{1, 40, 2000, 3} {
		submit(t, d, func(l *driver.CommandList) {
			for r := range rounds {
				// Different parameters each time, or they would be stored once.
				f := []float32{2, 0.5, -1}[(r+rounds)%3]
				l.Dispatch(1, driver.BindingsID(1+r%16), [3]uint32{1, 1, 1}, scaleParams(f, 1))
				want[r%16] *= f
			}
		})
	}
	got := readFloats(t, d, 1, 1024)
	for i := range want {
		if got[64*i] != want[i] {
			t.Errorf("element %d is %v, want %v", i, got[64*i], want[i])
		}
	}
}

// TestWriteSizes writes Go memory of sizes around those at which it travels differently.
func TestWriteSizes(t *testing.T) {
	d := openDevice(t)
	const size = 5 << 20
	const piece = 1 << 20
	newBuffer(t, d, 1, size)
	newBuffer(t, d, 2, size)
	want := make([]byte, size)
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		return b
	}
	var l driver.CommandList
	for _, n := range []int{0, 4, 100, piece - 4, piece, piece + 4, 3*piece + 8, 8} {
		b := random(n)
		l.Write(1, 16, driver.HostBytes(b))
		l.Copy(2, 0, 1, 0, size) // so that an order of writes that is wrong shows
		l.Clear(2, 0, 16)
		copy(want[16:], b)
	}
	if err := d.Submit(&l); err != nil {
		t.Fatal(err)
	}
	clear(l.Data[len(l.Data)-1].Bytes) // Submit has taken the data over
	for id := range driver.BufferID(2) {
		got := make([]byte, size)
		err := d.Read(t.Context(), driver.Transfer{Buffer: 1 + id, Host: driver.HostBytes(got), Width: size, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("buffer %d differs", 1+id)
		}
	}
}

// jsMemory makes the kinds of JavaScript memory that can be host memory, each showing the bytes.
func jsMemory(b []byte) map[string]js.Value {
	global := js.Global()
	whole := global.Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(whole, b)
	shared := global.Get("Uint8Array").New(global.Get("SharedArrayBuffer").New(len(b) + 8))
	js.CopyBytesToJS(shared.Call("subarray", 8), b)
	resizable := global.Get("Uint8Array").New(global.Get("ArrayBuffer").New(len(b), map[string]any{"maxByteLength": 4 * len(b)}))
	js.CopyBytesToJS(resizable, b)
	wide := global.Get("Uint8Array").New(len(b) + 32)
	js.CopyBytesToJS(wide.Call("subarray", 16), b)
	return map[string]js.Value{
		"Uint8Array":        whole,
		"ArrayBuffer":       whole.Call("slice").Get("buffer"),
		"Float32Array":      global.Get("Float32Array").New(wide.Get("buffer"), 16, len(b)/4),
		"DataView":          global.Get("DataView").New(wide.Call("slice").Get("buffer"), 16, len(b)),
		"Shared":            shared.Call("subarray", 8),
		"SharedArrayBuffer": shared.Call("slice", 8).Get("buffer"),
		"resizable":         resizable,
	}
}

func bytesOf(v js.Value, n int) []byte {
	memory, at, err := driver.Host{Foreign: v}.Buffer("test")
	if err != nil {
		panic(err)
	}
	b := make([]byte, n)
	plain := js.Global().Get("Uint8Array").New(memory, at, n).Call("slice")
	js.CopyBytesToGo(b, plain)
	return b
}

func TestForeignMemory(t *testing.T) {
	d := openDevice(t)
	want := floats(1, 2, 3, 4, 5, 6, 7, 8)
	newBuffer(t, d, 1, uint64(len(want)))
	for name, memory := range jsMemory(want) {
		t.Run(name, func(t *testing.T) {
			host := driver.Host{Foreign: memory, Size: len(want)}
			submit(t, d, func(l *driver.CommandList) {
				l.Clear(1, 0, uint64(len(want)))
				l.Write(1, 0, host)
			})
			if got := readFloats(t, d, 1, 8); !slices.Equal(got, []float32{1, 2, 3, 4, 5, 6, 7, 8}) {
				t.Errorf("wrote %v", got)
			}
			// Back again, the second half in two rows with a gap.
			submit(t, d, func(l *driver.CommandList) { l.Clear(1, 0, uint64(len(want))) })
			err := d.Read(t.Context(), driver.Transfer{Buffer: 1, Offset: 16, Host: host, HostOffset: 16, Width: 4, Pitch: 8, Count: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := bytesOf(memory, len(want)), floats(1, 2, 3, 4, 0, 6, 0, 8); !bytes.Equal(got, want) {
				t.Errorf("read %v, want %v", got, want)
			}
		})
	}
}

// TestForeignParts writes and reads parts of typed arrays, also such whose size is no multiple of four: zeros follow those.
func TestForeignParts(t *testing.T) {
	d := openDevice(t)
	all := make([]byte, 64)
	for i := range all {
		all[i] = byte(i + 1)
	}
	newBuffer(t, d, 1, 64)
	for name, memory := range jsMemory(all) {
		t.Run(name, func(t *testing.T) {
			for _, c := range [][3]int{{0, 0, 64}, {5, 8, 12}, {1, 4, 7}, {63, 0, 1}, {61, 60, 3}, {64, 0, 0}, {0, 0, 2}} {
				from, at, size := c[0], c[1], c[2]
				submit(t, d, func(l *driver.CommandList) {
					l.Clear(1, 0, 64)
					l.Write(1, 0, driver.HostBytes([]byte{200, 201, 202, 203}))
					l.Write(1, uint64(at), driver.Host{Foreign: memory, Offset: from, Size: size})
				})
				want := make([]byte, 64)
				copy(want, []byte{200, 201, 202, 203})
				clear(want[at : at+(size+3)/4*4])
				copy(want[at:], all[from:from+size])
				got := make([]byte, 64)
				if err := d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: driver.HostBytes(got), Width: 64, Count: 1}); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%d bytes from %d: %v, want %v", size, from, got, want)
				}
			}
			host := driver.Host{Foreign: memory, Offset: 10, Size: 50}
			submit(t, d, func(l *driver.CommandList) { l.Write(1, 0, driver.HostBytes(bytes.Repeat([]byte{99}, 64))) })
			err := d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: host, HostOffset: 3, Width: 5, Pitch: 10, Count: 2})
			if err != nil {
				t.Fatal(err)
			}
			want := append([]byte(nil), all...)
			for _, at := range []int{13, 23} {
				copy(want[at:], []byte{99, 99, 99, 99, 99})
			}
			if got := bytesOf(memory, 64); !bytes.Equal(got, want) {
				t.Errorf("read %v, want %v", got, want)
			}
			for _, h := range []driver.Host{{Foreign: memory, Offset: 61, Size: 4}, {Foreign: memory, Offset: -1, Size: 4}, {Foreign: memory, Offset: math.MaxInt, Size: 4}} {
				var l driver.CommandList
				l.Write(1, 0, h)
				wantError(t, d.Submit(&l), fault.ErrInvalid)
				wantError(t, d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: h, Width: 4, Count: 1}), fault.ErrInvalid)
			}
		})
	}
	var l driver.CommandList
	l.Write(1, 60, driver.Host{Foreign: js.Global().Get("Uint8Array").New(5), Size: 5})
	wantError(t, d.Submit(&l), fault.ErrInvalid) // with its zeros it would not fit
}

func TestForeignMistakes(t *testing.T) {
	d := openDevice(t)
	newBuffer(t, d, 1, 16)
	detached := js.Global().Get("Uint8Array").New(16)
	js.Global().Call("structuredClone", detached, map[string]any{"transfer": []any{detached.Get("buffer")}})
	for name, foreign := range map[string]any{
		"detached": detached,
		"short":    js.Global().Get("Uint8Array").New(12),
		"array":    js.ValueOf([]any{1, 2, 3, 4}),
		"number":   js.ValueOf(16),
		"null":     js.Null(),
		"Go":       42,
	} {
		host := driver.Host{Foreign: foreign, Size: 16}
		var l driver.CommandList
		l.Bind(1, scale.Layout, []driver.Binding{{Buffer: 1, Size: 16}})
		l.Write(1, 0, driver.HostBytes(floats(7)))
		l.Write(1, 0, host)
		if err := d.Submit(&l); err == nil {
			t.Errorf("wrote from %s", name)
		} else {
			wantError(t, err, fault.ErrInvalid)
		}
		err := d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: host, Width: 16, Count: 1})
		wantError(t, err, fault.ErrInvalid)
	}
	if got := readFloats(t, d, 1, 1); got[0] != 0 {
		t.Error("a list that was refused has run")
	}
}

// TestSubmitMistakes hands over what Objects refuses: the tests of package driver have the details.
func TestSubmitMistakes(t *testing.T) {
	d := openDevice(t)
	wantError(t, d.Submit(nil), fault.ErrInvalid)
	wantError(t, d.Submit(&driver.CommandList{Words: []uint32{0xffffffff}}), fault.ErrInvalid)
	if err := d.Submit(&driver.CommandList{}); err != nil {
		t.Error(err)
	}
	var l driver.CommandList
	l.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil)
	wantError(t, d.Submit(&l), fault.ErrClosed)
}
