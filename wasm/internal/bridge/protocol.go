// SPDX-License-Identifier: Apache-2.0

package bridge

// Op is an instruction of an expression.
type Op uint8

// The instructions and the words after their header: x and y are numbers of values. The other instructions are the
// element-wise operations by their codes in package fuse, which begin at 32; their operands follow.
const (
	OpLeaf       Op = 1 + iota // handle
	OpScalar                   // bits of the number, in the type that is computed in
	OpFill                     // bits rows cols: a matrix of one number
	OpTranspose                // x
	OpSlice                    // x i k j l: rows i to k-1, columns j to l-1
	OpReshape                  // x rows cols
	OpCast                     // x: to the instruction's element type
	OpMatMul                   // x y
	OpCall                     // function x...
	OpReduce                   // x what axis: numbers of matrix.Reduction and matrix.Axis
	OpSoftmax                  // x
	OpLogSoftmax               // x
)
