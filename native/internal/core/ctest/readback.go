// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
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
