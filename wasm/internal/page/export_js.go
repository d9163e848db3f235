// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package page

import (
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
)

// The functions of this file are exports of the WebAssembly module. A call costs a tenth of a microsecond where one by
// way of js.FuncOf costs 25, but the function must not wait for anything that JavaScript does: the goroutine in which it
// runs is the one that was active when the program last went idle, and JavaScript wants its answer at once.

// served is the session in use and its device.
var served struct {
	session *Session
	dev     *gpu.Device
}

// arena is where JavaScript writes messages. Memory on the heap does not move.
var arena []uint32

// maxArena is the longest message in words.
const maxArena = 1 << 22

// exportArena makes room for a message of that many words and returns its address, or 0 if that is too much. What is in
// the memory stays there.
//
//go:wasmexport sublet_arena
func exportArena(words uint32) uint32 {
	if words == 0 || words > maxArena {
		return 0
	}
	if int(words) > len(arena) {
		arena = append(make([]uint32, 0, words), arena...)[:words]
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(arena))))
}

// exportPost executes the message in the arena and returns how many messages are not finished. It then wants to be given
// a turn, by the resume function of the Go runtime. Beside that, there may be the bits [Varies] and [Rest].
//
//go:wasmexport sublet_post
func exportPost(words uint32) uint32 {
	if served.session == nil || uint64(words) > uint64(len(arena)) {
		return 0
	}
	answer := served.session.Post(arena[:words])
	if answer&^Varies == 0 && served.session.Rests() {
		answer |= Rest
	}
	return uint32(answer)
}

// counters is where JavaScript finds the statistics.
var counters [12]float64

// exportStats updates the statistics, in the order of the fields of gpu.Stats, and returns their address.
//
//go:wasmexport sublet_stats
func exportStats() uint32 {
	if served.session != nil {
		s := served.dev.Stats()
		counters = [...]float64{
			float64(s.BytesUp), float64(s.BytesDown), float64(s.Submissions), float64(s.Dispatches),
			float64(s.Compilations), float64(s.Prepared), float64(s.CacheHits), float64(s.LiveBytes),
			float64(s.PeakBytes), float64(s.PooledBytes), float64(s.Buffers), float64(s.Kernels),
		}
	}
	return uint32(uintptr(unsafe.Pointer(&counters)))
}
