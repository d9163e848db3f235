// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"errors"
	"time"

	"github.com/sublet-gpu/sublet/internal/fault"
)

var lifeCases = []testCase{
	{"CloseRefuses", closeRefuses},
	{"CloseAtWork", closeAtWork},
	{"CloseWhileWaiting", closeWhileWaiting},
	{"CloseMapped", closeMapped},
	{"Reopen", reopen},
}

// A closed device refuses everything that can return an error and survives the rest.
func closeRefuses(r *rig) {
	s := r.second()
	id, free := s.filled(1), s.nextBuffer(4)
	k := s.kernel(bump)
	set := s.bind(bump, s.whole(id))
	s.submit()
	program, err := bump.kernel()
	r.check(err)
	info, handle := s.dev.Info(), s.dev.Handle(id)
	r.check(s.dev.Close())
	r.check(s.dev.Close())

	r.refused("Submit of nothing", s.dev.Submit(&s.list), fault.ErrClosed)
	s.dispatch(k, set, groups(1))
	r.refused("Submit", s.dev.Submit(&s.list), fault.ErrClosed)
	r.refused("Wait", s.dev.Wait(r.ctx), fault.ErrClosed)
	r.refused("Read", read(r.ctx, s.dev, id, 0, make([]byte, 4)), fault.ErrClosed)
	r.refused("NewBuffer", s.dev.NewBuffer(free, 4, false), fault.ErrClosed)
	if handle != nil {
		_, _, err = s.dev.ImportBuffer(free, handle)
		r.refused("ImportBuffer", err, fault.ErrClosed)
	}
	r.refused("NewKernel", s.dev.NewKernel(r.ctx, k+1, program), fault.ErrClosed)
	_, err = s.dev.Map(r.ctx, id, 0, 4)
	r.refused("Map", err, fault.ErrClosed)
	r.refused("Unmap", s.dev.Unmap(id), fault.ErrClosed)
	if h := s.dev.Handle(id); h != nil {
		r.Errorf("a buffer of a closed device has the handle %v", h)
	}
	s.dev.FreeBuffer(id)
	s.dev.FreeKernel(k)
	s.dev.Handle(0)
	if reason := s.dev.LostReason(); reason != "" || s.dev.Lost() == nil {
		r.Errorf("a closed device is lost: %q", reason)
	}
	if got := s.dev.Info(); got != info {
		r.Errorf("closing changed the description to %+v", got)
	}
}

// Close need not finish what was submitted, but it ends.
func closeAtWork(r *rig) {
	const n = 1 << 16
	s := r.second()
	id, k := s.filled(pattern(n, 1)...), s.kernel(affine)
	set := s.bind(affine, s.whole(id))
	for i := range uint32(200) {
		s.dispatch(k, set, groups(n), 3, i, n)
		if i%50 == 49 {
			s.submit()
		}
	}
	r.check(s.dev.Close())
	r.refused("Wait", s.dev.Wait(r.ctx), fault.ErrClosed)
}

// Who waits when the device closes gets what it waited for, or learns that it never will.
func closeWhileWaiting(r *rig) {
	const n, waiters = 1 << 16, 4
	s := r.second()
	id, k := s.filled(pattern(n, 1)...), s.kernel(affine)
	set := s.bind(affine, s.whole(id))
	for i := range uint32(50) {
		s.dispatch(k, set, groups(n), 3, i, n)
	}
	s.submit()
	errs := make(chan error, 2*waiters)
	for range waiters {
		go func() { errs <- s.dev.Wait(r.ctx) }()
		go func() { errs <- read(r.ctx, s.dev, id, 0, make([]byte, 4*n)) }()
	}
	r.check(s.dev.Close())
	for range 2 * waiters {
		if err := <-errs; err != nil && !errors.Is(err, fault.ErrClosed) {
			r.Errorf("a wait that Close ended: %v", err)
		}
	}
}

func closeMapped(r *rig) {
	s := r.second()
	id, ok := s.mappable(64)
	if !ok {
		return
	}
	s.mapped(id)
	r.check(s.dev.Close())
	r.refused("Unmap", s.dev.Unmap(id), fault.ErrClosed)
}

// Devices come and go. One that was never used and one in the middle of its work leave nothing behind that harms the
// next, and an open that is cancelled says so or succeeds.
func reopen(r *rig) {
	for range 3 {
		s := r.second()
		s.healthy()
		r.check(s.dev.Close())
		r.check(r.second().dev.Close())
	}
	ctx, cancel := context.WithDeadline(r.ctx, time.Unix(0, 0))
	defer cancel()
	dev, err := r.open(ctx)
	if err == nil {
		err = dev.Close()
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	r.check(err)
}
