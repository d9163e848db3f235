// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

const newestKernels = `
fn inc(i: u32) { a[i] = a[i] + 1u; }
fn copy(i: u32) { b[i] = a[i]; }`

// TestBatchLeavesNewer returns an array in one call of a batch and writes over a part of it in the next, which does not return it: the
// host has what the first one made, and is told that the devices have newer elements.
func TestBatchLeavesNewer(t *testing.T) {
	for devs := 1; devs <= 3; devs++ {
		cr := newCruncher(t, devs, newestKernels, shifting())
		a := wrap(t, "a", make([]uint32, 100))
		check(t, cr.Batch(t.Context(), func(b *cruncher.Batch) error {
			check(t, b.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 100, Local: 10}, a))
			edit(a).Write(false)
			return b.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 20, Offset: 40, Local: 10}, a)
		}))
		same(t, "what was returned", a.Data(), slices.Repeat([]uint32{1}, 100))
		if !a.Stale() {
			t.Error("not stale")
		}
		_, err := a.At(45)
		refused(t, "a newer element", err, cruncher.ErrStale)
		if v, err := a.At(39); v != 1 || err != nil {
			t.Errorf("beside them: %d, %v", v, err)
		}
		check(t, cr.Fetch(t.Context(), a.Any))
		want := slices.Repeat([]uint32{1}, 100)
		for i := 40; i < 60; i++ {
			want[i] = 2
		}
		same(t, "what was fetched", a.Data(), want)
		if a.Stale() {
			t.Error("stale")
		}
	}
}

// TestFetchKeepsWhatIsSet sets elements of which devices have other values, in an array that goes up, so that what is set counts:
// fetching does not undo that. The same is so of what another cruncher has returned since.
func TestFetchKeepsWhatIsSet(t *testing.T) {
	for devs := 1; devs <= 3; devs++ {
		cr, other := newCruncher(t, devs, newestKernels, shifting()), newCruncher(t, 1, newestKernels)
		r := cruncher.Range{Global: 100, Local: 10}
		a := newArray[uint32](t, "a", 100)
		edit(a).Write(false)
		check(t, a.Compute(t.Context(), cr, 1, "inc", r))
		check(t, a.Set(50, 7))
		want := slices.Repeat([]uint32{1}, 100)
		want[50] = 7
		check(t, cr.Fetch(t.Context(), a.Any))
		same(t, "what was set", a.Data(), want)
		edit(a).Read(false) // so that what the devices have is seen
		b := wrap(t, "b", make([]uint32, 100))
		check(t, cr.Compute(t.Context(), 2, "copy", r, a, b))
		same(t, "what the devices have", b.Data(), slices.Repeat([]uint32{1}, 100))
		edit(a).Read(true)
		edit(a).Write(true)
		check(t, a.Compute(t.Context(), cr, 1, "inc", r))
		want[50] = 8
		if v, err := a.At(50); v != 8 || err != nil {
			t.Errorf("it does not count: %d, %v", v, err)
		}

		edit(a).Write(false)
		check(t, a.Compute(t.Context(), cr, 1, "inc", r))
		edit(a).Write(true)
		check(t, a.Compute(t.Context(), other, 1, "inc", cruncher.Range{Global: 20}))
		first, err := a.At(0)
		check(t, err)
		check(t, cr.Fetch(t.Context(), a.Any))
		if v := a.Data(); v[0] != first || v[99] != 3 {
			t.Errorf("%d devices: %d became %d, and the last is %d", devs, first, v[0], v[99])
		}
	}
}

// TestRefusalMovesNothing has a call refused because elements would have to move: the next one sees what the devices had, not what
// the host's side became meanwhile.
func TestRefusalMovesNothing(t *testing.T) {
	cr := newCruncher(t, 2, newestKernels, fixed([][]int{{40, 60}, {60, 40}, {40, 60}}), cruncher.WithCoherence(cruncher.Strict))
	r := cruncher.Range{Global: 100, Local: 10}
	a, b := wrap(t, "a", make([]uint32, 100)), wrap(t, "b", make([]uint32, 100))
	edit(b).Write(false)
	check(t, cr.Compute(t.Context(), 1, "copy", r, a, b))
	edit(b).Read(false)
	clear(a.Data())
	a.Data()[3] = 5
	refused(t, "a move", cr.Compute(t.Context(), 1, "copy", r, a, b), cruncher.ErrMigration)
	edit(a).Read(false).Write(false)
	edit(b).Write(true)
	if up := moved(cr, func() { check(t, cr.Compute(t.Context(), 1, "copy", r, a, b)) }).Up; up != 0 {
		t.Errorf("%d bytes up", up)
	}
	same(t, "b", b.Data(), make([]uint32, 100))
}

// TestFetchedMayLeave makes room on a device: an array of which elements were set on the host may leave it once the rest is fetched.
func TestFetchedMayLeave(t *testing.T) {
	cr := newCruncher(t, 1, newestKernels, cruncher.WithMemory(1000))
	r := cruncher.Range{Global: 100}
	a, b, c := newArray[uint32](t, "a", 100), newArray[uint32](t, "b", 100), newArray[uint32](t, "a", 100)
	edit(a).Write(false)
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	check(t, a.Set(50, 7))
	refused(t, "two arrays more", cr.Compute(t.Context(), 1, "copy", r, c, b), gpu.ErrNoMemory)
	check(t, cr.Fetch(t.Context(), a.Any))
	check(t, cr.Compute(t.Context(), 1, "copy", r, c, b))
}
