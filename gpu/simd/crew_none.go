// SPDX-License-Identifier: Apache-2.0

//go:build js && !sublet_simd

package simd

// There are no workers without the npm package's loader.

func sharedMemory() bool { return false }

func threads() int { return 1 }

// counter is the number of the first workgroup that nobody has taken.
type counter struct{ n uint64 }

func (c *counter) Load() uint64   { return c.n }
func (c *counter) Store(n uint64) { c.n = n }
func (c *counter) Add(n uint64) uint64 {
	c.n += n
	return c.n
}

// helpers is what a launch has of other threads.
type helpers struct{}

func (helpers) summon(*launch, int) int { return 0 }

func (helpers) dismiss(*launch) {}

// text is what workers know a module by.
type text struct{}

func (text) keep([]byte) {}
