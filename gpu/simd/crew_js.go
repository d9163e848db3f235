// SPDX-License-Identifier: Apache-2.0

//go:build sublet_simd

package simd

import (
	"sync"
	"unsafe"
)

// Where the npm package's loader has made the program's memory shared, web workers help with launches. Go has one thread in WebAssembly and
// knows nothing of the workers' threads: workers only run kernels' modules, and a launch does not return while one is in it. They learn of
// a launch, which is called a job, from a block of words in memory, see web/src/crew-block.mjs. web/src/thread.mjs is what they run.
//
// A launch does not wait for workers that are late or could not be started: each workgroup is run by the thread that takes it first.

// Words of the block. Those before blockNext belong to the JavaScript side.
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
	block [blockWords]uint32 // a variable of the package, as its address must not change
	busy  bool               // a launch has the workers; while it lets the page run, another device may begin a launch, which gets none
}

// registerCrew tells the loader the address of the block. It returns how many threads there may be, this one included; 0 if the memory is
// not shared.
//
//go:wasmimport sublet crew
func registerCrew(block uint32) uint32

// openCrew lets workers enter the job that is in the block. It returns 0 if there are no workers, otherwise 1.
//
//go:wasmimport sublet open
func openCrew() uint32

// takeCrew takes n workgroups of the job, and returns the number of the first. In WebAssembly package sync/atomic is not atomic for other
// threads.
//
//go:wasmimport sublet take
func takeCrew(n uint32) (first uint32)

// closeCrew keeps workers from entering the job, waits some milliseconds for those in it, and returns a result of those below.
//
//go:wasmimport sublet close
func closeCrew() uint32

// The results of closeCrew.
const (
	crewGone = iota // no worker is in the job any more
	crewBusy        // one still is
	crewDead        // one did not leave for half a minute: all workers were terminated
)

var registered = sync.OnceValue(func() uint32 { return registerCrew(uint32(uintptr(unsafe.Pointer(&crew.block)))) })

// sharedMemory reports whether the program's memory is shared.
func sharedMemory() bool { return registered() > 0 }

// threads returns how many threads run a dispatch, this one included.
func threads() int { return max(1, int(registered())) }

// counter is the number of the first workgroup that no thread has taken.
type counter struct {
	own  uint64
	crew bool // the count is in the block instead
}

func (c *counter) Load() uint64 {
	if c.crew {
		return uint64(crew.block[blockNext])
	}
	return c.own
}

// Store sets the number. It is not atomic for workers: while these have the job it may only be used to end that, with a number from which
// whatever a worker adds leads to numbers beyond the last workgroup.
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

// helpers is the state of a launch's helpers. That of workers is in crew.
type helpers struct{}

// summon lets up to n workers help, and returns how many may.
func (helpers) summon(l *launch, n int) int {
	if n == 0 || crew.busy {
		return 0
	}
	b := &crew.block
	for w := range n {
		space, err := l.workspace(w+1, l.code.Scratch)
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

// dismiss waits until no worker is in the launch, and takes over its failure if one failed.
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

// text is the bytes of a module and its number, by which workers know it. Workers compile it for themselves: they cannot be sent the
// compiled module, as they never return to their event loop.
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

// numbered is the last number that keep has given. Numbers are not used again.
var numbered uint32
