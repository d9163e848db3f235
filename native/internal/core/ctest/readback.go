// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

// A mapping whose state lay in Go memory would crash the process within seconds of garbage collection.
func testReadbackUnderGarbageCollection(t *testing.T, bench *Bench) {
	d := bench.open(t)
	const n = 256
	prepareAxpy(t, d, 1, n)
	stop := make(chan struct{})
	var litter sync.WaitGroup
	litter.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				for range 100 {
					runtime.KeepAlive(make([]byte, 8+time.Now().Nanosecond()%4096))
				}
				runtime.GC()
			}
		}
	})
	var l driver.CommandList
	k := uint32(0)
	loops := 0
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); loops++ {
		l.Reset()
		l.Dispatch(1, 1, groups(n), gputest.PutU32(nil, n, 1))
		must(t, d.Submit(&l))
		k++
		want(t, d, 2, multiples(n, k))
	}
	close(stop)
	litter.Wait()
	if loops == 0 {
		t.Error("no readback was made")
	}
	t.Logf("%d readbacks", loops)
}

// multiples returns k, 2*k, 3*k ...
func multiples(n int, k uint32) []uint32 {
	w := ramp(n, 1)
	for i := range w {
		w[i] *= k
	}
	return w
}

// A list that announces a read goes with it, in one submission.
func testAnnouncedRead(t *testing.T, bench *Bench) {
	const n = 256
	d := bench.open(t)
	prepareAxpy(t, d, 1, n)
	submissions := core.Inspect(d).Submissions
	for k := uint32(1); ; k++ { // a list that waits for a thousandth of a second goes alone
		must(t, d.Wait(t.Context()))
		before := submissions()
		announce(t, d, n)
		want(t, d, 2, multiples(n, k))
		if submissions() == before+1 {
			return
		}
	}
}

// announce has axpy run once, and says that a read follows.
func announce(t *testing.T, d driver.Device, n int) {
	t.Helper()
	l := driver.CommandList{More: true}
	l.Dispatch(1, 1, groups(n), gputest.PutU32(nil, uint32(n), 1))
	must(t, d.Submit(&l))
}

// A list is done in its place if something comes between it and the read that it announces, and if the read does not come.
func testAnnouncedInVain(t *testing.T, bench *Bench) {
	const n = 256
	write := func(words []uint32) *driver.CommandList {
		var l driver.CommandList
		l.Write(1, 0, driver.HostBytes(bytesOf(words)))
		return &l
	}
	for name, between := range map[string]func(driver.Device, uint64) error{
		"wait":  func(d driver.Device, _ uint64) error { return d.Wait(t.Context()) },
		"write": func(d driver.Device, _ uint64) error { return d.Submit(write(make([]uint32, n))) },
		"free":  func(d driver.Device, _ uint64) error { d.FreeBuffer(1); return nil },
		"cancelled read": func(d driver.Device, _ uint64) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := read(ctx, d, 2, n); !errors.Is(err, context.Canceled) {
				t.Errorf("a read whose context has ended: %v", err)
			}
			return nil
		},
		"nothing": func(d driver.Device, before uint64) error {
			for submissions := core.Inspect(d).Submissions; submissions() == before; {
				runtime.Gosched()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := bench.open(t)
			prepareAxpy(t, d, 1, n)
			must(t, d.Wait(t.Context()))
			before := core.Inspect(d).Submissions()
			announce(t, d, n)
			must(t, between(d, before))
			want(t, d, 2, multiples(n, 1))
		})
	}
}
