// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
)

// lifetime is how long something with a Close method lasts: what it does is cancelled when it is closed.
type lifetime struct {
	ctx context.Context
	end context.CancelFunc
}

func newLifetime() (l lifetime) {
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

func (l lifetime) over() bool { return l.ctx == nil || l.ctx.Err() != nil }

// during runs a method that uses what mu guards, with a context that is cancelled with ctx and with the lifetime. What fails after
// the end is ErrClosed.
func (l lifetime) during(ctx context.Context, mu *sync.Mutex, op string, run func(ctx context.Context) error) error {
	if ctx == nil {
		return fail(op, gpu.ErrInvalid, "nil context")
	}
	closed := fail(op, gpu.ErrClosed, "the pipeline")
	mu.Lock()
	defer mu.Unlock()
	if l.over() {
		return closed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	err := run(ctx)
	if err != nil && l.over() {
		return closed
	}
	return err
}
