// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Two of the element-wise operations.
const (
	OpUnary  = Op(fuse.OpNeg)
	OpBinary = Op(fuse.OpAdd)
)

// OpNumbers returns the instructions by JavaScript's names.
func OpNumbers() map[string]int {
	return map[string]int{
		"Leaf": int(OpLeaf), "Scalar": int(OpScalar), "Fill": int(OpFill), "Transpose": int(OpTranspose), "Slice": int(OpSlice),
		"Reshape": int(OpReshape), "Cast": int(OpCast), "MatMul": int(OpMatMul), "Call": int(OpCall), "Reduce": int(OpReduce),
		"Softmax": int(OpSoftmax), "LogSoftmax": int(OpLogSoftmax), "Hardmax": int(OpHardmax),
		"Sort": int(OpSort), "ArgSort": int(OpArgSort), "TopK": int(OpTopK), "ArgTopK": int(OpArgTopK),
		"CumSum": int(OpCumSum), "CumProd": int(OpCumProd), "Shape": int(OpShape), "With": int(OpWith),
		"Tensor": int(OpTensor), "Layer": int(OpLayer),
	}
}

// ElementWiseNumbers returns the element-wise operations that JavaScript has, by its names in small letters.
func ElementWiseNumbers() map[string]int {
	numbers := map[string]int{}
	for op := fuse.OpNeg; op.Arity() > 0; op++ {
		numbers[op.String()] = int(op)
	}
	return numbers
}
