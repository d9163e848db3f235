// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
)

// TestResident keeps arrays on the devices while shares shift from call to call: the case that the Cekirdekler API gets wrong.
func TestResident(t *testing.T) {
	const n, calls = 1000, 12
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		for _, partial := range []bool{false, true} {
			cr := onDevices(t, devices, devs, `fn inc(i: u32) { s[i] = s[i] + i; b[i] = b[i] + 3; }`, shifting())
			s, b := newArray[uint32](t, "s", n), newArray[int8](t, "b", n)
			edit(s).Read(false).Write(false)
			edit(b).Read(false).PartialRead(partial).Write(partial)
			for range calls {
				check(t, cr.Compute(t.Context(), 1, "inc", cruncher.Range{Global: n, Local: 10}, s, b))
			}
			same(t, "before", s.Data(), make([]uint32, n))
			if got := cr.Traffic(); devs > 1 && got.Migrated == 0 || devs == 1 && got.Migrated != 0 {
				t.Errorf("%d devices: %+v", devs, got)
			}
			check(t, cr.Fetch(t.Context(), s.Any, b.Any))
			for i := range n {
				if v, w := s.Data()[i], b.Data()[i]; v != uint32(calls*i) || w != 3*calls {
					t.Fatalf("%d devices: elements %d are %d and %d", devs, i, v, w)
				}
			}
			if again := moved(cr, func() { check(t, cr.Fetch(t.Context(), s.Any, b.Any)) }); again != (cruncher.Traffic{}) {
				t.Errorf("fetched again: %+v", again)
			}
		}
	}
}

// TestResidentUpload makes the host's elements resident with one call and computes on with others.
func TestResidentUpload(t *testing.T) {
	const n = 640
	cr := newCruncher(t, 3, checksSource, shifting())
	a := wrap(t, "a", count(n, uint32(50)))
	r := cruncher.Range{Global: n, Local: 8}
	edit(a).PartialRead(true).Write(false)
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	edit(a).Read(false).PartialRead(false)
	for range 5 {
		check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	}
	edit(a).Write(true)
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	same(t, "after seven calls", a.Data(), count(n, uint32(57)))
	clear(a.Data()) // the devices have newer ones, and reading is off
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	same(t, "after eight calls", a.Data(), count(n, uint32(58)))
	edit(a).Read(true)
	clear(a.Data())
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	if a.Data()[n-1] != 1 {
		t.Errorf("what the caller wrote did not count: %d", a.Data()[n-1])
	}
}

// TestReadOfNewer uploads arrays that only devices have the newest elements of: those stay, unless the caller says that the host's changed.
func TestReadOfNewer(t *testing.T) {
	const n = 640
	for devs := 1; devs <= 3; devs++ {
		for _, partial := range []bool{false, true} {
			cr := newCruncher(t, devs, checksSource, shifting())
			a := newArray[uint32](t, "a", n)
			edit(a).Write(false).Read(!partial).PartialRead(partial)
			inc := func() {
				t.Helper()
				check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: n, Local: 8}))
			}
			inc()
			if up := moved(cr, func() { inc(); inc() }).Up; devs == 1 && up != 0 {
				t.Errorf("%d bytes were uploaded again", up)
			}
			if !a.Stale() {
				t.Error("the devices have the newest elements, and the array is not stale")
			}
			check(t, cr.Fetch(t.Context(), a.Any))
			same(t, "after three calls", a.Data(), slices.Repeat([]uint32{3}, n))

			inc()
			check(t, a.Set(5, 100))
			inc()
			check(t, cr.Fetch(t.Context(), a.Any))
			want := slices.Repeat([]uint32{5}, n)
			want[5] = 101
			same(t, "after an element was set", a.Data(), want)

			inc()
			clear(a.Data())
			a.MarkDirty()
			inc()
			check(t, cr.Fetch(t.Context(), a.Any))
			same(t, "after all were", a.Data(), slices.Repeat([]uint32{1}, n))
		}
	}
}

func TestPin(t *testing.T) {
	cr := newCruncher(t, 2, checksSource, shifting(), cruncher.WithCoherence(cruncher.Pin))
	a := newArray[uint32](t, "a", 100)
	edit(a).Read(false).Write(false)
	for range 6 {
		check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 100, Local: 4}))
	}
	if got := cr.Traffic(); got != (cruncher.Traffic{}) {
		t.Errorf("pinned shares moved: %+v", got)
	}
	check(t, cr.Fetch(t.Context(), a.Any))
	same(t, "after six calls", a.Data(), slices.Repeat([]uint32{6}, 100))
}

func TestStrict(t *testing.T) {
	shares := [][]int{{50, 50}, {50, 50}, {40, 60}, {50, 50}, {40, 60}}
	cr := newCruncher(t, 2, checksSource, cruncher.WithCoherence(cruncher.Strict),
		cruncher.WithBalancer(&plan{split: func(call int, _ balance.Request) []int { return shares[call] }}))
	a := newArray[uint32](t, "a", 100)
	edit(a).Read(false).Write(false)
	r := cruncher.Range{Global: 100, Local: 2}
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	refused(t, "other shares", a.Compute(t.Context(), cr, 1, "inc", r), cruncher.ErrMigration)
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	check(t, cr.Fetch(t.Context(), a.Any))
	same(t, "after three calls", a.Data(), slices.Repeat([]uint32{3}, 100))
	check(t, a.Compute(t.Context(), cr, 1, "inc", r)) // the host has everything now
}

