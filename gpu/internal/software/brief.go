// SPDX-License-Identifier: Apache-2.0

package software

import "time"

// The call that submits a work runs it itself if the work is brief, and no earlier work is unfinished: to wake a goroutine takes longer
// than a small kernel, and so does a turn of the page where there is one thread. How long a work takes is known if its programs are [Timed].
// In a page, a work goes to a goroutine after some brief ones all the same, so that the page gets a turn.

// Timed is a Program that can estimate how long a dispatch runs.
type Timed interface {
	// Takes returns how long a dispatch is likely to run, 0 if that is not known. It is called with the device locked, and while another
	// dispatch of the program may run, so it must not wait.
	Takes(d *Dispatch) time.Duration
}

// brief is the queue's state of brief works, where there is one thread.
type brief struct {
	runs  bool          // a brief work runs: it must not pause, as its caller expects it not to wait
	since time.Duration // an estimate of what brief works have taken since a work went to a goroutine
}

const (
	briefly      = 10 * time.Millisecond // the most that brief works take between two works that go to a goroutine
	besides      = 50 * time.Microsecond // what a work takes beside its commands
	bytesPerNano = 4                     // a guess of how many bytes are moved in a nanosecond
	handOver     = 10 * time.Microsecond // what it takes to wake another thread
)

// isBrief reports whether the caller is to run a work itself. The caller of enqueue has checked that no earlier work is unfinished.
func (q *queue) isBrief(w *work) bool {
	switch {
	case q.burst == 0:
		return false
	case q.slice == 0 && w.kind == ofCall: // whose caller waits for it
		return true
	}
	all := time.Duration(0)
	for i := range w.commands {
		took := w.commands[i].takes()
		if all += took; took == 0 || q.slice == 0 && all > handOver {
			return false
		}
	}
	if q.slice == 0 {
		return true
	}
	q.brief.since += besides + all
	if q.brief.since > briefly {
		q.brief.since = 0
		return false
	}
	return true
}

// takes returns how long a command is likely to run, 0 if that is not known.
func (c *command) takes() time.Duration {
	if c.do != nil {
		return time.Duration(1 + c.bytes/bytesPerNano)
	}
	if p, ok := c.program.(Timed); ok {
		return p.Takes(&c.launch)
	}
	return 0
}

// joins reports whether a command runs together with the one before, without unlocking the queue in between. Where there are threads only
// short commands do, as Close may wait for the lock: for no longer than it takes to be woken.
func (q *queue) joins(c *command) bool {
	if q.slice > 0 {
		return true
	}
	t := c.takes()
	return t > 0 && t < handOver
}

// performBrief performs a work that enqueue left to its caller. The device must not be locked.
func (d *Device) performBrief(w *work) {
	switch {
	case !w.inline:
	case d.queue.slice == 0:
		d.perform(w)
	default:
		d.queue.brief.runs = true
		d.perform(w)
		d.queue.brief.runs = false
	}
}

// Idle reports whether everything submitted so far is done, and there is no error that a call is still to return.
func (d *Device) Idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return over(d.queue.last) && d.refusal == nil && d.Usable("") == nil
}
