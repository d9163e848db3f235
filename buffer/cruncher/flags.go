// SPDX-License-Identifier: Apache-2.0

package cruncher

// Mode tells what kernels see of an array of 8-bit or 16-bit elements.
type Mode uint8

// The modes.
const (
	// Widened arrays have a word of 32 bits for each element: kernels see array<u32> or array<i32>, and the low bits of what
	// they store are kept, for the next kernel, too; only the one that stores more sees more. The memory moved is the packed
	// one; a small kernel of the library's widens it on the device.
	Widened Mode = iota
	// Packed arrays are array<u32> with four or two elements in each word, the first in the low bits. Work items must not
	// share words.
	Packed
	// Atomic is Packed as array<atomic<u32>>, for items that do share words.
	Atomic
)

// flags say what is copied when, as the setters have left them.
type flags struct {
	read, partialRead   bool
	write, writeAll     bool
	readOnly, writeOnly bool
	zeroCopy            bool
	items               int // elements per work item
	halo                int // elements beside them that are read, too
}

// goesUp reports whether calls bring what the host has to the devices.
func (f *flags) goesUp() bool { return f.read || f.partialRead }

func (f *flags) setReadOnly(on bool) {
	switch {
	case f.writeOnly: // the first one wins
	case on:
		f.readOnly, f.write, f.writeAll = true, false, false
	default:
		f.readOnly = false // what was cleared stays so
	}
}

func (f *flags) setWriteOnly(on bool) {
	switch {
	case f.readOnly:
	case on:
		f.writeOnly, f.read, f.partialRead = true, false, false
	default:
		f.writeOnly = false
	}
}

// change changes the flags. Calls in progress have a copy of their own.
func (a *Any) change(set func(f *flags)) *Any {
	if !a.none() {
		a.mu.Lock()
		set(&a.flags)
		a.mu.Unlock()
	}
	return a
}

func (a *Any) look() flags {
	if a.none() {
		return flags{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.flags
}

// SetRead says whether the whole array goes up to every device before its kernels run. True at first. It has no effect on
// an array that is write-only.
func (a *Any) SetRead(on bool) *Any {
	return a.change(func(f *flags) {
		if !f.writeOnly {
			f.read = on
		}
	})
}

// SetPartialRead says whether a device gets the elements of its own work items only. False at first. It has no effect on
// an array that is write-only.
func (a *Any) SetPartialRead(on bool) *Any {
	return a.change(func(f *flags) {
		if !f.writeOnly {
			f.partialRead = on
		}
	})
}

// SetWrite says whether each device's elements come back after its kernels ran. True at first. It has no effect on an array
// that is read-only.
func (a *Any) SetWrite(on bool) *Any {
	return a.change(func(f *flags) {
		if !f.readOnly {
			f.write = on
		}
	})
}

// SetWriteAll says whether the whole array comes back, from one device: the one whose number is the array's place among
// the parameters, modulo the number of devices. False at first; nothing happens unless write is set, too. It has no effect on an
// array that is read-only.
func (a *Any) SetWriteAll(on bool) *Any {
	return a.change(func(f *flags) {
		if !f.readOnly {
			f.writeAll = on
		}
	})
}

// SetReadOnly clears write and writeAll and keeps them so until it is cleared, which does not set them again. Kernels cannot
// write the array. It has no effect while the array is write-only. The device memory of an array that was first used
// read-only stays so in that cruncher.
func (a *Any) SetReadOnly(on bool) *Any { return a.change(func(f *flags) { f.setReadOnly(on) }) }

// SetWriteOnly clears read and partialRead and keeps them so until it is cleared, which does not set them again. It has no
// effect while the array is read-only.
func (a *Any) SetWriteOnly(on bool) *Any { return a.change(func(f *flags) { f.setWriteOnly(on) }) }

// SetZeroCopy asks for device memory that the CPU can reach, where a device has such: elements are then copied straight into
// it, without a stage between. Other devices, and arrays that are widened, are not affected; nor are calls in blobs. It counts when
// the array is first used in a cruncher.
func (a *Any) SetZeroCopy(on bool) *Any { return a.change(func(f *flags) { f.zeroCopy = on }) }

// SetElementsPerItem says how many elements belong to each work item: those of item i begin at element i*n. 1 at first;
// values below 1 count as 1.
func (a *Any) SetElementsPerItem(n int) *Any {
	return a.change(func(f *flags) { f.items = max(n, 1) })
}

// SetHalo says how many elements on both sides of a device's own ones its kernels read, too, of an array with partialRead:
// those of a stencil's neighbours.
func (a *Any) SetHalo(n int) *Any { return a.change(func(f *flags) { f.halo = max(n, 0) }) }

// SetMode says what kernels see of 8-bit and 16-bit elements, and with [Atomic] of 32-bit integers. A cruncher that has used the
// array does not take another mode for the smaller ones; see [Cruncher.Evict]. Unknown modes change nothing.
func (a *Any) SetMode(m Mode) *Any {
	return a.change(func(*flags) {
		if m <= Atomic {
			a.mode = m
		}
	})
}

// SetStruct names the struct of the source that an array of bytes is an array of, instead of words. WGSL must lay it out as it
// lies in memory. "" makes it words again. It has no effect on other arrays.
func (a *Any) SetStruct(name string) *Any {
	return a.change(func(*flags) {
		if a.t == Bytes {
			a.structure = name
		}
	})
}

// Read reports whether the whole array goes up to every device.
func (a *Any) Read() bool { return a.look().read }

// PartialRead reports whether a device gets the elements of its own items only.
func (a *Any) PartialRead() bool { return a.look().partialRead }

// Write reports whether results come back.
func (a *Any) Write() bool { return a.look().write }

// WriteAll reports whether the whole array comes back from one device.
func (a *Any) WriteAll() bool { return a.look().writeAll }

// ReadOnly reports whether kernels cannot write the array.
func (a *Any) ReadOnly() bool { return a.look().readOnly }

// WriteOnly reports whether nothing of the array goes up.
func (a *Any) WriteOnly() bool { return a.look().writeOnly }

// ZeroCopy reports whether device memory that the CPU can reach is wanted.
func (a *Any) ZeroCopy() bool { return a.look().zeroCopy }

// ElementsPerItem returns how many elements belong to each work item.
func (a *Any) ElementsPerItem() int { return a.look().items }

// Mode returns what kernels see of the elements.
func (a *Any) Mode() Mode {
	if a.none() {
		return Widened
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mode
}

// Struct returns the struct of the source that the bytes are, or "".
func (a *Any) Struct() string {
	if a.none() {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.structure
}

// Halo returns how many elements on both sides of its own ones a device reads.
func (a *Any) Halo() int { return a.look().halo }
