// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

// The CPU writes, a kernel computes, the CPU reads: one and the same memory.
func testMappedStorage(t *testing.T, bench *Bench) {
	if !mapsStorage(t, bench) {
		return
	}
	const n = 1000
	d := bench.open(t)
	ctx := t.Context()
	must(t, d.NewBuffer(1, 4*n, true))
	must(t, d.NewKernel(ctx, 1, &bump))
	var l driver.CommandList
	l.Bind(1, bump.Layout, []driver.Binding{whole(1, n)})
	must(t, d.Submit(&l))
	l.Reset()
	l.Dispatch(1, 1, groups(n), nil)

	var address *byte
	for round := range uint32(5) {
		b, err := d.Map(ctx, 1, 0, 4*n)
		must(t, err)
		if len(b) != 4*n || cap(b) != 4*n {
			t.Fatalf("%d bytes of %d are mapped, want %d", len(b), cap(b), 4*n)
		}
		switch p := unsafe.SliceData(b); {
		case address == nil:
			address = p
		case address != p:
			t.Errorf("the buffer has moved from %p to %p", address, p)
		}
		for i, w := range wordsOf(b) {
			if want := (uint32(i) + 1) * min(round, 1); w != want {
				t.Fatalf("round %d, word %d: got %d, want %d", round, i, w, want)
			}
		}
		copy(b, bytesOf(ramp(n, 0)))
		must(t, d.Unmap(1))
		must(t, d.Submit(&l))
	}
	want(t, d, 1, ramp(n, 1))
}

// A mapping that its context ends leaves the buffer as it was. The next one does not end early.
func testMapCancelled(t *testing.T, bench *Bench) {
	if !mapsStorage(t, bench) {
		return
	}
	whileBusy(t, bench, func(d driver.Device, s *spinner) bool {
		must(t, d.NewBuffer(9, 64, true))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := d.Map(ctx, 9, 0, 64); err == nil {
			return false
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got error %v, want %v", err, context.DeadlineExceeded)
		}
		var l driver.CommandList
		l.Copy(9, 0, 1, 0, 64)
		must(t, d.Submit(&l))
		b, err := d.Map(t.Context(), 9, 0, 64)
		must(t, err)
		got := wordsOf(b)
		must(t, d.Unmap(9))
		want(t, d, 1, got)
		s.check(t)
		return true
	})
}

// A buffer that goes while somebody waits for its mapping.
func testMapOvertaken(t *testing.T, bench *Bench) {
	if !mapsStorage(t, bench) {
		return
	}
	for name, overtake := range map[string]func(t *testing.T, d driver.Device){
		"freed":    func(_ *testing.T, d driver.Device) { d.FreeBuffer(9) },
		"unmapped": func(t *testing.T, d driver.Device) { must(t, d.Unmap(9)) },
		"replaced": func(t *testing.T, d driver.Device) {
			d.FreeBuffer(9)
			must(t, d.NewBuffer(9, 64, true))
		},
		"closed": func(t *testing.T, d driver.Device) { must(t, d.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			whileBusy(t, bench, func(d driver.Device, _ *spinner) bool {
				must(t, d.NewBuffer(9, 64, true))
				done := make(chan error, 1)
				go func() {
					_, err := d.Map(context.Background(), 9, 0, 64)
					done <- err
				}()
				for claimed := core.Inspect(d).Claimed; !claimed(9); {
					time.Sleep(time.Millisecond)
				}
				if len(done) > 0 {
					return false
				}
				overtake(t, d)
				err := <-done
				if err != nil && !errors.Is(err, fault.ErrClosed) {
					t.Errorf("got error %v, want %v", err, fault.ErrClosed)
				}
				return err != nil
			})
		})
	}
}

// What is mapped stays when the device is closed, which goes when it is unmapped.
func testMapClosed(t *testing.T, bench *Bench) {
	if !mapsStorage(t, bench) {
		return
	}
	const n = 1 << 20
	for name, before := range map[string]func(core.Inspection){
		"closed": func(core.Inspection) {}, "lost": func(i core.Inspection) { i.Lose() },
	} {
		t.Run(name, func(t *testing.T) {
			d := bench.open(t)
			inside := core.Inspect(d)
			must(t, d.NewBuffer(1, n, true))
			b, err := d.Map(t.Context(), 1, 0, n)
			must(t, err)
			before(inside)
			must(t, d.Close())
			b[0], b[n-1] = 1, 1
			if users := inside.Users(); users != 1 {
				t.Errorf("the device has %d users, want 1", users)
			}
			for range 2 {
				if err := d.Unmap(1); !errors.Is(err, fault.ErrClosed) {
					t.Errorf("got error %v, want %v", err, fault.ErrClosed)
				}
				if users := inside.Users(); users != 0 {
					t.Errorf("unmapped the device has %d users", users)
				}
			}
		})
	}
}

// mapsStorage reports whether buffers can be storage and mapped. Where they cannot, such a buffer is refused.
func mapsStorage(t *testing.T, bench *Bench) bool {
	d := bench.open(t)
	if d.Info().Features.Has(driver.FeatureMappable) {
		return true
	}
	if err := d.NewBuffer(1, 64, true); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("a buffer that cannot be mapped: %v", err)
	}
	return false
}
