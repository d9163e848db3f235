// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
)

// spin makes every invocation turn a loop p.turns times.
var spinKernel = driver.Kernel{
	Label: "spin",
	Source: `
struct Params { turns: u32 }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	var h = y[id.x];
	for (var i = 0u; i < p.turns; i = i + 1u) {
		h = h * 1664525u + 1013904223u;
	}
	y[id.x] = h;
}
`,
	Entry:  "main",
	Layout: driver.NewLayout(driver.AccessReadWrite, driver.AccessParams),
}

const (
	spinWords = 4096
	spinTurns = 20000 // of the 65535 that llvmpipe allows
)

// spinner keeps a device busy by spinKernel, on buffer, kernel and set 1.
type spinner struct {
	d          driver.Device
	dispatches int           // of one job
	took       time.Duration // that the last calibration's took
	total      uint64        // dispatches so far
}

// newSpinner finds out how many dispatches are a fair job.
func newSpinner(t testing.TB, d driver.Device) *spinner {
	t.Helper()
	must(t, d.NewBuffer(1, 4*spinWords, false))
	must(t, d.NewKernel(t.Context(), 1, &spinKernel))
	var l driver.CommandList
	l.Write(1, 0, driver.HostBytes(bytesOf(ramp(spinWords, 0))))
	l.Bind(1, spinKernel.Layout, []driver.Binding{whole(1, spinWords)})
	must(t, d.Submit(&l))
	s := &spinner{d: d, dispatches: 1}
	for s.run(t); s.took < 200*time.Millisecond && s.dispatches < 1<<20; s.run(t) {
		s.dispatches *= 2
	}
	return s
}

// run runs a job to its end.
func (s *spinner) run(t testing.TB) {
	t.Helper()
	begin := time.Now()
	s.submit(t, s.dispatches)
	must(t, s.d.Wait(t.Context()))
	s.took = time.Since(begin)
}

// start starts a job that takes about so long.
func (s *spinner) start(t testing.TB, d time.Duration) {
	t.Helper()
	s.submit(t, 1+int(float64(s.dispatches)*float64(d)/float64(s.took)))
}

func (s *spinner) submit(t testing.TB, dispatches int) {
	t.Helper()
	var l driver.CommandList
	for range dispatches {
		l.Dispatch(1, 1, groups(spinWords), gputest.PutU32(nil, spinTurns))
	}
	s.total += uint64(dispatches)
	must(t, s.d.Submit(&l))
}

// check compares the result of all jobs.
func (s *spinner) check(t testing.TB) {
	t.Helper()
	a, c := power(s.total * spinTurns)
	w := ramp(spinWords, 0)
	for i := range w {
		w[i] = a*w[i] + c
	}
	want(t, s.d, 1, w)
}

// power returns the map h -> a*h + c that is n turns of spinKernel's loop.
func power(n uint64) (a, c uint32) {
	a, c = 1, 0
	for sa, sc := uint32(1664525), uint32(1013904223); n > 0; n >>= 1 {
		if n&1 == 1 {
			a, c = sa*a, sa*c+sc
		}
		sa, sc = sa*sa, sa*sc+sc
	}
	return a, c
}

// whileBusy opens a device, makes it busy and calls try, which reports whether the device was busy for long enough to
// show what is to be shown. If not, the same is done with twice the work.
func whileBusy(t *testing.T, bench *Bench, try func(d driver.Device, s *spinner) bool) {
	t.Helper()
	for d := 500 * time.Millisecond; d < 30*time.Second; d *= 2 {
		dev := bench.open(t)
		s := newSpinner(t, dev)
		s.start(t, d)
		if try(dev, s) {
			return
		}
	}
	t.Error("no amount of work keeps the device busy")
}

// One submission that runs for much longer than the five seconds after which wgpu-native's waiting poll gives up.
func testLongJob(t *testing.T, bench *Bench) {
	if !long() {
		return // it keeps all cores busy for that long
	}
	s := newSpinner(t, bench.open(t))
	for target := 8 * time.Second; ; target *= 2 {
		begin := time.Now()
		s.start(t, target)
		s.check(t)
		took := time.Since(begin)
		t.Logf("the job took %v", took)
		if took > 6*time.Second || target > time.Minute {
			break // long enough to have shown it; how long does not matter otherwise
		}
	}
}
