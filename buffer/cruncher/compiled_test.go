// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/recent"
)

// kernelsOn wants devices to hold so many kernels each.
func kernelsOn(t testing.TB, what string, devices []*gpu.Device, want int) {
	t.Helper()
	for i, d := range devices {
		if n := d.Stats().Kernels; n != want {
			t.Errorf("%s: device %d has %d kernels, want %d", what, i, n, want)
		}
	}
}

// TestKernelsClosed closes one of two crunchers of the same text, one of which also had calls that came to nothing.
func TestKernelsClosed(t *testing.T) {
	devices := openDevices(t, 2)
	source := checksSource + "fn triple(i: u32) { z[i] = z[i] * 3; }\nfn third(i: u32) { a[i] = nothing; }"
	a, z := newArray[uint32](t, "a", 100), newArray[int16](t, "z", 100)
	x := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), devices, source))
	y := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), devices, source))
	r := cruncher.Range{Global: 100, Local: 4}
	check(t, a.Compute(t.Context(), x, 1, "inc", r))
	check(t, a.Compute(t.Context(), y, 1, "inc inc", r))
	kernelsOn(t, "one program of two crunchers", devices, 1)
	before := devices[0].Stats()
	for range 3 {
		check(t, z.Compute(t.Context(), y, 2, "triple", r))
		check(t, y.Evict(z.Any))
	}
	kernelsOn(t, "another with the conversions", devices, 4)
	if s := devices[0].Stats(); s.Compilations != before.Compilations+3 {
		t.Errorf("%d kernels compiled for an array that comes and goes", s.Compilations-before.Compilations)
	}
	refused(t, "one that compiles with one that does not", a.Compute(t.Context(), x, 1, "inc third", cruncher.Range{Global: 100, Local: 2}), gpu.ErrCompile)
	kernelsOn(t, "a call that failed", devices, 4)
	check(t, errors.Join(y.Close(), y.Close()))
	kernelsOn(t, "one is closed", devices, 1)
	check(t, a.Compute(t.Context(), x, 1, "inc", r))
	same(t, "a", a.Data(), slices.Repeat([]uint32{4}, 100))
	check(t, devices[1].Close())
	check(t, x.Close())
	kernelsOn(t, "both are closed, and a device before", devices, 0)
}

// TestKernelsClosedWithin closes crunchers while calls are under way on others of the same text.
func TestKernelsClosedWithin(t *testing.T) {
	devices := openDevices(t, 2)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				cr, err := cruncher.New(t.Context(), devices, checksSource)
				if err != nil {
					t.Error(err)
					return
				}
				a, err := cruncher.NewArray[uint32]("a", 100)
				if err != nil {
					t.Error(err)
					return
				}
				r := cruncher.Range{Global: 100, Local: 4}
				f := inBackground(cr, t.Context(), 1, "inc", r, a)
				g := inBackground(cr, t.Context(), 1, "inc", r, a)
				err = f.Wait(t.Context())
				closed := cr.Close()
				if late := g.Wait(t.Context()); late != nil && !errors.Is(late, gpu.ErrClosed) {
					err = errors.Join(err, late)
				}
				if err = errors.Join(err, closed, a.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	kernelsOn(t, "all are closed", devices, 0)
}

// manyCalls run more programs than a cruncher keeps: so many kernels with each of many workgroup sizes.
const (
	manyNames = 10
	manyCalls = recent.Most * 9 / 8 / manyNames * manyNames
)

func manyName(k int) string { return "f" + string(rune('a'+k%manyNames)) }

func many() (source string, references map[string]reference) {
	references = map[string]reference{}
	var text strings.Builder
	for k := range manyNames {
		references[manyName(k)] = func(i uint32, m memory) { m.set("x", i, m.at("x", i)*3+1) }
		text.WriteString("fn " + manyName(k) + "(i: u32) { x[i] = x[i] * 3u + 1u; }\n")
	}
	return text.String(), references
}

// TestKernelsDisplaced runs more programs than a cruncher keeps, one by one and within a batch, where the device is lost in the end.
func TestKernelsDisplaced(t *testing.T) {
	source, references := many()
	devices, drivers := openFaulty(t, references, []failure{never})
	cr := onDevices(t, devices, 1, source)
	x := wrap(t, "x", make([]uint32, 4))
	want := uint32(0)
	call := func(k int, compute func(context.Context, int, string, cruncher.Range, ...cruncher.Param) error) {
		check(t, compute(t.Context(), 1, manyName(k), cruncher.Range{Global: 4, Local: 1 + k/manyNames}, x))
		want = want*3 + 1
	}
	for k := range manyCalls {
		call(k, cr.Compute)
	}
	same(t, "x", x.Data(), slices.Repeat([]uint32{want}, 4))
	kernelsOn(t, "after the calls", devices, recent.Most)
	call(manyCalls-1, cr.Compute)
	if n := devices[0].Stats().Compilations; n != manyCalls {
		t.Errorf("%d kernels compiled for %d programs", n, manyCalls)
	}
	for _, lost := range []bool{false, true, false} {
		before := want
		err := cr.Batch(t.Context(), func(b *cruncher.Batch) error {
			for k := range manyCalls {
				call(k, b.Compute)
			}
			if lost {
				drivers[0].Lose()
				drivers[0] = reopen(t, devices[0], references, never)
			}
			return nil
		})
		if lost {
			refused(t, "the batch", err, cruncher.ErrStale)
			want = before
		} else {
			check(t, err)
		}
		same(t, "x", x.Data(), slices.Repeat([]uint32{want}, 4))
		if n := devices[0].Stats().Kernels; n > recent.Most {
			t.Errorf("%d kernels after a batch", n)
		}
	}
	check(t, cr.Close())
	kernelsOn(t, "closed", devices, 0)
}
