// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/tensor"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// The kinds of OpTensor and the numbers behind the shapes of the operands. JavaScript puts everything else together from these and the
// instructions of matrices: a reduction along dimensions is a permutation and one of rows.
const (
	tensorPermute   = iota // axes: dimension i of the result is dimension axes[i]
	tensorSlice            // from to, of the first dimensions
	tensorBroadcast        // sizes
	tensorZip              // operation: element by element, with broadcasting
	tensorMatMul           // products of the matrices in the last two dimensions
)

type anyTensor = tensor.Tensor[matrix.Any]

// tensor decodes an operation on tensors. The value is a matrix whose columns are the last dimension.
func (p *program) tensor() anyExpr {
	kind, count := p.index(), p.index()
	args := p.some(count)
	list := make([]*anyTensor, len(args))
	for i, x := range args {
		n := p.Word()
		list[i] = tensor.New(x, p.sizes(n)...)
	}
	operands := 1
	if kind == tensorMatMul {
		operands = 2
	}
	if len(list) != count || kind != tensorZip && count != operands {
		page.Invalid("a tensor operation of " + itoa(count) + " operands")
	}
	switch kind {
	case tensorPermute:
		return list[0].Permute(p.sizes(maxValues)...).Expr()
	case tensorSlice:
		var ranges [][2]int
		for p.Left() {
			ranges = append(ranges, [2]int{p.index(), p.index()})
		}
		return list[0].Slice(ranges...).Expr()
	case tensorBroadcast:
		return list[0].Broadcast(p.sizes(maxValues)...).Expr()
	case tensorZip:
		return zip(fuse.Op(min(p.Word(), 255)), list).Expr()
	case tensorMatMul:
		return tensor.MatMul(list[0], list[1]).Expr()
	}
	page.Invalid("tensor operation " + itoa(kind))
	return nil
}

// sizes reads up to n numbers of 32 bits.
func (p *program) sizes(n uint32) (list []int) {
	for ; n > 0 && p.Left(); n-- {
		list = append(list, p.index())
	}
	return list
}

// zip applies an element-wise operation of two or three operands.
func zip(op fuse.Op, list []*anyTensor) *anyTensor {
	switch len(list) {
	case 2:
		return tensor.Zip(func(a, b anyArg) anyExpr { return matrix.Elementwise(op, a, b) }, list[0], list[1])
	case 3:
		return tensor.Zip3(func(a, b, c anyArg) anyExpr { return matrix.Elementwise(op, a, b, c) }, list[0], list[1], list[2])
	}
	page.Invalid("an element-wise operation of " + itoa(len(list)) + " tensors")
	return nil
}
