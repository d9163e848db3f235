// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// AnyExpr is an [Expr] whose element type is known only when the program runs, or an [Any] in its place. Operands must
// agree in it: [ErrInvalid] otherwise. The zero value is an error.
type AnyExpr struct{ n *node }

// Expr returns the matrix as an operand.
func (m *Any) Expr() AnyExpr {
	if err := m.usable("Expr"); err != nil {
		return AnyExpr{errorNode(err)}
	}
	return AnyExpr{m.node()}
}

// AnyScalar is a 1x1 constant. bits are those of the number in the type that is computed in: of a float32 for [Float16].
func AnyScalar(t DType, bits uint32) AnyExpr { return AnyFill(t, 1, 1, bits) }

// AnyFill is a matrix of one number; see [AnyScalar].
func AnyFill(t DType, rows, cols int, bits uint32) AnyExpr {
	if err := checkVirtual("Fill", rows, cols); err != nil {
		return AnyExpr{errorNode(err)}
	}
	return AnyExpr{&node{kind: kindScalar, t: fuse.Type(t), rows: rows, cols: cols, bits: bits}}
}

func (x AnyExpr) node(op string) *node {
	if x.n == nil {
		return errorNode(fail(op, ErrNil, "nil expression"))
	}
	return x.n
}

// Err returns the error the expression was built with, or nil.
func (x AnyExpr) Err() error { return x.node("Err").err }

// DType returns the element type.
func (x AnyExpr) DType() DType { return DType(x.node("DType").t) }

// Dims returns the size of the result.
func (x AnyExpr) Dims() (rows, cols int) {
	n := x.node("Dims")
	return n.rows, n.cols
}

// AnyMap applies an element-wise operation, one of those of package fuse that a kernel can be made of.
func AnyMap(op fuse.Op, args ...AnyExpr) AnyExpr {
	name := op.String()
	if op <= fuse.OpCall || op.Arity() != len(args) {
		return AnyExpr{errorNode(fail(name, ErrInvalid, itoa(len(args)), " operands"))}
	}
	var buf [3]*node
	nodes, err := sameType(name, buf[:0], args)
	if err != nil {
		return AnyExpr{errorNode(err)}
	}
	return AnyExpr{mapNode(name, op, nodes...)}
}

// AnyApply applies a function of the user's.
func AnyApply(f *Func, args ...AnyExpr) AnyExpr {
	const op = "Apply"
	if err := f.Err(); err != nil {
		return AnyExpr{errorNode(err)}
	}
	if len(args) != f.arity {
		return AnyExpr{errorNode(fail(op, ErrInvalid, itoa(len(args)), " arguments for ", f.name, ", which takes ", itoa(f.arity)))}
	}
	nodes, err := sameType(op, nil, args)
	if err != nil {
		return AnyExpr{errorNode(err)}
	}
	n := join(op, nodes...)
	if n.err != nil {
		return AnyExpr{n}
	}
	n.kind, n.call, n.op = kindCall, f, fuse.OpCall
	return AnyExpr{n.broadcast(op)}
}

