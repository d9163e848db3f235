// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"sync"
)

// lifetime is how long something with a Close method lasts: what it does is cancelled when it is closed.
type lifetime struct {
	ctx    context.Context
	cancel context.CancelFunc
	once   *sync.Once
}

func newLifetime() lifetime {
	l := lifetime{once: new(sync.Once)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// end ends it, and reports whether this was the first time.
func (l lifetime) end() (first bool) {
	l.once.Do(func() { first = true })
	l.cancel()
	return first
}

func (l lifetime) over() bool { return l.ctx == nil || l.ctx.Err() != nil }

// within returns a context that is cancelled with ctx and with the lifetime; the function frees it.
func (l lifetime) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
