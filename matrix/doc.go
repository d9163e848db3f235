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
// # Views
//
// [Dense.T], [Dense.Slice], [Dense.Row], [Dense.Reshape] and others return views: matrices of their own in the same memory. A view
// keeps the memory alive, also when its parent is closed, and is closed like any matrix. While it is open its parent cannot be
// resized ([ErrView]): not by [Dense.Resize], nor by [Dense.SetValue] or an assignment of another size. A view itself never changes
// size. A parent that takes over other memory ([Dense.SetValueFrom] with buffer.DontOwnBuffer, [Dense.Take], [Dense.Reset]) leaves
// its views the memory that they show.
//
// A view that stands in an expression, as in Mul(a.T(), b), need not be closed and does not keep its parent from being resized; once
// that has happened it is [ErrView]. An alias ([Dense.Alias]) counts like a view, and always until it is closed.
//
// # Errors
//
// An error names the call that failed and says on what: "matrix: Mul: 2x3 by 5x6: dimension mismatch". Errors of the layers
// underneath come under the name of the call of this package; compare sentinels with errors.Is. An expression keeps the error of the
// function that could not build it. What a device refuses later, a batch for which there is no memory, is the error of whoever uses
// a matrix that the batch was to write, and names the batch's last kernels. [gpu.WithDebug] logs what happens.
//
// # Precision
//
// float32 arithmetic is IEEE 754 single precision except that devices may flush subnormal numbers to zero. Products
// satisfy |c - exact| <= k * 2^-24 * sum |a||b|. Functions are within the units in the last place that their documentation
// names on every device, where the result is a normal number: they are computed with the library's own polynomials, most
// after Cephes and FreeBSD, since WGSL promises less. Half matrices are computed in float32 and rounded when stored.
//
// NaN in is NaN out, except for comparisons, choices and a power whose base is 1 or whose exponent is 0. Outside of their
// domain functions are NaN, at their poles infinite, as in C; sin, cos and tan are accurate for arguments of any size.
//
// WGSL lets a compiler take (a + b) - a for b, and NaN for something that does not happen. Sums, differences and roots are
// written so that it finds no such thing: a - a is NaN where a is infinite, and sums that compensate for rounding work. Some
// compilers take (a / b) * b for a in one kernel. In functions of the caller's they may do all that; `sublet info` shows
// what an adapter does there.
package matrix
