// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"errors"
	"time"

	"github.com/sublet-gpu/sublet/internal/fault"
)

var contextCases = []testCase{
	{"ContextEnded", contextEnded},
	{"ContextEnds", contextEnds},
	{"ContextMap", contextMap},
}

// A context that has ended fails every wait, as none at all does, and the work goes on.
func contextEnded(r *rig) {
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	id := r.filled(1, 2, 3)
	r.refused("Wait", r.dev.Wait(ctx), context.Canceled)
	r.submit()
	r.refused("Wait for work", r.dev.Wait(ctx), context.Canceled)
	r.refused("Read", read(ctx, r.dev, id, 0, make([]byte, 12)), context.Canceled)
	r.want(id, []uint32{1, 2, 3})
	var none context.Context
	r.refused("Wait without a context", r.dev.Wait(none), fault.ErrInvalid)
	r.refused("Read without a context", read(none, r.dev, id, 0, make([]byte, 12)), fault.ErrInvalid)
	r.check(r.dev.Wait(r.ctx))
	ctx, cancel = context.WithDeadline(r.ctx, time.Unix(0, 0))
	defer cancel()
	r.refused("Read after the deadline", read(ctx, r.dev, id, 0, make([]byte, 12)), context.DeadlineExceeded)
	r.want(id, []uint32{1, 2, 3})
}

// A context that ends in the middle of a wait either comes too late or is the error. The work is done in any case, and
// what was to be read into is the caller's again when Read returns.
func contextEnds(r *rig) {
	const n = 1 << 14
	id, k := r.filled(pattern(n, 1)...), r.kernel(affine)
	set := r.bind(affine, r.whole(id))
	want := pattern(n, 1)
	for i := range uint32(20) {
		for range 5 {
			r.dispatch(k, set, groups(n), 3, i, n)
			want = each(want, func(v uint32) uint32 { return v*3 + i })
		}
		r.submit()
		ctx, cancel := context.WithCancel(r.ctx)
		go cancel()
		host := make([]byte, 4*n)
		switch err := read(ctx, r.dev, id, 0, host); {
		case err == nil:
			r.same("what was read in time", words(host), want)
		case !errors.Is(err, context.Canceled):
			r.Fatalf("Read: %v", err)
		}
		clear(host) // the race detector sees a driver that still writes here
		if err := r.dev.Wait(ctx); err != nil && !errors.Is(err, context.Canceled) {
			r.Fatalf("Wait: %v", err)
		}
	}
	r.want(id, want)
}

// A mapping that was not waited for is no mapping.
func contextMap(r *rig) {
	id, ok := r.mappable(64)
	if !ok {
		return
	}
	r.write(id, 0, pattern(64, 1)...)
	r.submit()
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	_, err := r.dev.Map(ctx, id, 0, 256)
	r.refused("Map", err, context.Canceled)
	r.refused("Unmap", r.dev.Unmap(id), fault.ErrInvalid)
	r.want(id, pattern(64, 1))
	r.same("mapped memory", words(r.mapped(id)), pattern(64, 1))
	r.check(r.dev.Unmap(id))
}
