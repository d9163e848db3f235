// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestNothingLeaks shares, views, clones and closes 100,000 times, and then has what it had.
func TestNothingLeaks(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, err := ndarray.FromSlice(dev, count(64), 8, 8)
		check(t, err)
		released := 0
		cycle := func() {
			s, err1 := a.Share()
			v, err2 := s.Slice(ndarray.Region{Starts: []int{0, 1}, Ends: []int{8, 3}})
			w, err3 := v.Transpose()
			c, err4 := w.Clone()
			x, err5 := ndarray.Wrap(dev, mine[:], []int{4}, ndarray.Placement{Release: func() { released++ }})
			m, err6 := x.Move()
			for _, err := range []error{err1, err2, err3, err4, err5, err6, s.Close(), w.Close(), v.Close(), c.Close(), x.Close(), m.Close()} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		cycle()
		before, goroutines, heap := dev.Stats(), runtime.NumGoroutine(), live()
		const cycles = 100_000
		for range cycles {
			cycle()
		}
		after := dev.Stats()
		if after.LiveBytes != before.LiveBytes || after.Buffers != before.Buffers || after.PooledBytes != before.PooledBytes {
			t.Errorf("from %+v to %+v", before, after)
		}
		if released != cycles+1 || a.UseCount() != 1 {
			t.Errorf("released %d times, %d users", released, a.UseCount())
		}
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
			runtime.Gosched()
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		if grown := live() - heap; grown > 1<<20 {
			t.Errorf("%d bytes of Go memory more than before", grown)
		}
		closed(t, dev, a)
	})
}

var mine [4]int32

// TestForgotten leaves arrays to the garbage collector, which gives their memory back.
func TestForgotten(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for range 10 {
			a, err := ndarray.FromSlice(dev, count(1000))
			check(t, err)
			_, err = a.Index(3)
			check(t, err)
			_, err = a.Clone()
			check(t, err)
		}
		for end := time.Now().Add(time.Minute); dev.Stats().Buffers > 0 && time.Now().Before(end); {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		if n := dev.Stats().Buffers; n != 0 {
			t.Errorf("%d buffers are left", n)
		}
	})
}
