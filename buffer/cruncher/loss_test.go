// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

// lossSource takes a while for each item.
const lossSource = `
fn slow(i: u32) {
  var v = x[i];
  for (var k = 0u; k < 2000u; k++) { v = v * 1664525u + 1013904223u; }
  x[i] = v;
  y[i] = y[i] + 1u;
}
fn after(i: u32) { z[i] = x[i] ^ y[i] ^ all[(i * 7u) % 3000u]; }
fn keep(i: u32) { x[i] = x[i] + 1u; }`

const lossItems = 3000

// scene is arrays for a call, and what it makes of them.
type scene struct {
	x, y, z, all *cruncher.Array[uint32]
	wantX, wantZ []uint32
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		x: wrap(t, "x", count(lossItems, uint32(0))), y: newArray[uint32](t, "y", lossItems),
		z: wrap(t, "z", make([]uint32, lossItems)), all: wrap(t, "all", count(lossItems, uint32(40))),
	}
	edit(s.y).PartialRead(true)
	edit(s.z).WriteOnly(true)
	edit(s.all).ReadOnly(true)
	s.wantX = slices.Clone(s.x.Data())
	s.wantZ = make([]uint32, lossItems)
	return s
}

// advance is what the call does.
func (s *scene) advance(calls uint32) {
	for i := range s.wantX {
		v := s.wantX[i]
		for range 2000 {
			v = v*1664525 + 1013904223
		}
		s.wantX[i] = v
		s.wantZ[i] = v ^ calls ^ s.all.Data()[i*7%lossItems]
	}
}

func (s *scene) check(t *testing.T, what string, calls uint32) {
	t.Helper()
	same(t, what+": x", s.x.Data(), s.wantX)
	same(t, what+": y", s.y.Data(), slices.Repeat([]uint32{calls}, lossItems))
	same(t, what+": z", s.z.Data(), s.wantZ)
}

func (s *scene) start(t *testing.T, cr *cruncher.Cruncher, blobs int) *future {
	return inBackground(cr, t.Context(), 1, "slow after", cruncher.Range{Global: lossItems, Local: 10, Blobs: blobs}, s.x, s.y, s.z, s.all)
}

// TestLostBefore has devices gone before a call and between calls.
func TestLostBefore(t *testing.T) {
	for lost := range 3 {
		devices := openDevices(t, 3)
		cr := onDevices(t, devices, 3, lossSource)
		s := newScene(t)
		for calls := uint32(1); calls <= 3; calls++ {
			if int(calls) == lost {
				check(t, devices[lost].Close())
			}
			check(t, s.start(t, cr, 1).Wait(t.Context()))
			s.advance(calls)
			s.check(t, fmt.Sprint("device ", lost), calls)
		}
	}
}

// TestLostWithin closes devices while a call runs, early and late. Whatever it was doing, the results are right.
func TestLostWithin(t *testing.T) {
	for round := range 12 {
		blobs := []int{1, 4, 30}[round%3]
		victims := 1 + round%2
		devices := openDevices(t, 3)
		cr := onDevices(t, devices, 3, lossSource)
		s := newScene(t)
		f := s.start(t, cr, blobs)
		for k := range victims {
			d := devices[(round+k)%3]
			await(t, f, func() bool { return d.Stats().Dispatches > 0 && d.Stats().BytesDown >= uint64(round/3)*1000 })
			check(t, d.Close())
		}
		check(t, f.Wait(t.Context()))
		s.advance(1)
		s.check(t, fmt.Sprintf("round %d", round), 1)
		check(t, s.start(t, cr, blobs).Wait(t.Context()))
		s.advance(2)
		s.check(t, fmt.Sprintf("after round %d", round), 2)
	}
}

// TestLostMixing loses a device in a call whose items read elements that others write: those who take over read them as they were
// before the call.
func TestLostMixing(t *testing.T) {
	for round := range 12 {
		devices := openDevices(t, 3)
		cr := onDevices(t, devices, 3, `
fn mix(i: u32) {
  var v = x[(i * 7u) % 3000u];
  for (var k = 0u; k < 2000u; k++) { v = v * 1664525u + 1013904223u; }
  t[i] = v;
}
fn put(i: u32) { x[i] = t[i]; }`, even())
		x, tmp := newArray[uint32](t, "x", lossItems), newArray[uint32](t, "t", lossItems)
		edit(tmp).WriteOnly(true).Write(false)
		want := make([]uint32, lossItems)
		for i := range want {
			check(t, x.Set(i, uint32(i)))
			v := uint32(i * 7 % lossItems)
			for range 2000 {
				v = v*1664525 + 1013904223
			}
			want[i] = v
		}
		f := inBackground(cr, t.Context(), 1, "mix put", cruncher.Range{Global: lossItems, Local: 10}, x, tmp)
		d := devices[round%3]
		await(t, f, func() bool { return d.Stats().Dispatches > uint64(round%2) })
		check(t, d.Close())
		check(t, f.Wait(t.Context()))
		same(t, fmt.Sprint("round ", round), x.Data(), want)
	}
}

