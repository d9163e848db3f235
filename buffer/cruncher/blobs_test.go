// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
)

const blobsSource = `
fn first(i: u32) { t[i] = x[i] * 3u + w[i % 16u]; }
fn second(i: u32) { t[i] = t[i] ^ (t[i] >> 3u); u[i] = t[i] + 1u; }
fn third(i: u32) { y[i] = u[i] * 5u + x[i]; z[i] = y[i] & 0x7fu; }
fn sync(i: u32) { if (i == 0u) { w[0] = w[0] + 1u; } }`

// TestBlobs cuts lists of one to three different kernels into blobs of all sizes: the results and the traffic do not change.
func TestBlobs(t *testing.T) {
	const n = 1000
	devices := openDevices(t, 3)
	x, w := count(n, uint32(9)), count(16, uint32(100))
	for _, list := range []string{"first", "first second", "first second third", "third, third", "first@second;third"} {
		var want [][]uint32
		for devs := 1; devs <= 3; devs++ {
			cr := onDevices(t, devices, devs, blobsSource, even())
			for _, blobs := range []int{0, 1, 2, 3, 4, 7, 16, 1000} {
				ax, aw := wrap(t, "x", slices.Clone(x)), wrap(t, "w", slices.Clone(w))
				at, au := wrap(t, "t", make([]uint32, n)), wrap(t, "u", make([]uint32, n))
				ay, az := wrap(t, "y", make([]uint32, n)), wrap(t, "z", make([]uint8, n))
				edit(ax).PartialRead(true).Write(false)
				edit(aw).ReadOnly(true)
				edit(at).Read(false)
				edit(au).Read(false).Write(false)
				edit(ay).WriteOnly(true)
				edit(az).PartialRead(true)
				var err error
				got := moved(cr, func() {
					err = cr.Compute(t.Context(), 1, list, cruncher.Range{Global: n - 3, Local: 8, Blobs: blobs}, ax, aw, at, au, ay, az)
				})
				check(t, err)
				what := fmt.Sprintf("%q on %d devices in %d blobs", list, devs, blobs)
				results := [][]uint32{at.Data(), ay.Data(), widened(az.Data())}
				if want == nil {
					want = results
				}
				for k := range want {
					same(t, what, results[k], want[k])
				}
				if wanted := (cruncher.Traffic{Up: int64((n-3)*5 + devs*64), Down: (n - 3) * 9}); got != wanted {
					t.Errorf("%s: %+v, want %+v", what, got, wanted)
				}
				for _, a := range []*cruncher.Any{ax.Any, aw.Any, at.Any, au.Any, ay.Any, az.Any} {
					check(t, a.Close())
				}
			}
		}
	}
}

func widened[T cruncher.Elem](v []T) []uint32 {
	w := make([]uint32, len(v))
	for i := range v {
		w[i] = uint32(v[i])
	}
	return w
}

// TestBlobsNeighbours gives a kernel what an earlier one of the list made for other items, of the same device: it runs between.
func TestBlobsNeighbours(t *testing.T) {
	const n = 512
	cr := newCruncher(t, 1, `
fn make(i: u32) { t[i] = x[i] + 1u; }
fn turn(i: u32) { u[i] = t[511u - i]; }
fn back(i: u32) { x[i] = u[i]; }`)
	for _, blobs := range []int{1, 4, 64} {
		x, tmp, u := wrap(t, "x", count(n, uint32(0))), newArray[uint32](t, "t", n), newArray[uint32](t, "u", n)
		edit(x).PartialRead(true)
		edit(tmp).Read(false).Write(false)
		edit(u).Read(false).Write(false)
		check(t, cr.Compute(t.Context(), 1, "make turn back", cruncher.Range{Global: n, Local: 8, Blobs: blobs}, x, tmp, u))
		for i, v := range x.Data() {
			if v != uint32(n-i) {
				t.Fatalf("%d blobs: element %d is %d", blobs, i, v)
			}
		}
	}
}

// TestBlobsWhole gets an array as a whole from a call in blobs: once.
func TestBlobsWhole(t *testing.T) {
	const n = 4000
	for devs := 1; devs <= 2; devs++ {
		cr := newCruncher(t, devs, `fn scatter(i: u32) { out[(i * 7u) % 4000u] = x[i]; }`)
		x, out := wrap(t, "x", count(n, uint32(0))), newArray[uint32](t, "out", n)
		edit(x).PartialRead(true).Write(false)
		edit(out).Read(false).WriteAll(true)
		got := moved(cr, func() {
			check(t, cr.Compute(t.Context(), 1, "scatter", cruncher.Range{Global: n, Local: 8, Blobs: 16}, x, out))
		})
		if want := (cruncher.Traffic{Up: 4 * n, Down: 4 * n}); got != want {
			t.Errorf("%d devices: %+v, want %+v", devs, got, want)
		}
		for i := range uint32(n) {
			if v := out.Data()[i*7%n]; v != i {
				t.Fatalf("%d devices: element %d is %d, want %d", devs, i*7%n, v, i)
			}
		}
	}
}

