// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

// state is all flags: read, partialRead, write, writeAll, readOnly, writeOnly.
func state(a *cruncher.Any) [6]bool {
	return [6]bool{a.Read(), a.PartialRead(), a.Write(), a.WriteAll(), a.ReadOnly(), a.WriteOnly()}
}

// TestSetters follows the table of setters and locks of the contract, a row each.
func TestSetters(t *testing.T) {
	type arr = cruncher.Any
	for _, c := range []struct {
		name string
		set  func(a *arr)
		want [6]bool
	}{
		{"defaults", func(*arr) {}, [6]bool{true, false, true}},
		{"plain setters", func(a *arr) { a.SetRead(false).SetPartialRead(true).SetWrite(false).SetWriteAll(true) }, [6]bool{1: true, 3: true}},
		{"read-only clears write and writeAll", func(a *arr) { a.SetWriteAll(true).SetReadOnly(true) }, [6]bool{0: true, 4: true}},
		{"read-only locks them", func(a *arr) { a.SetReadOnly(true).SetWrite(true).SetWriteAll(true).SetWriteOnly(true) }, [6]bool{0: true, 4: true}},
		{"read-only forces no reading", func(a *arr) { a.SetRead(false).SetReadOnly(true) }, [6]bool{4: true}},
		{"read-only leaves the setters of reading", func(a *arr) { a.SetReadOnly(true).SetRead(false).SetPartialRead(true) }, [6]bool{1: true, 4: true}},
		{"clearing read-only sets nothing", func(a *arr) { a.SetReadOnly(true).SetReadOnly(false) }, [6]bool{0: true}},
		{"and unlocks", func(a *arr) { a.SetReadOnly(true).SetReadOnly(false).SetWrite(true) }, [6]bool{0: true, 2: true}},
		{"write-only clears read and partialRead", func(a *arr) { a.SetPartialRead(true).SetWriteOnly(true) }, [6]bool{2: true, 5: true}},
		{"write-only locks them", func(a *arr) { a.SetWriteOnly(true).SetRead(true).SetPartialRead(true).SetReadOnly(true) }, [6]bool{2: true, 5: true}},
		{"write-only leaves the setters of writing", func(a *arr) { a.SetWriteOnly(true).SetWrite(false).SetWriteAll(true) }, [6]bool{3: true, 5: true}},
		{"clearing write-only sets nothing", func(a *arr) { a.SetWriteOnly(true).SetWriteOnly(false) }, [6]bool{2: true}},
		{"clearing the other one does nothing", func(a *arr) { a.SetReadOnly(true).SetWriteOnly(false) }, [6]bool{0: true, 4: true}},
		{"clearing the other one does nothing either", func(a *arr) { a.SetWriteOnly(true).SetReadOnly(false) }, [6]bool{2: true, 5: true}},
	} {
		a := newArray[float32](t, "a", 4)
		c.set(a.Any)
		if got := state(a.Any); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestOtherSetters(t *testing.T) {
	a := newArray[uint8](t, "a", 4)
	if a.ElementsPerItem() != 1 || a.Halo() != 0 || a.ZeroCopy() || a.Mode() != cruncher.Widened || a.Struct() != "" {
		t.Error("the defaults")
	}
	a.SetElementsPerItem(3).SetHalo(2).SetZeroCopy(true).SetMode(cruncher.Atomic).SetStruct("S").SetMode(9)
	if a.ElementsPerItem() != 3 || a.Halo() != 2 || !a.ZeroCopy() || a.Mode() != cruncher.Atomic || a.Struct() != "" {
		t.Error("what was set")
	}
	a.SetElementsPerItem(-5).SetHalo(-5)
	if a.ElementsPerItem() != 1 || a.Halo() != 0 {
		t.Error("numbers that make no sense")
	}
	for _, none := range []*cruncher.Any{nil, {}} {
		none.SetRead(true).SetMode(cruncher.Packed).SetStruct("x")
		none.Track()
		none.MarkDirty()
		if none.Read() || none.Len() != 0 || none.Name() != "" || none.Type() != cruncher.Float32 || none.Struct() != "" || none.Mode() != 0 {
			t.Error("an array that is none")
		}
		refused(t, "its group", none.Next().Compute(t.Context(), newCruncher(t, 1, checksSource), 1, "inc", cruncher.Range{Global: 1}), gpu.ErrInvalid)
		check(t, none.Close())
	}
}

// TestSnapshot shows that a group keeps the flags of when it was made.
func TestSnapshot(t *testing.T) {
	cr := newCruncher(t, 2, `fn inc(i: u32) { a[i] = a[i] + 1u; }`)
	a := wrap(t, "a", count(100, uint32(0)))
	g := a.Next()
	a.SetWrite(false)
	check(t, g.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 100}))
	same(t, "by the group", a.Data(), count(100, uint32(1)))
	check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 100}))
	same(t, "by the array", a.Data(), count(100, uint32(1)))
	refused(t, "a nil group", cr.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1}, (*cruncher.Group)(nil)), gpu.ErrInvalid)
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
			continue // the first one wins: TestSetters
		}
		var first [][]uint32
		for devs := 1; devs <= 3; devs++ {
			cr := onDevices(t, devices, devs, source, even())
			a := wrap(t, "a", count(n, uint32(7)))
			b := newArray[uint32](t, "b", n)
			b.SetRead(false).SetWrite(false)
			a.SetRead(on(0)).SetPartialRead(on(1)).SetWrite(on(2)).SetWriteAll(on(3)).SetReadOnly(on(4)).SetWriteOnly(on(5))
			s := state(a.Any)
			read, partial, write, all := s[0], s[1], s[2], s[3]
			kernel := "touch"
			if a.ReadOnly() {
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
		{"read-only", func(a *cruncher.Any) { a.SetReadOnly(true) }, "look"},
		{"write-only", func(a *cruncher.Any) { a.SetWriteOnly(true) }, "fill"},
	} {
		cr := onDevices(t, devices, 2, source)
		a, b := newArray[uint32](t, "a", 64), newArray[uint32](t, "b", 64)
		c.first(a.Any)
		check(t, cr.Compute(ctx, 1, c.kernel, r, a, b))
		a.SetReadOnly(false).SetWriteOnly(false).SetRead(true).SetWrite(true)
		refused(t, c.name, cr.Compute(ctx, 1, c.kernel, r, a, b), cruncher.ErrAccess)
		other := onDevices(t, devices, 2, source)
		check(t, other.Compute(ctx, 1, "fill", r, a, b))
		c.first(a.Any)
		check(t, cr.Compute(ctx, 1, c.kernel, r, a, b))
		a.SetReadOnly(false).SetWriteOnly(false)
		check(t, cr.Evict(a.Any))
		check(t, cr.Compute(ctx, 1, "fill", r, a, b))
	}

	cr := onDevices(t, devices, 2, source)
	a, b := newArray[uint32](t, "a", 64), newArray[uint32](t, "b", 64)
	a.SetReadOnly(true)
	refused(t, "writing what is read-only", cr.Compute(ctx, 1, "fill", r, a, b), gpu.ErrCompile)
	a.SetReadOnly(false).SetWrite(true)
	check(t, cr.Compute(ctx, 1, "fill", r, a, b)) // the call that failed has settled nothing
	same(t, "after that", a.Data(), count(64, uint32(0)))

	bytes := newArray[uint8](t, "a", 64)
	check(t, cr.Compute(ctx, 2, "fill", r, bytes))
	bytes.SetMode(cruncher.Atomic)
	refused(t, "another mode", cr.Compute(ctx, 2, "fill", r, bytes), cruncher.ErrAccess)
}