// TestHalo computes a stencil of three points, with arrays that take turns.
func TestHalo(t *testing.T) {
	const n, calls = 500, 9
	start := make([]uint32, n)
	for i := range start {
		start[i] = uint32(i*i) % 97
	}
	want := slices.Clone(start)
	for range calls {
		next := slices.Clone(want)
		for i := 1; i < n-1; i++ {
			next[i] = want[i-1] + want[i]*2 + want[i+1]
		}
		want = next
	}
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		for _, resident := range []bool{false, true} {
			cr := onDevices(t, devices, devs, `
fn ab(i: u32) { if (i == 0u || i == 499u) { b[i] = a[i]; } else { b[i] = a[i - 1u] + a[i] * 2u + a[i + 1u]; } }
fn ba(i: u32) { if (i == 0u || i == 499u) { a[i] = b[i]; } else { a[i] = b[i - 1u] + b[i] * 2u + b[i + 1u]; } }`, shifting())
			a, b := wrap(t, "a", slices.Clone(start)), newArray[uint32](t, "b", n)
			edit(a).Halo(1)
			edit(b).Halo(1)
			for k := range calls {
				from, to, kernel := a, b, "ab"
				if k%2 == 1 {
					from, to, kernel = b, a, "ba"
				}
				edit(from).Read(false).PartialRead(!resident || k == 0).Write(false)
				edit(to).Read(false).PartialRead(false).Write(!resident || k == calls-1)
				r := cruncher.Range{Global: n, Local: 4, Blobs: k % 3}
				check(t, cr.Compute(t.Context(), 1, kernel, r, a, b))
			}
			same(t, fmt.Sprint(devs, " devices, resident ", resident), b.Data(), want)
		}
	}
}

// TestTrack uploads arrays anew only where something has changed.
func TestTrack(t *testing.T) {
	const n, bytes = 256, 4 * 256
	cr := newCruncher(t, 2, `fn look(i: u32) { b[i] = a[i] + a[0]; }`, even())
	a, b := wrap(t, "a", count(n, uint32(1))), newArray[uint32](t, "b", n)
	edit(a).ReadOnly(true)
	edit(b).Read(false)
	up := func() int64 {
		return moved(cr, func() { check(t, cr.Compute(t.Context(), 1, "look", cruncher.Range{Global: n, Local: 4}, a, b)) }).Up
	}
	for _, c := range []struct {
		name string
		do   func()
		want int64
	}{
		{"at first", func() {}, 2 * bytes},
		{"the caller's memory", func() {}, 2 * bytes},
		{"tracked", a.Track, 0},
		{"nothing happened", func() {}, 0},
		{"written by its method", func() { check(t, a.Set(0, 7)) }, 2 * bytes},
		{"written otherwise", func() { a.Data()[0] = 8; a.MarkDirty() }, 2 * bytes},
		{"copied to", func() { check(t, newArray[uint32](t, "c", 4).CopyTo(a, 0)) }, 2 * bytes},
		{"by parts, which are there", func() { edit(a).PartialRead(true) }, 0},
		{"evicted", func() { check(t, cr.Evict(a.Any)) }, bytes},
	} {
		c.do()
		if got := up(); got != c.want {
			t.Errorf("%s: %d bytes went up, want %d", c.name, got, c.want)
		}
		if got, want := b.Data()[5], a.Data()[5]+a.Data()[0]; got != want {
			t.Errorf("%s: %d, want %d", c.name, got, want)
		}
	}
}

// TestTwoCrunchers hands an array to and fro.
func TestTwoCrunchers(t *testing.T) {
	devices := openDevices(t, 2)
	x, y := onDevices(t, devices, 2, checksSource, shifting()), onDevices(t, devices, 1, checksSource)
	a := newArray[uint32](t, "a", 100)
	for range 4 {
		for _, cr := range []*cruncher.Cruncher{x, y} {
			check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 100, Local: 4}))
		}
	}
	same(t, "after eight calls", a.Data(), slices.Repeat([]uint32{8}, 100))
	edit(a).PartialRead(true)
	check(t, a.Compute(t.Context(), x, 1, "inc", cruncher.Range{Global: 100}))
	check(t, x.Evict())
	check(t, x.Close())
	check(t, a.Compute(t.Context(), y, 1, "inc", cruncher.Range{Global: 100}))
	same(t, "after ten calls", a.Data(), slices.Repeat([]uint32{10}, 100))
}

// TestSameDevice has one device do the work of two.
func TestSameDevice(t *testing.T) {
	d := openDevices(t, 1)[0]
	cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), append(openDevices(t, 1), d, d), checksSource, shifting()))
	a := newArray[uint32](t, "a", 200)
	b := wrap(t, "a", make([]uint32, 200))
	edit(a).Read(false).Write(false)
	for range 6 {
		check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 200, Local: 4, Blobs: 3}))
		check(t, b.Compute(t.Context(), cr, 2, "inc", cruncher.Range{Global: 200, Local: 4}))
	}
	check(t, cr.Fetch(t.Context(), a.Any))
	same(t, "resident", a.Data(), slices.Repeat([]uint32{6}, 200))
	same(t, "shared", b.Data(), slices.Repeat([]uint32{6}, 200))
	check(t, cr.Close())
	check(t, cr.Close())
	if n := d.Stats().Buffers; n != 0 {
		t.Errorf("%d buffers are left", n)
	}
}
