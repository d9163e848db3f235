// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

func testConformance(t *testing.T, bench *Bench) { gputest.Run(t, bench.openBest) }

func testAdopt(t *testing.T, bench *Bench) {
	dev := bench.request(t)
	d, err := bench.Driver.Adopt(t.Context(), dev)
	must(t, err)
	if d.Handle(0) != dev {
		t.Error("the handle is another one")
	}
	if got, want := d.Info().Limits.MaxInvocations, bench.MaxInvocations(dev); got != want {
		t.Errorf("the device has %d invocations, want %d", got, want)
	}
	if d.Info().Features.Has(driver.FeatureMappable) {
		t.Error("the device was requested without features and has one")
	}
	healthy(t, d, 1)
	must(t, d.Close())
	bench.usable(t, dev) // it is still the user's
	bench.ReleaseDevice(dev)
}

// The handle of a device that was closed is refused, and whoever adopted it before goes on.
func testAdoptClosed(t *testing.T, bench *Bench) {
	own, err := bench.openBest(t.Context())
	must(t, err)
	handle := own.Handle(0)
	d, err := bench.Driver.Adopt(t.Context(), handle)
	must(t, err)
	must(t, own.Close())
	if _, err := bench.Driver.Adopt(t.Context(), handle); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%v, want %v", err, fault.ErrInvalid)
	}
	bench.usable(t, d.Handle(0))
	healthy(t, d, 1)
	must(t, d.Close())
}

func testAdoptedConformance(t *testing.T, bench *Bench) {
	run := gputest.RunOnce
	if long() {
		run = gputest.Run
	}
	run(t, func(ctx context.Context) (driver.Device, error) {
		dev := bench.request(t)
		defer bench.ReleaseDevice(dev)
		return bench.Driver.Adopt(ctx, dev)
	})
}

// An adopted device of the only adapter is of that adapter, with all that is known of it.
func testAdoptedAdapter(t *testing.T, bench *Bench) {
	list, err := bench.Driver.Adapters(t.Context())
	must(t, err)
	d := bench.adopt(t)
	got, listed := d.Info(), list[0].Info
	if listed.Vendor == "mesa" && listed.Kind == driver.KindCPU && got.Limits.MaxLoopsPerInvoking != 65535 {
		t.Errorf("loops of llvmpipe make %d turns", got.Limits.MaxLoopsPerInvoking)
	}
	if got.Driver != bench.Driver.Name || got.Kind != listed.Kind || got.Vendor != listed.Vendor ||
		got.Limits.MaxLoopsPerInvoking != listed.Limits.MaxLoopsPerInvoking {
		t.Errorf("got %+v, the adapter is %+v", got, listed)
	}
	if len(list) == 1 && (got.Name != listed.Name || got.Backend != listed.Backend) {
		t.Errorf("got the adapter %q of %s, want %q of %s", got.Name, got.Backend, listed.Name, listed.Backend)
	}
	limited(t, d, listed)
}

// What matters of an adopted device is known if its adapter is not listed any more.
func testAdoptedUnlisted(t *testing.T, bench *Bench) {
	list, err := bench.Driver.Adapters(t.Context())
	must(t, err)
	dev := bench.request(t)
	defer bench.ReleaseDevice(dev)
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		t.Setenv(name, "/nonexistent.json")
	}
	d, err := bench.Driver.Adopt(t.Context(), dev)
	must(t, err)
	if got := d.Info(); got.Driver != bench.Driver.Name || got.Name == "" || got.Vendor == "" || got.Backend == "" {
		t.Errorf("an adapter without a name: %+v", got)
	}
	limited(t, d, list[0].Info)
	healthy(t, d, 1)
	must(t, d.Close())
}

// limited checks that an adopted device ends loops, and refuses results of loops that were ended, if its adapter does.
func limited(t *testing.T, d driver.Device, of driver.AdapterInfo) {
	t.Helper()
	limit := of.Limits.MaxLoopsPerInvoking
	if got := d.Info(); got.Limits.MaxLoopsPerInvoking != limit || limit > 0 && got.Kind != driver.KindCPU {
		t.Errorf("an adopted device of %+v is %+v", of, got)
	}
	got, err := turns(t, d, turning("", "for (var i = 0u; i < p.n; i++) { h += 1u; }"), 80000)
	if limit > 0 && !errors.Is(err, fault.ErrLimit) || limit == 0 && (err != nil || got[0] != 80000) {
		t.Errorf("80000 turns: %d, %v", got[0], err)
	}
}

