// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"sync"
)

// life is how long something with a Close method lasts: what it does is cancelled when it is closed.
type life struct {
	ctx    context.Context
	cancel context.CancelFunc
	once   *sync.Once
}

func newLife() life {
	l := life{once: new(sync.Once)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// end ends it, and reports whether this was the first time.
func (l life) end() (first bool) {
	l.once.Do(func() { first = true })
	l.cancel()
	return first
}

func (l life) over() bool { return l.ctx == nil || l.ctx.Err() != nil }

// within returns a context that is cancelled with ctx and with the life; the function frees it.
func (l life) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