// await returns when a call has come so far, or is over.
func await(t *testing.T, f *future, reached func() bool) {
	t.Helper()
	for !reached() {
		select {
		case <-f.Done():
			return
		case <-t.Context().Done():
			t.Fatal("the call does not go on")
		default:
			time.Sleep(time.Microsecond) // a page has one thread, which is the call's, too
		}
	}
}

// TestLostAll loses the last device, before a call and within one.
func TestLostAll(t *testing.T) {
	for _, within := range []bool{false, true} {
		devices := openDevices(t, 2)
		cr := onDevices(t, devices, 2, lossSource)
		s := newScene(t)
		var f *future
		if within {
			f = s.start(t, cr, 1)
			await(t, f, func() bool { return devices[0].Stats().Dispatches > 0 && devices[1].Stats().Dispatches > 0 })
		}
		for _, d := range devices {
			check(t, d.Close())
		}
		if !within {
			f = s.start(t, cr, 1)
		}
		if err := f.Wait(t.Context()); err == nil { // it was over before
			s.advance(1)
			s.check(t, "in time", 1)
		} else {
			refused(t, "no device is left", err, gpu.ErrDeviceLost)
			s.check(t, "as it was", 0)
		}
		refused(t, "the next call", s.start(t, cr, 1).Wait(t.Context()), gpu.ErrDeviceLost)
	}
}

// TestLostResident loses elements that only one device has. Those that others or the host have are not lost.
func TestLostResident(t *testing.T) {
	devices := openDevices(t, 2)
	cr := onDevices(t, devices, 2, lossSource, even())
	x, same2 := newArray[uint32](t, "x", 100), wrap(t, "x", count(100, uint32(0)))
	edit(x).Read(false).Write(false)
	r := cruncher.Range{Global: 100, Local: 2}
	check(t, x.Compute(t.Context(), cr, 1, "keep", r))
	check(t, same2.Compute(t.Context(), cr, 1, "keep", r))
	edit(same2).Read(false)
	check(t, same2.Compute(t.Context(), cr, 1, "keep", r))
	check(t, devices[1].Close())
	refused(t, "what the device had", x.Compute(t.Context(), cr, 1, "keep", r), cruncher.ErrStale)
	refused(t, "fetching that", cr.Fetch(t.Context(), x.Any), cruncher.ErrStale)
	check(t, same2.Compute(t.Context(), cr, 1, "keep", r))
	same(t, "what the host had", same2.Data(), count(100, uint32(3)))
	r.Global = 50
	check(t, x.Compute(t.Context(), cr, 1, "keep", r))
	check(t, cr.Evict(x.Any))
	r.Global = 100
	edit(x).Write(true)
	check(t, x.Compute(t.Context(), cr, 1, "keep", r))
	same(t, "from the beginning", x.Data(), slices.Repeat([]uint32{1}, 100))
}

// TestLostInBatch loses a device within a batch: what it had computed is stale, and nothing has changed. The markers say when.
func TestLostInBatch(t *testing.T) {
	devices := openDevices(t, 2)
	cr := onDevices(t, devices, 2, lossSource, even())
	x := wrap(t, "x", count(100, uint32(0)))
	r := cruncher.Range{Global: 100, Local: 2}
	refused(t, "the batch", cr.Batch(t.Context(), func(b *cruncher.Batch) error {
		check(t, b.Compute(t.Context(), 1, "keep", r, x))
		check(t, devices[0].Close())
		for b.Remaining() > 0 && t.Context().Err() == nil { // a lost device is done
			time.Sleep(time.Microsecond)
		}
		refused(t, "what needs it", b.Compute(t.Context(), 1, "keep", r, x), cruncher.ErrStale)
		if b.Reached() != 1 {
			t.Errorf("%d calls are done", b.Reached())
		}
		return nil
	}), cruncher.ErrStale)
	same(t, "as it was", x.Data(), count(100, uint32(0)))
	check(t, x.Compute(t.Context(), cr, 1, "keep", r))
	same(t, "the next call", x.Data(), count(100, uint32(1)))
}

// TestLostSource loses the device that elements are to come from, in the middle of the call that moves them.
func TestLostSource(t *testing.T) {
	for range 8 {
		devices := openDevices(t, 3)
		cr := onDevices(t, devices, 3, lossSource, shifting())
		x := wrap(t, "x", count(lossItems, uint32(0)))
		edit(x).Read(false).PartialRead(true)
		r := cruncher.Range{Global: lossItems, Local: 10}
		check(t, x.Compute(t.Context(), cr, 1, "keep", r))
		edit(x).PartialRead(false).Write(false)
		f := inBackground(cr, t.Context(), 1, "keep", r, x)
		check(t, devices[1].Close())
		err := f.Wait(t.Context())
		if err != nil && !errors.Is(err, cruncher.ErrStale) {
			t.Errorf("neither right nor stale: %v", err)
		}
		ferr := cr.Fetch(t.Context(), x.Any)
		switch {
		case ferr == nil && err == nil:
			same(t, "x", x.Data(), count(lossItems, uint32(2)))
		case ferr != nil:
			refused(t, "fetching", ferr, cruncher.ErrStale)
		}
	}
}
