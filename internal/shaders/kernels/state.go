// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// What a reduction folds is its state: for most a value, for others several planes of four bytes, such as the count, the mean
// and the squares of what was seen. Partial results are states: a pass that is not the last one writes their planes one below
// the other, as bits, and the next one reads those.

// fold is what the text of a fold depends on beside its function.
type fold struct {
	op   fuse.Reduction
	of   fuse.Type // what is folded, computed in this
	next bool      // it reads partial results
	last bool      // its results are final
}

// Fold says what a launch folds.
type Fold struct {
	Op      fuse.Reduction
	Of      fuse.Type // the element type
	Partial bool      // the operand is partial results: states
	Down    int       // the index of an element: that of its row times Down
	Along   int       // and that of its column times Along
	Number  float64   // finishes results: what sums are multiplied by, or the inverse of a norm's power
}

// pass is the fold of a pass whose results are final or not.
func (f *Fold) pass(last bool) fold { return fold{f.Op, f.Of.Compute(), f.Partial, last} }

// Planes returns how many planes the state of a reduction has, 0 for one that is a value.
func (f *Fold) Planes() int { return len(f.pass(true).state().planes) }

// shape appends the words of the shape that folds have beyond those of their kernel.
func (f *Fold) shape(words ...int) []int {
	return append(words, f.Down, f.Along, int(math.Float32bits(float32(f.Number))))
}

// state is the texts of a reduction. In them x and y are states with the planes a, b and c, v is a vector of elements, E its type,
// NAN a vector of NaN and n the number.
type state struct {
	planes                     []fuse.Type // of the state; none for a value
	start, lift, merge, finish string
	result                     fuse.Type
}

var (
	floats  = fuse.F32
	welford = state{
		planes: []fuse.Type{floats, floats, floats}, start: "E(), E(), E()",
		lift: "E(1.0), v, select(E(), NAN, (bitcast<vec4<u32>>(v) & vec4<u32>(0x7f800000u)) == vec4<u32>(0x7f800000u))",
		// Chan's way to merge counts, means and sums of squares of differences from them. One of them may be of nothing.
		merge: "let n = x.a + y.a;\nlet w = y.a / max(n, E(1.0));\nlet d = y.b - x.b;\n" +
			"return S(n, select(x.b + d * w, y.b, x.a == E()), x.c + y.c + select(d * (d * (x.a * w)), E(), min(x.a, y.a) == E()));",
		finish: "x.c * n",
	}
	exponentials = state{
		planes: []fuse.Type{floats, floats}, start: "-INF, E()",
		lift: "select(v, -INF, nan4(v)), select(E(1.0), NAN, nan4(v))",
		merge: "let t = max(x.a, y.a);\n" +
			"return S(t, x.b * select(EXP(x.a - t), E(1.0), x.a == t) + y.b * select(EXP(y.a - t), E(1.0), y.a == t));",
		finish: "x.a + LOG(x.b)",
	}
	counts = state{
		planes: []fuse.Type{fuse.I32}, start: "vec4<i32>()", lift: "select(vec4<i32>(1), vec4<i32>(), v == E())",
		merge: "return S(x.a + y.a);", finish: "x.a", result: fuse.I32,
	}
)

// extreme is the state of the place of the largest or the smallest element: it and its index, which is none at first. The first
// one of several wins, and NaN does before all others.
func extreme(of fuse.Type, better string) state {
	better = "(y.a " + better + " x.a)"
	same := "(y.a == x.a)"
	if of == floats {
		better += " | (nan4(y.a) & !nan4(x.a))"
		same = "(" + same + " | (nan4(x.a) & nan4(y.a)))"
	}
	return state{
		planes: []fuse.Type{of, fuse.U32}, start: "E(), vec4<u32>(0xffffffffu)", lift: "v, at",
		merge: "let none = vec4<u32>(0xffffffffu);\n" +
			"let take = (y.b != none) & ((x.b == none) | " + better + " | (" + same + " & (y.b < x.b)));\n" +
			"return S(select(x.a, y.a, take), select(x.b, y.b, take));",
		finish: "x.b", result: fuse.I32,
	}
}

