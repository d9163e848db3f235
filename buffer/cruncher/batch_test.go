// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestBatch queues calls that depend on each other: nothing comes back before the end, and then what one call after the other
// would have given.
func TestBatch(t *testing.T) {
	const n, calls = 600, 20
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		cr := onDevices(t, devices, devs, `
fn inc(i: u32) { a[i] = a[i] + w[0]; }
fn twice(i: u32) { a[i] = a[i] * 2u; b[i] = u32(a[i]) + c[599u - i]; }`, shifting())
		a, w, c := wrap(t, "a", count(n, uint32(0))), wrap(t, "w", []uint32{5}), wrap(t, "c", count(n, uint32(0)))
		b := newArray[uint8](t, "b", n)
		edit(a).PartialRead(true)
		edit(w).ReadOnly(true)
		edit(c).ReadOnly(true)
		want := slices.Clone(a.Data())
		r := cruncher.Range{Global: n, Local: 8}
		got := moved(cr, func() {
			check(t, cr.Batch(t.Context(), func(batch *cruncher.Batch) error {
				for k := range calls {
					kernel := []string{"inc", "twice"}[k%2]
					check(t, batch.Compute(t.Context(), 1, kernel, r, a, w, c, b))
					before, left, after := batch.Reached(), batch.Remaining(), batch.Reached() // which may rise meanwhile
					if before+left > k+1 || after+left < k+1 {
						t.Errorf("%d to %d calls are done, %d are not, after %d", before, after, left, k+1)
					}
				}
				same(t, "during the batch", a.Data(), count(n, uint32(0)))
				refused(t, "a call beside it", a.Compute(t.Context(), cr, 1, "inc", r), cruncher.ErrBatch)
				refused(t, "a call in the background", inBackground(cr, t.Context(), 1, "inc", r, a, w, c, b).Wait(t.Context()), cruncher.ErrBatch)
				refused(t, "a batch in it", cr.Batch(t.Context(), func(*cruncher.Batch) error { return nil }), cruncher.ErrBatch)
				refused(t, "fetching", cr.Fetch(t.Context(), a.Any), cruncher.ErrBatch)
				refused(t, "evicting", cr.Evict(a.Any), cruncher.ErrBatch)
				return nil
			}))
		})
		bytes := make([]uint8, n)
		for range calls / 2 {
			for i := range want {
				want[i] = (want[i] + 5) * 2
				bytes[i] = uint8(want[i] + uint32(n-1-i))
			}
		}
		same(t, fmt.Sprint("a on ", devs), a.Data(), want)
		same(t, fmt.Sprint("b on ", devs), b.Data(), bytes)
		if once := (cruncher.Traffic{Up: int64(n*4 + devs*(4+4*n+n)), Down: n*4 + n}); got.Up != once.Up || got.Down != once.Down || devs == 1 && got.Migrated != 0 {
			t.Errorf("%d devices: %+v, want %+v", devs, got, once)
		}
	}
}

// TestBatchMarkers waits for calls by looking at the markers.
func TestBatchMarkers(t *testing.T) {
	cr := newCruncher(t, 2, checksSource)
	a := newArray[uint32](t, "a", 1000)
	var kept *cruncher.Batch
	check(t, cr.Batch(t.Context(), func(b *cruncher.Batch) error {
		kept = b
		if b.Reached() != 0 || b.Remaining() != 0 {
			t.Error("an empty batch has calls")
		}
		for k := range 10 {
			check(t, b.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1000}, a))
			if k == 4 {
				for b.Remaining() > 0 { // ends, or the test does
					if t.Context().Err() != nil {
						return t.Context().Err()
					}
				}
				if b.Reached() != 5 {
					t.Errorf("%d calls are done", b.Reached())
				}
			}
		}
		return nil
	}))
	same(t, "a", a.Data(), slices.Repeat([]uint32{10}, 1000))
	refused(t, "after the end", kept.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1000}, a), gpu.ErrClosed)
	refused(t, "no batch", (*cruncher.Batch)(nil).Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1000}, a), gpu.ErrInvalid)
	refused(t, "no batch", new(cruncher.Batch).Compute(t.Context(), 1, "inc", cruncher.Range{Global: 1000}, a), gpu.ErrInvalid)
	if new(cruncher.Batch).Remaining() != 0 || (*cruncher.Batch)(nil).Reached() != 0 {
		t.Error("no batch has calls")
	}
}

