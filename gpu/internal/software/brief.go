// SPDX-License-Identifier: Apache-2.0

package software

import "time"

// A work that does not take long, and that waits for nothing, is run by the call that submits it: a goroutine, and the page's turn where
// there is one thread, take longer than a small kernel. That is so for programs that are [Timed]. In a page, after some of these works one
// goes the long way, by which the page gets its turn.

// Timed is a Program that knows about how long it runs.
type Timed interface {
	// Takes returns how long a dispatch is likely to run, 0 if that is not known.
	Takes(d *Dispatch) time.Duration
}

// brief is what the queue knows of such works.
type brief struct {
	runs  bool          // one runs: nothing waits
	since time.Duration // what they took since one was queued
}

const (
	briefly      = 10 * time.Millisecond // of such works until one is queued
	besides      = 50 * time.Microsecond // of what is done for a work beside its commands
	bytesPerNano = 4                     // that are moved
	handOver     = 10 * time.Microsecond // to another thread
)

// isBrief reports whether a work will not take long.
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

// joins reports whether a command goes on with the queue that the one before had, so that nobody else has it in between. Where there are
// threads, others may wait for it, but no longer than to be woken.
func (q *queue) joins(c *command) bool {
	if q.slice > 0 {
		return true
	}
	t := c.takes()
	return t > 0 && t < handOver
}

// performBrief performs a work if nobody else does.
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

// Idle reports whether everything submitted so far is done.
func (d *Device) Idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return over(d.queue.last)
}
