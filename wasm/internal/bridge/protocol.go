// SPDX-License-Identifier: Apache-2.0

package bridge

// Command is what a message asks for. Keep in step with web/src/protocol.mjs.
type Command uint8

// The commands and the words after their header. form is the element type | the order << 8 | padded << 9 | input row by row
// << 10, object the number of something on the page's side, expr an expression. source is memory to make a matrix from:
// flags of package buffer | "a GPUBuffer" << 8, form, rows, cols, offset, stride, object, bytes.
const (
	CmdNew    Command = 1 + iota // handle form rows cols offset stride: zeros
	CmdData                      // handle object bytes: replaces all of the matrix, in its order in memory
	CmdFrom                      // handle source
	CmdAlias                     // handle of: another matrix of the same memory
	CmdEval                      // handle expr: a new matrix
	CmdAssign                    // value expr: into the matrix that is the value of that number
	CmdRead                      // ticket object bytes expr: into memory of the page, row by row
	CmdSync                      // ticket handle: results of wrapped memory are in it
	CmdTouch                     // handle: wrapped memory has changed
	CmdClose                     // handle ticket: reports when the memory is not used any more, with ticket 0 nobody cares
	CmdFunc                      // function object: its text
	CmdForget                    // function
	CmdFlush                     // hands what is queued to the device
	CmdWait                      // ticket: reports when everything is done
	CmdBuffer                    // ticket handle: reports the matrix's GPUBuffer
	CmdEnd                       // closes the device

	// Those that change the size or the memory of a matrix: the matrix of the handle from becomes that of another, and stays
	// where it is if the command fails. The ticket hears of either end.
	CmdSetValue // ticket handle from expr
	CmdSetFrom  // ticket handle from source
	CmdResize   // ticket handle from rows cols
	CmdSetShape // ticket handle from rows cols

	CmdLocation // ticket handle: reports where the current bits are

	// Sparse matrices. format is the element type | the format << 8 | "memory of the page" << 16.
	CmdSparse       // handle format rows cols values bytes indices count pointers count
	CmdColumns      // handle of start n: a column slice
	CmdValues       // handle of: its values as a dense matrix
	CmdAppend       // handle i j bits
	CmdSparseEval   // handle of [expr]: its product with the expression, or itself as a dense matrix
	CmdSparseAssign // value of expr: the same into the matrix that is that value, the factor being the last one if another
	CmdSparseRead   // ticket handle values bytes indices count pointers count
	CmdSparseTouch  // handle indices count pointers count: wrapped memory has changed

	// Parameter dictionaries; see params.go. limit and size are numbers of 64 bits, the low word first, -1 for none. text is a
	// description of tensors, see tensors.go; for each of them there is a handle or, with 0 for it, an object.
	CmdLoad        // ticket handle flags limit size: a file that is read from what is passed; reports a description
	CmdSave        // ticket handle flags text bytes [of object bytes]: a file that is written into what is passed
	CmdPass        // ticket handle object bytes: memory for such a file; reports what is next
	CmdTake        // ticket handle [handle]: gives the arrays that were loaded to these handles
	CmdArrayRead   // ticket handle object bytes: an array's elements
	CmdArrayMatrix // handle of form rows cols: a matrix of an array's memory

	CmdReopen // ticket object: brings a lost device back, with object 0 or the page's next one; reports it

	cmdEnd
)

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

// Limits of what JavaScript may send.
const (
	maxHandle = 1 << 22 // matrices, and functions, at a time
	maxValues = 1 << 16 // of one expression
)
