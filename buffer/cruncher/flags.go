// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// Flags say what a call moves of an array, and what kernels see of it. "Read" means from the host to the devices and "write" back,
// as in Cekirdekler. [DefaultFlags] are those of a new array.
type Flags struct {
	Read        bool // the whole array goes to every device before its kernels run
	PartialRead bool // a device gets the elements of its own work items only
	Write       bool // each device's elements come back after its kernels ran
	// WriteAll, with Write, brings the whole array back, from one device: the one whose number is the array's place among the
	// parameters, modulo the number of devices.
	WriteAll bool
	// ReadOnly clears Write and WriteAll and keeps them so until it is cleared itself. Kernels cannot write the array. The device
	// memory of an array that was first used with ReadOnly or WriteOnly stays so in that cruncher, see [Cruncher.Evict].
	ReadOnly  bool
	WriteOnly bool // clears Read and PartialRead and keeps them so
	// ZeroCopy asks for device memory that the CPU can reach, where a device has such: elements are then copied straight into it.
	// It has no effect on calls in blobs, and counts when the array is first used in a cruncher.
	ZeroCopy bool
	// AutoFetch makes methods that need elements of which only devices have the newest values fetch those first, as
	// [Cruncher.Fetch] does, from all crunchers that use the array; they wait for the calls of these. It is [ErrBatch] while one of
	// them has a batch open. Without AutoFetch such elements are [ErrStale].
	AutoFetch bool

	// ElementsPerItem is how many elements belong to each work item: those of item i begin at element i*ElementsPerItem. 0 is 1,
	// or all bytes of a structure of [WrapStructs].
	ElementsPerItem int
	// Halo is how many elements on both sides of a device's own ones its kernels read, too, of an array with PartialRead: the
	// neighbours of a stencil.
	Halo int

	// Mode is what kernels see of 8-bit and 16-bit elements: Widened, Packed or Atomic. Arrays of 32-bit integers can be Atomic, too.
	Mode kernel.Mode
	// Struct names the struct of the source that an array of bytes is an array of, instead of words. WGSL must lay it out as
	// it lies in memory.
	Struct string
}

// DefaultFlags returns the flags of a new array: Read and Write, one element per item.
func DefaultFlags() Flags { return Flags{Read: true, Write: true, ElementsPerItem: 1} }

// goesUp reports whether calls bring what the host has to the devices.
func (f *Flags) goesUp() bool { return f.Read || f.PartialRead }

// lock clears what ReadOnly and WriteOnly exclude. Of both the one that was set before wins.
func (f *Flags) lock(before Flags) {
	if f.ReadOnly && f.WriteOnly {
		f.ReadOnly, f.WriteOnly = before.ReadOnly, before.WriteOnly
	}
	if f.ReadOnly {
		f.Write, f.WriteAll = false, false
	}
	if f.WriteOnly {
		f.Read, f.PartialRead = false, false
	}
}

// Flags returns the flags. Without an array they are zero.
func (a *Any) Flags() (f Flags) {
	a.change(func(now *Flags) { f = *now })
	return f
}

// SetFlags changes the flags. Calls in progress and groups keep those that they had. As in Cekirdekler ReadOnly and WriteOnly
// clear what they exclude, and an array that is one of them does not become the other before the first is cleared; clearing it
// does not set again what it cleared.
//
// It is ErrInvalid for negative numbers, an unknown mode, a Struct for elements other than bytes, and for ReadOnly and
// WriteOnly together where the array is neither.
func (a *Any) SetFlags(f Flags) error {
	const op = "SetFlags"
	if a.none() {
		return fail(op, gpu.ErrInvalid, "no array")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case f.ElementsPerItem < 0 || f.Halo < 0:
		return fail(op, gpu.ErrInvalid, "a negative number of elements")
	case f.Mode > kernel.Atomic:
		return fail(op, gpu.ErrInvalid, "unknown mode")
	case f.Struct != "" && a.t != Bytes:
		return fail(op, gpu.ErrInvalid, a.name, " does not hold bytes, which alone can be structs")
	case f.ReadOnly && f.WriteOnly && !a.flags.ReadOnly && !a.flags.WriteOnly:
		return fail(op, gpu.ErrInvalid, "both read-only and write-only")
	}
	if f.ElementsPerItem == 0 {
		f.ElementsPerItem = max(a.record, 1)
	}
	f.lock(a.flags)
	a.flags = f
	return nil
}

// change changes the state that the array's lock guards.
func (a *Any) change(set func(f *Flags)) {
	if !a.none() {
		a.mu.Lock()
		set(&a.flags)
		a.mu.Unlock()
	}
}

// access is all that kernels do with an array, from its first use in a cruncher on. The zero value is both.
type access struct{ readOnly, writeOnly bool }

func (f Flags) access() access { return access{f.ReadOnly, f.WriteOnly} }
