// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// writer writes random kernels, whose invocations do not depend on each other but for barriers.
type writer struct {
	*rand.Rand
	b        strings.Builder
	names    []local
	next     int
	loops    int  // around
	depth    int  // of statements
	budget   int  // statements
	main     bool // the body of the entry point
	barriers bool
	invoked  int // invocations of a workgroup
}

// zeros are variables that the compiler does not know.
const zeros = "let z = arrayLength(&x) - 64u; let zi = i32(z); let zf = f32(z);\n"

type local struct {
	name, typ string
	fixed     bool
}

// kernel writes one: x has 64 floats, r eight words for each invocation.
func kernel(seed uint64, size string, invoked int) string {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 1)), invoked: invoked}
	w.barriers = w.IntN(3) == 0
	w.b.WriteString(`
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
var<private> pu: u32;
var<private> pa: array<f32, 4>;
var<workgroup> w: array<u32, ` + strconv.Itoa(invoked) + `>;
const T = array<u32, 5>(3u, 1u, 4u, 1u, 5u);
struct S { a: f32, b: vec2<u32>, c: array<u32, 3> }
fn bits(v: f32) -> u32 { if (v != v) { return 7u; } return bitcast<u32>(v); }
`)
	for _, f := range [][2]string{{"f0(a: u32, b: f32) -> u32", "u32"}, {"f1(v: vec3<f32>, a: i32) -> f32", "f32"}, {"f2(p: ptr<function, u32>, a: u32)", ""}} {
		w.names = []local{{"a", "u32", true}, {"b", "f32", true}}
		switch f[0][1] {
		case '1':
			w.names = []local{{"a", "i32", true}, {"v", "vec3<f32>", true}}
		case '2':
			w.names = []local{{"a", "u32", true}, {"(*p)", "u32", false}}
		}
		w.budget = 1 + w.IntN(6)
		w.b.WriteString("fn " + f[0] + " {\n" + zeros)
		w.block(f[1])
		if f[1] != "" {
			w.b.WriteString("return " + w.expr(f[1], 2) + ";\n")
		}
		w.b.WriteString("}\n")
	}
	w.main = true
	w.names = []local{{"n", "u32", true}, {"i", "u32", true}, {"l.y", "u32", true}, {"g.x", "u32", true}, {"pu", "u32", false}, {"pa", "array<f32, 4>", false}}
	w.names = append(w.names, local{"ua", "u32", false}, local{"ub", "u32", false}, local{"uc", "u32", false}, local{"fa", "f32", false}, local{"va", "vec3<f32>", false})
	w.budget = 10 + w.IntN(30)
	w.b.WriteString("@compute @workgroup_size(" + size + ")\nfn main(@builtin(local_invocation_id) l: vec3<u32>, @builtin(workgroup_id) g: vec3<u32>, " +
		"@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>) {\nlet n = g.x * " + strconv.Itoa(invoked) + "u + i;\nlet at = n * 8u;\n" + zeros + "r[at + 7u] = u32(x[0]);\n" +
		"var ua = i; var ub = z; var uc = z + 2u; var fa = zf; var va = vec3<f32>(zf);\n")
	w.block("")
	for _, l := range w.names[4:] {
		w.digest(l)
	}
	w.b.WriteString("r[at] ^= pu + bits(pa[n & 3u]);\n}\n")
	return w.b.String()
}

func (w *writer) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *writer) block(result string) {
	known := len(w.names)
	w.depth++
	for range 1 + w.IntN(5) {
		w.stmt(result)
	}
	w.depth--
	if w.main {
		for _, l := range w.names[known:] {
			if w.IntN(2) == 0 { // others may end with the loop that is the last to use them
				w.digest(l)
			}
		}
		if n := w.IntN(len(w.names)); n < known {
			w.digest(w.names[n])
		}
	}
	w.names = w.names[:known]
}

// digest has what is computed depend on a variable.
func (w *writer) digest(l local) {
	text := map[string]string{
		"u32": "#", "i32": "u32(#)", "f32": "bits(#)", "bool": "u32(#)", "vec2<u32>": "(#.x ^ #.y)", "vec3<f32>": "(bits(#.x) ^ bits(#.z))",
		"array<f32, 4>": "bits(#[pu & 3u])", "array<u32, 6>": "#[pu & 3u]", "S": "(#.c[1] ^ #.b.y)",
	}[l.typ]
	w.b.WriteString("pu = pu * 31u + " + strings.ReplaceAll(text, "#", l.name) + ";\n")
}

