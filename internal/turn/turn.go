// SPDX-License-Identifier: Apache-2.0

// Package turn has a lock that nobody waits for longer than a context lasts.
package turn

import (
	"context"
	"sync/atomic"
)

// Lock is held by one at a time, and given to those who wait in their order. Make it with [New]. A lock that nobody waits for costs no more
// than a mutex, which a channel would.
type Lock struct {
	users atomic.Int32  // who holds it, and those who wait
	next  chan struct{} // the lock, on its way from one to the next
}

// New makes a lock that nobody holds.
func New() *Lock { return &Lock{next: make(chan struct{}, 1)} }

// Take waits for the lock until the context ends, whose error it returns then. A lock that is free is taken even so.
func (l *Lock) Take(ctx context.Context) error {
	if l.users.Add(1) == 1 {
		return nil
	}
	select {
	case <-l.next:
		return nil
	case <-ctx.Done():
	}
	for {
		n := l.users.Load()
		if n == 1 { // it is on its way to this caller
			<-l.next
			return nil
		}
		if l.users.CompareAndSwap(n, n-1) {
			return ctx.Err()
		}
	}
}

// Try takes the lock if it is free, and reports whether it was.
func (l *Lock) Try() bool { return l.users.CompareAndSwap(0, 1) }

// Give gives the lock back.
func (l *Lock) Give() {
	if l.users.Add(-1) > 0 {
		l.next <- struct{}{}
	}
}
