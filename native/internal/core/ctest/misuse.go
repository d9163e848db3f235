// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// refused wants an error of one kind, and the device unharmed.
func refused(t *testing.T, d driver.Device, name string, err error, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got error %v, want %v", name, err, kind)
	}
	healthy(t, d, 90)
	d.FreeBuffer(90)
	d.FreeBuffer(91)
	d.FreeKernel(90)
	var l driver.CommandList
	l.Unbind(90)
	must(t, d.Submit(&l))
}

func testRefusedBuffers(t *testing.T, bench *Bench) {
	d, other := bench.open(t), bench.open(t)
	must(t, d.NewBuffer(1, 64, false))
	must(t, other.NewBuffer(1, 64, false))
	made := func(usage Usage, mapped bool) any { return bench.make(t, d.Handle(0), 64, usage, mapped) }
	destroyed := made(UsageImport, false)
	mapped := UsageImport
	if mappable(d) {
		mapped |= UsageMapWrite
	}
	bench.DestroyBuffer(destroyed)

	refused(t, d, "size 0", d.NewBuffer(2, 0, false), fault.ErrInvalid)
	refused(t, d, "size 6", d.NewBuffer(2, 6, false), fault.ErrInvalid)
	refused(t, d, "size 1 PiB", d.NewBuffer(2, 1<<50, false), fault.ErrLimit)
	refused(t, d, "id taken", d.NewBuffer(1, 64, false), fault.ErrInvalid)
	for _, c := range []struct {
		name   string
		handle any
		kind   error
	}{
		{"nil", nil, fault.ErrUnsupported},
		{"a number", 7, fault.ErrUnsupported},
		{"nil buffer", bench.NilBuffer, fault.ErrInvalid},
		{"empty buffer", bench.EmptyBuffer, fault.ErrInvalid},
		{"another device's", other.Handle(1), fault.ErrForeign},
		{"no storage", made(UsageImport&^UsageStorage, false), fault.ErrInvalid},
		{"no copy", made(UsageStorage, false), fault.ErrInvalid},
		{"mapped since its creation", made(UsageImport, true), fault.ErrMapped},
		{"mapped", made(mapped, true), fault.ErrMapped},
		{"destroyed", destroyed, fault.ErrInvalid},
	} {
		_, _, err := d.ImportBuffer(3, c.handle)
		refused(t, d, c.name, err, c.kind)
	}
}

// Buffers that were refused because they were mapped keep what is in the mapping, and are imported once they are not mapped any more.
func testReimportedBuffers(t *testing.T, bench *Bench) {
	d := bench.open(t)
	usage := UsageImport
	if mappable(d) {
		usage |= UsageMapWrite
	}
	mapped, writable := bench.make(t, d.Handle(0), 64, UsageImport, true), bench.make(t, d.Handle(0), 64, usage, true)
	for _, b := range []any{mapped, writable} {
		_, _, err := d.ImportBuffer(3, b)
		refused(t, d, "mapped", err, fault.ErrMapped)
	}
	if bench.Unseen == "" { // otherwise the attempt has unmapped it
		copy(bench.MappedRange(mapped, 64), bytesOf(ramp(16, 5)))
		must(t, bench.Unmap(mapped))
	}
	_, _, err := d.ImportBuffer(3, mapped)
	must(t, err)
	if bench.Unseen == "" {
		want(t, d, 3, ramp(16, 5))
	}
	must(t, bench.Unmap(writable))
	_, _, err = d.ImportBuffer(4, writable)
	must(t, err)
	known, _, err := d.ImportBuffer(4, mapped)
	must(t, err)
	if known != 3 {
		t.Errorf("imported again as %d, want 3", known)
	}
}

// testReleased hands over buffers that nobody has a reference to any more: nothing looks behind their pointers.
func testReleased(t *testing.T, bench *Bench) {
	if bench.Unseen != "" {
		t.Logf("releases are not seen: %s", bench.Unseen)
		return
	}
	d := bench.open(t)
	gone := fault.ErrClosed
	if bench.Cleared {
		gone = fault.ErrInvalid
	}
	var released []any
	for range 1000 {
		b, err := bench.CreateBuffer(d.Handle(0), 64, UsageImport, false)
		must(t, err)
		released = append(released, b)
	}
	for i, b := range released {
		imported := i%2 == 0
		if imported {
			_, _, err := d.ImportBuffer(driver.BufferID(i+1), b) // holds a reference of its own
			must(t, err)
		}
		bench.ReleaseBuffer(b)
		_, _, err := d.ImportBuffer(5000, b)
		if imported && !bench.Cleared {
			must(t, err)
			d.FreeBuffer(5000)
		}
		if imported {
			d.FreeBuffer(driver.BufferID(i + 1))
			_, _, err = d.ImportBuffer(5000, b)
		}
		refused(t, d, "released", err, gone)
		refused(t, d, "released", d.DestroyBuffer(b), gone)
	}
}