func (w *writer) name(typ string, fixed bool) string {
	w.next++
	n := "v" + strconv.Itoa(w.next)
	w.names = append(w.names, local{n, typ, fixed})
	return n
}

// find returns a name of a type.
func (w *writer) find(typ string, write bool) string {
	var list []string
	for _, l := range w.names {
		if l.typ == typ && (!write || !l.fixed) {
			list = append(list, l.name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return w.pick(list...)
}

var types = []string{"u32", "u32", "i32", "f32", "f32", "bool", "vec2<u32>", "vec3<f32>", "array<f32, 4>", "array<u32, 6>", "S"}

func (w *writer) stmt(result string) {
	if w.budget--; w.budget < 0 {
		return
	}
	p := func(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }
	switch w.IntN(21) {
	case 0, 1:
		t := w.pick(types...)
		e := w.expr(t, 3)
		p("var %s = %s;", w.name(t, false), e)
	case 2:
		t := w.pick(types...)
		e := w.expr(t, 3)
		p("let %s = %s;", w.name(t, true), e)
	case 3, 4, 5, 6, 16, 17:
		w.assign()
	case 7, 8:
		p("if (%s) {", w.expr("bool", 3))
		w.block(result)
		if w.IntN(2) == 0 {
			p("} else {")
			w.block(result)
		}
		p("}")
	case 9, 10, 11:
		w.loop(result)
	case 12:
		p("switch (%s) {", w.expr("u32", 1)+" & 3u")
		for c := range 3 {
			p([]string{"case 0u: {", "case 1u, 3u: {", "default: {"}[c])
			saved := w.loops
			w.loops += 100 // break is all right
			w.block(result)
			w.loops = saved
			p("}")
		}
		p("}")
	case 13, 18, 19, 20:
		switch k := w.IntN(4); {
		case w.loops%100 > 0 && k == 0:
			p("if (%s) { continue; }", w.expr("bool", 2))
		case w.loops > 0 && k < 3:
			p("if (%s) { break; }", w.expr("bool", 2))
		case w.IntN(3) > 0:
			w.assign()
		case result != "":
			p("if (%s) { return %s; }", w.expr("bool", 2), w.expr(result, 2))
		case !w.main || !w.barriers:
			p("if (%s) { return; }", w.expr("bool", 2))
		}
	case 14:
		if v := w.find("u32", true); (strings.HasPrefix(v, "v") || strings.HasPrefix(v, "u")) && w.main {
			p("f2(&%s, %s);", v, w.expr("u32", 2))
		}
	case 15:
		if w.main && w.barriers && w.depth == 1 {
			p("w[i] = %s; workgroupBarrier();", w.expr("u32", 2))
			p("let %s = w[(i + %du) %% %du]; workgroupBarrier();", w.name("u32", true), w.IntN(9), w.invoked)
		}
	}
}

func (w *writer) loop(result string) {
	p := func(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }
	known := len(w.names)
	w.loops++
	w.next++
	k := "k" + strconv.Itoa(w.next)
	bound := w.pick("3u", "5u", "(n & 7u)", "(g.x + 2u)", "(u32(a) & 3u)")
	if w.main != (bound[1] != 'u') {
		bound = "4u"
	}
	w.names = append(w.names, local{k, "u32", true})
	body := func() {
		w.block(result)
		if jump := w.pick("continue", "break", "", "return"); jump != "" && result == "" && (jump != "return" || !w.barriers) {
			p("if (%s) { %s; }", w.expr("bool", 2), jump)
			w.assign()
			w.assign()
		}
	}
	switch w.IntN(3) {
	case 0:
		p("for (var %s = %s; %s < %s + 2u; %s++) {", k, w.pick("0u", "1u", "0u"), k, bound, k)
		body()
		p("}")
	case 1:
		p("var %s = 0u; while (%s < %s) { %s += 1u;", k, k, bound, k)
		body()
		p("}")
	case 2:
		x := w.expr("u32", 2)
		own := w.name("u32", false)
		p("var %s = 0u; loop { var %s = %s;", k, own, x)
		body()
		p("continuing { %s += 1u;", k)
		w.digest(local{own, "u32", false})
		w.budget++
		w.assign()
		p("break if %s >= %s || %s; } }", k, bound, w.expr("bool", 1))
	}
	w.loops--
	w.names = append(w.names[:known], local{k, "u32", true})
	if w.b.String()[w.b.Len()-2] == '}' {
		w.names = w.names[:known]
	}
}

func (w *writer) assign() {
	p := func(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }
	if w.main && w.IntN(3) == 0 {
		p("r[at + %s] %s %s;", w.pick("1u", "2u", "3u", "("+w.expr("u32", 1)+" & 7u)"), w.pick("=", "+=", "^="), w.expr("u32", 2))
		return
	}
	to := w.names[w.IntN(len(w.names))]
	for range 4 {
		if to.fixed {
			to = w.names[w.IntN(len(w.names))]
		}
	}
	if to.fixed {
		return
	}
	v, t := to.name, to.typ
	switch {
	case strings.HasPrefix(t, "vec3") && w.IntN(2) == 0:
		p("%s%s = %s;", v, w.pick(".x", ".z", "[1]", "["+w.expr("u32", 1)+" % 3u]"), w.expr("f32", 2))
	case strings.HasPrefix(t, "array") && w.IntN(3) > 0:
		p("%s[%s] = %s;", v, w.expr("u32", 1), w.expr(t[6:9], 2))
	case t == "S" && w.IntN(3) > 0:
		f := w.IntN(4)
		p("%s.%s = %s;", v, []string{"a", "b", "b.y", "c[1]"}[f], w.expr([]string{"f32", "vec2<u32>", "u32", "u32"}[f], 2))
	default:
		p("%s = %s;", v, w.expr(t, 3))
	}
}

// expr writes an expression of a type.
func (w *writer) expr(t string, depth int) string {
	e := func(t string) string { return w.expr(t, depth-1) }
	if v := w.find(t, false); v != "" && w.IntN(2) == 0 {
		return v
	}
	if depth <= 0 {
		return w.leaf(t)
	}
	sum := func(ops ...string) string { return "(" + e(t) + " " + w.pick(ops...) + " " + e(t) + ")" }
	switch t {
	case "u32":
		return w.word(depth)
	case "i32":
		return w.pick(sum("+", "-", "*", "/", "%", "&", "|", "^"), "i32("+e("u32")+")", "clamp("+e(t)+", -3, 9)", "abs("+e(t)+")", "-"+e(t), "i32("+e("f32")+")", "("+e(t)+" >> "+e("u32")+")",
			"select("+e(t)+", "+e(t)+", "+e("bool")+")")
	case "f32":
		return w.pick(sum("+", "-", "*"), sum("/"), "x["+e("u32")+" & 63u]", w.element(), "sqrt(abs("+e(t)+"))", "floor("+e(t)+")", "f32("+e("u32")+" & 255u)",
			"f32("+e("i32")+")", "dot("+e("vec3<f32>")+", "+e("vec3<f32>")+")", e("vec3<f32>")+".y", "length("+e("vec3<f32>")+")", "distance("+e("vec3<f32>")+", "+e("vec3<f32>")+")", w.called("f1("+e("vec3<f32>")+", "+e("i32")+")", "1.0"), "sin("+e(t)+")",
			e("array<f32, 4>")+"["+e("u32")+" & 3u]", "select("+e(t)+", "+e(t)+", "+e("bool")+")", "-"+e(t), "mix("+e(t)+", "+e(t)+", 0.25)")
	case "bool":
		return w.pick("("+e("u32")+" "+w.pick("<", ">=", "==", "!=")+" "+e("u32")+")", "("+e("f32")+" < "+e("f32")+")", "("+e("i32")+" > "+e("i32")+")", sum("&&", "||", "&", "|"), "!"+e(t), "any("+e("vec2<u32>")+" == "+e("vec2<u32>")+")",
			"all("+e("vec3<f32>")+" < "+e("vec3<f32>")+")")
	case "vec2<u32>":
		return w.pick(sum("+", "*", "^"), "vec2<u32>("+e("u32")+", "+e("u32")+")", e(t)+".yx", "vec2<u32>("+e("u32")+")", "("+e(t)+" + "+e("u32")+")")
	case "vec3<f32>":
		return w.pick(sum("+", "-", "*"), "vec3<f32>("+e("f32")+", "+e("f32")+", "+e("f32")+")", e(t)+".zxy", "cross("+e(t)+", "+e(t)+")", "("+e(t)+" * "+e("f32")+")", "vec3<f32>("+e("f32")+")",
			"(mat3x3<f32>("+e(t)+", "+e(t)+", "+e(t)+") * "+e(t)+")", "select("+e(t)+", "+e(t)+", "+e(t)+" > "+e(t)+")")
	case "array<f32, 4>":
		return t + "(" + e("f32") + ", " + e("f32") + ", 2.5, " + e("f32") + ")"
	case "array<u32, 6>":
		return t + "(" + e("u32") + ", 1u, 2u, " + e("u32") + ", 9u, 7u)"
	}
	return "S(" + e("f32") + ", " + e("vec2<u32>") + ", array<u32, 3>(" + e("u32") + ", 5u, " + e("u32") + "))"
}

// element reads x near the invocation's number.
func (w *writer) element() string {
	return "x[" + w.pick(w.called("i", "z"), w.called("id.x", "z"), w.called("(i * 2u)", "3u"), "3u") + w.pick("", " + 1u", " & 31u") + "]"
}

// called is what only the entry point can have.
func (w *writer) called(text, other string) string {
	if w.main {
		return text
	}
	return other
}

func (w *writer) word(depth int) string {
	e := func(t string) string { return w.expr(t, depth-1) }
	list := []string{
		"(" + e("u32") + " " + w.pick("+", "-", "*", "/", "%", "&", "|", "^") + " " + e("u32") + ")", "(" + e("u32") + " " + w.pick("<<", ">>") + " " + e("u32") + ")", "u32(" + e("i32") + ")", "u32(" + e("f32") + ")",
		"min(" + e("u32") + ", " + e("u32") + ")", e("vec2<u32>") + ".x", "T[" + e("u32") + "]", "countOneBits(" + e("u32") + ")", "select(" + e("u32") + ", " + e("u32") + ", " + e("bool") + ")", "u32(" + e("bool") + ")",
		"extractBits(" + e("u32") + ", " + e("u32") + ", 7u)", "pack4xU8(vec4<u32>(" + e("vec2<u32>") + ", " + e("u32") + ", 3u))", w.called("f0("+e("u32")+", "+e("f32")+")", "2u"), e("array<u32, 6>") + "[" + e("u32") + "]",
		e("S") + ".c[" + e("u32") + " & 3u]", e("S") + ".b.y", "(" + e("u32") + " * 3u)", "(" + e("u32") + " + 1u)", "arrayLength(&x)", "insertBits(" + e("u32") + ", " + e("u32") + ", 3u, " + e("u32") + ")",
	}
	if w.main {
		list = append(list, "r[at + ("+e("u32")+" & 7u)]", "i", "id.x", "n", "pu")
	}
	return w.pick(list...)
}

func (w *writer) leaf(t string) string {
	switch t {
	case "u32":
		if w.main && w.IntN(2) == 0 {
			return w.pick("i", "n", "pu", "r[at]", w.find("u32", false))
		}
		return w.pick("z", "(1u + z)", "(7u - z)", "(31u ^ z)", "(0x80000001u + z)")
	case "i32":
		if w.main && w.IntN(2) == 0 {
			return w.pick("i32(i)", "i32(n & 3u)")
		}
		return w.pick("zi", "(zi - 1)", "(5 + zi)", "(zi - 0x7fffffff - 1)")
	case "f32":
		if w.main && w.IntN(2) == 0 {
			return w.pick("x[i]", "f32(n)", "x[n]")
		}
		return w.pick("zf", "(zf + 1.5)", "(zf - 2.25)", "(1e6 - zf)", "x[2]")
	case "bool":
		if w.main && w.IntN(2) == 0 {
			return w.pick("(i > 2u)", "(n % 3u == pu % 3u)")
		}
		return w.pick("true", "false", "(arrayLength(&x) > 3u)")
	case "vec2<u32>":
		return "vec2<u32>(z, z + 9u)"
	case "vec3<f32>":
		return "vec3<f32>(zf, zf - 2.0, zf + 0.5)"
	case "S":
		return "S(1.0, vec2<u32>(2u, 3u), array<u32, 3>(4u, 5u, 6u))"
	}
	return t + "()" // zeros
}
