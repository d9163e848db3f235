// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// state is all flags: read, partialRead, write, writeAll, readOnly, writeOnly.
func state(a *cruncher.Any) [6]bool {
	return [6]bool{a.Flags().Read, a.Flags().PartialRead, a.Flags().Write, a.Flags().WriteAll, a.Flags().ReadOnly, a.Flags().WriteOnly}
}

// TestFlags follows the table of setters and locks of the contract, a row each.
func TestFlags(t *testing.T) {
	type arr = cruncher.Any
	for _, c := range []struct {
		name string
		set  func(a *arr)
		want [6]bool
	}{
		{"defaults", func(*arr) {}, [6]bool{true, false, true}},
		{"plain setters", func(a *arr) { edit(a).Read(false).PartialRead(true).Write(false).WriteAll(true) }, [6]bool{1: true, 3: true}},
		{"read-only clears write and writeAll", func(a *arr) { edit(a).WriteAll(true).ReadOnly(true) }, [6]bool{0: true, 4: true}},
		{"read-only locks them", func(a *arr) { edit(a).ReadOnly(true).Write(true).WriteAll(true).WriteOnly(true) }, [6]bool{0: true, 4: true}},
		{"read-only forces no reading", func(a *arr) { edit(a).Read(false).ReadOnly(true) }, [6]bool{4: true}},
		{"read-only leaves the setters of reading", func(a *arr) { edit(a).ReadOnly(true).Read(false).PartialRead(true) }, [6]bool{1: true, 4: true}},
		{"clearing read-only sets nothing", func(a *arr) { edit(a).ReadOnly(true).ReadOnly(false) }, [6]bool{0: true}},
		{"and unlocks", func(a *arr) { edit(a).ReadOnly(true).ReadOnly(false).Write(true) }, [6]bool{0: true, 2: true}},
		{"write-only clears read and partialRead", func(a *arr) { edit(a).PartialRead(true).WriteOnly(true) }, [6]bool{2: true, 5: true}},
		{"write-only locks them", func(a *arr) { edit(a).WriteOnly(true).Read(true).PartialRead(true).ReadOnly(true) }, [6]bool{2: true, 5: true}},
		{"write-only leaves the setters of writing", func(a *arr) { edit(a).WriteOnly(true).Write(false).WriteAll(true) }, [6]bool{3: true, 5: true}},
		{"clearing write-only sets nothing", func(a *arr) { edit(a).WriteOnly(true).WriteOnly(false) }, [6]bool{2: true}},
		{"clearing the other one does nothing", func(a *arr) { edit(a).ReadOnly(true).WriteOnly(false) }, [6]bool{0: true, 4: true}},
		{"clearing the other one does nothing either", func(a *arr) { edit(a).WriteOnly(true).ReadOnly(false) }, [6]bool{2: true, 5: true}},
	} {
		a := newArray[float32](t, "a", 4)
		c.set(a.Any)
		if got := state(a.Any); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestOtherFlags(t *testing.T) {
	a := newArray[uint8](t, "a", 4)
	if a.Flags() != cruncher.DefaultFlags() {
		t.Error("the defaults")
	}
	check(t, a.SetFlags(cruncher.Flags{}))
	if a.Flags() != (cruncher.Flags{ElementsPerItem: 1}) {
		t.Error("zero elements per item")
	}
	want := cruncher.Flags{ElementsPerItem: 3, Halo: 2, ZeroCopy: true, Mode: kernel.Atomic}
	check(t, a.SetFlags(want))
	for _, wrong := range []cruncher.Flags{
		{ElementsPerItem: -5}, {Halo: -5}, {Mode: 9}, {Struct: "S"}, {ReadOnly: true, WriteOnly: true},
	} {
		refused(t, "flags that make no sense", a.SetFlags(wrong), gpu.ErrInvalid)
	}
	if a.Flags() != want {
		t.Error("what was set")
	}
	for _, none := range []*cruncher.Any{nil, {}} {
		refused(t, "no array", none.SetFlags(want), gpu.ErrInvalid)
		none.Track()
		none.MarkDirty()
		if none.Flags() != (cruncher.Flags{}) || none.Len() != 0 || none.Name() != "" {
			t.Error("an array that is none")
		}
		refused(t, "its group", newCruncher(t, 1, checksSource).Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1}, cruncher.Params(none)), gpu.ErrInvalid)
		check(t, none.Close())
	}
}

