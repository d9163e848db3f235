// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// throttle bounds how much repeated work is queued on a device: what is queued cannot be taken back, and a call that is cancelled
// ends only when the device has done it.
type throttle struct {
	chunk  int // how much is queued between two waits
	queued int
	since  time.Time
}

const (
	firstChunk = 4
	longChunk  = 50 * time.Millisecond // a chunk that took longer is halved, another one doubled
)

func newThrottle() *throttle { return &throttle{chunk: firstChunk, since: time.Now()} }

// wait counts one more piece of work as queued, and now and then waits for all of it.
func (p *throttle) wait(ctx context.Context, dev *gpu.Device) error {
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