// Buffers that are destroyed or mapped without the driver's register knowing: through a handle, and under another id.
func testBuffersOthersSpoil(t *testing.T, bench *Bench) {
	d := bench.open(t)
	const n = 64
	must(t, d.NewKernel(t.Context(), 1, &bump))
	for id := driver.BufferID(1); id < 4; id++ {
		must(t, d.NewBuffer(id, 4*n, id == 2 && mappable(d)))
	}
	_, _, err := d.ImportBuffer(4, d.Handle(2))
	must(t, err)
	var l driver.CommandList
	for _, id := range []uint32{1, 4} {
		l.Bind(driver.BindingsID(id), bump.Layout, []driver.Binding{whole(driver.BufferID(id), n)})
	}
	must(t, d.Submit(&l))
	spoilt := func(name string, id driver.BufferID, kind error) {
		t.Helper()
		for _, use := range []func(l *driver.CommandList){
			func(l *driver.CommandList) { l.Dispatch(1, driver.BindingsID(id), groups(n), nil) },
			func(l *driver.CommandList) { l.Copy(id, 0, 3, 0, 4) },
			func(l *driver.CommandList) { l.Copy(3, 0, id, 0, 4) },
			func(l *driver.CommandList) { l.Clear(id, 0, 4) },
		} {
			var l driver.CommandList
			use(&l)
			refused(t, d, name, d.Submit(&l), kind)
		}
		_, err := read(t.Context(), d, id, n)
		refused(t, d, name, err, kind)
	}
	bench.DestroyBuffer(d.Handle(1))
	spoilt("destroyed", 1, fault.ErrInvalid)
	if !mappable(d) {
		return
	}

	_, err = d.Map(t.Context(), 2, 0, 8)
	must(t, err)
	spoilt("mapped", 4, fault.ErrMapped)
	must(t, d.Unmap(2))
	l.Reset()
	l.Dispatch(1, 4, groups(n), nil)
	must(t, d.Submit(&l))
	want(t, d, 2, []uint32{1, 1, 1})
	want(t, d, 3, make([]uint32, n))
}

func testRefusedTransfers(t *testing.T, bench *Bench) {
	d := bench.open(t)
	must(t, d.NewBuffer(1, 64, false))
	must(t, d.NewBuffer(2, 64, mappable(d)))
	if _, err := d.Map(t.Context(), 2, 0, 8); mappable(d) {
		must(t, err)
	}
	host := driver.HostBytes(make([]byte, 64))
	long := host
	long.Size = 128
	for _, c := range []struct {
		name string
		kind error
		tr   driver.Transfer
	}{
		{"past the end", fault.ErrInvalid, driver.Transfer{Buffer: 1, Offset: 60, Host: host, Width: 8, Count: 1}},
		{"far away", fault.ErrInvalid, driver.Transfer{Buffer: 1, Offset: math.MaxUint64, Host: host, Width: 8, Count: 1}},
		{"host too short", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, HostOffset: 60, Width: 8, Count: 1}},
		{"host shorter than it says", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: long, Width: 8, Count: 1}},
		{"host foreign", fault.ErrUnsupported, driver.Transfer{Buffer: 1, Host: driver.Host{Foreign: 1, Size: 64}, Width: 8, Count: 1}},
		{"negative width", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, Width: -4, Count: 1}},
		{"negative count", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, Width: 4, Count: -1}},
		{"negative host offset", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, HostOffset: -4, Width: 4, Count: 1}},
		{"overlapping rows", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, Width: 8, Pitch: 4, Count: 2}},
		{"overflow", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, Width: 8, Pitch: math.MaxInt / 2, Count: math.MaxInt}},
		{"unknown buffer", fault.ErrClosed, driver.Transfer{Buffer: 9, Host: host, Width: 8, Count: 1}},
		{"mapped buffer", fault.ErrMapped, driver.Transfer{Buffer: 2, Host: host, Width: 8, Count: 1}},
	} {
		if mappable(d) || c.tr.Buffer != 2 {
			refused(t, d, c.name, d.Read(t.Context(), c.tr), c.kind)
		}
	}
}

