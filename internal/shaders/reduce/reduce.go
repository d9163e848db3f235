// SPDX-License-Identifier: Apache-2.0

// Package reduce holds the kernels that fold the rows or the columns of a function of matrices: sums, products, maxima
// and minima. Large folds take two passes: the first leaves partial results, which the second folds.
package reduce

import (
	_ "embed"
	"encoding/binary"
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

//go:embed rows.wgsl
var rowsSource string

//go:embed tree.wgsl
var treeSource string

//go:embed cols.wgsl
var colsSource string

// Op is what a fold computes.
type Op uint8

// The folds. NaN wins in Max and Min.
const (
	Sum Op = iota
	Max
	Min
	Prod
)

// Form is a kernel of this package.
type Form uint8

// The forms. Rows and Tree fold rows, Tree with workgroup memory; Cols folds columns.
const (
	Rows Form = iota
	Tree
	Cols
)

var formNames = [...]string{"rows", "tree", "cols"}

// Spec is what the text of a kernel depends on, beside the function.
type Spec struct {
	Form Form
	Op   Op
	Wide uint8 // Cols: vectors of a row that an invocation takes
}

// Workgroup sizes, and how many invocations are enough to keep a device busy. Hardware takes many times what software
// takes, where more only make the second pass longer.
const (
	laneSize     = 64
	treeSize     = 256
	softwareBusy = 512
	hardwareBusy = 1 << 16
	turns        = shaders.LoopLimit / 2 // loop turns of an invocation
	alone        = 256                   // vectors, or rows, that one invocation folds without a second pass
	manyVectors  = 64                    // of a row, that an invocation of a software adapter takes four of
)

// Pass is one launch over rows x cols elements. It leaves a Parts-wide row of partial results for each row (Rows, Tree),
// or Parts rows of them (Cols); with Parts 1 they are final.
type Pass struct {
	Spec   Spec
	Parts  int
	Groups [3]uint32
	Shape  [4]uint32
}

// PlanRows plans a pass that folds rows. software avoids workgroup memory.
func PlanRows(op Op, rows, cols int, software bool) Pass {
	vectors := max(shaders.Ceil(cols, 4), 1)
	shape := func(parts int) [4]uint32 { return [4]uint32{uint32(rows), uint32(cols), uint32(parts)} }
	if software {
		parts := 1
		if vectors > alone {
			parts = min(shaders.Ceil(softwareBusy, max(rows, 1)), shaders.Ceil(vectors, 16))
		}
		parts = max(parts, shaders.Ceil(vectors, turns), 1)
		return Pass{Spec{Form: Rows, Op: op}, parts, shaders.Fold(shaders.Ceil(rows*parts, laneSize)), shape(parts)}
	}
	parts := min(shaders.Ceil(hardwareBusy/treeSize, max(rows, 1)), shaders.Ceil(vectors, 4*treeSize))
	parts = max(parts, shaders.Ceil(vectors, turns*treeSize), 1)
	return Pass{Spec{Form: Tree, Op: op}, parts, shaders.Fold(rows * parts), shape(parts)}
}

// PlanCols plans a pass that folds columns.
func PlanCols(op Op, rows, cols int, software bool) Pass {
	across := max(shaders.Ceil(cols, 4), 1)
	busy, wide := hardwareBusy, 1
	if software {
		busy = softwareBusy
		if across >= manyVectors {
			wide = 4
		}
	}
	lanes := shaders.Ceil(across, wide)
	parts := 1
	if rows > alone {
		parts = min(shaders.Ceil(busy, lanes), shaders.Ceil(rows, 8))
	}
	parts = max(parts, shaders.Ceil(rows, turns), 1)
	s := Spec{Form: Cols, Op: op, Wide: uint8(wide)}
	shape := [4]uint32{uint32(rows), uint32(cols), uint32(parts), uint32(across)}
	return Pass{s, parts, shaders.Fold(shaders.Ceil(lanes*parts, laneSize)), shape}
}

// Build writes the kernel's text.
func Build(s Spec, f *fuse.Func) (shaders.Program, error) {
	source := [...]string{rowsSource, treeSource, colsSource}[s.Form]
	var params []shaders.Param
	if s.Form == Cols {
		params = append(params, shaders.Uint("WIDE", max(int(s.Wide), 1)))
	}
	fused := f.Text(1, false) + foldText(s.Op, f.Type)
	return plan.Program("reduce/"+formNames[s.Form], source, fused, f, reference{s, f}, nil, params...)
}

// foldText writes identity and combine. The identities are made from bits at run time: compilers refuse constants that
// are not finite.
func foldText(op Op, t fuse.Type) string {
	identity, combine := "V()", "x + y"
	switch {
	case op == Prod:
		identity, combine = "V(T(1))", "x * y"
	case op == Sum:
	case t == fuse.F32:
		return extremeFloat(op)
	case op == Max:
		identity, combine = "V()", "max(x, y)"
		if t == fuse.I32 {
			identity = "V(i32(-2147483647) - 1)"
		}
	case op == Min:
		identity, combine = "V(2147483647)", "min(x, y)"
		if t == fuse.U32 {
			identity = "V(4294967295u)"
		}
	}
	return "fn identity() -> V { return " + identity + "; }\nfn combine(x: V, y: V) -> V { return " + combine + "; }\n"
}

func extremeFloat(op Op) string {
	bits, less := "0x7f800000u", "x < y"
	if op == Max {
		bits, less = "0xff800000u", "x > y"
	}
	return "fn identity() -> V { return bitcast<V>(vec4<u32>(" + bits + " | (p.shape.rows & 0u))); }\n" +
		"fn combine(x: V, y: V) -> V {\n" +
		"  let nan = (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);\n" +
		"  return select(y, x, (" + less + ") | nan);\n}\n"
}

type reference struct {
	s Spec
	f *fuse.Func
}

// Run implements [shaders.Reference].
func (t reference) Run(_ [3]uint32, params []byte, storage [][]byte) {
	word := func(i int) int { return int(binary.LittleEndian.Uint32(params[4*i:])) }
	rows, cols, parts := word(0), word(1), word(2)
	switch t.f.Type {
	case fuse.F32:
		run[float32](t.s, t.f, rows, cols, parts, params[16:], storage)
	case fuse.I32:
		run[int32](t.s, t.f, rows, cols, parts, params[16:], storage)
	default:
		run[uint32](t.s, t.f, rows, cols, parts, params[16:], storage)
	}
}

func run[N fuse.Num](s Spec, f *fuse.Func, rows, cols, parts int, params []byte, storage [][]byte) {
	e, ok := fuse.NewEval[N](f, params, storage)
	if !ok {
		return
	}
	if s.Form == Cols {
		foldCols(s.Op, e, rows, cols, parts)
		return
	}
	row := make([]N, cols)
	held := make([]float64, parts)
	out := make([]N, parts)
	for i := range rows {
		clear(row)
		e.Apply(i, 0, row)
		for k := range held {
			held[k] = start[N](s.Op)
		}
		for j, v := range row {
			k := j / 4 % parts
			held[k] = fold(s.Op, held[k], v)
		}
		for k, h := range held {
			out[k] = finish[N](h)
		}
		e.Store(i, 0, out)
	}
}

func foldCols[N fuse.Num](op Op, e *fuse.Eval[N], rows, cols, parts int) {
	row := make([]N, cols)
	out := make([]N, cols)
	held := make([]float64, cols)
	for part := range parts {
		for j := range held {
			held[j] = start[N](op)
		}
		for i := part; i < rows; i += parts {
			clear(row)
			e.Apply(i, 0, row)
			for j, v := range row {
				held[j] = fold(op, held[j], v)
			}
		}
		for j, h := range held {
			out[j] = finish[N](h)
		}
		e.Store(part, 0, out)
	}
}

// start is the identity. Folds are computed in float64, to be a reference; integers wrap at every step, which float64
// holds exactly.
func start[N fuse.Num](op Op) float64 {
	var z N
	switch op {
	case Prod:
		return 1
	case Max:
		switch any(z).(type) {
		case float32:
			return math.Inf(-1)
		case int32:
			return math.MinInt32
		}
	case Min:
		switch any(z).(type) {
		case float32:
			return math.Inf(1)
		case int32:
			return math.MaxInt32
		}
		return math.MaxUint32
	}
	return 0
}

func fold[N fuse.Num](op Op, h float64, v N) float64 {
	x := float64(v)
	switch op {
	case Max:
		return max(h, x)
	case Min:
		return min(h, x)
	}
	if _, float := any(v).(float32); !float {
		n := finish[N](h)
		if op == Sum {
			return float64(n + v)
		}
		return float64(n * v)
	}
	if op == Sum {
		return h + x
	}
	return h * x
}

func finish[N fuse.Num](h float64) N { return N(h) }
