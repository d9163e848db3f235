// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"errors"
	"fmt"
	"strconv"
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestForeign has arrays in the page's own typed arrays, of which every part can go up and come back.
func TestForeign(t *testing.T) {
	const n, items = 403, 390
	devices := openDevices(t, 2)
	for _, c := range []struct {
		class  string
		kind   dtype.Type
		mode   kernel.Mode
		kernel string
	}{
		{"Uint32Array", dtype.Uint32, kernel.Widened, "plain"},
		{"Uint8Array", dtype.Uint8, kernel.Widened, "plain"},
		{"Uint16Array", dtype.Uint16, kernel.Widened, "plain"},
		{"Uint8Array", dtype.Uint8, kernel.Atomic, "bits"},
		{"Uint16Array", dtype.Uint16, kernel.Atomic, "bits"},
	} {
		source := "fn plain(i: u32) { a[i] = a[i] + 3u; b[i] = a[i]; }"
		if c.kernel == "bits" {
			source = "fn bits(i: u32) { sublet_store_a(i, sublet_load_a(i) + 3u); b[i] = sublet_load_a(i); }"
		}
		for devs := 1; devs <= 2; devs++ {
			cr := onDevices(t, devices, devs, source, shifting())
			size := c.kind.Size()
			view := js.Global().Get(c.class).New(js.Global().Get("ArrayBuffer").New(size*(n+2)), size, n)
			for i := range n {
				view.SetIndex(i, i%200)
			}
			released := 0
			a := must[*cruncher.Any](t)(cruncher.WrapHost("a", c.kind, gpu.Host{Foreign: view, Size: n * size}, func() { released++ }))
			edit(a).Mode(c.mode)
			b := newArray[uint32](t, "b", n)
			edit(b).WriteOnly(true)
			for call := range 4 {
				edit(a).PartialRead(call%2 == 0)
				check(t, cr.Compute(t.Context(), 1, c.kernel, cruncher.Range{Global: items, Offset: 5, Local: 3, Blobs: 1 + 2*(call/2)}, a, b))
			}
			what := fmt.Sprintf("%s in mode %d on %d devices", c.class, c.mode, devs)
			for i := range n {
				want := i % 200
				if i >= 5 && i < 5+items {
					want += 12
					if got := b.Data()[i]; got != uint32(want) {
						t.Fatalf("%s: the kernel saw %d at %d, want %d", what, got, i, want)
					}
				}
				if got := view.Index(i).Int(); got != want {
					t.Fatalf("%s: element %d is %d, want %d", what, i, got, want)
				}
			}
			check(t, a.Close())
			if released != 1 {
				t.Errorf("released %d times", released)
			}
		}
	}
}

// foreignWords makes an array of a typed array of words.
func foreignWords(t *testing.T, name string, values []uint32) (*cruncher.Any, js.Value) {
	t.Helper()
	view := js.Global().Get("Uint32Array").New(len(values))
	for i, v := range values {
		view.SetIndex(i, v)
	}
	a := must[*cruncher.Any](t)(cruncher.WrapHost(name, dtype.Uint32, gpu.Host{Foreign: view, Size: 4 * len(values)}, nil))
	t.Cleanup(func() { check(t, a.Close()) })
	return a, view
}

func wordsOf(view js.Value) []uint32 {
	v := make([]uint32, view.Length())
	for i := range v {
		v[i] = uint32(view.Index(i).Float())
	}
	return v
}