// TestBatchShares wants the shares of an id to stay, whatever the balancer says.
func TestBatchShares(t *testing.T) {
	asked := 0
	cr := newCruncher(t, 2, checksSource, cruncher.WithBalancer(&plan{split: func(call int, r balance.Request) []int {
		asked++
		return thirds(r, call)
	}}))
	a := newArray[uint32](t, "a", 100)
	edit(a).Read(false).Write(false)
	for range 2 {
		check(t, cr.Batch(t.Context(), func(b *cruncher.Batch) error {
			for range 5 {
				check(t, b.Compute(t.Context(), 1, "inc", cruncher.Range{Global: 100, Local: 2}, a))
			}
			check(t, b.Compute(t.Context(), 2, "inc", cruncher.Range{Global: 50, Local: 2}, a))
			return nil
		}))
	}
	if asked != 4 {
		t.Errorf("the balancer was asked %d times", asked)
	}
	check(t, cr.Fetch(t.Context(), a.Any))
	same(t, "a", a.Data(), append(slices.Repeat([]uint32{12}, 50), slices.Repeat([]uint32{10}, 50)...))
}

// TestBatchFails ends batches in other ways than well.
func TestBatchFails(t *testing.T) {
	cr := newCruncher(t, 2, checksSource, shifting())
	a := wrap(t, "a", count(100, uint32(0)))
	r := cruncher.Range{Global: 100, Local: 2}
	oops := errors.New("oops")
	err := cr.Batch(t.Context(), func(b *cruncher.Batch) error {
		check(t, b.Compute(t.Context(), 1, "inc", r, a))
		refused(t, "a mistake", b.Compute(t.Context(), 1, "nothing", r, a), kernel.ErrKernel)
		return oops
	})
	refused(t, "its own error", err, oops)
	same(t, "what was queued came back", a.Data(), count(100, uint32(1)))

	ctx, cancel := context.WithCancel(t.Context())
	err = cr.Batch(ctx, func(b *cruncher.Batch) error {
		check(t, b.Compute(ctx, 1, "inc", r, a))
		cancel()
		refused(t, "cancelled", b.Compute(ctx, 1, "inc", r, a), context.Canceled)
		return nil
	})
	refused(t, "cancelled", err, context.Canceled)
	same(t, "nothing came back", a.Data(), count(100, uint32(1)))
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	same(t, "the next call", a.Data(), count(100, uint32(2)))

	func() {
		defer func() {
			if recover() == nil {
				t.Error("a panic was swallowed")
			}
		}()
		_ = cr.Batch(t.Context(), func(b *cruncher.Batch) error {
			check(t, b.Compute(t.Context(), 1, "inc", r, a))
			panic(oops)
		})
	}()
	check(t, a.Compute(t.Context(), cr, 1, "inc", r))
	same(t, "after a panic", a.Data(), count(100, uint32(3)))

	b := wrap(t, "a", count(100, uint32(0)))
	check(t, cr.Batch(t.Context(), func(batch *cruncher.Batch) error {
		check(t, batch.Compute(t.Context(), 1, "inc", r, a))
		check(t, batch.Compute(t.Context(), 2, "inc", r, b))
		return b.Close()
	}))
	same(t, "beside a closed array", a.Data(), count(100, uint32(4)))
	err = cr.Batch(t.Context(), func(batch *cruncher.Batch) error {
		check(t, batch.Compute(t.Context(), 1, "inc", r, a))
		return cr.Close()
	})
	refused(t, "a closed cruncher", err, gpu.ErrClosed)
}

// TestBatchRandom makes the calls of TestAnyShares in batches of random lengths, beside a cruncher that makes them one by one.
func TestBatchRandom(t *testing.T) {
	for devs := 1; devs <= 3; devs++ {
		one, many := newWorld(t, 1, rand.New(rand.NewPCG(1, 1))), newWorld(t, devs, rand.New(rand.NewPCG(2, uint64(devs))))
		one.still, many.still = true, true
		x, y := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(3, 4))
		lengths := rand.New(rand.NewPCG(5, 6))
		for calls := 0; calls < 120; {
			n := 1 + lengths.IntN(6)
			var what []string
			for range n {
				what = append(what, one.step(t, x, one.cr.Compute))
			}
			check(t, many.cr.Batch(t.Context(), func(b *cruncher.Batch) error {
				for range n {
					many.step(t, y, b.Compute)
				}
				return nil
			}))
			if !many.equal(one) {
				t.Fatalf("%d devices, calls %d to %d: the batch gives something else\n%q", devs, calls, calls+n-1, what)
			}
			calls += n
		}
	}
}
