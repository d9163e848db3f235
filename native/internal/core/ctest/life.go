// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

// settled waits until there are no more goroutines than before, and fails if that does not come.
func settled(t *testing.T, before int) {
	t.Helper()
	for range 2000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}

func testOpenCloseCycles(t *testing.T, bench *Bench) {
	before := runtime.NumGoroutine()
	for range 30 {
		d, err := bench.openBest(t.Context())
		must(t, err)
		healthy(t, d, 1)
		must(t, d.Close())
	}
	runtime.GC() // releases adapters
	settled(t, before)
}

// Closing while work runs neither waits for it nor pulls its memory away, and nothing is left behind.
func testCloseWhileBusy(t *testing.T, bench *Bench) {
	before := runtime.NumGoroutine()
	whileBusy(t, bench, func(d driver.Device, _ *spinner) bool {
		done := make(chan error, 2)
		go func() { done <- d.Wait(context.Background()) }()
		go func() {
			_, err := read(context.Background(), d, 1, 16)
			done <- err
		}()
		for users := core.Inspect(d).Users; users() < 2 && len(done) == 0; {
			time.Sleep(time.Millisecond)
		}
		must(t, d.Close())
		for range 2 {
			if err := <-done; err == nil {
				return false
			} else if !errors.Is(err, fault.ErrClosed) {
				t.Errorf("got error %v, want %v", err, fault.ErrClosed)
			}
		}
		return true
	})
	settled(t, before)
}

// held is what nobody releases.
var held []any

// What a device of the same adapter is opened after has been closed in some state or other.
func testOpenAfterClose(t *testing.T, bench *Bench) {
	adapters, err := bench.Driver.Adapters(t.Context())
	must(t, err)
	for name, use := range map[string]func(t *testing.T, d driver.Device){
		"idle":   func(*testing.T, driver.Device) {},
		"buffer": func(t *testing.T, d driver.Device) { must(t, d.NewBuffer(1, 64, mappable(d))) },
		"unwritten": func(t *testing.T, d driver.Device) {
			must(t, d.NewBuffer(1, 64, false))
			write(t, d, ramp(4, 1))
		},
		"mapped": func(t *testing.T, d driver.Device) {
			must(t, d.NewBuffer(1, 64, mappable(d)))
			_, err := d.Map(t.Context(), 1, 0, 64)
			if mappable(d) {
				must(t, err)
			}
		},
		"busy": func(t *testing.T, d driver.Device) { newSpinner(t, d).start(t, 100*time.Millisecond) },
		"held": func(t *testing.T, d driver.Device) { // by an object that the user makes and never releases
			module, err := bench.CreateModule(d.Handle(0), bump.Source)
			must(t, err)
			held = append(held, module)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				d, err := adapters[0].Open(t.Context())
				must(t, err)
				healthy(t, d, 10)
				use(t, d)
				must(t, d.Close())
			}
			d, err := adapters[0].Open(t.Context())
			must(t, err)
			healthy(t, d, 10)
			must(t, d.Close())
		})
	}
}

// A read or wait that its context ends leaves nothing behind that a later one could trip over.
func testWaitCancelled(t *testing.T, bench *Bench) {
	whileBusy(t, bench, func(d driver.Device, s *spinner) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		waited := d.Wait(ctx)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, got := read(ctx, d, 1, 16)
		for _, err := range []error{waited, got} {
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
			}
		}
		s.check(t)
		return waited != nil && got != nil
	})
}

// The loss is simulated where the platform's callback would report it.
func testLoss(t *testing.T, bench *Bench) {
	whileBusy(t, bench, func(d driver.Device, _ *spinner) bool {
		done := make(chan error, 1)
		go func() { done <- d.Wait(context.Background()) }()
		for users := core.Inspect(d).Users; users() < 1 && len(done) == 0; {
			time.Sleep(time.Millisecond)
		}
		select {
		case <-d.Lost():
			t.Fatal("lost before it was")
		default:
		}
		core.Inspect(d).Lose()
		err := <-done
		if err != nil && !errors.Is(err, fault.ErrDeviceLost) {
			t.Errorf("Wait: got error %v, want %v", err, fault.ErrDeviceLost)
		}
		lost(t, d)
		return err != nil
	})
}

// lost checks that a device knows of its loss.
func lost(t *testing.T, d driver.Device) {
	t.Helper()
	for name, err := range map[string]error{
		"Submit":    d.Submit(new(driver.CommandList)),
		"NewBuffer": d.NewBuffer(7, 4, false),
		"NewKernel": d.NewKernel(t.Context(), 7, &bump),
	} {
		if !errors.Is(err, fault.ErrDeviceLost) {
			t.Errorf("%s: got error %v, want %v", name, err, fault.ErrDeviceLost)
		}
	}
	<-d.Lost()
	if d.LostReason() == "" {
		t.Error("no reason")
	}
}

// order is that of adapters in the list.
var order = []driver.Kind{driver.KindDiscrete, driver.KindIntegrated, driver.KindVirtual, driver.KindUnknown, driver.KindCPU}

func testAdapters(t *testing.T, bench *Bench) {
	list, err := bench.Driver.Adapters(t.Context())
	must(t, err)
	if len(list) == 0 {
		t.Fatal("no adapter")
	}
	last := 0
	for _, a := range list {
		info := a.Info
		t.Logf("%+v %v", info, info.Features.Names())
		l := info.Limits
		if info.Driver != bench.Driver.Name || info.Name == "" || info.Vendor == "" || info.Backend == "" {
			t.Errorf("an adapter without a name: %+v", info)
		}
		if l.MaxBufferSize < 1<<26 || l.MaxBindingSize < 1<<26 || l.MaxStorageBuffers < 8 || l.MaxGroups < 65535 ||
			l.MaxInvocations < 128 || l.BindingOffsetAlign != 256 {
			t.Errorf("%s: implausible limits %+v", info.Name, l)
		}
		if !info.Features.Has(driver.FeatureWGSL) {
			t.Errorf("%s does not compile", info.Name)
		}
		if r := slices.Index(order, info.Kind); r < last {
			t.Errorf("%s stands behind lesser adapters", info.Name)
		} else {
			last = r
		}
	}
}

// Adapters of older listings open all the same, several times, and also after devices of theirs were closed.
func testAdaptersAgain(t *testing.T, bench *Bench) {
	list := func() []driver.Adapter {
		list, err := bench.Driver.Adapters(t.Context())
		must(t, err)
		return list
	}
	old := list()
	latest := list()
	for _, a := range []driver.Adapter{old[0], latest[0], old[0]} {
		d, err := a.Open(t.Context())
		must(t, err)
		healthy(t, d, 1)
		must(t, d.Close())
	}
}

// The first device after a listing is made from what was listed, the next one from a listing of its own.
func testOpenAfterListing(t *testing.T, bench *Bench) {
	listed := core.Inspect(bench.open(t)).Listed
	list, err := bench.Driver.Adapters(t.Context())
	must(t, err)
	if !listed() {
		t.Error("nothing is kept of the listing")
	}
	for range 2 {
		d, err := list[0].Open(t.Context())
		must(t, err)
		healthy(t, d, 1)
		if listed() {
			t.Error("the listing is still there for another device")
		}
		must(t, d.Close())
	}
}
