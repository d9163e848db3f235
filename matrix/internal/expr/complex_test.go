// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/ops"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// TestOfComplex compares what operations make of complex numbers with what the table of operations says, for JavaScript too.
func TestOfComplex(t *testing.T) {
	z := expr.NewComplex("z", expr.NewConversion("re", fuse.F32, expr.NewIndex("i", 2, 3, fuse.AxisRows)),
		expr.NewConversion("im", fuse.F32, expr.NewIndex("j", 2, 3, fuse.AxisCols)))
	says := func(name, want string, n *expr.Node) {
		switch {
		case want == "" && !errors.Is(n.Err, fault.ErrUnsupported):
			t.Errorf("%s of complex numbers, which the table does not have: %v, %v", name, n.Type, n.Err)
		case want != "" && (n.Err != nil || n.Type.String() != want):
			t.Errorf("%s of complex numbers is %v, %v, want %s", name, n.Type, n.Err, want)
		}
	}
	elementwise, reductions := 0, 0
	for _, o := range ops.Table {
		switch o.Class {
		case ops.Unary, ops.Binary, ops.Ternary, ops.Limits:
			args := []*expr.Node{z, z, z}[:o.Arity()]
			says(o.Code, o.OfComplex(), expr.NewMap(o.Code, fuse.Op(ops.FirstCode+elementwise), args...))
			elementwise++
		case ops.Reduction:
			a := z
			if norm := o.Name[:min(len(o.Name), 4)] == "Norm"; norm || o.Name == "AnyNonzero" || o.Name == "AllNonzero" { // of real numbers, which package matrix makes first
				a = expr.NewMap(o.Name, fuse.OpAbs, z)
			}
			says(o.Name, o.OfComplex(), expr.NewReduction(o.Name, fuse.Reduction(reductions), fuse.AxisAll, 1, a))
			reductions++
		}
	}
	if elementwise == 0 || reductions == 0 {
		t.Error("no operations")
	}
}
