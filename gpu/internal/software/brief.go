// SPDX-License-Identifier: Apache-2.0

package software

import "time"

// Where there is one thread, a work that does not take long is run by the call that submits it: a goroutine and the page's turn take
// longer than a small kernel. That is so for programs that are [Timed]; after some of these works one goes the long way, by which the
// page gets its turn.

// Timed is a Program that knows about how long it runs.
type Timed interface {
	// Takes returns how long a dispatch of so many workgroups is likely to run, 0 if that is not known yet.
	Takes(groups [3]uint32) time.Duration
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
)

// isBrief reports whether a work will not take long.
func (q *queue) isBrief(w *work) bool {
	if q.burst == 0 {
		return false
	}
	all := besides
	for i := range w.commands {
		c := &w.commands[i]
		took := time.Duration(1 + c.bytes/bytesPerNano)
		if c.do == nil {
			p, ok := c.program.(Timed)
			if !ok {
				return false
			}
			if took = p.Takes(c.launch.Groups); took == 0 {
				return false
			}
		}
		all += took
	}
	q.brief.since += all
	if q.brief.since > briefly {
		q.brief.since = 0
		return false
	}
	return true
}

// performBrief performs a work if nobody else does.
func (d *Device) performBrief(w *work) {
	if w.inline {
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
