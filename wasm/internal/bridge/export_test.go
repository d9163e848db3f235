// SPDX-License-Identifier: Apache-2.0

package bridge

import "strings"

// Copied returns how many bytes of the page's memory are held in copies.
func (b *Bridge) Copied() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.copied
}

// OpNumbers returns the operations by JavaScript's names.
func OpNumbers() map[string]int {
	numbers := map[string]int{
		"Leaf": int(OpLeaf), "Scalar": int(OpScalar), "Fill": int(OpFill), "Transpose": int(OpTranspose), "Slice": int(OpSlice),
		"Reshape": int(OpReshape), "Cast": int(OpCast), "MatMul": int(OpMatMul), "Where": int(OpWhere), "Clamp": int(OpClamp),
		"Call": int(OpCall), "Reduce": int(OpReduce), "Softmax": int(OpSoftmax), "LogSoftmax": int(OpLogSoftmax),
	}
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	for i, op := range unary {
		numbers[title(op.String())] = int(OpUnary) + i
	}
	for i, op := range binary {
		numbers[title(op.String())] = int(OpBinary) + i
	}
	return numbers
}