func testRefusedMappings(t *testing.T, bench *Bench) {
	d := bench.open(t)
	must(t, d.NewBuffer(1, 64, false))
	must(t, d.NewBuffer(2, 64, mappable(d)))
	mapErr := func(id driver.BufferID) error {
		_, err := d.Map(t.Context(), id, 0, 64)
		return err
	}
	refused(t, d, "not mappable", mapErr(1), fault.ErrUnsupported)
	refused(t, d, "unknown", mapErr(7), fault.ErrClosed)
	refused(t, d, "unmap unmapped", d.Unmap(2), fault.ErrInvalid)
	refused(t, d, "unmap unknown", d.Unmap(7), fault.ErrInvalid)
	if !mappable(d) {
		return
	}
	must(t, mapErr(2))
	refused(t, d, "twice", mapErr(2), fault.ErrMapped)
	must(t, d.Unmap(2))
	refused(t, d, "unmap twice", d.Unmap(2), fault.ErrInvalid)
	must(t, mapErr(2))
	d.FreeBuffer(2) // while it is mapped
	refused(t, d, "unmap freed", d.Unmap(2), fault.ErrInvalid)
}

func testRefusedContexts(t *testing.T, bench *Bench) {
	d := bench.open(t)
	must(t, d.NewBuffer(1, 64, mappable(d)))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func(ctx context.Context) error{
		"Wait": d.Wait,
		"Map": func(ctx context.Context) error {
			_, err := d.Map(ctx, 1, 0, 64)
			return err
		},
		"Read": func(ctx context.Context) error {
			_, err := read(ctx, d, 1, 1)
			return err
		},
		"NewKernel": func(ctx context.Context) error { return d.NewKernel(ctx, 1, &axpy) },
		"Open": func(ctx context.Context) error {
			_, err := bench.openBest(ctx)
			return err
		},
		"Adopt": func(ctx context.Context) error {
			_, err := bench.Driver.Adopt(ctx, d.Handle(0))
			return err
		},
	} {
		refused(t, d, name+" cancelled", call(gone), context.Canceled)
		refused(t, d, name+" without context", call(nil), fault.ErrInvalid)
	}
}

func testRefusedAdoptions(t *testing.T, bench *Bench) {
	for _, c := range []struct {
		name   string
		handle any
		kind   error
	}{
		{"nil", nil, fault.ErrUnsupported},
		{"a number", 7, fault.ErrUnsupported},
		{"nil device", bench.NilDevice, fault.ErrInvalid},
		{"empty device", bench.EmptyDevice, fault.ErrInvalid},
	} {
		if _, err := bench.Driver.Adopt(t.Context(), c.handle); !errors.Is(err, c.kind) {
			t.Errorf("%s: got error %v, want %v", c.name, err, c.kind)
		}
	}
}

func testUseAfterClose(t *testing.T, bench *Bench) {
	d := bench.open(t)
	must(t, d.NewBuffer(1, 64, mappable(d)))
	must(t, d.Close())
	must(t, d.Close())
	ctx := t.Context()
	_, mapped := d.Map(ctx, 1, 0, 64)
	_, _, imported := d.ImportBuffer(2, bench.EmptyBuffer)
	_, got := read(ctx, d, 1, 1)
	for name, err := range map[string]error{
		"NewBuffer":    d.NewBuffer(2, 64, false),
		"NewKernel":    d.NewKernel(ctx, 1, &axpy),
		"Submit":       d.Submit(new(driver.CommandList)),
		"Wait":         d.Wait(ctx),
		"Map":          mapped,
		"Unmap":        d.Unmap(1),
		"Read":         got,
		"ImportBuffer": imported,
	} {
		if !errors.Is(err, fault.ErrClosed) {
			t.Errorf("%s: got error %v, want %v", name, err, fault.ErrClosed)
		}
	}
	d.FreeBuffer(1)
	d.FreeKernel(1)
	if d.Handle(0) != nil || d.Handle(1) != nil {
		t.Error("a closed device gives out handles")
	}
	if d.LostReason() != "" {
		t.Errorf("a closed device was lost: %s", d.LostReason())
	}
}