// TestForeignFaults loses a device at each operation of a call, a batch and a fetch whose results go to typed arrays: all of them
// come, or none.
func TestForeignFaults(t *testing.T) {
	by := cruncher.NewScalar("by", uint32(5))
	for n := 1; n <= 3; n++ {
		for _, kernels := range []string{"inc", "mix inc"} { // one array is written, or two
			for _, how := range []string{"call", "blobs", "batch", "fetch"} {
				everyFault(t, n, how != "batch", func(t *testing.T, victim int, plans []failure) bool {
					devices, drivers := openFaulty(t, faultReferences, plans)
					cr := onDevices(t, devices, n, faultSource, even())
					x, xs := foreignWords(t, "x", count(faultItems, uint32(1)))
					y, ys := foreignWords(t, "y", make([]uint32, faultItems))
					r := faultRange
					var params []cruncher.Param
					switch how {
					case "blobs":
						r.Blobs = 3
					case "fetch":
						edit(x).Write(false)
						edit(y).Write(false)
					}
					if params = []cruncher.Param{x, by}; kernels != "inc" {
						params = append(params, y)
					}
					call := func(compute computing) error { return compute(t.Context(), 1, kernels, r, params...) }
					var err error
					if how == "batch" {
						err = cr.Batch(t.Context(), func(b *cruncher.Batch) error { return call(b.Compute) })
					} else {
						err = call(cr.Compute)
					}
					if err == nil && how == "fetch" {
						err = cr.Fetch(t.Context(), x, y)
					}
					wantX, wantY := count(faultItems, uint32(1)), make([]uint32, faultItems)
					switch {
					case err == nil:
						for i := range wantX {
							if kernels != "inc" {
								wantY[i] = uint32(i*7%faultItems) + 1
							}
							wantX[i] += 5
						}
					case n > 1 && how != "fetch" && how != "batch":
						t.Errorf("%s of %s on %d devices could be computed again: %v", how, kernels, n, err)
					case !errors.Is(err, cruncher.ErrStale): // what only one had
						refused(t, "all lost", err, gpu.ErrDeviceLost)
					}
					same(t, fmt.Sprint(how, " x ", err), wordsOf(xs), wantX)
					same(t, fmt.Sprint(how, " y ", err), wordsOf(ys), wantY)
					return drivers[victim].IsLost()
				})
			}
		}
	}
}

// TestForeignGone has memory that is transferred away before results come, in the middle of the call.
func TestForeignGone(t *testing.T) {
	devices, _ := openFaulty(t, faultReferences, []failure{never, never})
	cr := onDevices(t, devices, 2, faultSource, even())
	x, xs := foreignWords(t, "x", count(faultItems, uint32(1)))
	y, ys := foreignWords(t, "y", make([]uint32, faultItems))
	err := cr.Batch(t.Context(), func(b *cruncher.Batch) error {
		check(t, b.Compute(t.Context(), 1, "mix inc", faultRange, x, y, cruncher.NewScalar("by", uint32(5))))
		js.Global().Call("structuredClone", ys, map[string]any{"transfer": []any{ys.Get("buffer")}})
		return nil
	})
	refused(t, "gone", err, gpu.ErrInvalid)
	same(t, "x", wordsOf(xs), count(faultItems, uint32(1)))
}

// BenchmarkForeignLanding computes with one typed array, which comes straight from the device, and with two, of which one waits in
// Go's memory.
func BenchmarkForeignLanding(b *testing.B) {
	const n = 1 << 22
	dev := must[*gpu.Device](b)(gpu.Open(b.Context()))
	b.Cleanup(func() { check(b, dev.Close()) })
	cr := onDevices(b, []*gpu.Device{dev}, 1, `fn one(i: u32) { u[i] = i; }
fn two(i: u32) { u[i] = i; v[i] = i; }`)
	for _, arrays := range []int{1, 2} {
		b.Run(strconv.Itoa(arrays), func(b *testing.B) {
			var params []cruncher.Param
			for k := range arrays {
				view := js.Global().Get("Uint32Array").New(n)
				a := must[*cruncher.Any](b)(cruncher.WrapHost([]string{"u", "v"}[k], dtype.Uint32, gpu.Host{Foreign: view, Size: 4 * n}, nil))
				edit(a).WriteOnly(true)
				params = append(params, a)
			}
			b.SetBytes(int64(4 * n * arrays))
			for b.Loop() {
				check(b, cr.Compute(b.Context(), 1, []string{"one", "two"}[arrays-1], cruncher.Range{Global: n}, params...))
			}
		})
	}
}
