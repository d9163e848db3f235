// SPDX-License-Identifier: Apache-2.0

package software

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

var testInfo = driver.AdapterInfo{Driver: "test", Limits: driver.Limits{
	MaxBufferSize: 1 << 20, MaxBindingSize: 1 << 20, MaxStorageBuffers: 8, MaxGroups: 65535, BindingOffsetAlign: 256,
}, Features: driver.FeatureMappable}

// testEngine runs the references of kernels.
type testEngine struct{}

func (testEngine) Allocate(size uint64) ([]byte, error) { return make([]byte, size), nil }
func (testEngine) Free([]byte)                          {}
func (testEngine) Stop()                                {}
func (testEngine) Close(bool, [][]byte)                 {}

func (testEngine) Compile(_ context.Context, k *driver.Kernel) (Program, error) {
	return testProgram{k.Reference}, nil
}

type testProgram struct {
	reference func([3]uint32, []byte, [][]byte)
}

func (p testProgram) Run(d *Dispatch) error { p.reference(d.Groups, d.Params, d.Storage); return nil }
func (testProgram) Close()                  {}

// prepared makes a device with buffer 1, of 64 bytes, and a kernel and a binding set 1 that run f. A slice makes it
// behave as in a page.
func prepared(t *testing.T, room uint64, slice time.Duration, f func()) *Device {
	t.Helper()
	d := New(Config{Info: testInfo, Engine: testEngine{}, GoMemory: true})
	d.queue.most, d.queue.slice = room, slice
	turn := make(chan struct{})
	close(turn)
	d.queue.next = func() <-chan struct{} { return turn }
	check(t, d.NewBuffer(1, 64, false))
	check(t, d.NewKernel(t.Context(), 1, &driver.Kernel{
		Source: "-", Entry: "-", Reference: func([3]uint32, []byte, [][]byte) { f() },
	}))
	var list driver.CommandList
	list.Bind(1, 0, nil)
	check(t, d.Submit(&list))
	return d
}

func (d *Device) launch(t *testing.T, times int) {
	t.Helper()
	var list driver.CommandList
	for range times {
		list.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil)
	}
	check(t, d.Submit(&list))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A caller that is far ahead of the device waits, but only where there is a second thread to wait for.
func TestThrottle(t *testing.T) {
	for name, slice := range map[string]time.Duration{"threads": 0, "page": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				d := prepared(t, 64, slice, func() { <-gate })
				d.launch(t, 1)
				var list driver.CommandList
				list.Write(1, 0, driver.HostBytes(make([]byte, 40)))
				check(t, d.Submit(&list)) // 40 bytes wait, 64 may
				done := make(chan error, 1)
				go func() { done <- d.Submit(&list) }()
				synctest.Wait()
				if waits := len(done) == 0; waits != (slice == 0) {
					t.Errorf("the second write waits: %v", waits)
				}
				check(t, d.NewBuffer(2, 4, false)) // others do not
				close(gate)
				check(t, <-done)
				check(t, d.Wait(t.Context()))
				d.mu.Lock()
				staged := d.queue.staged
				d.mu.Unlock()
				if staged != 0 {
					t.Errorf("%d bytes are still counted", staged)
				}
				check(t, d.Close())
			})
		})
	}
}

// Close sets callers free that wait for room.
func TestThrottleAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		d := prepared(t, 0, 0, func() { <-gate })
		d.launch(t, 1)
		const callers = 5
		done := make(chan error, callers)
		for range callers {
			var list driver.CommandList
			list.Write(1, 0, driver.HostBytes(make([]byte, 40)))
			go func() { done <- d.Submit(&list) }()
		}
		synctest.Wait()
		if len(done) != 0 {
			t.Errorf("%d callers did not wait", len(done))
		}
		go func() { _ = d.Close() }()
		synctest.Wait()
		close(gate)
		for range callers {
			check(t, <-done) // their lists were taken before
		}
	})
}

// closingProgram tells when it is closed.
type closingProgram struct {
	testProgram
	closed *atomic.Bool
}

func (p closingProgram) Close() { p.closed.Store(true) }

// A kernel that is freed is closed when what was submitted before has run, also where memory is Go's.
func TestFreedKernels(t *testing.T) {
	for _, goMemory := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var closed atomic.Bool
			runs := 0
			d := prepared(t, 0, 0, func() {
				time.Sleep(time.Millisecond)
				if runs++; closed.Load() {
					t.Error("it was closed before")
				}
			})
			k := d.kernels[1]
			k.program = closingProgram{k.program.(testProgram), &closed}
			d.kernels[1], d.goMemory = k, goMemory
			d.launch(t, 10)
			time.Sleep(time.Millisecond)
			d.FreeKernel(1)
			check(t, d.Wait(t.Context()))
			if synctest.Wait(); runs != 10 || !closed.Load() {
				t.Errorf("%d runs, closed %t", runs, closed.Load())
			}
			check(t, d.Close())
		})
	}
}

// In a page the goroutine pauses every slice, between two kernels.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		slice time.Duration
		want  int
	}{
		{0, 0},
		{10 * time.Millisecond, 3},
		{time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := prepared(t, 0, c.slice, func() { time.Sleep(4 * time.Millisecond) })
			d.launch(t, 10) // pauses after the third, sixth and ninth
			check(t, d.Wait(t.Context()))
			if got := d.queue.pauses; got != c.want {
				t.Errorf("slices of %v: %d pauses, want %d", c.slice, got, c.want)
			}
			check(t, d.Close())
		})
	}
}

// Close need not wait for a pause to end, and nothing runs after it.
func TestCloseInPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		d := prepared(t, 0, time.Nanosecond, func() { runs++; time.Sleep(time.Millisecond) })
		d.queue.next = func() <-chan struct{} {
			turn := make(chan struct{})
			time.AfterFunc(100*time.Millisecond, func() { close(turn) })
			return turn
		}
		check(t, d.Wait(t.Context()))
		d.launch(t, 10)
		time.Sleep(time.Millisecond) // the goroutine now pauses
		synctest.Wait()
		check(t, d.Close())
		synctest.Wait()
		time.Sleep(time.Second)
		select {
		case <-d.queue.last:
		default:
			t.Error("a goroutine is left")
		}
		if runs != 1 {
			t.Errorf("%d kernels ran", runs)
		}
	})
}
