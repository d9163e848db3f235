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
// An [Array] is in host memory and, as a whole or in part, on each device. Its [Flags] say which elements a call copies; as in
// Cekirdekler, "read" means from the host to the devices and "write" back:
//
//	Read (at first on)     every device gets the whole array before its kernels
//	PartialRead            a device gets the elements of its own items, and those of a halo
//	neither                nothing is copied: kernels see the elements on the devices, zeros at first
//	Write (at first on)    each device's own elements come back
//	Write and WriteAll     all elements come back, from one device, which then computes the whole range
//	ReadOnly, WriteOnly    kernels do only that; they clear and lock the flags of the other
//
// The elements of item i are i*n to i*n+n-1, n being ElementsPerItem. A call uses the flags as they are when it begins; [Params]
// keeps those of the time when it is called.
//
// # Coherence
//
// Results do not depend on how the range is divided. The cruncher knows which device has the newest value of each element of an
// array that stays on the devices. An element that another device needs is copied there through the host, unless [WithCoherence]
// says otherwise. Results that reach host memory are seen by all crunchers that use the array. Elements that kernels wrote and that
// no flag copied back are newer on the devices than on the host: [Any.Stale] reports this, [Array.At] and similar methods return
// [ErrStale], and [Cruncher.Fetch], or AutoFetch in [Flags], copies the elements to the host. Changes that the caller makes to host
// memory count if they are made by the array's methods or followed by [Any.MarkDirty]. An array of [Wrap] is taken to have changed
// before every call unless [Any.Track] is called. A call that uploads elements uploads those that have changed, over newer ones too.
//
// If a device is lost during a call, the remaining devices repeat the call from the values with which it began. The error is
// [gpu.ErrDeviceLost] if no device remains, and [ErrStale] if an element that the call needs no longer exists anywhere: because the
// lost device alone had it, because a kernel has overwritten it, or because a device that holds a large array in windows dropped it
// and the caller has since changed the element on the host of an array that is not read. A [Batch] is [ErrStale] if only the lost
// device had results of its calls. Either all results reach host memory or none. A device that was reopened, see
// [gpu.Device.Reopen], takes part again from the next call on; its memory is empty then. [Cruncher.Evict] frees the device memory of
// arrays that are stale, so that they start again from the host.
//
// # Large arrays
//
// An array larger than a device can bind is held there in windows, each for one device's range of it. This needs PartialRead, or an
// array without Read; any other is [gpu.ErrLimit].
//
// # Device memory
//
// An array keeps its device memory until it is closed or garbage, or [Cruncher.Evict] is called. If a device has no memory for the
// next call, or at the limit of [WithMemory], the arrays used longest ago are evicted whose elements are also elsewhere.
//
// # What is undefined
//
//   - Values that a kernel reads of an array with PartialRead, or with neither, outside its device's own elements and their halo.
//   - Elements that a kernel writes outside those of its own item, except with WriteAll, and packed words that items share.
//   - Elements of a write-only array that no kernel writes.
//   - Memory that several arrays of a call share and more than one of them writes.
//   - Elements that exist on devices only and that kernels of a failed call write.
//   - Host memory that the caller uses during a call or a [Batch] that uses it.
package cruncher
