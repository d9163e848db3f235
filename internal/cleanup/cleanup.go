// SPDX-License-Identifier: Apache-2.0

// Package cleanup gives back what belongs to values that nobody closed. There is one type for all of them, because
// [runtime.AddCleanup] is several kilobytes of a page's program for each type that it is used with.
package cleanup

import "runtime"

// Cleanup is a function to be called when its owner is no longer reachable. The owner alone may refer to the Cleanup, and the
// function must not refer to the owner.
type Cleanup struct{ c runtime.Cleanup }

// New makes a Cleanup.
func New(run func()) *Cleanup {
	c := new(Cleanup)
	c.c = runtime.AddCleanup(c, func(run func()) { run() }, run)
	return c
}

// Stop cancels the call, because the owner was closed. Stop of nil does nothing.
func (c *Cleanup) Stop() {
	if c != nil {
		c.c.Stop()
	}
}