// sameType returns the nodes of operands of one element type.
func sameType(op string, nodes []*node, args []AnyExpr) ([]*node, error) {
	for _, a := range args {
		n := a.node(op)
		switch {
		case n.err != nil:
			return nil, n.err
		case len(nodes) > 0 && n.t != nodes[0].t:
			return nil, fail(op, ErrInvalid, DType(nodes[0].t).String(), " with ", DType(n.t).String())
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// Mul is the matrix product.
func (x AnyExpr) Mul(y AnyExpr) AnyExpr {
	nodes, err := sameType("Mul", nil, []AnyExpr{x, y})
	if err != nil {
		return AnyExpr{errorNode(err)}
	}
	return AnyExpr{productNode("Mul", nodes[0], nodes[1])}
}

// T is the transpose.
func (x AnyExpr) T() AnyExpr { return AnyExpr{transpose("T", x.node("T"))} }

// Convert converts to another element type, as [Convert] does.
func (x AnyExpr) Convert(t DType) AnyExpr {
	const op = "Convert"
	n := join(op, x.node(op))
	if n.err != nil || t > Float16 {
		return AnyExpr{n}
	}
	n.kind, n.op, n.t = kindMap, fuse.OpAcc, fuse.Type(t)
	return AnyExpr{n.broadcast(op)}
}

// Reduction names what [AnyExpr.Reduce] computes, and Axis along what.
type (
	Reduction = reduction
	Axis      = axis
)

// The reductions and the axes.
const (
	ReduceSum  = reduceSum
	ReduceMax  = reduceMax
	ReduceMin  = reduceMin
	ReduceProd = reduceProd

	AxisAll  = axisAll  // one value
	AxisRows = axisRows // one value per row, a column
	AxisCols = axisCols // one value per column, a row
)

// Reduce is a sum or the like.
func (x AnyExpr) Reduce(what Reduction, along Axis) AnyExpr {
	const op = "Reduce"
	if what > ReduceProd || along > AxisCols {
		return AnyExpr{errorNode(fail(op, ErrInvalid, "no such reduction"))}
	}
	return AnyExpr{reduceNode(op, what, along, x.node(op))}
}

// Softmax is [Softmax], or with log set [LogSoftmax].
func (x AnyExpr) Softmax(log bool) AnyExpr {
	const op = "Softmax"
	n := join(op, x.node(op))
	if n.err != nil {
		return AnyExpr{n}
	}
	if !fuse.OpExp.Takes(n.t) {
		return AnyExpr{errorNode(fail(op, ErrUnsupported, "not defined for ", DType(n.t).String()))}
	}
	n.kind, n.log, n.rows, n.cols = kindSoftmax, log, n.args[0].rows, n.args[0].cols
	return AnyExpr{n}
}

// Matrix returns the matrix or the part of one that the expression is, or nil if it is to be computed.
func (x AnyExpr) Matrix() *AnyPart {
	n, flip := resolve(x.node("Matrix"), false)
	if n.err != nil || n.kind != kindLeaf {
		return nil
	}
	if !flip {
		return &AnyPart{n.leaf}
	}
	part := *n.leaf
	part.layout, part.view = part.layout.t(), true
	return &AnyPart{&part}
}

// AnyPart is an [Any] or a part of one. It does not keep the memory alive.
type AnyPart struct{ m *Any }

// Slice returns rows i to k-1 and columns j to l-1.
func (p *AnyPart) Slice(i, k, j, l int) AnyExpr {
	b := p.m.layout
	if i < 0 || k < i || k > b.rows || j < 0 || l < j || l > b.cols {
		return AnyExpr{errorNode(fail("Slice", ErrIndex, "rows ", itoa(i), ":", itoa(k), ", columns ", itoa(j), ":", itoa(l), " of ", b.shape().String()))}
	}
	return p.derive(b.slice(i, k, j, l))
}

// Reshape returns a view of another size. The elements must lie row by row without gaps: see [AnyPart.InRows].
func (p *AnyPart) Reshape(rows, cols int) AnyExpr {
	const op = "Reshape"
	b := p.m.layout
	if err := checkDims(op, rows, cols); err != nil {
		return AnyExpr{errorNode(err)}
	}
	if rows*cols != b.rows*b.cols {
		return AnyExpr{errorNode(shapeError(op, b.shape(), gpu.Shape{rows, cols}))}
	}
	if !p.InRows() {
		return AnyExpr{errorNode(fail(op, ErrStride, "the matrix has gaps"))}
	}
	return p.derive(layout{rows: rows, cols: cols, offset: b.offset, stride: cols})
}

func (p *AnyPart) derive(l layout) AnyExpr {
	if err := p.m.usable("view"); err != nil {
		return AnyExpr{errorNode(err)}
	}
	part := *p.m
	part.layout, part.view = l, true
	return AnyExpr{part.node()}
}

// Expr returns the part as an operand.
func (p *AnyPart) Expr() AnyExpr { return AnyExpr{p.m.node()} }

// InRows reports whether the elements lie row by row without gaps.
func (p *AnyPart) InRows() bool {
	l := p.m.layout
	row, col := l.steps()
	return l.empty() || (l.cols == 1 || col == 1) && (l.rows == 1 || row == l.cols)
}

// Offset returns how many elements of the buffer lie before the first.
func (p *AnyPart) Offset() int { return p.m.offset }

// Buffer returns the memory, which stays its owner's.
func (p *AnyPart) Buffer() *buffer.Buffer { return p.m.buf }

// Assign queues a computation into the matrix or the part, as [Dense.Assign] does.
func (p *AnyPart) Assign(x AnyExpr) error {
	const op = "Assign"
	n := x.node(op)
	if n.err != nil {
		return n.err
	}
	if err := p.m.usable(op); err != nil {
		return err
	}
	if n.t != p.m.t {
		return fail(op, ErrInvalid, DType(n.t).String(), " to ", DType(p.m.t).String())
	}
	return p.m.assign(op, n)
}

// Eval queues the expression and returns the result as a new owned matrix.
func (x AnyExpr) Eval() (*Any, error) {
	n := x.node("Eval")
	if n.err != nil {
		return nil, n.err
	}
	m := &Any{}
	m.t = n.t
	if err := m.assign("Eval", n); err != nil {
		return nil, err
	}
	return m, nil
}
