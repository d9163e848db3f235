// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"
	"unsafe"

	spans "github.com/sublet-gpu/sublet/buffer/span"
)

// journal is what a batch has queued, so that it can be queued again when a device is lost with what it computed. What the
// arrays were at the beginning is on the host, which changes at the end only, or still on devices; see beginning.
type journal struct {
	calls []queued
	forms []*call // the last few that differ in more than the values of scalars
	bytes int     // about, of all that
	full  bool    // it has grown too large, or an array is closed: what is lost is lost
	lost  bool    // a device was lost since the calls were queued
	redo  bool    // what the devices have is not what the calls make
}

// queued is a queued call: its form, and the values of its scalars.
type queued struct {
	form *call
	bits []uint32
}

// journalLimit is how many bytes a journal may have, and formsKept how many calls back a form is looked for.
const (
	journalLimit = 64 << 20
	formsKept    = 16
)

// add notes a call. One that differs from a recent one in the values of scalars only costs an entry and those.
func (j *journal) add(c *call) {
	if j == nil || j.full {
		return
	}
	var bits []uint32
	for i := range c.list {
		if c.list[i].array == nil {
			bits = append(bits, c.list[i].value.bits)
		}
	}
	at := slices.IndexFunc(j.forms, c.like)
	if at < 0 {
		if len(j.forms) == formsKept {
			j.forms = slices.Delete(j.forms, 0, 1)
		}
		at = len(j.forms)
		c.r.Inner = slices.Clone(c.r.Inner) // the caller's
		j.forms = append(j.forms, c)
		j.bytes += int(unsafe.Sizeof(*c)) + len(c.list)*int(unsafe.Sizeof(param{})) + len(c.arrays)*int(unsafe.Sizeof(argument{})) + 16*len(c.kernels)
	}
	j.calls = append(j.calls, queued{j.forms[at], bits})
	if j.bytes += int(unsafe.Sizeof(queued{})) + 4*len(bits); j.bytes > journalLimit {
		j.close()
	}
}

// close gives up.
func (j *journal) close() { *j = journal{full: true, lost: j.lost} }

// like reports whether calls are the same but for the values of scalars.
func (c *call) like(o *call) bool {
	a, b := c.r, o.r
	same := slices.Equal(a.Inner, b.Inner)
	a.Inner, b.Inner = nil, nil
	same = same && a.Global == b.Global && a.Local == b.Local && a.Offset == b.Offset && a.Strict == b.Strict && a.Blobs == b.Blobs &&
		a.Repeat == b.Repeat && a.SyncKernel == b.SyncKernel && a.TransferOnly == b.TransferOnly
	return same && c.id == o.id && c.sync == o.sync && c.single == o.single && slices.Equal(c.kernels, o.kernels) &&
		slices.EqualFunc(c.list, o.list, func(p, q param) bool {
			p.value.bits, q.value.bits = 0, 0
			return p == q
		})
}

// call makes the call again.
func (q *queued) call() *call {
	c := *q.form
	c.list = slices.Clone(c.list)
	k := 0
	for i := range c.list {
		if c.list[i].array == nil {
			c.list[i].value.bits = q.bits[k]
			k++
		}
	}
	return &c
}

// beginning is what devices had of an array when a batch first used it, and what of that was written over since.
type beginning struct {
	valid, touched []spans.Set // of each device
	holder         spans.Map
	synced, dirty  spans.Set
}

// begin notes what the devices have, unless that was done in this batch.
func (r *residence) begin(batch uint64) {
	if r.start != nil {
		return
	}
	r.look(batch)
	b := &beginning{valid: make([]spans.Set, len(r.valid)), touched: make([]spans.Set, len(r.valid))}
	for d := range r.valid {
		b.valid[d].Assign(&r.valid[d])
	}
	b.holder.Assign(&r.holder)
	b.synced.Assign(&r.synced)
	b.dirty.Assign(&r.dirty)
	r.start = b
}

// touch notes that a device's memory is written to, or goes.
func (r *residence) touch(d int, s span) {
	if r.start != nil {
		r.start.touched[d].Add(s.Lo, s.Hi)
	}
}

// rewind makes everything be as it was at the beginning, as far as that is known. Elements that kernels wrote where nobody had any
// are zeros again.
func (r *residence) rewind(ctx context.Context, lost func(int) bool) error {
	b := r.start
	r.owed.Clear()
	r.early = nil
	r.synced.Assign(&b.synced)
	r.dirty.Assign(&b.dirty)
	r.news.Assign(&b.dirty)
	r.holder.Assign(&b.holder)
	for d := range r.valid {
		r.valid[d].Clear()
		if !lost(d) {
			r.valid[d].Assign(&b.valid[d])
			r.valid[d].Subtract(&b.touched[d])
		}
	}
	for s, h := range b.holder.All() {
		if lost(h) {
			r.bequeath(s)
			continue
		}
		for t := range b.touched[h].Overlap(s.Lo, s.Hi) {
			r.bequeath(t)
		}
	}
	for d := range r.sides {
		if lost(d) {
			continue
		}
		for gap := range b.holder.Missing(0, r.array.n) {
			for t := range b.touched[d].Overlap(gap.Lo, gap.Hi) {
				if err := r.zero(ctx, d, t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// queue is run for a call of a batch. If a device is lost, with what it alone had or in the middle, all calls of the batch are
// queued again on those that live.
func (cr *Cruncher) queue(ctx context.Context, c *call) error {
	j := c.batch.journal
	if j != nil && !j.full {
		for i := range c.arrays {
			c.arrays[i].begin(c.batch.number)
		}
	}
	for {
		err := cr.replay(ctx)
		if err == nil {
			err = cr.run(ctx, c)
		}
		if err == nil {
			j.add(c)
			return nil
		}
		if !cr.salvage() {
			return err
		}
	}
}

// salvage reports whether it can help after an error that everything is queued again.
func (cr *Cruncher) salvage() bool {
	cr.mourn()
	j := cr.batch.journal
	if j == nil || j.full || !j.lost {
		return false
	}
	j.redo = true
	return true
}

// replay queues the calls of the batch again, if that has to be.
func (cr *Cruncher) replay(ctx context.Context) error {
	j := cr.batch.journal
	if j == nil || !j.redo {
		return nil
	}
	cr.muster()
	j.lost = false
	cr.batch.recount()
	defer cr.batch.notify()
	for _, r := range cr.arrays {
		if r.start == nil {
			continue
		}
		if err := r.rewind(ctx, cr.isLost); err != nil {
			return err
		}
	}
	for i := range j.calls {
		if err := cr.run(ctx, j.calls[i].call()); err != nil {
			return err
		}
	}
	j.redo = false
	return nil
}

// stale reports whether devices lack what the batch has them compute, so that it has to be computed again.
func (cr *Cruncher) stale() bool {
	j := cr.batch.journal
	if j == nil || j.full || !j.lost {
		return false
	}
	for _, r := range cr.arrays {
		for s := range r.dirty.All() {
			for _, h := range r.holder.Get(s.Lo, s.Hi) {
				if r.start != nil && cr.isLost(h) {
					return true
				}
			}
		}
	}
	return false
}
