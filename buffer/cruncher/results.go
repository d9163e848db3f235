// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// result is elements on their way from a device to the host's side of an array. They wait in memory of the library's until
// everything of a call is there, so that one that fails changes nothing, and devices that take over a lost one's work begin
// with what it began with. The only one may stay on its device until then.
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

// straight reports whether there is one result that may come straight to foreign memory. To Go memory a copy is cheap.
func straight(list []result) bool {
	return len(list) == 1 && list[0].array.host.Foreign != nil && list[0].Replica != nil && list[0].Width > 0
}

// stage gets results, from all devices at the same time.
func (cr *Cruncher) stage(ctx context.Context, list []result) error {
	if straight(list) {
		return nil
	}
	return together(len(cr.workers), func(d int) error {
		for i := range list {
			if list[i].Slot == d {
				if err := list[i].bring(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// newest lists the elements of arrays that are in a state, or in one after it. It is ErrStale if a lost device had some of them.
func newest(op string, wants []*residency, state memory.State) (list []result, err error) {
	for _, r := range wants {
		for _, s := range r.values.Newest(r.array.all(), state) {
			if s.Lost {
				return nil, fail(op, ErrStale, r.array.elements(s.Region))
			}
			list = append(list, result{residency: r, Source: s})
		}
	}
	return list, nil
}

// fetch gets the newest values of arrays. When a device is lost meanwhile, others may have them.
func (cr *Cruncher) fetch(ctx context.Context, op string, wants []*residency, state memory.State) (list []result, err error) {
	for {
		cr.noteLost()
		if list, err = newest(op, wants, state); err != nil {
			return nil, err
		}
		for _, w := range cr.workers {
			if err := w.dev.Flush(); err != nil && !w.lost() {
				return nil, err
			}
		}
		if err = cr.stage(ctx, list); err == nil || !cr.noteLost() {
			return list, err
		}
	}
}

// land puts results where they belong, all or none. Only one that is still on its device, and foreign memory that is no longer
// there, can make it fail. Nobody calls it off: the devices are done.
func (cr *Cruncher) land(ctx context.Context, list []result) error {
	var write []func()
	for i := range list {
		r := &list[i]
		if r.mem == nil { // the only one
			if err := r.Replica.Read(context.WithoutCancel(ctx), r.Region, r.array.host, r.Offset); err != nil {
				return err
			}
			continue
		}
		to, err := r.array.host.Part(r.Offset, r.Width).Writer()
		if err != nil {
			return err
		}
		write = append(write, func() { to(r.mem) })
	}
	for _, w := range write {
		w()
	}
	for i := range list {
		cr.down.Add(int64(list[i].Width))
		cr.arrived(&list[i])
	}
	return nil
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
