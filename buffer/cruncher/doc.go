// SPDX-License-Identifier: Apache-2.0

// Package cruncher computes kernels of the user's on several devices at once, as one. It divides a range of work items among
// them, moves the elements that each needs, and brings the results together in the caller's arrays. From call to call it finds
// the shares with which all devices are done at the same time. The model is that of the Cekirdekler API
// (github.com/tugrul512bit/Cekirdekler) with its ClNumberCruncher and ClArray.
//
//	cr, err := cruncher.New(ctx, devices, `fn add3stream(i: u32) { arr[i] = arr[i] + 3u; }`)
//	arr, err := cruncher.NewArray[uint8]("arr", 1000)
//	err = arr.SetFlags(cruncher.Flags{PartialRead: true, Write: true})
//	err = arr.Compute(ctx, cr, 1, "add3stream", cruncher.Range{Global: 1000, Local: 100})
//
// # Kernels
//
// A kernel is a WGSL function of an item's number, or a complete module; package [github.com/sublet-gpu/sublet/buffer/cruncher/kernel]
// tells what it may contain. It knows arrays and scalars by their names. Items are numbered over the whole range, whatever part of
// it a device has. A call may name several kernels: each device runs them one after the other on its part.
//
// # Flags
//
// An [Array] is in host memory and, in part or as a whole, on each device. Its [Flags] say what moves; "read" means from the host to
// the devices and "write" back, as in Cekirdekler:
//
//	Read (at first on)     every device gets the whole array before its kernels
//	PartialRead            a device gets the elements of its own items, and those of a halo
//	neither                nothing goes up: kernels see what the devices have, zeros at first
//	Write (at first on)    each device's own elements come back
//	Write and WriteAll     all elements come back, from one device, which then computes the whole range
//	ReadOnly, WriteOnly    kernels do only that; they clear and lock the flags of the other
//
// The elements of item i are i*n to i*n+n-1, n being ElementsPerItem. Calls take the flags when they begin, [Params] when it is
// called.
//
// # Coherence
//
// Results do not depend on the shares. The cruncher knows which device has the newest value of each element of an array that stays
// on the devices, and moves the elements that another device needs by way of the host; [WithCoherence] has other ways. All
// crunchers that use an array notice results that come to its host memory. Elements that kernels wrote and no flag brought back are
// newer on the devices: [Any.Stale] tells, [Array.At] and its like are [ErrStale], and [Cruncher.Fetch] or [Flags] with AutoFetch
// bring them. What the caller writes to host memory is noticed where it goes through the array's methods or [Any.MarkDirty]; arrays
// of [Wrap] are taken to change between any two calls unless [Any.Track] is called.
//
// If a device is lost in the middle of a call, the others begin again with what the call began with. Only if an element that the
// call needs is nowhere any more, as one device had it and was lost or has computed over it, the error is [ErrStale], and
// [gpu.ErrDeviceLost] if no device is left. It is stale, too, where a device that holds a large array in parts gave an element up that
// the host had, and the host's has changed since and does not go up. A [Batch] is stale if a lost device had what one of its calls computed, and nobody else has
// it. Results come to host memory all or not at all. A device that has come back, see [gpu.Device.Reopen], takes part again from the next call
// on, without what was on it. [Cruncher.Evict] frees the device memory of arrays that are stale; they begin anew.
//
// # Large arrays
//
// An array larger than a device can bind has windows there, as large as its parts, if it moves by parts: with PartialRead, or
// without Read. Otherwise it is [gpu.ErrLimit].
//
// # Device memory
//
// Arrays keep what they have on the devices until they are closed, the program has lost them, or [Cruncher.Evict] is called. On a device
// that has no room for the next call, or at the limit of [WithMemory], those used longest ago leave, if what they have is elsewhere,
// too.
//
// # What is undefined
//
//   - What a kernel reads of an array with PartialRead, or with neither, outside its device's own elements and their halo.
//   - What becomes of elements that a kernel writes outside those of its own item, except with WriteAll, and of packed words that
//     items share.
//   - Elements of a write-only array that a kernel leaves out.
//   - What becomes of memory that several arrays of a call share and more than one of them writes.
//   - Elements that only devices have and that a failed call's kernels write.
//   - Host memory that is used while a call or a [Batch] uses it.
package cruncher
