// SPDX-License-Identifier: Apache-2.0

// Package ndarray is arrays of any number of dimensions and any element type, in memory of a device or of the caller's, as
// CVM Runtime's NDArray and DLPack's DLTensor have them.
//
//	a, err := ndarray.FromSlice(dev, data, 2, 3)         // a copy on the device
//	w, err := ndarray.Wrap(dev, mine, []int{2, 3}, ndarray.Placement{})       // the caller's slice, not copied
//	t, err := a.Transpose()                              // a view
//	values, err := ndarray.Data[float32](ctx, t)         // in C order
//	p, err := ndarray.LoadParams(ctx, dev, file, ndarray.LoadOptions{}) // a model's parameters
//
// # Layout
//
// An array is a part of a [buffer.Buffer]: an element type, a shape, strides in elements and an offset in bytes. No
// dimension is one element, a dimension may be 0, strides may be negative. Copies go element by element in C order on both
// sides, whatever the strides; the reference ignores strides and copies what lies in memory.
//
// # References
//
// An [Array] is a handle. [Array.Share] makes another one of the same array, [Array.View], [Array.Slice] and their like
// make views: arrays of their own with the same memory. What is written through one of them is seen through all. Every
// handle is closed once; the last one of an array and of its views gives the memory back. A second Close does nothing, and
// a call on a closed handle is [gpu.ErrClosed]. [Array.Clone] makes an array that is written separately but shares the bits
// until then: the reference's documents promise such lazy copies, its code does not have them.
//
// # Goroutines
//
// Methods may be called from several goroutines. Arrays of one memory see all of what a call writes or nothing of it. A copy
// between two arrays first reads and then writes, [Save] reads in pieces, and kernels know nothing of arrays.
//
// # Errors
//
// Where the reference has undefined behaviour or ends in a failed check there is a typed error here, and a call that fails
// has changed nothing.
package ndarray
