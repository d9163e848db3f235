// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"iter"

	"github.com/sublet-gpu/sublet/buffer/internal/span"
	"github.com/sublet-gpu/sublet/gpu"
)

// prefetched is what a batch brings from devices before its end, because a later call writes over it without returning that. As the
// host's memory changes at the end only, it waits beside it.
type prefetched struct {
	mem []byte // as large as the array
	has span.Set
}

// prefetch keeps a result until the batch ends.
func (cr *Cruncher) prefetch(ctx context.Context, r *result) error {
	if r.mem == nil {
		if err := cr.bring(ctx, r); err != nil {
			return err
		}
	}
	if r.prefetched == nil {
		r.prefetched = &prefetched{mem: make([]byte, r.array.host.Size)}
	}
	copy(r.prefetched.mem[r.span.Lo*r.array.t.Size():], r.mem)
	r.prefetched.has.Add(r.span.Lo, r.span.Hi)
	r.returned(r.span)
	r.pending.Remove(r.span.Lo, r.span.Hi)
	return nil
}

// results lists what is there.
func (e *prefetched) results(r *residency) []result {
	var list []result
	size := r.array.t.Size()
	for s := range e.has.All() {
		list = append(list, result{residency: r, device: nobody, span: s, mem: e.mem[s.Lo*size : s.Hi*size]})
	}
	return list
}

// hostSide returns elements of the host's with the memory that they are in.
func (r *residency) hostSide(s span.Span) iter.Seq2[span.Span, gpu.Host] {
	return func(yield func(span.Span, gpu.Host) bool) {
		size := r.array.t.Size()
		none := prefetched{}
		e := r.prefetched
		if e == nil {
			e = &none
		}
		for p := range e.has.Overlap(s.Lo, s.Hi) {
			if !yield(p, gpu.HostBytes(e.mem[p.Lo*size:p.Hi*size])) {
				return
			}
		}
		for p := range e.has.Missing(s.Lo, s.Hi) {
			if !yield(p, r.array.host.Part(p.Lo*size, p.Len()*size)) {
				return
			}
		}
	}
}

// outrun notes which of the elements that have landed later calls wrote over without returning them.
func (r *residency) outrun(landed *span.Set) {
	for s := range landed.All() {
		for m := range r.dirty.Overlap(s.Lo, s.Hi) {
			r.news.Add(m.Lo, m.Hi)
		}
	}
}

// dropPrefetched notes that what a batch brought is not going to land: only devices have it.
func (r *residency) dropPrefetched() {
	for s := range r.prefetched.has.All() {
		r.synced.Remove(s.Lo, s.Hi)
		for gap := range r.dirty.Missing(s.Lo, s.Hi) {
			for h := range r.owner.Get(gap.Lo, gap.Hi) {
				r.overwrote(h)
			}
		}
	}
	r.prefetched = nil
}