// state returns the texts of the reduction; for one whose state is a value only how it is finished.
func (f fold) state() state {
	switch f.op {
	case fuse.ReduceMean:
		return state{finish: "x * n"}
	case fuse.ReduceNorm2:
		return state{finish: "sqrt(x * n)"}
	case fuse.ReduceNormP:
		return state{finish: "POW(x, n)"}
	case fuse.ReduceVar:
		return welford
	case fuse.ReduceStd:
		s := welford
		s.finish = "sqrt(x.c * n)"
		return s
	case fuse.ReduceLogSumExp:
		return exponentials
	case fuse.ReduceCountNonzero:
		return counts
	case fuse.ReduceArgMax:
		return extreme(f.of, ">")
	case fuse.ReduceArgMin:
		return extreme(f.of, "<")
	}
	return state{finish: "x"}
}

// Bits reports whether a launch writes bits.
func (f *Fold) Bits() bool { return f.Planes() > 0 }

// kind is the operation that merges values, and starts with its identity.
func (f fold) kind() fuse.Reduction {
	switch f.op {
	case fuse.ReduceMax, fuse.ReduceMin, fuse.ReduceProd, fuse.ReduceNormInf, fuse.ReduceAnyNonzero, fuse.ReduceAllNonzero:
		return f.op
	}
	return fuse.ReduceSum
}

// merging returns the element-wise operation that merges values.
func (f fold) merging() fuse.Op {
	switch f.kind() {
	case fuse.ReduceMax, fuse.ReduceNormInf, fuse.ReduceAnyNonzero:
		return fuse.OpMax
	case fuse.ReduceMin, fuse.ReduceAllNonzero:
		return fuse.OpMin
	case fuse.ReduceProd:
		return fuse.OpMul
	}
	return fuse.OpAdd
}

// identity returns the bits of the value to start with.
func (f fold) identity() uint32 {
	row := [3]uint32{}
	switch f.kind() {
	case fuse.ReduceMax:
		row = [3]uint32{fuse.F32: 0xff800000, fuse.I32: 1 << 31, fuse.U32: 0}
	case fuse.ReduceMin:
		row = [3]uint32{fuse.F32: 0x7f800000, fuse.I32: math.MaxInt32, fuse.U32: math.MaxUint32}
	case fuse.ReduceProd, fuse.ReduceAllNonzero:
		row = [3]uint32{fuse.F32: 0x3f800000, fuse.I32: 1, fuse.U32: 1}
	}
	return row[f.of]
}

// Identity returns the result of folding nothing: the bits of an element of the type that results have.
func (f *Fold) Identity() uint32 {
	switch f.Op {
	case fuse.ReduceMean, fuse.ReduceVar, fuse.ReduceStd:
		return nan
	case fuse.ReduceLogSumExp:
		return 0xff800000
	}
	return f.pass(true).identity()
}

// made names a vector of four with the bits that do not change; compilers refuse constants that are not finite.
func made(t fuse.Type, bits uint32) string {
	return t.FromBits("vec4<"+t.WGSL()+">") + "(vec4<u32>(" + strconv.FormatUint(uint64(bits), 10) + "u | (p.shape.rows & 0u)))"
}

// words replaces the words of states, none of which another one brings. A strings.Replacer costs pages 3 KB.
func (f fold) words(text string) string {
	for _, word := range [...][2]string{
		{"NAN", made(floats, nan)},
		{"-INF", made(floats, 0xff800000)},
		{"EXP(x.a - t)", fuse.OpExp.Text(floats, "(x.a - t)")},
		{"EXP(y.a - t)", fuse.OpExp.Text(floats, "(y.a - t)")},
		{"LOG(x.b)", fuse.OpLog.Text(floats, "x.b")},
		{"POW(x, n)", fuse.OpPow.Text(floats, "x", "n")},
		{"E(", "vec4<" + f.of.WGSL() + ">("},
	} {
		text = strings.ReplaceAll(text, word[0], word[1])
	}
	return text
}

