// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"fmt"
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cruncher"
)

// TestForeign has arrays in the page's own typed arrays, of which every part can go up and come back.
func TestForeign(t *testing.T) {
	const n, items = 403, 390
	devices := openDevices(t, 2)
	for _, c := range []struct {
		class  string
		kind   cruncher.Type
		mode   cruncher.Mode
		kernel string
	}{
		{"Uint32Array", cruncher.Uint32, cruncher.Widened, "plain"},
		{"Uint8Array", cruncher.Uint8, cruncher.Widened, "plain"},
		{"Uint16Array", cruncher.Uint16, cruncher.Widened, "plain"},
		{"Uint8Array", cruncher.Uint8, cruncher.Atomic, "bits"},
		{"Uint16Array", cruncher.Uint16, cruncher.Atomic, "bits"},
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
			a.SetMode(c.mode)
			b := newArray[uint32](t, "b", n)
			b.SetWriteOnly(true)
			for call := range 4 {
				a.SetPartialRead(call%2 == 0)
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
