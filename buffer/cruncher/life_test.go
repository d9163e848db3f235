// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestLeaks makes and closes a thousand crunchers with arrays and calls of all sorts: neither device memory nor goroutines are left.
func TestLeaks(t *testing.T) {
	devices := openDevices(t, 2)
	lasting := wrap(t, "a", make([]uint32, 100)) // used by all of them
	round := func(k int) {
		cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), devices, blobsSource+checksSource))
		a, b := must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("a", 100)), must[*cruncher.Array[int16]](t)(cruncher.NewArray[int16]("z", 100))
		r := cruncher.Range{Global: 100, Local: 4, Blobs: k % 4}
		check(t, a.Compute(t.Context(), cr, 1, "inc", r))
		check(t, lasting.Compute(t.Context(), cr, 1, "inc", r))
		check(t, inBackground(cr, t.Context(), 1, "inc", r, a, b).Wait(t.Context()))
		check(t, cr.Batch(t.Context(), func(batch *cruncher.Batch) error { return batch.Compute(t.Context(), 2, "inc", r, a) }))
		refused(t, "a mistake", a.Compute(t.Context(), cr, 1, "third", r), gpu.ErrCompile)
		if k%2 == 0 {
			check(t, a.Close())
			check(t, b.Close())
			check(t, cr.Close())
		} else {
			check(t, cr.Evict(b.Any))
			check(t, cr.Close())
			check(t, a.Close())
			check(t, b.Close())
		}
		refused(t, "a closed cruncher", lasting.Compute(t.Context(), cr, 1, "inc", r), gpu.ErrClosed)
	}
	round(0)
	round(1)
	var before [2]gpu.Stats
	for i, d := range devices {
		check(t, d.Sync(t.Context()))
		before[i] = d.Stats()
	}
	goroutines := runtime.NumGoroutine()
	rounds := devtest.Times(50)
	for k := range rounds {
		round(k)
	}
	for i, d := range devices {
		after := d.Stats()
		if after.Buffers != 0 || after.LiveBytes != 0 || after.Kernels != 0 || after.PooledBytes > before[i].PooledBytes {
			t.Errorf("device %d: %+v, before %+v", i, after, before[i])
		}
	}
	for n := 0; runtime.NumGoroutine() > goroutines; n++ { // those that are about to end
		if n == 1_000_000 {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), goroutines)
		}
		runtime.Gosched()
	}
	same(t, "the lasting array", lasting.Data(), slices.Repeat([]uint32{uint32(2 + rounds)}, 100))
}

// TestForgotten wants a lasting array not to keep the crunchers that used it.
func TestForgotten(t *testing.T) {
	devices := openDevices(t, 1)
	a := newArray[uint32](t, "a", 10)
	use := func(end func(cr *cruncher.Cruncher)) weak.Pointer[cruncher.Cruncher] {
		cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), devices, checksSource))
		check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 10}))
		end(cr)
		return weak.Make(cr)
	}
	closed := use(func(cr *cruncher.Cruncher) { check(t, cr.Close()) })
	evicted := use(func(cr *cruncher.Cruncher) { check(t, cr.Evict()) })
	for n := 0; closed.Value() != nil || evicted.Value() != nil; n++ {
		if n == 20 {
			t.Fatal("a cruncher is kept")
		}
		runtime.GC()
	}
}

// TestCollected wants the device memory of arrays that the program has lost to be given back, but not before a batch is done with them.
func TestCollected(t *testing.T) {
	dev := openDevices(t, 1)[0]
	cr := onDevices(t, []*gpu.Device{dev}, 1, checksSource)
	r := cruncher.Range{Global: 100}
	results := make([][]uint32, 50)
	use := func(compute func(context.Context, int, string, cruncher.Range, ...cruncher.Param) error) {
		for i := range results {
			results[i] = make([]uint32, 100)
			a := must[*cruncher.Array[uint32]](t)(cruncher.Wrap("a", results[i]))
			check(t, compute(t.Context(), 1, "inc", r, a))
		}
	}
	collected := func(what string) {
		t.Helper()
		for n := 0; dev.Stats().Buffers > 0; n++ {
			if n == 10_000 {
				t.Fatalf("%s: %d buffers are kept", what, dev.Stats().Buffers)
			}
			runtime.GC()
		}
		for i := range results {
			same(t, what, results[i], slices.Repeat([]uint32{1}, 100))
		}
	}
	use(cr.Compute)
	collected("calls")
	check(t, cr.Batch(t.Context(), func(b *cruncher.Batch) error {
		use(b.Compute)
		for range 5 {
			runtime.GC()
		}
		return nil
	}))
	collected("a batch")
}

// TestParallel calls from eight goroutines at once, each with arrays of its own and one for all.
func TestParallel(t *testing.T) {
	const calls = 25
	cr := newCruncher(t, 2, checksSource, shifting())
	shared := newArray[uint32](t, "a", 300)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			a, err := cruncher.NewArray[uint32]("a", 200)
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Close()
			for k := range calls {
				r := cruncher.Range{Global: 200, Local: 4, Blobs: k % 3}
				f := inBackground(cr, t.Context(), g, "inc", r, a)
				s := inBackground(cr, t.Context(), 100, "inc", cruncher.Range{Global: 300}, shared)
				if err := f.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if err := s.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				_, _ = cr.Traffic(), cr.Stats(g)
				if k%10 == 9 {
					if err := cr.Evict(a.Any); err != nil {
						t.Error(err)
					}
				}
			}
			if v := a.Data(); !slices.Equal(v, slices.Repeat([]uint32{calls}, 200)) {
				t.Errorf("goroutine %d: %d", g, v[0])
			}
		})
	}
	wg.Wait()
	same(t, "the shared array", shared.Data(), slices.Repeat([]uint32{8 * calls}, 300))
}

// TestCloseWithin closes arrays and the cruncher while calls run: they end right or with ErrClosed.
func TestCloseWithin(t *testing.T) {
	for round := range 20 {
		cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), openDevices(t, 1), checksSource))
		a := must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("a", 5000))
		var fs []*future
		for range 5 {
			fs = append(fs, inBackground(cr, t.Context(), 1, "inc", cruncher.Range{Global: 5000}, a))
		}
		if round%2 == 0 {
			check(t, a.Close())
		} else {
			check(t, cr.Close())
		}
		for _, f := range fs {
			if err := f.Wait(t.Context()); err != nil {
				refused(t, fmt.Sprint("round ", round), err, gpu.ErrClosed)
			}
		}
		check(t, a.Close())
		check(t, cr.Close())
	}
}
