// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/tune/timing"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// Timings of kernels are texts of JSON, which the page keeps; see package timing.

// tuning reports results without timings, and the work that is timed where the page names none.
func (b *Bridge) tuning(a []uint32) {
	list := []any{timing.Fresh(b.dev.Info()).Text()}
	for _, w := range timing.Suite() {
		list = append(list, w.String())
	}
	b.Settle(a[0], list, nil)
}

// time times the variants for some work and reports the results, those that were known included.
func (b *Bridge) time(r *page.Reader) page.Work {
	text, work, rounds := r.Text(), r.Text(), int(r.Word())
	return func(ctx context.Context) (any, error) {
		known, err := b.results(text)
		if err != nil {
			return nil, err
		}
		w, err := timing.ParseWork(work)
		if err != nil {
			return nil, err
		}
		results, err := timing.Run(ctx, b.dev, known, timing.Options{Work: []timing.Work{w}, Rounds: rounds})
		if err != nil {
			return nil, err
		}
		return results.Text(), nil
	}
}

// tuned has the device use results and reports them with the choices that were made, or computes as usual where the text is empty.
func (b *Bridge) tuned(a []uint32) {
	var results *timing.Results
	text := b.Text(a[1])
	if text != "" {
		results = page.Must(b.results(text))
		text = results.Text()
	}
	page.Check(results.Apply(b.dev))
	b.Vary()
	b.Settle(a[0], text, nil)
}

// results reads what the page kept, and names errors as the page does: it does not know the package's functions.
func (b *Bridge) results(text string) (*timing.Results, error) {
	r, err := timing.Parse(text, b.dev.Info())
	return r, fault.In("", "tuning", err)
}
