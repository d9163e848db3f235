// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Goroutines share a device. Each gets the errors of its own mistakes and no others.
func testGoroutinesShareADevice(t *testing.T, bench *Bench) {
	for name, d := range map[string]driver.Device{"own": bench.open(t), "adopted": bench.adopt(t)} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for g := range uint32(8) {
				all.Go(func() {
					if err := worker(d, 100*g+1); err != nil {
						t.Errorf("goroutine %d: %v", g, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// worker does a bit of everything with objects whose ids begin at id.
func worker(d driver.Device, id uint32) error {
	const n = 200
	ctx := context.Background()
	x, y := driver.BufferID(id), driver.BufferID(id+1)
	bad := axpy
	bad.Source += "?"
	for round := range 20 {
		for _, b := range []driver.BufferID{x, y} {
			if err := d.NewBuffer(b, 4*n, false); err != nil {
				return err
			}
		}
		if err := d.NewKernel(ctx, driver.KernelID(id+1), &bad); !errors.Is(err, fault.ErrCompile) {
			return errors.Join(errors.New("a bad kernel compiles"), err)
		}
		if err := d.NewKernel(ctx, driver.KernelID(id), &axpy); err != nil {
			return err
		}
		var l driver.CommandList
		l.Bind(driver.BindingsID(id), axpy.Layout, []driver.Binding{whole(x, n), whole(y, n)})
		for i := range uint32(3) {
			l.Write(x, 0, driver.HostBytes(bytesOf(ramp(n, id+i))))
			l.Dispatch(driver.KernelID(id), driver.BindingsID(id), groups(n), gputest.PutU32(nil, n, i+1))
		}
		l.Unbind(driver.BindingsID(id))
		if err := d.Submit(&l); err != nil {
			return err
		}
		got, err := read(ctx, d, y, n)
		if err != nil {
			return err
		}
		sum := make([]uint32, n)
		for i := range sum {
			v := id + uint32(i)
			sum[i] = v + 2*(v+1) + 3*(v+2)
		}
		if !slices.Equal(got, sum) {
			return errors.New("wrong sum in round " + string(rune('0'+round)))
		}
		d.FreeKernel(driver.KernelID(id))
		d.FreeBuffer(x)
		d.FreeBuffer(y)
	}
	return nil
}

// While one goroutine waits for a long job and another submits the next one, which on some platforms cannot begin before,
// the device is there for others, and contexts are obeyed.
func testUseWhileOthersWait(t *testing.T, bench *Bench) {
	whileBusy(t, bench, func(d driver.Device, s *spinner) bool {
		must(t, d.NewBuffer(2, 64, false))
		waited, submitted := make(chan error, 1), make(chan error, 1)
		go func() { waited <- d.Wait(context.Background()) }()
		go func() {
			var l driver.CommandList
			l.Clear(2, 0, 64)
			submitted <- d.Submit(&l)
		}()
		must(t, d.NewBuffer(3, 64, false))
		must(t, d.NewKernel(t.Context(), 3, &bump))
		d.FreeBuffer(3)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			err := d.Wait(ctx)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
			}
		}
		busy := len(waited) == 0
		must(t, <-waited)
		must(t, <-submitted)
		s.check(t)
		return busy
	})
}

// Two devices of one adapter, and work on both at once.
func testTwoDevices(t *testing.T, bench *Bench) {
	adapters, err := bench.Driver.Adapters(t.Context())
	must(t, err)
	var all sync.WaitGroup
	for g := range uint32(2) {
		d, err := adapters[0].Open(t.Context())
		must(t, err)
		t.Cleanup(func() { must(t, d.Close()) })
		all.Go(func() {
			if err := worker(d, 100*g+1); err != nil {
				t.Errorf("device %d: %v", g, err)
			}
		})
	}
	all.Wait()
}
