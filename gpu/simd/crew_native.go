// SPDX-License-Identifier: Apache-2.0

//go:build !js

package simd

import (
	"sync"
	"sync/atomic"
)

// sharedMemory reports that modules need not be compiled for a shared memory of WebAssembly: all instances are given the same memory, which
// does not grow.
func sharedMemory() bool { return false }

// counter is the number of the first workgroup that no thread has taken.
type counter = atomic.Uint64

// helpers counts the goroutines that help with a launch.
type helpers struct{ all sync.WaitGroup }

// summon has n goroutines help, and returns n.
func (h *helpers) summon(l *launch, n int) int {
	for w := range n {
		h.all.Go(func() {
			if in, scratch, err := l.worker(w + 1); err == nil { // without memory for this worker, the others do the work
				l.work(in, scratch, n+1)
			}
		})
	}
	return n
}

// dismiss waits until no helper is in the launch.
func (h *helpers) dismiss(*launch) { h.all.Wait() }
