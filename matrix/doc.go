// SPDX-License-Identifier: Apache-2.0

// Package matrix does matrix mathematics in the memory of a GPU, whoever owns that memory.
//
//	a, err := matrix.FromSlice(dev, rows, cols, data) // a copy on the device
//	x, err := matrix.Wrap(dev, rows, cols, mine)      // the caller's slice, not copied
//	err = y.Assign(matrix.Mul(a, x).Add(bias).Tanh()) // queued, one kernel
//	values, err := y.Read(ctx)                        // waits
//
// A [Dense] is a view of a buffer: dimensions, an offset, a stride and an order, which [Options] choose. [Dense.Slice],
// [Dense.T] and others make views of the same memory; nothing moves. Sizes start at 0 and nothing is special about multiples
// of 4; a matrix and the gaps between its rows may span up to 4294967295 elements. The elements of a Dense of [Any] have a
// type that is known at run time only.
//
// # Expressions
//
// Functions such as [Mul], [Add] and [Sum] build an [Expr] and check shapes at once. [Dense.Assign] runs it: an
// element-wise chain becomes one kernel, a product takes the element-wise operations on it as its tail, a reduction
// those under it as its head. What cannot be one kernel becomes several with temporaries in between. An expression of the
// same shape and sizes is planned once, and new sizes and numbers compile nothing. Receivers are destinations, as in
// gonum: c.Mul(a, b) is c.Assign(matrix.Mul(a, b)).
//
// # Aliasing
//
// The destination may be an operand, overlap one, or be a transpose of one. The result is what it would be if the
// destination were elsewhere; where that needs a temporary, one is used. This is decided by the memory, not by the
// identity of the matrices; so it is for matrices wrapped separately around overlapping memory of the caller's.
//
// # Memory of others
//
// A matrix made by [Wrap] or [WrapBuffer] is never resized, freed or moved. Host memory goes to the device
// when a kernel first reads it and again only after [Dense.Touch]; results come back at [Dense.Sync], and only what was
// written. The device's Stats count every byte. The calls that change whose memory a matrix uses, [FromBuffer],
// [Dense.SetValueFrom], [Dense.SetValue], [Dense.Take] and others, follow CNTK's and Blaze's contracts; FEATURES.md has them
// row by row.
//
// # Precision
//
// float32 arithmetic is IEEE 754 single precision except that devices may flush subnormal numbers to zero. Products
// satisfy |c - exact| <= k * 2^-24 * sum |a||b|. exp, log, tanh and sigmoid are within a few units in the last place on
// every device: they are computed with the library's own polynomials, after Cephes, since WGSL promises less. Half
// matrices are computed in float32 and rounded when stored.
package matrix
