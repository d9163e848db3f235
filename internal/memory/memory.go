// SPDX-License-Identifier: Apache-2.0

// Package memory asks the system whether the process can have more memory, before somebody takes it who cannot be told that there is
// none: Go and Rust end the process then.
package memory

// Meter asks for one device. It is not safe for concurrent use.
type Meter struct {
	unasked uint64 // bytes that were taken since it last asked
}

// Reserve is what is left to the rest of the program, and to the runtime's own tables.
const Reserve = 128 << 20

// askEvery is how much memory is taken without asking the system, which takes longer than to take a little.
const askEvery = 16 << 20

// Affords reports whether the process can have so many bytes, and a reserve beside them.
func (m *Meter) Affords(size, reserve uint64) bool {
	if m.unasked += size; m.unasked < askEvery {
		return true
	}
	if !affordable(size + reserve) {
		return false
	}
	m.unasked = 0
	return true
}
