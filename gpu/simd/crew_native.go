// SPDX-License-Identifier: Apache-2.0

//go:build !js

package simd

import (
	"sync"
	"sync/atomic"
)

// sharedMemory says that wazero's memory is not one that instances share by WebAssembly's rules: it has one address all the time.
func sharedMemory() bool { return false }

// counter is the number of the first workgroup that nobody has taken.
type counter = atomic.Uint64

// helpers is the goroutines that help with a launch.
type helpers struct{ all sync.WaitGroup }

// summon has so many goroutines help, and returns how many may come.
func (h *helpers) summon(l *launch, n int) int {
	for w := range n {
		h.all.Go(func() {
			if in, scratch, err := l.worker(w + 1); err == nil { // without memory for another one, others do the work
				l.work(in, scratch, n+1)
			}
		})
	}
	return n
}

// dismiss waits for them.
func (h *helpers) dismiss(*launch) { h.all.Wait() }
