// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// drop gives an array's device memory back.
func (cr *Cruncher) drop(a *body) {
	cr.mu.lock()
	defer cr.mu.unlock()
	_ = cr.evict(a)
}

func (cr *Cruncher) evict(a *body) error {
	r := cr.arrays[a]
	if r == nil {
		return nil
	}
	delete(cr.arrays, a)
	a.unuse(cr)
	return r.values.Close()
}

func (cr *Cruncher) evictAll() error {
	var errs []error
	for a := range cr.arrays {
		errs = append(errs, cr.evict(a))
	}
	return errors.Join(errs...)
}

// Evict gives the device memory of arrays back, or of all if none is named. What only the devices have is lost; see
// [Cruncher.Fetch]. In which way an array was used first is forgotten, too. It is [ErrBatch] while a batch is open.
func (cr *Cruncher) Evict(arrays ...*Any) error {
	if !cr.made() {
		return fail("Evict", gpu.ErrInvalid, "nil cruncher")
	}
	cr.mu.lock()
	defer cr.mu.unlock()
	if cr.batch != nil {
		return fail("Evict", ErrBatch, "")
	}
	if len(arrays) == 0 {
		return cr.evictAll()
	}
	var errs []error
	for _, a := range arrays {
		if !a.none() {
			errs = append(errs, cr.evict(a.body))
		}
	}
	return errors.Join(errs...)
}

// Fetch brings to the host's sides of arrays what only the devices have. If that is not possible, none of them is changed. It is
// [ErrStale] if a device that had it is lost, and [ErrBatch] while a batch is open.
func (cr *Cruncher) Fetch(ctx context.Context, arrays ...*Any) error {
	return cr.bringHome(ctx, "Fetch", arrays...)
}

// bringHome brings to the host's sides what is newer on the devices, as the arrays know it.
func (cr *Cruncher) bringHome(ctx context.Context, op string, arrays ...*Any) error {
	if cr == nil {
		return fail(op, gpu.ErrInvalid, "nil cruncher")
	}
	if err := cr.mu.enter(ctx); err != nil {
		return err
	}
	defer cr.mu.unlock()
	switch {
	case cr.closed:
		return fail(op, gpu.ErrClosed, "the cruncher")
	case cr.batch != nil:
		return fail(op, ErrBatch, "")
	}
	var wants []*residency
	for _, a := range arrays {
		if err := a.usable(op); err != nil {
			return err
		}
		r := cr.arrays[a.body]
		if r == nil {
			continue
		}
		if a.host.ReadOnly {
			return fail(op, gpu.ErrReadOnly, a.name)
		}
		wants = append(wants, r)
	}
	list, err := cr.fetch(ctx, op, wants, memory.Newer)
	if err == nil {
		err = cr.land(ctx, list)
	}
	if err != nil {
		return err
	}
	for i := range list {
		list[i].values.Returned(list[i].Region)
	}
	for _, r := range wants {
		cr.tell(r)
	}
	return nil
}