// text writes the state and what is done with it.
func (f fold) text() string {
	s := f.state()
	finish := s.finish
	if !f.last {
		finish = "x"
	}
	if len(s.planes) > 0 {
		return f.words(f.planesText(s))
	}
	combine := f.merging().Text(f.of, "x", "y")
	number := ""
	if strings.Contains(finish, "n") {
		number = "  let n = V(bitcast<f32>(p.shape.number));\n"
	}
	return f.words(shaders.Fill("alias S = V;\nfn identity() -> S { return $0; }\nfn combine(x: S, y: S) -> S { return $1; }\n"+
		"fn load(f: Fixed, i: u32, j: u32) -> S { return apply(f, i, j, V()); }\n"+
		"fn leading(s: S, n: u32) -> S { return select(identity(), s, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }\n"+
		"fn folded(s: S) -> S {\n  let h = combine(V(s.x, s.y, s.x, s.y), V(s.z, s.w, s.z, s.w));\n  return combine(h, V(h.y));\n}\n"+
		"fn put(f: Fixed, i: u32, j: u32, count: u32, x: S, height: u32) {\n$2  store(f, i, j, count, $3);\n}\n",
		made(f.of, f.identity()), combine, number, finish))
}

// planesText is text of a state of several planes.
func (f fold) planesText(s state) string {
	names := []string{"a", "b", "c"}[:len(s.planes)]
	each := func(pattern string) string { // $0 is the plane, $1 its type, $2 its number, $3 what makes it of bits
		parts := make([]string, len(names))
		for k, name := range names {
			t := s.planes[k]
			parts[k] = shaders.Fill(pattern, name, "vec4<"+t.WGSL()+">", strconv.Itoa(k), t.FromBits("vec4<"+t.WGSL()+">"))
		}
		return strings.Join(parts, ", ")
	}
	bits := func(t fuse.Type, x string) string {
		if t == fuse.U32 {
			return x
		}
		return "bitcast<vec4<u32>>(" + x + ")"
	}
	load := "  let v = apply(f, i, j, V());\n" +
		"  let at = vec4<u32>(i * p.shape.down + j * p.shape.along) + vec4<u32>(0u, 1u, 2u, 3u) * p.shape.along;\n" +
		"  return S(" + s.lift + ");\n"
	if f.next {
		load = "  return S(" + each("$3(apply(f, i + $2u * p.shape.rows, j, V()))") + ");\n"
	} else if f.op != fuse.ReduceArgMax && f.op != fuse.ReduceArgMin {
		load = "  let v = apply(f, i, j, V());\n  return S(" + s.lift + ");\n"
	}
	put := ""
	if f.last {
		last := s.result
		if s.finish == "x.b" {
			last = fuse.U32
		}
		put = "  let n = vec4<f32>(bitcast<f32>(p.shape.number));\n  store(f, i, j, count, " + bits(last, "("+s.finish+")") + ");\n"
	} else {
		var w strings.Builder
		for k, name := range names {
			w.WriteString(shaders.Fill("  store(f, i + $0u * height, j, count, $1);\n", strconv.Itoa(k), bits(s.planes[k], "x."+name)))
		}
		put = w.String()
	}
	return "struct S { " + each("$0: $1") + " }\nfn identity() -> S { return S(" + s.start + "); }\n" +
		"fn combine(x: S, y: S) -> S {\n" + s.merge + "\n}\n" +
		"fn load(f: Fixed, i: u32, j: u32) -> S {\n" + load + "}\n" +
		"fn leading(s: S, n: u32) -> S {\n  let mask = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n);\n  let none = identity();\n" +
		"  return S(" + each("select(none.$0, s.$0, mask)") + ");\n}\n" +
		"fn folded(s: S) -> S {\n  let h = combine(S(" + each("s.$0.xyxy") + "), S(" + each("s.$0.zwzw") + "));\n" +
		"  return combine(h, S(" + each("h.$0.yyyy") + "));\n}\n" +
		"fn put(f: Fixed, i: u32, j: u32, count: u32, x: S, height: u32) {\n" + put + "}\n"
}
