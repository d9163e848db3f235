// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"sync"

	"github.com/sublet-gpu/sublet/buffer/internal/span"
	"github.com/sublet-gpu/sublet/gpu"
)

// result is elements on their way from a device to the host's side of an array. They wait in memory of the library's until
// everything of a call is there, so that one that fails changes nothing, and devices that take over a lost one's work begin
// with what it began with. One of all may stay on its device until then: that it comes is then what everything depends on.
type result struct {
	*residency
	device int
	span   span.Span
	mem    []byte // nil until they have come
}

func (r *result) size() int { return r.span.Len() * r.array.t.Size() }

// bring gets a result from its device.
func (cr *Cruncher) bring(ctx context.Context, r *result) error {
	mem := make([]byte, r.size())
	if err := r.get(ctx, r.device, r.span, gpu.HostBytes(mem), 0); err != nil {
		return err
	}
	r.mem = mem
	return nil
}

// largestForeign returns which of some results may come straight to foreign memory, or -1. To Go memory a copy is cheap.
func largestForeign(list []result) int {
	best := -1
	for i := range list {
		if list[i].array.host.Foreign != nil && (best < 0 || list[i].span.Len() > list[best].span.Len()) {
			best = i
		}
	}
	return best
}

// stage gets results, from all devices at the same time. One may stay where it is.
func (cr *Cruncher) stage(ctx context.Context, list []result) error {
	straight := largestForeign(list)
	errs := make([]error, len(cr.workers))
	var wg sync.WaitGroup
	for d := range cr.workers {
		wg.Go(func() {
			for i := range list {
				if r := &list[i]; r.device == d && i != straight && errs[d] == nil {
					errs[d] = cr.bring(ctx, r)
				}
			}
		})
	}
	wg.Wait()
	return first(errs)
}

func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// want is elements that are wanted from devices.
type want struct {
	*residency
	elements *span.Set
}

// fetch gets the newest values of elements. When a device is lost meanwhile, others may have them.
func (cr *Cruncher) fetch(ctx context.Context, op string, wants []want) (list []result, err error) {
	for {
		cr.noteLost()
		list = list[:0]
		for _, w := range wants {
			if list, err = cr.homeward(op, list, w); err != nil {
				return nil, err
			}
		}
		for _, w := range cr.workers {
			if err := w.dev.Flush(); err != nil && !w.lost() {
				return nil, err
			}
		}
		if err = cr.stage(ctx, list); err == nil || !cr.newlyLost() {
			return list, err
		}
	}
}

// homeward lists where the newest values of elements are.
func (cr *Cruncher) homeward(op string, list []result, w want) ([]result, error) {
	for s := range w.elements.All() {
		for h, d := range w.owner.Get(s.Lo, s.Hi) {
			if cr.isLost(d) {
				return nil, fail(op, ErrStale, "elements ", itoa(h.Lo), " to ", itoa(h.Hi-1), " of ", w.array.name)
			}
			list = append(list, result{residency: w.residency, device: d, span: h})
		}
	}
	return list, nil
}

// land puts results where they belong, all or none. Only one that is still on its device, and foreign memory that is no longer
// there, can make it fail. Nobody calls it off: the devices are done.
func (cr *Cruncher) land(ctx context.Context, list []result) error {
	ctx = context.WithoutCancel(ctx)
	for i := range list {
		r := &list[i]
		if r.mem != nil || r.span.Len() == 0 {
			continue
		}
		if _, err := writers(list); err != nil {
			return err
		}
		if err := r.get(ctx, r.device, r.span, r.array.host, r.span.Lo*r.array.t.Size()); err != nil {
			return err
		}
	}
	write, err := writers(list)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i := range list {
		if r := &list[i]; r.mem != nil {
			wg.Go(func() { write[i](r.mem) })
		}
	}
	wg.Wait()
	for i := range list {
		cr.down.Add(int64(list[i].size()))
		list[i].arrived(list[i].span)
	}
	return nil
}

// writers returns functions that write results to the host.
func writers(list []result) ([]func([]byte), error) {
	write := make([]func([]byte), len(list))
	for i := range list {
		r := &list[i]
		if r.mem == nil {
			continue
		}
		var err error
		if write[i], err = gpu.HostWriter(r.array.host.Part(r.span.Lo*r.array.t.Size(), r.size())); err != nil {
			return nil, err
		}
	}
	return write, nil
}

// arrived tells other crunchers that the host's side has changed.
func (r *residency) arrived(s span.Span) {
	a := r.array
	a.mu.Lock()
	a.overtake(s)
	if a.version++; r.version == a.version-1 {
		r.version = a.version
	}
	a.mu.Unlock()
}
