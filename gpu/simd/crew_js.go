// SPDX-License-Identifier: Apache-2.0

//go:build sublet_simd

package simd

import (
	"sync"
	"unsafe"
)

// Where the npm package's loader has made the program's memory a shared one, workers help with launches. Go has one thread there and knows
// nothing of others: these run modules only, while a launch waits for them. They hear of a job by words of a block in memory, see
// web/src/crew-block.mjs and, for what the workers do, web/src/thread.mjs.
//
// A worker that is late, or could not be started, keeps nobody waiting: workgroups are whoever's that takes them first.

// The words of the block that the program writes. The first ones are the workers' own.
const (
	blockNext    = 3
	blockTotal   = 4
	blockMost    = 5
	blockThreads = 6
	blockArgs    = 7
	blockModule  = 8
	blockText    = 9
	blockLength  = 10
	blockResult  = 11
	blockScratch = 16
	blockWords   = 128
)

var crew struct {
	block [blockWords]uint32
	busy  bool // a launch has the workers: while it lets the page run, there may be one of another device
}

// registerCrew tells the loader where the block is, and returns how many threads there may be, 0 if memory is not shared.
//
//go:wasmimport sublet crew
func registerCrew(block uint32) uint32

// openCrew lets workers have the job in the block. There may be none: then it returns 0.
//
//go:wasmimport sublet open
func openCrew() uint32

// takeCrew takes workgroups of the job: package sync/atomic does not know of other threads.
//
//go:wasmimport sublet take
func takeCrew(n uint32) (first uint32)

// closeCrew keeps workers from entering the job, and reports whether some are in it.
//
//go:wasmimport sublet close
func closeCrew() uint32

// The results of closeCrew.
const (
	crewGone = iota
	crewBusy
	crewDead // workers do not return
)

var registered = sync.OnceValue(func() uint32 { return registerCrew(uint32(uintptr(unsafe.Pointer(&crew.block)))) })

func sharedMemory() bool { return registered() > 0 }

func threads() int { return max(1, int(registered())) }

// counter is the number of the first workgroup that nobody has taken.
type counter struct {
	own  uint64
	crew bool // it is the block's
}

func (c *counter) Load() uint64 {
	if c.crew {
		return uint64(crew.block[blockNext])
	}
	return c.own
}

// Store is for one thread, and to end a job: what the others take then is beyond the last workgroup.
func (c *counter) Store(n uint64) {
	if c.crew {
		crew.block[blockNext] = uint32(n)
	}
	c.own = n
}

func (c *counter) Add(n uint64) uint64 {
	if c.crew {
		return uint64(takeCrew(uint32(n))) + n
	}
	c.own += n
	return c.own
}

// helpers is what a launch has of the workers.
type helpers struct{}

// summon has so many workers help, and returns how many may come.
func (helpers) summon(l *launch, n int) int {
	if n == 0 || crew.busy {
		return 0
	}
	b := &crew.block
	for w := range n {
		space, err := l.workspace(w+1, l.code.scratch)
		if err != nil {
			return 0
		}
		b[blockScratch+w] = l.address(space)
	}
	b[blockNext], b[blockTotal], b[blockMost] = uint32(l.next.Load()), l.total, uint32(min(l.timely(), most))
	b[blockThreads], b[blockArgs], b[blockResult] = uint32(n+1), l.address(l.control), done
	text := l.code.text
	b[blockModule], b[blockText], b[blockLength] = text.number, l.address(text.wasm), uint32(len(text.wasm))
	if openCrew() == 0 {
		return 0
	}
	crew.busy, l.next.crew = true, true
	return n
}

// dismiss waits for the workers.
func (helpers) dismiss(l *launch) {
	if !l.next.crew {
		return
	}
	state := closeCrew()
	for ; state == crewBusy; state = closeCrew() {
		l.pause()
	}
	crew.busy, l.next.crew = false, false
	l.next.Store(uint64(l.total))
	switch result := crew.block[blockResult]; {
	case state == crewDead:
		l.trap = exception("threads that do not return from the kernel")
	case result == trapped:
		l.trap = exception(kernels().Call("crewTrap").String())
	case result != done:
		l.fail(result, nil)
	}
}

// text is a module's text, which workers compile for themselves, as they do not listen to messages, and its number.
type text struct {
	number uint32
	wasm   []byte
}

func (t *text) keep(wasm []byte) {
	if sharedMemory() {
		numbered++
		t.number, t.wasm = numbered, wasm
	}
}

// numbered is the last number.
var numbered uint32