// TestRepeat runs lists of kernels several times, with a kernel between that changes what all devices read.
func TestRepeat(t *testing.T) {
	const n, repeats = 300, 5
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		cr := onDevices(t, devices, devs, blobsSource+`
fn more(i: u32) { x[i] = x[i] + w[0]; }
fn twice(i: u32) { x[i] = x[i] * 2u; }`, shifting())
		x, w := wrap(t, "x", count(n, uint32(1))), wrap(t, "w", count(16, uint32(3)))
		edit(w).Write(false)
		for _, call := range []cruncher.Range{
			{Global: n, Local: 10, Repeat: repeats},
			{Global: n, Local: 10, Repeat: repeats, SyncKernel: "sync"},
			{Global: n, Local: 10, Repeat: repeats, SyncKernel: "sync", Blobs: 4},
			{Global: n, Local: 10, SyncKernel: "sync"},
			{Global: n, Local: 10, SyncKernel: "sync", Blobs: 4},
		} {
			want := slices.Clone(x.Data())
			for i := range want {
				step := uint32(3)
				for range max(call.Repeat, 1) {
					want[i] = (want[i] + step) * 2
					if call.SyncKernel != "" {
						step++
					}
				}
			}
			check(t, cr.Compute(t.Context(), 1, "more twice", call, x, w))
			same(t, fmt.Sprintf("%d devices, %+v", devs, call), x.Data(), want)
			same(t, "what is not written", w.Data(), count(16, uint32(3)))
		}
	}
}

// TestRepeatWaits wants repeats to be waited for now and then, so that a call can be cancelled: what is queued between two waits
// grows no faster than it doubles.
func TestRepeatWaits(t *testing.T) {
	devices := openDevices(t, 1)
	cr := onDevices(t, devices, 1, `fn inc(i: u32) { a[i] = a[i] + 1u; }`)
	a := wrap(t, "a", make([]uint32, 64))
	submitted := func(repeats int) uint64 {
		before := devices[0].Stats().Submissions
		check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 64, Repeat: repeats}))
		return devices[0].Stats().Submissions - before
	}
	submitted(1)
	once := submitted(1)
	if got := submitted(200); got < once+5 { // 4+8+16+32+64 and the rest
		t.Errorf("%d submissions for 200 repeats, %d for one", got, once)
	}
	same(t, "a", a.Data(), slices.Repeat([]uint32{202}, 64))
}

// TestTransferOnly moves and computes nothing: the host gets what the devices have.
func TestTransferOnly(t *testing.T) {
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		for _, blobs := range []int{1, 4} {
			for _, writeOnly := range []bool{false, true} {
				cr := onDevices(t, devices, devs, checksSource, shifting())
				a := wrap(t, "a", count(100, uint32(5)))
				edit(a).PartialRead(true).Write(false)
				r := cruncher.Range{Global: 100, Local: 4, Blobs: blobs}
				check(t, a.Compute(t.Context(), cr, 1, "inc", r))
				same(t, "nothing came back", a.Data(), count(100, uint32(5)))
				r.TransferOnly = true
				edit(a).Read(false).PartialRead(false).Write(true)
				clear(a.Data())
				if writeOnly {
					edit(a).WriteOnly(true)
				}
				for range 2 {
					check(t, a.Compute(t.Context(), cr, 1, "inc", r))
					same(t, fmt.Sprint(devs, " devices, ", blobs, " blobs, write-only ", writeOnly), a.Data(), count(100, uint32(6)))
				}
				check(t, a.Close())
			}
		}
	}
}

// TestSyncKernel counts how often the kernel between repeats runs, whatever the blobs.
func TestSyncKernel(t *testing.T) {
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		cr := onDevices(t, devices, devs, blobsSource, even())
		x, tmp, w := newArray[uint32](t, "x", 300), newArray[uint32](t, "t", 300), newArray[uint32](t, "w", 16)
		edit(w).Read(false).Write(false)
		for _, r := range []cruncher.Range{{}, {Blobs: 4}, {Repeat: 3}, {Repeat: 3, Blobs: 4}} {
			r.Global, r.Local, r.SyncKernel = 300, 4, "sync"
			check(t, cr.Compute(t.Context(), 1, "first", r, x, tmp, w))
		}
		check(t, cr.Fetch(t.Context(), w.Any))
		if got := w.Data()[0]; got != 8 {
			t.Errorf("%d devices: it ran %d times", devs, got)
		}
		// Elements that are no device's own are the host's again with the next call.
		steps := newArray[uint32](t, "w", 16)
		check(t, steps.Set(0, 3))
		edit(steps).Write(false)
		for range 3 {
			r := cruncher.Range{Global: 280, Offset: 20, Local: 4, SyncKernel: "sync"}
			check(t, cr.Compute(t.Context(), 1, "first", r, x, tmp, steps))
			if got := tmp.Data()[288]; got != 3 {
				t.Errorf("%d devices: %d", devs, got)
			}
		}
	}
}