// TestSnapshot shows that a group keeps the flags of when it was made.
func TestSnapshot(t *testing.T) {
	cr := newCruncher(t, 2, `fn inc(i: u32) { a[i] = a[i] + 1u; }`)
	a := wrap(t, "a", count(100, uint32(0)))
	g := cruncher.Params(a)
	edit(a).Write(false)
	check(t, cr.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 100}, g))
	same(t, "by the group", a.Data(), count(100, uint32(1)))
	check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 100}))
	same(t, "by the array", a.Data(), count(100, uint32(1)))
	refused(t, "a nil group", cr.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1}, cruncher.Param(nil)), gpu.ErrInvalid)
	refused(t, "a nil array", cr.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1}, (*cruncher.Array[uint32])(nil)), gpu.ErrInvalid)
	refused(t, "an empty array", cr.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1}, &cruncher.Array[uint32]{}), gpu.ErrInvalid)
}

// TestTraffic wants exactly the bytes of the contract's table for every combination of flags on one to three devices, and the
// results of one device.
func TestTraffic(t *testing.T) {
	const source = `
fn touch(i: u32) { a[i] = a[i] * 2u + i; }
fn look(i: u32) { b[i] = a[i]; }`
	const n, global, size = 1200, 1000, 4
	devices := openDevices(t, 3)
	for bits := range 64 {
		on := func(bit int) bool { return bits>>bit&1 == 1 }
		if on(4) && on(5) {
			continue // the first one wins: TestFlags
		}
		var first [][]uint32
		for devs := 1; devs <= 3; devs++ {
			cr := onDevices(t, devices, devs, source, even())
			a := wrap(t, "a", count(n, uint32(7)))
			b := newArray[uint32](t, "b", n)
			edit(b).Read(false).Write(false)
			edit(a).Read(on(0)).PartialRead(on(1)).Write(on(2)).WriteAll(on(3)).ReadOnly(on(4)).WriteOnly(on(5))
			s := state(a.Any)
			read, partial, write, all := s[0], s[1], s[2], s[3]
			kernel := "touch"
			if a.Flags().ReadOnly {
				kernel = "look"
			}
			busy := int64(devs)
			if write && all {
				busy = 1 // one device does everything
			}
			var want cruncher.Traffic
			switch {
			case partial:
				want.Up = global * size
			case read:
				want.Up = busy * n * size
			}
			switch {
			case write && all:
				want.Down = n * size
			case write:
				want.Down = global * size
			}
			what := fmt.Sprintf("%v on %d devices", s, devs)
			var results [][]uint32
			for range 2 {
				got := moved(cr, func() {
					check(t, cr.Compute(t.Context(), 1, kernel, cruncher.Range{Global: global, Local: 100}, a, b))
				})
				if got != want {
					t.Errorf("%s: %+v, want %+v", what, got, want)
				}
				results = append(results, slices.Clone(a.Data()))
			}
			if devs == 1 {
				first = results
			}
			for i := range results {
				same(t, what, results[i], first[i])
			}
			check(t, cr.Close())
		}
	}
}

