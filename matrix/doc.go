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
// Before it is planned an expression is rewritten, by sizes alone: a chain of products, also through transposes, is computed in the
// order of the fewest multiplications, and of those of the fewest bytes; numbers that a product's factor is multiplied or divided by, and
// its sign, go to the product's tail; a part of an expression is computed of parts of its operands, as Slice(Mul(a, b), ...) of some rows
// of a and some columns of b; so are sums, means and the trace of a product and its diagonal; Mul(Inverse(a), b) solves; operations
// that change nothing go. What stands in several places of an expression is computed once, and no product is taken apart for one of
// them. [Expr.Explain] shows what is left. A matrix is computed as it stands: where the order matters, because a product in between
// overflows in one and not in another, [Expr.Eval] of that product decides it.
//
// A [Program] is assignments, of fixed sizes, that are planned and compiled once and computed again and again. [Sparse] matrices stand in every
// expression, and results stay sparse where the mathematics does: see [Expr.Sparse]. Arrays of more dimensions are package
// matrix/tensor.
//
// A [DeviceGroup], made by [On], computes one assignment on several devices at once.
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
// An error names the call that failed, says on what, and what would fit: "matrix: Mul: 2x3 by 5x6: dimension mismatch: the second factor
// needs 3 rows". Errors of the layers underneath come under the name of the call of this package; compare sentinels with errors.Is. An
// expression keeps the error of the function that could not build it. What a device refuses later, a batch for which there is no memory, is
// the error of whoever uses a matrix that the batch was to write, and names the batch's last kernels. [gpu.WithDebug] logs what happens.
//
// # Precision
//
// float32 arithmetic is IEEE 754 single precision except that devices may flush subnormal numbers to zero. Products
// satisfy |c - exact| <= k * 2^-24 * sum |a||b|. Of a chain of products k is the sum of the lengths that are summed over, and one
// more for each number that it is multiplied by, in whatever order they are computed; the last places may depend on the order. Where an
// operand is infinite or NaN the same elements of the result are infinite or NaN in each order, though one may be the other; zeros
// may have the other sign. Functions are within the units in the last place that their documentation
// names on every device, where the result is a normal number: they are computed with the library's own polynomials, most
// after Cephes and FreeBSD, since WGSL promises less. Half matrices are computed in float32 and rounded when stored.
//
// [Norm2] and [NormP] add powers up in float32, unscaled: they are infinite where a power is, for [Norm2] from elements of 1.8e19 on, and
// lose elements whose power is 0, below 1e-19. gonum's norms scale; so does Scale(m, Norm2(Scale(1/m, a))) with m near the largest element.
//
// NaN in is NaN out, except for comparisons, choices and a power whose base is 1 or whose exponent is 0. Outside of their
// domain functions are NaN, at their poles infinite, as in C; sin, cos and tan are accurate for arguments of any size.
//
// WGSL lets a compiler take (a + b) - a for b, and NaN for something that does not happen. Sums, differences and roots are
// written so that it finds no such thing: a - a is NaN where a is infinite, and sums that compensate for rounding work. Some
// compilers take (a / b) * b for a in one kernel. In functions of the caller's they may do all that; `sublet info` shows
// what an adapter does there.
package matrix
