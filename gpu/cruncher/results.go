// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
)

// result is elements on their way from a device to the host's side of an array. They wait in memory of the library's until
// everything of a call is there, so that one that fails changes nothing, and devices that take over a lost one's work begin
// with what it began with.
type result struct {
	*residence
	device int
	span   span
	mem    []byte // nil until they have come, and of arrays in foreign memory, which the platform alone can write
}

// bring gets a result from its device. Those for foreign memory stay there for the time being.
func (cr *Cruncher) bring(ctx context.Context, r *result) error {
	if r.array.host.Foreign != nil {
		return nil
	}
	mem := make([]byte, r.span.Len()*r.array.t.Size())
	if err := r.get(ctx, r.device, r.span, gpu.HostBytes(mem), 0); err != nil {
		return err
	}
	r.mem = mem
	return nil
}

// stage gets results, from all devices at the same time.
func (cr *Cruncher) stage(ctx context.Context, list []result) error {
	errs := make([]error, len(cr.workers))
	var wg sync.WaitGroup
	for d := range cr.workers {
		wg.Go(func() {
			for i := range list {
				if r := &list[i]; r.device == d && errs[d] == nil {
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

// land puts results where they belong. Only foreign memory can make it fail; it comes first. Nobody calls it off: the devices are
// done, and all results are to be there or none.
func (cr *Cruncher) land(ctx context.Context, list []result) error {
	ctx = context.WithoutCancel(ctx)
	for i := range list {
		r := &list[i]
		n := r.span.Len() * r.array.t.Size()
		cr.down.Add(int64(n))
		if r.array.host.Foreign == nil {
			continue
		}
		if err := r.get(ctx, r.device, r.span, r.array.host, r.span.Lo*r.array.t.Size()); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for i := range list {
		if r := &list[i]; r.mem != nil {
			wg.Go(func() { copy(r.array.host.Bytes[r.span.Lo*r.array.t.Size():], r.mem) })
		}
	}
	wg.Wait()
	for i := range list {
		list[i].arrived()
	}
	return nil
}

// arrived tells other crunchers that the host's side has changed.
func (r *residence) arrived() {
	a := r.array
	a.mu.Lock()
	if a.version++; r.version == a.version-1 {
		r.version = a.version
	}
	a.mu.Unlock()
}
