// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

// atHome makes a cruncher on devices of the oracle and an array of zeros that its kernels leave there.
func atHome(t *testing.T, devices int) (*cruncher.Cruncher, *cruncher.Array[uint32]) {
	t.Helper()
	list, _ := openFaulty(t, roomReferences, neverFault[:devices])
	a := newArray[uint32](t, "a", roomItems)
	edit(a).Read(false).Write(false)
	return onDevices(t, list, devices, roomSource, even()), a
}

// TestStale asks for elements of the host's side that only devices have.
func TestStale(t *testing.T) {
	ctx := t.Context()
	for n := 1; n <= 3; n++ {
		cr, a := atHome(t, n)
		other := newArray[uint32](t, "o", 8)
		half := cruncher.Range{Global: roomItems / 2, Local: 8}
		check(t, a.Compute(ctx, cr, 1, "inc", half))
		if !a.Stale() || a.Flags().AutoFetch || other.Stale() {
			t.Error("it is not seen to be stale")
		}
		for _, c := range []struct {
			what string
			err  error
		}{
			{"Set", a.Set(roomItems/2-1, 7)},
			{"CopyTo", a.CopyTo(other, 0)},
			{"CopyTo it", other.CopyTo(a, roomItems/2-1)},
			{"CopyFrom", other.CopyFrom(a, roomItems/2-1)},
			{"CopyFrom to it", a.CopyFrom(other, 0)},
		} {
			refused(t, c.what, c.err, cruncher.ErrStale)
		}
		_, err := a.At(0)
		refused(t, "At", err, cruncher.ErrStale)
		_, err = a.ToArray()
		refused(t, "ToArray", err, cruncher.ErrStale)
		same(t, "Data", a.Data(), make([]uint32, roomItems))

		check(t, a.Set(roomItems/2, 7)) // beside them
		check(t, other.CopyFrom(a, roomItems/2))
		same(t, "what is not stale", other.Data(), []uint32{7, 0, 0, 0, 0, 0, 0, 0})

		check(t, cr.Fetch(ctx, a.Any))
		if v, err := a.At(0); err != nil || v != 1 || a.Stale() {
			t.Error("after Fetch:", v, err, a.Stale())
		}
		check(t, a.Compute(ctx, cr, 1, "inc", half))
		refused(t, "again", a.Set(0, 7), cruncher.ErrStale)
		check(t, cr.Evict(a.Any))
		check(t, a.Set(0, 7)) // what the devices had is no more
	}
}

// TestAutoFetch has the elements come by themselves.
func TestAutoFetch(t *testing.T) {
	ctx := t.Context()
	for n := 1; n <= 3; n++ {
		cr, a := atHome(t, n)
		edit(a).AutoFetch(true)
		ones := slices.Repeat([]uint32{1}, roomItems)
		check(t, a.Compute(ctx, cr, 1, "inc", roomRange))
		if got := moved(cr, func() { same(t, "ToArray", must[[]uint32](t)(a.ToArray()), ones) }); got.Down != roomBytes {
			t.Errorf("%+v", got)
		}
		if got := moved(cr, func() { _, _ = a.At(3) }); got.Down != 0 || a.Stale() || !a.Flags().AutoFetch {
			t.Errorf("once more: %+v", got)
		}
		check(t, a.Compute(ctx, cr, 1, "inc", roomRange))
		check(t, a.Set(3, 100)) // after the others came
		want := slices.Repeat([]uint32{4}, roomItems)
		want[3] = 100
		same(t, "after Set", a.Data(), want)

		err := cr.Batch(ctx, func(b *cruncher.Batch) error {
			check(t, b.Compute(ctx, 1, "inc", roomRange, a))
			_, err := a.At(0)
			return err
		})
		refused(t, "in a batch", err, cruncher.ErrBatch)
		if v, err := a.At(0); err != nil || v != 13 {
			t.Error("after it:", v, err)
		}
		check(t, a.Compute(ctx, cr, 1, "inc", roomRange))
		check(t, cr.Close())
		if v, err := a.At(0); err != nil || v != 13 { // what only devices had is no more
			t.Error("after the end of the cruncher:", v, err)
		}
	}
}

// TestAutoFetchTogether has several goroutines look at once: the elements come once.
func TestAutoFetchTogether(t *testing.T) {
	cr, a := atHome(t, 2)
	edit(a).AutoFetch(true)
	check(t, a.Compute(t.Context(), cr, 1, "inc", roomRange))
	got := moved(cr, func() {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if v, err := a.At(32 * i); err != nil || v != 1 {
					t.Error(i, v, err)
				}
			})
		}
		wg.Wait()
	})
	if got.Down != roomBytes {
		t.Errorf("%+v", got)
	}
}

