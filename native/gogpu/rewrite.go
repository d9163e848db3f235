// SPDX-License-Identifier: Apache-2.0

package gogpu

import "github.com/gogpu/naga/ir"

// rewriter replaces expressions of a function. It appends their operands, as the order of expressions means nothing to what reads them.
type rewriter struct {
	m *ir.Module
	f *ir.Function
}

var (
	boolean = ir.ScalarType{Kind: ir.ScalarBool, Width: 1}
	word    = ir.ScalarType{Kind: ir.ScalarUint, Width: 4}
)

func (r rewriter) all() {
	for i := range r.f.Expressions {
		switch e := r.f.Expressions[i].Kind.(type) {
		case ir.ExprRelational:
			r.f.Expressions[i].Kind = r.relation(e)
		case ir.ExprMath:
			if e.Fun == ir.MathAbs && r.unsigned(e.Arg) { // which is taken for a signed number
				r.f.Expressions[i].Kind = ir.ExprBinary{Op: ir.BinaryInclusiveOr, Left: e.Arg, Right: e.Arg}
			}
		case ir.ExprAccess:
			r.f.Expressions[i].Kind = r.within(e)
		}
	}
}

func (r rewriter) add(kind ir.ExpressionKind, of ir.TypeInner) ir.ExpressionHandle {
	r.f.Expressions = append(r.f.Expressions, ir.Expression{Kind: kind})
	r.f.ExpressionTypes = append(r.f.ExpressionTypes, ir.TypeResolution{Value: of})
	return ir.ExpressionHandle(len(r.f.Expressions) - 1)
}

func (r rewriter) typeOf(e ir.ExpressionHandle) ir.TypeInner {
	t := r.f.ExpressionTypes[e]
	if t.Handle != nil {
		return r.m.Types[*t.Handle].Inner
	}
	return t.Value
}

func (r rewriter) unsigned(e ir.ExpressionHandle) bool {
	switch t := r.typeOf(e).(type) {
	case ir.ScalarType:
		return t.Kind == ir.ScalarUint
	case ir.VectorType:
		return t.Scalar.Kind == ir.ScalarUint
	}
	return false
}

// relation is all() or any() as logical operations.
func (r rewriter) relation(e ir.ExprRelational) ir.ExpressionKind {
	op := ir.BinaryLogicalOr
	switch e.Fun {
	case ir.RelationalAll:
		op = ir.BinaryLogicalAnd
	case ir.RelationalAny:
	default:
		return e
	}
	v, ok := r.typeOf(e.Argument).(ir.VectorType)
	if !ok {
		return ir.ExprBinary{Op: op, Left: e.Argument, Right: e.Argument}
	}
	left := r.add(ir.ExprAccessIndex{Base: e.Argument}, boolean)
	for c := uint32(1); ; c++ {
		both := ir.ExprBinary{Op: op, Left: left, Right: r.add(ir.ExprAccessIndex{Base: e.Argument, Index: c}, boolean)}
		if c == uint32(v.Size)-1 {
			return both
		}
		left = r.add(both, boolean)
	}
}

// within holds the index of an access to its bounds, but for those of buffers, which Vulkan does.
func (r rewriter) within(e ir.ExprAccess) ir.ExprAccess {
	t := r.typeOf(e.Base)
	if p, ok := t.(ir.PointerType); ok {
		if p.Space != ir.SpaceFunction && p.Space != ir.SpacePrivate && p.Space != ir.SpaceWorkGroup {
			return e
		}
		t = r.m.Types[p.Base].Inner
	}
	length := uint32(0)
	switch t := t.(type) {
	case ir.ArrayType:
		if t.Size.Constant != nil {
			length = *t.Size.Constant
		}
	case ir.VectorType:
		length = uint32(t.Size)
	case ir.MatrixType:
		length = uint32(t.Columns)
	}
	if length == 0 {
		return e
	}
	if !r.unsigned(e.Index) {
		e.Index = r.add(ir.ExprAs{Expr: e.Index, Kind: ir.ScalarUint}, word) // a negative number is a large one
	}
	last := r.add(ir.Literal{Value: ir.LiteralU32(length - 1)}, word)
	e.Index = r.add(ir.ExprMath{Fun: ir.MathMin, Arg: e.Index, Arg1: &last}, word)
	return e
}