// TestAccess wants device memory that was first used in one way to be used so ever after.
func TestAccess(t *testing.T) {
	const source = `fn look(i: u32) { b[i] = a[i]; }
fn fill(i: u32) { a[i] = i; }`
	devices := openDevices(t, 2)
	ctx := t.Context()
	r := cruncher.Range{Global: 64}
	for _, c := range []struct {
		name   string
		first  func(a *cruncher.Any)
		kernel string
	}{
		{"read-only", func(a *cruncher.Any) { edit(a).ReadOnly(true) }, "look"},
		{"write-only", func(a *cruncher.Any) { edit(a).WriteOnly(true) }, "fill"},
	} {
		cr := onDevices(t, devices, 2, source)
		a, b := newArray[uint32](t, "a", 64), newArray[uint32](t, "b", 64)
		c.first(a.Any)
		check(t, cr.Compute(ctx, 1, c.kernel, r, a, b))
		edit(a).ReadOnly(false).WriteOnly(false).Read(true).Write(true)
		refused(t, c.name, cr.Compute(ctx, 1, c.kernel, r, a, b), cruncher.ErrAccess)
		other := onDevices(t, devices, 2, source)
		check(t, other.Compute(ctx, 1, "fill", r, a, b))
		c.first(a.Any)
		check(t, cr.Compute(ctx, 1, c.kernel, r, a, b))
		edit(a).ReadOnly(false).WriteOnly(false)
		check(t, cr.Evict(a.Any))
		check(t, cr.Compute(ctx, 1, "fill", r, a, b))
	}

	cr := onDevices(t, devices, 2, source)
	a, b := newArray[uint32](t, "a", 64), newArray[uint32](t, "b", 64)
	edit(a).ReadOnly(true)
	refused(t, "writing what is read-only", cr.Compute(ctx, 1, "fill", r, a, b), gpu.ErrCompile)
	edit(a).ReadOnly(false).Write(true)
	check(t, cr.Compute(ctx, 1, "fill", r, a, b)) // the call that failed has settled nothing
	same(t, "after that", a.Data(), count(64, uint32(0)))

	bytes := newArray[uint8](t, "a", 64)
	check(t, cr.Compute(ctx, 2, "fill", r, bytes))
	edit(bytes).Mode(kernel.Packed)
	check(t, cr.Compute(ctx, 2, "look", r, bytes, b)) // words are nothing but a way to look
	same(t, "in another mode", b.Data()[:4], []uint32{0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c})
}

// TestAs exchanges two arrays under the names that a kernel has for them.
func TestAs(t *testing.T) {
	cr := newCruncher(t, 2, `fn step(i: u32) { dst[i] = src[i] * 2u; }`)
	ctx, r := t.Context(), cruncher.Range{Global: 100}
	a, b := wrap(t, "a", count(100, uint32(1))), newArray[uint32](t, "b", 100)
	check(t, cr.Compute(ctx, 1, "step", r, a.As("src"), b.As("dst")))
	check(t, cr.Compute(ctx, 1, "step", r, b.As("src"), a.As("dst")))
	for i, v := range a.Data() {
		if want := 4 * uint32(i+1); v != want {
			t.Fatalf("element %d is %d, want %d", i, v, want)
		}
	}
	check(t, cr.Batch(ctx, func(batch *cruncher.Batch) error {
		return errors.Join(batch.Compute(ctx, 1, "step", r, a.As("src"), b.As("dst")), batch.Compute(ctx, 1, "step", r, b.As("src"), a.As("dst")))
	}))
	if a.Data()[0] != 16 {
		t.Errorf("after a batch: %d", a.Data()[0])
	}
	refused(t, "one array twice", cr.Compute(ctx, 1, "step", r, a.As("src"), a.As("dst")), cruncher.ErrName)
	refused(t, "a name twice", cr.Compute(ctx, 1, "step", r, a.As("src"), b.As("src")), cruncher.ErrName)
	refused(t, "no name", cr.Compute(ctx, 1, "step", r, a.As(""), b.As("dst")), cruncher.ErrName)
	refused(t, "no array", cr.Compute(ctx, 1, "step", r, (*cruncher.Any)(nil).As("src"), b.As("dst")), gpu.ErrInvalid)
}