// TestNotStale makes calls after which the host's side is what counts.
func TestNotStale(t *testing.T) {
	ctx := t.Context()
	cr, _ := atHome(t, 2)
	in, out := wrap(t, "a", make([]uint32, roomItems)), newArray[uint32](t, "b", roomItems)
	edit(in).Write(false)
	check(t, cr.Compute(ctx, 1, "peek", roomRange, in, out))
	if in.Stale() || out.Stale() {
		t.Error("stale: what kernels only read, or what came back")
	}
	check(t, cr.Compute(ctx, 1, "mix", roomRange, in, out)) // changes it, and does not bring it back
	_, err := in.At(0)
	refused(t, "At", err, cruncher.ErrStale)
	check(t, in.Set(0, 9)) // goes up with the next call
	if v, err := in.At(0); err != nil || v != 9 {
		t.Error(v, err)
	}
	_, err = in.At(1)
	refused(t, "At", err, cruncher.ErrStale)
	edit(in).AutoFetch(true)
	if v, err := in.At(1); err != nil || v != 1 || in.Data()[0] != 9 {
		t.Error(v, err, in.Data()[0])
	}
	check(t, cr.Compute(ctx, 1, "mix", roomRange, in, out))
	edit(in).AutoFetch(false)
	in.Data()[5] = 77
	in.MarkDirty()
	if v, err := in.At(5); err != nil || v != 77 || in.Stale() {
		t.Error(v, err)
	}
}

// TestStaleTwice has two crunchers change an array: whoever was last has the newest elements.
func TestStaleTwice(t *testing.T) {
	ctx := t.Context()
	for _, back := range []bool{false, true} {
		one, a := atHome(t, 2)
		two, _ := atHome(t, 1)
		check(t, a.Compute(ctx, one, 1, "inc", roomRange))
		check(t, a.Compute(ctx, two, 1, "inc", cruncher.Range{Global: 16, Local: 8}))
		if back { // the first is the last again
			check(t, a.Compute(ctx, one, 1, "inc", cruncher.Range{Global: 8, Local: 8}))
		}
		edit(a).AutoFetch(true)
		want := slices.Repeat([]uint32{1}, roomItems)
		if back {
			copy(want, []uint32{4, 4, 4, 4, 4, 4, 4, 4})
		}
		same(t, "both", must[[]uint32](t)(a.ToArray()), want)

		// Results of one come to the host: those of the other are older.
		check(t, a.Compute(ctx, one, 1, "inc", roomRange))
		edit(a).Read(true).Write(true)
		check(t, a.Compute(ctx, two, 1, "inc", cruncher.Range{Global: 8, Local: 8}))
		edit(a).AutoFetch(false)
		if v, err := a.At(7); err != nil || v != 3*want[7]+1 {
			t.Error(v, err)
		}
		_, err := a.At(8)
		refused(t, "the rest", err, cruncher.ErrStale)
	}
}

// TestStaleLost loses the device that has the elements.
func TestStaleLost(t *testing.T) {
	list, drivers := openFaulty(t, roomReferences, neverFault[:2])
	cr := onDevices(t, list, 2, roomSource, even())
	a := newArray[uint32](t, "a", roomItems)
	edit(a).Read(false).Write(false).AutoFetch(true)
	check(t, a.Compute(t.Context(), cr, 1, "inc", roomRange))
	drivers[1].Lose()
	_, err := a.At(0)
	refused(t, "At", err, cruncher.ErrStale)
	check(t, cr.Evict(a.Any))
	if v, err := a.At(0); err != nil || v != 0 {
		t.Error(v, err)
	}
}

// TestContext refuses contexts that are nil or have ended wherever kernels are given.
func TestContext(t *testing.T) {
	list, _ := openFaulty(t, roomReferences, neverFault[:1])
	var none context.Context
	ended, end := context.WithCancel(t.Context())
	end()
	steps := []cruncher.Step{{Kernels: "inc", Range: cruncher.Range{Global: 1}}}
	for name, open := range map[string]func(ctx context.Context) error{
		"New": func(ctx context.Context) error { _, err := cruncher.New(ctx, list, roomSource); return err },
		"NewPipeline": func(ctx context.Context) error {
			_, err := cruncher.NewPipeline(ctx, cruncher.Stage{Devices: list, WGSL: roomSource, Kernels: steps})
			return err
		},
		"NewDevicePool": func(ctx context.Context) error {
			_, err := cruncher.NewDevicePool(ctx, cruncher.Greedy, roomSource)
			return err
		},
		"NewDevicePipeline": func(ctx context.Context) error {
			_, err := cruncher.NewDevicePipeline(ctx, list[0], roomSource, cruncher.Stage{Kernels: steps})
			return err
		},
	} {
		refused(t, name, open(none), gpu.ErrInvalid)
		refused(t, name, open(ended), context.Canceled)
		check(t, open(t.Context()))
	}
	_, err := cruncher.New(ended, nil, "")
	refused(t, "the context comes first", err, context.Canceled)
}

// TestPinForgets calls with more ids than are remembered.
func TestPinForgets(t *testing.T) {
	const ids = 1025
	list, _ := openFaulty(t, roomReferences, neverFault[:2])
	cr := onDevices(t, list, 2, roomSource, cruncher.WithCoherence(cruncher.Pin),
		fixed(append(slices.Repeat([][]int{{64, 0}}, ids), []int{0, 64}, []int{0, 64})))
	a := newArray[uint32](t, "a", roomItems)
	device := func(id int) string {
		check(t, a.Compute(t.Context(), cr, id, "inc", cruncher.Range{Global: 64, Local: 8}))
		for i, s := range cr.Last().Shares {
			if s.Count > 0 {
				return []string{"first", "second"}[i]
			}
		}
		return "none"
	}
	for id := range ids {
		device(id)
	}
	for id, want := range map[int]string{ids - 1: "first", 500: "first"} {
		if got := device(id); got != want {
			t.Errorf("id %d: %s device", id, got)
		}
	}
	if got := device(0); got != "second" {
		t.Errorf("id 0, which is forgotten: %s device", got)
	}
}
