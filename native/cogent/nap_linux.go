// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package cogent

import (
	"syscall"
	"time"
)

// nap sleeps for a fraction of a millisecond. time.Sleep rounds that up to a whole one here.
func nap(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal ends it early, and that does not matter
}
