// SPDX-License-Identifier: Apache-2.0

package cruncher

import "context"

// enqueue is Compute that returns when everything is queued. Nothing comes back: the cruncher is in a batch that does not end.
func (cr *Cruncher) enqueue(ctx context.Context, id int, kernels string, r Range, ps ...Param) error {
	if err := cr.mu.enter(ctx); err != nil {
		return err
	}
	b, err := cr.batch, error(nil)
	if b == nil {
		b, err = cr.open("Feed")
	}
	cr.mu.Unlock()
	if err != nil {
		return err
	}
	return cr.compute(ctx, b, id, kernels, r, ps)
}

// fetcher returns a function that brings whole arrays from the first device to their hosts' sides, while calls that use other
// arrays are queued.
func (cr *Cruncher) fetcher(arrays []*Any) func(ctx context.Context) error {
	type copied struct {
		*residence
		side side
	}
	var list []copied
	cr.mu.Lock()
	for _, a := range arrays {
		if r := cr.arrays[a.body]; r != nil { // or nothing was computed
			list = append(list, copied{r, r.sides[0]})
		}
	}
	cr.mu.Unlock()
	return func(ctx context.Context) error {
		for i := range list {
			r := &list[i]
			if r.side.mem == nil {
				return fail("Feed", ErrStale, r.array.name)
			}
			cr.down.Add(int64(r.array.host.Size))
			if err := r.getFrom(ctx, &r.side, span{Lo: 0, Hi: r.array.n}, r.array.host, 0); err != nil {
				return err
			}
		}
		return nil
	}
}
