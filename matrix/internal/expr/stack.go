// SPDX-License-Identifier: Apache-2.0

package expr

import "github.com/sublet-gpu/sublet/internal/fault"

// Stack says how the matrices of a stack lie in an operand.
type Stack struct {
	Count  int
	Inner  int     // StackProduct: the columns of the left matrices and rows of the right ones
	Turned [2]bool // the matrices of an operand are read transposed
	Of     *Node   // Gather: the operand of which it has the matrices, or the rows as matrices
}

// NewStackProduct builds the products of the matrices of two stacks, count each, below each other. Stacks of transposes are read where
// they are, and so are matrices that are each a row of another one.
func NewStackProduct(op string, count int, a, b *Node) *Node {
	n := (&Node{Kind: StackProduct, Stack: &Stack{Count: count, Inner: a.Cols}}).join(op, []*Node{a, b})
	if n.Err != nil {
		return n
	}
	a, b = n.Args[0], n.Args[1]
	n.Rows, n.Cols = a.Rows, b.Cols
	switch {
	case a.Rows%max(count, 1) != 0, count == 0 && a.Rows > 0:
		return Misfit(op, FitsStack(count), a, b)
	case b.Rows != a.Cols*count:
		return Misfit(op, fault.Needs("the second stack", a.Cols*count, "row"), a, b)
	}
	if err := CheckDims(op, n.Rows, n.Cols); err != nil {
		return Failed(err)
	}
	for i, x := range n.Args {
		if s := x.stackOf(count); s != nil && s.Turned[0] {
			n.Stack.Turned[i], x = true, s.Of
		}
		if s := x.stackOf(count); s != nil && !s.Turned[0] {
			x = s.Of
		}
		n.Args[i] = x
	}
	return n
}

// stackOf says of what a node reads so many matrices, nil if it does not.
func (n *Node) stackOf(count int) *Stack {
	if n.Kind == Gather && n.Stack != nil && n.Stack.Count == count {
		return n.Stack
	}
	return nil
}