// A buffer that a user made with the binding is computed on where it is.
func testImport(t *testing.T, bench *Bench) {
	const n = 256
	dev := bench.request(t)
	t.Cleanup(func() { bench.ReleaseDevice(dev) })
	adopted, err := bench.Driver.Adopt(t.Context(), dev)
	must(t, err)
	t.Cleanup(func() { must(t, adopted.Close()) })
	own := bench.open(t)
	for name, d := range map[string]driver.Device{"adopted": adopted, "own": own} {
		t.Run(name, func(t *testing.T) {
			b, err := bench.CreateBuffer(d.Handle(0), 4*n, UsageImport, false)
			must(t, err)
			must(t, bench.Write(d.Handle(0), b, bytesOf(ramp(n, 7))))
			_, size, err := d.ImportBuffer(1, b)
			must(t, err)
			if size != 4*n {
				t.Errorf("the buffer has %d bytes, want %d", size, 4*n)
			}
			if d.Handle(1) != b {
				t.Error("the handle is another buffer")
			}
			bench.ReleaseBuffer(b) // the driver has its own reference
			must(t, d.NewKernel(t.Context(), 1, &bump))
			var l driver.CommandList
			l.Bind(1, bump.Layout, []driver.Binding{whole(1, n)})
			l.Dispatch(1, 1, groups(n), nil)
			must(t, d.Submit(&l))
			want(t, d, 1, ramp(n, 8))
			d.FreeBuffer(1)
			healthy(t, d, 10)
		})
	}
}

// What the driver computes in its own buffer, a user sees through the handle.
func testBufferHandle(t *testing.T, bench *Bench) {
	const n = 64
	d := bench.open(t)
	must(t, d.NewBuffer(1, 4*n, false))
	write(t, d, ramp(n, 3))
	must(t, d.NewBuffer(2, 4*n, false))
	source := d.Handle(1)
	must(t, bench.Copy(d.Handle(0), source, d.Handle(2), 4*n))
	want(t, d, 2, ramp(n, 3))
	if d.Handle(1) != source {
		t.Error("the handle of a buffer changes")
	}
}

// An error that no call of the driver waits for is counted and does not end the process.
func testStrayErrors(t *testing.T, bench *Bench) {
	if bench.Stray == nil {
		return
	}
	d := bench.open(t)
	must(t, bench.Stray(d.Handle(0)))
	if n := core.Inspect(d).Strays(); n != 1 {
		t.Errorf("%d errors were counted, want 1", n)
	}
	healthy(t, d, 1)
}

func testOddSize(t *testing.T, bench *Bench) {
	d := bench.open(t)
	gputest.OddSizes(t, d, func(size int) any { return bench.make(t, d.Handle(0), uint64(size), UsageImport, false) })
}

// A buffer of the user's is destroyed: at once for him, for the work that was submitted later.
func testDestroyBuffer(t *testing.T, bench *Bench) {
	d := bench.open(t)
	b, err := bench.CreateBuffer(d.Handle(0), 256, UsageImport, true)
	must(t, err)
	must(t, d.DestroyBuffer(b))
	must(t, d.DestroyBuffer(b)) // there is nothing more to do
	if _, _, err := d.ImportBuffer(1, b); err == nil {
		t.Error("a destroyed buffer was imported")
	}
	bench.ReleaseBuffer(b)
	if err := d.DestroyBuffer(bench.NilBuffer); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
	must(t, d.NewBuffer(1, 16, false))
	if err := d.DestroyBuffer(d.Handle(1)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("the driver's own: %v", err)
	}
	write(t, d, ramp(4, 3))
	want(t, d, 1, ramp(4, 3))
	d.FreeBuffer(1)
	other := bench.open(t)
	must(t, other.NewBuffer(1, 16, false))
	if err := d.DestroyBuffer(other.Handle(1)); !errors.Is(err, fault.ErrForeign) {
		t.Errorf("another device's: %v", err)
	}
	healthy(t, d, 2)
}
