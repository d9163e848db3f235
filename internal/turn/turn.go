// SPDX-License-Identifier: Apache-2.0

// Package turn has a lock that nobody waits for longer than a context lasts.
package turn

import "context"

// Lock is held by one at a time. Make it with [New].
type Lock chan struct{}

// New makes a lock that nobody holds.
func New() Lock { return make(Lock, 1) }

// Take waits for the lock until the context ends, whose error it returns then. A lock that is free is taken even so.
func (l Lock) Take(ctx context.Context) error {
	if l.Try() {
		return nil
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Try takes the lock if it is free, and reports whether it was.
func (l Lock) Try() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// Give gives the lock back.
func (l Lock) Give() { <-l }
