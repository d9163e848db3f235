// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// worthSplitting is how long a dispatch must take for several threads to share it: to wake one takes some microseconds.
const worthSplitting = 50 * time.Microsecond

// pace estimates how long a workgroup of a program takes, in nanoseconds as the bits of a float64; 0 if that is not known. It is only an
// estimate, as workgroups and dispatches differ: it decides how work is divided, and results do not depend on it.
type pace struct{ bits atomic.Uint64 }

func (p *pace) get() float64 { return math.Float64frombits(p.bits.Load()) }

func (p *pace) note(d time.Duration, groups uint32) {
	p.bits.Store(math.Float64bits(max(1, float64(d)) / float64(groups)))
}

// paces has a pace for each power of two of the bytes that are bound for each workgroup: workgroups that sum longer rows take longer.
type paces [34]pace

// of returns the pace of a dispatch.
func (p *paces) of(storage [][]byte, groups uint64) *pace {
	all := 0
	for _, s := range storage {
		all += len(s)
	}
	return &p[min(bits.Len64(uint64(all)/groups), len(p)-1)]
}

// launch is a dispatch that runs.
type launch struct {
	*program
	pace   *pace
	total  uint32        // of workgroups
	count  atomic.Uint32 // of calls of run, over all dispatches
	next   counter       // the first workgroup that no thread has taken
	pause  func()
	others helpers

	mu     sync.Mutex
	failed error // why not all workgroups ran
	trap   error // an exception, which loses the device
}

// The results of the function "run" of a module.
const (
	done = iota
	stopped
	tooLong
)

// launch runs all workgroups of a dispatch, and returns when none runs any more. It panics with the exception of a kernel.
func (p *program) launch(total uint32, pace *pace, pause func()) error {
	in, scratch, err := p.worker(0)
	if err != nil {
		return err
	}
	p.note(in, scratch, total)
	l := &p.running
	l.program, l.total, l.pace, l.pause, l.failed, l.trap = p, total, pace, pause, nil, nil
	l.next.Store(0)
	known := pace.get()
	all := time.Duration(known * float64(total))
	whole := worthSplitting
	if len(p.scratch) == 1 { // nobody to share it with
		whole = chunkTime
	}
	switch {
	case total == 1 || known > 0 && all < whole && p.bounded:
		l.next.Store(uint64(total))
		l.run(in, scratch, 0, total)
	case known > 0 && (p.bounded || all >= worthSplitting): // every thread begins with one
		l.share(in, scratch)
	default: // the first workgroup tells how long one takes: what the dispatch before took is not known, or no measure
		l.next.Store(1)
		if l.run(in, scratch, 0, 1) {
			l.share(in, scratch)
		}
	}
	if l.trap != nil {
		panic(l.trap)
	}
	return l.failed
}

// share runs the workgroups that are left, on several threads if they take long enough.
func (l *launch) share(in *instance, scratch uint32) {
	left := l.total - uint32(l.next.Load())
	helpers := min(len(l.scratch)-1, int(left)-1)
	if time.Duration(l.pace.get()*float64(left)) < worthSplitting {
		helpers = 0
	}
	helpers = l.others.summon(l, helpers)
	l.work(in, scratch, helpers+1)
	l.others.dismiss(l)
}

// work runs workgroups until none is left. workers is how many threads do so, this one included.
func (l *launch) work(in *instance, scratch uint32, workers int) {
	for n := uint64(1); ; {
		from := l.next.Load()
		if from >= uint64(l.total) {
			return
		}
		n = l.size(n, uint64(l.total)-from, workers)
		if from = l.next.Add(n) - n; from >= uint64(l.total) {
			return
		}
		if !l.run(in, scratch, uint32(from), uint32(min(from+n, uint64(l.total)))) {
			return
		}
		l.pause()
		n *= 8 // the most for the next call, as the pace may be wrong: other workgroups may take longer, and clocks of pages are coarse
	}
}

// size returns how many workgroups a worker takes at a time when left are left, at most most.
func (l *launch) size(most, left uint64, workers int) uint64 {
	fair := left
	if workers > 1 {
		fair = left / uint64(2*workers)
	}
	return max(1, min(most, fair, l.timely()))
}

// timely returns how many workgroups take chunkTime.
func (l *launch) timely() uint64 { return uint64(min(float64(chunkTime)/l.pace.get(), math.MaxUint32)) }

// epoch is the start of the monotonic clock. time.Since of it does not read the time of day, which takes several times as long.
var epoch = time.Now()

// timed reports whether to measure a call. Of dispatches so short that reading the clock would count, one call in 16 is measured.
func (l *launch) timed() bool {
	known := l.pace.get()
	return l.count.Add(1)%16 == 0 || known == 0 || known*float64(l.total) > float64(worthMeasuring)
}

// worthMeasuring is how long a dispatch must take for each of its calls to be measured: several times what reading the clock takes in a page.
const worthMeasuring = 5 * time.Microsecond

// run runs some workgroups, and reports whether to go on.
func (l *launch) run(in *instance, scratch, from, to uint32) bool {
	timed := l.timed()
	var begun time.Duration
	if timed {
		begun = time.Since(epoch)
	}
	result, err := in.call(l.address(l.control), scratch, from, to)
	if timed {
		l.pace.note(time.Since(epoch)-begun, to-from)
	}
	if result == done && err == nil && !l.stopped() {
		return true
	}
	l.fail(result, err)
	return false
}

// fail ends the launch: no thread takes a workgroup after it. It notes why.
func (l *launch) fail(result uint32, err error) {
	l.next.Store(uint64(l.total))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.trap = err
	case result == tooLong && l.failed == nil:
		l.failed = fault.Fail("simd: Dispatch", fault.ErrLimit,
			fault.Text("the loops of a workgroup took more work than ", l.turns, " short turns, and were ended"))
	}
}
