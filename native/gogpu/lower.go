// SPDX-License-Identifier: Apache-2.0

package gogpu

import "github.com/gogpu/naga/ir"

// lowerRelations puts logical operations in the place of all() and any(), which the library's SPIR-V cannot say.
func lowerRelations(m *ir.Module) {
	for i := range m.Functions {
		lowerFunction(m, &m.Functions[i])
	}
	for i := range m.EntryPoints {
		lowerFunction(m, &m.EntryPoints[i].Function)
	}
}

// lowerFunction appends the operands of the operations, as the order of expressions has no meaning to what reads them.
func lowerFunction(m *ir.Module, f *ir.Function) {
	boolean := ir.TypeResolution{Value: ir.ScalarType{Kind: ir.ScalarBool, Width: 1}}
	add := func(kind ir.ExpressionKind) ir.ExpressionHandle {
		f.Expressions = append(f.Expressions, ir.Expression{Kind: kind})
		f.ExpressionTypes = append(f.ExpressionTypes, boolean)
		return ir.ExpressionHandle(len(f.Expressions) - 1)
	}
	for i := range f.Expressions {
		r, ok := f.Expressions[i].Kind.(ir.ExprRelational)
		if !ok {
			continue
		}
		op := ir.BinaryLogicalOr
		switch r.Fun {
		case ir.RelationalAll:
			op = ir.BinaryLogicalAnd
		case ir.RelationalAny:
		default:
			continue
		}
		operands := []ir.ExpressionHandle{r.Argument}
		if v, ok := inner(m, f.ExpressionTypes[r.Argument]).(ir.VectorType); ok {
			operands = operands[:0]
			for c := range uint32(v.Size) {
				operands = append(operands, add(ir.ExprAccessIndex{Base: r.Argument, Index: c}))
			}
		}
		last := len(operands) - 1
		left := operands[0]
		for k := 1; k < last; k++ {
			left = add(ir.ExprBinary{Op: op, Left: left, Right: operands[k]})
		}
		f.Expressions[i].Kind = ir.ExprBinary{Op: op, Left: left, Right: operands[last]}
	}
}

func inner(m *ir.Module, t ir.TypeResolution) ir.TypeInner {
	if t.Handle != nil {
		return m.Types[*t.Handle].Inner
	}
	return t.Value
}
