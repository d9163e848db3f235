// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
)

// TestLast wants shares that cover the range without gaps, and the bytes of one call alone.
func TestLast(t *testing.T) {
	cr := newCruncher(t, 3, `fn one(i: u32) { a[i] = a[i] + 1u; }
fn bad(i: u32) { a[i] = oops; }`)
	if r := cr.Last(); r.Shares != nil || r.Traffic != (cruncher.Traffic{}) {
		t.Errorf("before the first call: %+v", r)
	}
	a := must[*cruncher.Array[uint16]](t)(cruncher.Wrap("a", make([]uint16, 1000)))
	edit(a).PartialRead(true)
	r := cruncher.Range{Global: 900, Local: 64, Offset: 100}
	for range 3 {
		check(t, a.Compute(t.Context(), cr, 1, "one", r))
		last := cr.Last()
		if last.Traffic != (cruncher.Traffic{Up: 1800, Down: 1800}) {
			t.Errorf("%+v", last.Traffic)
		}
		next := 100
		for i, s := range last.Shares {
			if s.Device != i || s.Offset != next || s.Seconds < 0 {
				t.Errorf("share %d of %+v", i, last.Shares)
			}
			next += s.Count
		}
		if len(last.Shares) != 3 || next != 1000 {
			t.Errorf("%+v does not cover the range", last.Shares)
		}
		last.Shares[0].Count = -1 // ours alone
	}
	want := cr.Last()
	if want.Shares[0].Count < 0 {
		t.Error("a report can be changed from outside")
	}
	if a.Compute(t.Context(), cr, 1, "bad", r) == nil {
		t.Error("compiled")
	}
	if got := cr.Last(); len(got.Shares) != 3 || got.Shares[2] != want.Shares[2] || got.Traffic != want.Traffic {
		t.Errorf("a failed call left %+v", got)
	}
	edit(a).Write(false)
	r.TransferOnly = true
	check(t, a.Compute(t.Context(), cr, 2, "one", r))
	if got := cr.Last().Traffic; got.Down != 0 {
		t.Errorf("%+v", got)
	}
}

// TestSeconds calls until the clock, which may be coarse, has seen each device work.
func TestSeconds(t *testing.T) {
	cr := newCruncher(t, 2, `fn one(i: u32) { a[i] = a[i] + 1u; }`)
	a := must[*cruncher.Array[uint32]](t)(cruncher.Wrap("a", make([]uint32, 1<<12)))
	for seen := map[int]bool{}; len(seen) < 2; {
		check(t, a.Compute(t.Context(), cr, 1, "one", cruncher.Range{Global: 1 << 12, Local: 64}))
		for _, s := range cr.Last().Shares {
			if s.Seconds > 0 {
				seen[s.Device] = true
			}
		}
	}
}
