// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// worker is a device of a cruncher.
type worker struct {
	index int
	dev   *gpu.Device
	life  uint32 // of the device, when it joined
	gone  bool   // it is lost, and that is noted
}

// lost reports whether what was on the device is gone, also if it has come back meanwhile.
func (w *worker) lost() bool {
	select {
	case <-w.dev.Lost():
		return true
	default:
		return errors.Is(w.dev.Usable(), gpu.ErrClosed) || w.dev.Generation() != w.life
	}
}

// work runs a piece's kernels, blob by blob if it has several: while one blob is computed, the next one goes up and the
// one before comes back.
func (cr *Cruncher) work(ctx context.Context, c *call, p *piece) error {
	blobs := p.part.cut(c.r.Blobs, c.step)
	queued := make(chan part, len(blobs)) // has room for all
	var back error
	var done sync.WaitGroup
	done.Go(func() {
		for b := range queued {
			if back == nil {
				back = p.take(ctx, c, b)
			}
		}
	})
	err := cr.feed(ctx, c, p, blobs, queued)
	close(queued)
	done.Wait()
	return cmp.Or(err, back)
}

// cut divides a part into at most n pieces, which are multiples of step but for the last.
func (p part) cut(n, step int) []part {
	size := (p.count-1)/n + 1
	size = (size-1)/step*step + step
	var blobs []part
	for at := 0; at < p.count; at += size {
		blobs = append(blobs, part{p.base + at, min(size, p.count-at)})
	}
	return blobs
}

// feed queues the uploads and kernels of blobs and hands each blob on when its last kernel is queued. The first kernel of
// several runs as blobs go up, the last one as they come back, those between over everything: a kernel may read what the ones
// before it made for other items of the device.
func (cr *Cruncher) feed(ctx context.Context, c *call, p *piece, blobs []part, queued chan<- part) error {
	last := len(c.kernels) - 1
	whole := len(blobs) == 1
	for i, b := range blobs {
		err := cr.uploadBlob(ctx, c, p, b)
		switch {
		case err != nil:
		case whole:
			err = cr.repeat(ctx, c, p)
		case last >= 0:
			err = cr.perform(ctx, c, c.kernels[0], p, b, i == 0)
		}
		if err != nil {
			return err
		}
		if whole || last <= 0 {
			queued <- b
		}
	}
	if whole || last <= 0 {
		return nil
	}
	for _, k := range c.kernels[1:last] {
		if err := cr.perform(ctx, c, k, p, p.part, true); err != nil {
			return err
		}
	}
	for i, b := range blobs {
		if err := cr.perform(ctx, c, c.kernels[last], p, b, i == 0); err != nil {
			return err
		}
		queued <- b
	}
	return nil
}

// How many repeats are queued between two waits: what is queued cannot be taken back, and a call that is cancelled ends only when the
// device has done it.
const (
	firstChunk = 4
	batchChunk = 4096                  // nobody waits for a batch, but who queues for ever has to hear that it is given up
	longChunk  = 50 * time.Millisecond // a chunk that took longer is halved, another one doubled
)

// repeat queues all kernels, as often as the range says, with the kernel between repeats.
func (cr *Cruncher) repeat(ctx context.Context, c *call, p *piece) error {
	chunk, queued, since := firstChunk, 0, time.Now()
	if c.batch != nil {
		chunk = batchChunk
	}
	for i := range c.r.Repeat {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, k := range c.kernels {
			if err := cr.perform(ctx, c, k, p, p.part, true); err != nil {
				return err
			}
		}
		if c.sync != nil {
			if err := cr.perform(ctx, c, c.sync, p, part{}, true); err != nil {
				return err
			}
		}
		if queued++; queued < chunk || i+1 == c.r.Repeat { // after the last one the results are waited for
			continue
		}
		if err := p.worker.dev.Sync(ctx); err != nil {
			return err
		}
		if time.Since(since) < longChunk {
			chunk *= 2
		} else {
			chunk = max(chunk/2, 1)
		}
		queued, since = 0, time.Now()
	}
	return nil
}

// uploadBlob brings up what a blob needs of the arrays that go up by blobs.
func (cr *Cruncher) uploadBlob(ctx context.Context, c *call, p *piece, b part) error {
	for k := range c.arrays {
		a := &c.arrays[k]
		if !c.byBlob(a) {
			continue
		}
		w := a.array.bytes(a.own(c, b))
		lo, hi := w.Offset, min((w.End()+3)/4*4, a.array.bytes(a.own(c, p.part)).End())
		if b.base > p.part.base { // words that blobs share go up before kernels write there
			lo = (lo + 3) / 4 * 4
		}
		if err := a.values.Update(ctx, p.has[k].Replica, memory.Between(lo, max(lo, hi))); err != nil {
			return err
		}
	}
	return nil
}

// take gets a blob's results, in a batch none. An array that comes back as a whole does so with the last blob.
func (p *piece) take(ctx context.Context, c *call, b part) error {
	if c.batch != nil {
		return nil
	}
	last := b.base+b.count == p.part.base+p.part.count
	var list []result
	for k := range c.arrays {
		a := &c.arrays[k]
		if a.flags.Write && (last || !a.flags.WriteAll) {
			at := memory.Source{Region: a.array.bytes(a.written(c, b)), Replica: p.has[k].Replica}
			list = append(list, result{residency: a.residency, Source: at})
		}
	}
	if len(list) == 0 || c.alone && straight(list) { // so that it is known how long it took, and that the device is not lost
		p.results = append(p.results, list...)
		return p.worker.dev.Sync(ctx)
	}
	for i := range list {
		if err := list[i].bring(ctx); err != nil {
			return err
		}
	}
	p.results = append(p.results, list...)
	return nil
}
