// SPDX-License-Identifier: Apache-2.0

// Package matrix computes with matrices in GPU memory, which the library or the caller owns.
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
// element-wise chain becomes one kernel, as does a product with the element-wise operations on its result, or a reduction with
// those on its operand. Other expressions become several kernels with temporaries in between. An expression of the same form and
// sizes is planned once; new sizes and numbers compile nothing. Receivers are destinations, as in gonum: c.Mul(a, b) is
// c.Assign(matrix.Mul(a, b)).
//
// An expression is rewritten before it is planned, depending on sizes alone:
//
//   - A chain of products, also through transposes, is computed in the order with the fewest multiplications, then the fewest bytes.
//   - Scalar factors and signs of a product's operands are applied to its result.
//   - A part of an expression is computed from parts of its operands: Slice(Mul(a, b), ...) from some rows of a and columns of b. So
//     are the sums, means, trace and diagonal of a product.
//   - Mul(Inverse(a), b) becomes a solution of linear equations.
//   - Operations without effect are dropped.
//
// A subexpression that occurs several times is computed once, and a product among them is not rewritten for one of its uses.
// [Expr.Explain] shows the result. If the order of a chain matters, because a product overflows in one order and not in another,
// compute that product first by [Expr.Eval].
//
// A [Program] is a list of assignments of fixed sizes that is planned and compiled once and run any number of times. [Sparse] matrices
// can be operands of every expression; [Expr.Sparse] says which results are sparse. Package matrix/tensor has arrays of more
// dimensions.
//
// A [DeviceGroup], made by [On], computes one assignment on several devices at once.
//
// # Aliasing
//
// The destination may be an operand, overlap one, or be a transpose of one. The result is the same as in separate memory; a
// temporary is used where that is necessary. Overlap is found by address and not by the identity of matrices, so this also holds for
// matrices that were wrapped separately around overlapping memory of the caller.
//
// # Memory of the caller
//
// A matrix made by [Wrap] or [WrapBuffer] is never resized, freed or moved. Host memory goes to the device
// when a kernel first reads it and again only after [Dense.Touch]; [Dense.Sync] copies the bytes back that kernels wrote. The device's
// Stats count every byte. The calls that change which memory a matrix uses, [FromBuffer], [Dense.SetValueFrom], [Dense.SetValue],
// [Dense.Take] and others, behave like those of CNTK and Blaze; FEATURES.md lists them row by row.
//
// # Views
//
// [Dense.T], [Dense.Slice], [Dense.Row], [Dense.Reshape] and others return views: matrices of their own in the same memory. A view
// keeps the memory alive, also when its parent is closed, and is closed like any matrix. While it is open its parent cannot be
// resized ([ErrView]): not by [Dense.Resize], nor by [Dense.SetValue] or an assignment of another size. A view itself never changes
// size. If a parent changes to other memory ([Dense.SetValueFrom] with buffer.DontOwnBuffer, [Dense.Take], [Dense.Reset]), its views
// keep the former memory.
//
// A view in an expression, as in Mul(a.T(), b), need not be closed and does not prevent its parent from being resized, after which it
// is [ErrView]. An alias ([Dense.Alias]) prevents it until it is closed, also in an expression.
//
// # Errors
//
// An error names the failed call and its operands, and says what would fit: "matrix: Mul: 2x3 by 5x6: dimension mismatch: the second
// factor needs 3 rows". Errors of lower layers are returned under the name of this package's call; compare sentinels with errors.Is. An
// expression carries the error of the function that could not build it. If the device refuses a batch later, for lack of memory for
// example, calls that use a matrix which the batch should have written return that error, with the names of the batch's last kernels.
// [gpu.WithDebug] logs what happens.
//
// # Precision
//
// float32 arithmetic is IEEE 754 single precision except that devices may flush subnormal numbers to zero. Products
// satisfy |c - exact| <= k * 2^-24 * sum |a||b|, where k is the number of terms. For a chain of products k is the sum of the inner
// dimensions plus the number of scalar factors, in whatever order the chain is computed; the last digits may depend on the order. If an
// operand has infinities or NaN, the same elements of the result are infinite or NaN in every order, but an element may be infinite in
// one and NaN in another; zeros may differ in sign. Functions whose result is a normal number are within the number of units in the last
// place that their documentation names, on every device: they use the library's own polynomials, most after Cephes and FreeBSD, since
// WGSL promises less. Half matrices are computed in float32 and rounded when stored or converted to.
//
// [Norm2] and [NormP] add powers in float32 without scaling. They overflow where a power does, [Norm2] from elements of 1.8e19 on, and
// lose elements whose power underflows, below 1e-19. gonum's norms scale; so does Scale(m, Norm2(Scale(1/m, a))) with m near the largest
// element.
//
// NaN in an operand makes the result NaN, except for comparisons, choices and a power whose base is 1 or whose exponent is 0. As in C,
// functions are NaN outside of their domain and infinite at their poles; sin, cos and tan are accurate for arguments of any size.
//
// WGSL allows compilers to simplify (a + b) - a to b and to assume that NaN and infinities do not occur. The library's sums, differences
// and roots are written so that this has no effect: a - a is NaN where a is infinite, and compensated summation works. Some compilers
// simplify (a / b) * b to a within one kernel. In the caller's own functions compilers may do all of this; `sublet info` shows what an
// adapter does.
package matrix
