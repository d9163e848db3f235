// SPDX-License-Identifier: Apache-2.0

//go:build js && !sublet_simd

package simd

// Other loaders than the npm package's make no memory shared, so that there are no workers.

func sharedMemory() bool { return false }

func threads() int { return 1 }

// counter is the number of the first workgroup that no thread has taken.
type counter struct{ n uint64 }

func (c *counter) Load() uint64   { return c.n }
func (c *counter) Store(n uint64) { c.n = n }
func (c *counter) Add(n uint64) uint64 {
	c.n += n
	return c.n
}

// helpers is the state of a launch's helpers.
type helpers struct{}

func (helpers) summon(*launch, int) int { return 0 }

func (helpers) dismiss(*launch) {}

// text is what workers know a module by.
type text struct{}

func (text) keep([]byte) {}
