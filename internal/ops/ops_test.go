// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/ops"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// elementWise returns the operations that package fuse computes, in the order of their codes.
func elementWise() (list []ops.Operation) {
	for _, o := range ops.Table {
		if o.WGSL != "" {
			list = append(list, o)
		}
	}
	return list
}

// TestTable checks that names are unique and that rows are complete.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	unique := func(kind, name string) {
		if name != "" && seen[kind+name] {
			t.Errorf("two operations are %s in %s", name, kind)
		}
		seen[kind+name] = true
	}
	groups := map[string]bool{}
	for _, g := range ops.Groups {
		groups[g.Title] = true
	}
	for _, o := range ops.Table {
		unique("Go ", o.Every)
		unique("JavaScript ", o.JS)
		for _, name := range o.Text {
			unique("Eval ", name)
		}
		fused := o.Class >= ops.Unary && o.Class <= ops.Limits
		if fused {
			unique("the codes", o.Code)
		}
		if fused != (o.WGSL != "") || fused != (o.Go != "") {
			t.Errorf("%s: the texts do not fit the class", o.Code)
		}
		if o.Name != "" && (o.Doc == "" || !groups[o.Group]) {
			t.Errorf("%s: no documentation, or no group", o.Name)
		}
		if o.JS != "" && !strings.Contains(o.Example().Call, " -> ") {
			t.Errorf("%s: no example", o.JS)
		}
		if n := len(strings.Split(o.Gradient, "; ")); o.Gradient != "" && n != o.Arity() {
			t.Errorf("%s: %d derivatives for %d operands", o.Name, n, o.Arity())
		}
	}
	if n := len(elementWise()); ops.FirstCode+n > 256 {
		t.Errorf("%d element-wise operations: a code is a byte", n)
	}
}

// TestGradients compares the derivatives with differences of the reference.
func TestGradients(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i, o := range elementWise() {
		op := fuse.Op(ops.FirstCode + i)
		for k, text := range strings.Split(o.Gradient, "; ") {
			if text == "" {
				continue
			}
			tree, err := parser.ParseExpr(text)
			if err != nil {
				t.Fatalf("%s: %v", o.Name, err)
			}
			compared := 0
			for range 200 {
				x := [3]float64{rnd.NormFloat64(), rnd.NormFloat64(), rnd.NormFloat64()}
				slope := func(h float64) float64 {
					up, down := x, x
					up[k] += h
					down[k] -= h
					return (compute(op, up) - compute(op, down)) / (2 * h)
				}
				want := slope(1e-6)
				if jump := math.Abs(want-slope(5e-7)) > 1e-3*max(1, math.Abs(want)); jump || math.IsNaN(want) {
					continue
				}
				compared++
				got, err := evaluate(tree, map[string]float64{"a": x[0], "b": x[1], "c": x[2], "y": compute(op, x)})
				if err != nil {
					t.Fatalf("%s: %s: %v", o.Name, text, err)
				}
				if math.Abs(got-want) > 1e-5*max(1, math.Abs(want)*math.Abs(want)) {
					t.Fatalf("%s: derivative %d at %v is %g, want %g", o.Name, k, x, got, want)
				}
			}
			if compared < 20 {
				t.Errorf("%s: derivative %d was compared at %d places", o.Name, k, compared)
			}
		}
	}
}

func compute(op fuse.Op, x [3]float64) float64 {
	var r [1]float64
	fuse.Compute(op, r[:], x[:1], x[1:2], x[2:])
	return r[0]
}

// operators are those of matrix.Eval between single elements.
var operators = map[token.Token]fuse.Op{
	token.ADD: fuse.OpAdd, token.SUB: fuse.OpSub, token.REM: fuse.OpMul, token.MUL: fuse.OpMul, token.QUO: fuse.OpDiv,
	token.EQL: fuse.OpEq, token.NEQ: fuse.OpNe, token.LSS: fuse.OpLt, token.LEQ: fuse.OpLe, token.GTR: fuse.OpGt, token.GEQ: fuse.OpGe,
	token.LAND: fuse.OpAnd, token.LOR: fuse.OpOr,
}

// evaluate computes an expression of matrix.Eval with single elements.
func evaluate(n ast.Expr, vars map[string]float64) (float64, error) {
	list := func(op fuse.Op, args ...ast.Expr) (float64, error) {
		var x [3]float64
		for i, a := range args {
			v, err := evaluate(a, vars)
			if err != nil {
				return 0, err
			}
			x[i] = v
		}
		return compute(op, x), nil
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		return evaluate(n.X, vars)
	case *ast.BasicLit:
		return strconv.ParseFloat(n.Value, 64)
	case *ast.Ident:
		if v, ok := vars[n.Name]; ok {
			return v, nil
		}
		return 0, fmt.Errorf("no operand %s", n.Name)
	case *ast.UnaryExpr:
		if n.Op == token.SUB {
			return list(fuse.OpNeg, n.X)
		}
	case *ast.BinaryExpr:
		if op, ok := operators[n.Op]; ok {
			return list(op, n.X, n.Y)
		}
	case *ast.CallExpr:
		for i, o := range elementWise() {
			if name, ok := n.Fun.(*ast.Ident); ok && strings.Contains(" "+strings.Join(o.Text, " ")+" ", " "+name.Name+" ") {
				return list(fuse.Op(ops.FirstCode+i), n.Args...)
			}
		}
	}
	return 0, fmt.Errorf("cannot compute %T", n)
}
