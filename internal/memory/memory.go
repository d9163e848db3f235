// SPDX-License-Identifier: Apache-2.0

// Package memory asks the system whether the process can have more memory, before somebody takes it who cannot be told that there is
// none: Go and Rust end the process then.
package memory

// Meter asks for one device. It is not safe for concurrent use.
type Meter struct {
	Foreign bool   // the memory is not Go's, and cannot be in the idle part of its heap
	unasked uint64 // bytes that were taken since it last asked
}

// Reserve is what is left to the rest of the program, and to the runtime's own tables.
const Reserve = 128 << 20

// askEvery is how much memory is taken without asking the system, which takes longer than to take a little.
const askEvery = 16 << 20

// Affords reports whether the process can have so many bytes, and a reserve beside them, and addresses for still more, which need not
// become memory.
func (m *Meter) Affords(size, reserve, addresses uint64) bool {
	if !m.due(size) {
		return true
	}
	return m.asked(affordable(size+reserve, addresses, !m.Foreign))
}

// Confine is for an allocator that maps memory in large blocks and keeps what is freed: only it knows whether it needs a new block. Where
// Affords would refuse for want of addresses, but there are at least so many, Confine occupies them until release is called, except for
// so few that no block fits and small things do: the allocator then gives what it has, or fails.
func (m *Meter) Confine(size, reserve, addresses, least uint64) (release func(), ok bool) {
	if !m.due(size) || m.asked(affordable(size+reserve, addresses, !m.Foreign)) {
		return func() {}, true
	}
	if !affordable(0, least, !m.Foreign) || !hasBytes(size+reserve) {
		return nil, false
	}
	few := uint64(fewAddresses)
	if size >= few/2 {
		few /= 2 // no memory of its own for this one either
	}
	return occupy(few), true
}

// fewAddresses is less than a block, and enough for the heaps of Go and C to grow.
const fewAddresses = 127 << 20

func (m *Meter) due(size uint64) bool {
	m.unasked += size
	return m.unasked >= askEvery
}

func (m *Meter) asked(enough bool) bool {
	if enough {
		m.unasked = 0
	}
	return enough
}
