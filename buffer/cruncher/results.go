// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"sync"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// result is elements on their way from a device to the host's side of an array. They wait in memory of the library's until
// everything of a call is there, so that one that fails changes nothing, and devices that take over a lost one's work begin
// with what it began with. One of all may stay on its device until then: that it comes is then what everything depends on.
type result struct {
	*residency
	memory.Source
	mem []byte // nil until they have come
}

// bring gets a result from its device.
func (r *result) bring(ctx context.Context) error {
	mem := make([]byte, r.Width)
	if r.Replica != nil {
		if err := r.Replica.Read(ctx, r.Region, gpu.HostBytes(mem), 0); err != nil {
			return err
		}
	}
	r.mem = mem
	return nil
}

// largestForeign returns which of some results may come straight to foreign memory, or -1. To Go memory a copy is cheap.
func largestForeign(list []result) int {
	best := -1
	for i := range list {
		if list[i].array.host.Foreign != nil && (best < 0 || list[i].Width > list[best].Width) {
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
				if r := &list[i]; r.Slot == d && i != straight && errs[d] == nil {
					errs[d] = r.bring(ctx)
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

// fetch gets the newest values of arrays. When a device is lost meanwhile, others may have them.
func (cr *Cruncher) fetch(ctx context.Context, op string, wants []*residency, state memory.State) (list []result, err error) {
	for {
		cr.noteLost()
		list = list[:0]
		for _, r := range wants {
			for _, s := range r.values.Newest(r.array.all(), state) {
				if s.Lost {
					return nil, fail(op, ErrStale, r.array.elements(s.Region))
				}
				list = append(list, result{residency: r, Source: s})
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

// land puts results where they belong, all or none. Only one that is still on its device, and foreign memory that is no longer
// there, can make it fail. Nobody calls it off: the devices are done.
func (cr *Cruncher) land(ctx context.Context, list []result) error {
	ctx = context.WithoutCancel(ctx)
	for i := range list {
		r := &list[i]
		if r.mem != nil || r.Width == 0 {
			continue
		}
		if _, err := writers(list); err != nil {
			return err
		}
		if err := r.Replica.Read(ctx, r.Region, r.array.host, r.Offset); err != nil {
			return err
		}
	}
	write, err := writers(list)
	if err != nil {
		return err
	}
	for i := range list {
		if r := &list[i]; r.mem != nil {
			write[i](r.mem)
		}
		cr.down.Add(int64(list[i].Width))
		cr.arrived(&list[i])
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
		if write[i], err = gpu.HostWriter(r.array.host.Part(r.Offset, r.Width)); err != nil {
			return nil, err
		}
	}
	return write, nil
}

// arrived tells other crunchers that the host's side has changed.
func (cr *Cruncher) arrived(r *result) {
	a := r.array
	a.mu.Lock()
	a.overtake(r.Region, cr)
	if a.version++; r.version == a.version-1 {
		r.version = a.version
	}
	a.mu.Unlock()
}
