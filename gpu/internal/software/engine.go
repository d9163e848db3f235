// SPDX-License-Identifier: Apache-2.0

// Package software is the device of the drivers that compute on the CPU. Buffers are memory of the process, and command lists run one
// after another: on a goroutine that exists only while there is work, or in the call that submits them if they are brief. Such drivers
// differ in their [Engine]: where the memory comes from, and how kernels run.
//
// A kernel that panics loses its device, as a crashing shader does on a GPU: half of its results may be written, so nothing after it may
// run.
package software

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Engine has the memory and the compiler of one device. Allocate and Free are called under the device's lock, Compile and Stop beside
// anything, Close when nothing else is called any more.
type Engine interface {
	// Allocate returns so many zeros, not none, which begin at a multiple of 8. Where there are not that many, the error is
	// fault.ErrNoMemory.
	Allocate(size uint64) ([]byte, error)
	// Free takes memory back that nothing uses any more.
	Free(mem []byte)
	// Compile makes a program of a kernel. The caller may change the kernel afterwards.
	Compile(ctx context.Context, k *driver.Kernel) (Program, error)
	// Stop has programs that run return early, as soon as they can.
	Stop()
	// Close releases everything, memory that was not freed too. If lent is true, somebody may still look at memory that buffers had, and
	// what is to be kept has to keep what it holds.
	Close(lent bool, keep [][]byte)
}

// Watcher is an Engine that wants to know what its device does, so that somebody can do the same again without the device. Programs see their
// dispatches themselves. It is told under the device's lock, when a command is queued.
type Watcher interface {
	// Reads says that a call reads memory, from its first byte to its last, into memory of the caller's.
	Reads(mem []byte)
	// Writes says that memory, from its first byte to its last, is filled with memory that is not Go's, or zeros where that ends within the
	// last word.
	Writes(mem []byte)
	// Moves says that bytes are moved in another way.
	Moves()
}

// Program is a compiled kernel.
type Program interface {
	// Run runs one dispatch, which has workgroups. An error says why it did not run to its end, and makes a [driver.Refusal] of the list;
	// one that panics loses the device. A program of an engine that was stopped returns nil.
	Run(d *Dispatch) error
	// Close releases the program, which does not run and will not run again.
	Close()
}

// Dispatch is one launch of a kernel.
type Dispatch struct {
	Groups  [3]uint32
	Params  []byte   // nil for a kernel without a parameter block
	Storage [][]byte // what the storage bindings show, in the order of the bindings; other dispatches have it, too
	// Pause lets the page run where there is one thread for all, if it did not for long. A program calls it between two parts of a dispatch.
	Pause func()
}

// Config describes a device to [New].
type Config struct {
	Info   driver.AdapterInfo // the budget of memory is MaxBufferSize
	Engine Engine
	// GoMemory says that the engine's memory is Go's: the collector frees it, and any []byte can be imported, not just what is the memory
	// of a buffer already.
	GoMemory bool
	// Pauses says that programs call Pause themselves unless they are brief.
	Pauses bool
}
