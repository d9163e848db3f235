// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// pace makes who queues the same work again and again wait for it now and then: what is queued cannot be taken back, so
// that a call which is cancelled ends only when the device is done with it.
type pace struct {
	chunk  int // how much is queued between two waits
	queued int
	since  time.Time
}

const (
	firstChunk = 4
	longChunk  = 50 * time.Millisecond // a chunk that took longer is halved, another one doubled
)

func newPace() *pace { return &pace{chunk: firstChunk, since: time.Now()} }

// next is called when something has been queued.
func (p *pace) next(ctx context.Context, dev *gpu.Device) error {
	if p.queued++; p.queued < p.chunk {
		return nil
	}
	if err := dev.Sync(ctx); err != nil {
		return err
	}
	now := time.Now()
	if now.Sub(p.since) < longChunk {
		p.chunk *= 2
	} else {
		p.chunk = max(p.chunk/2, 1)
	}
	p.queued, p.since = 0, now
	return nil
}
