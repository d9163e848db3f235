// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
)

// program is the body of main, after declarations, for four invocations i; x has the numbers 1 to 8, of u what is wanted of r.
type program struct {
	name, before, body string
	want               []uint32
}

func f(v ...float32) (list []uint32) {
	for _, x := range v {
		list = append(list, math.Float32bits(x))
	}
	return list
}

func u(v ...uint32) []uint32 { return v }

var programs = []program{
	{"for", "", "var s = 0u; for (var k = 0u; k <= i; k++) { s += x[k]; } r[i] = s;", u(1, 3, 6, 10)},
	{"nothing to repeat", "", "var s = 7u; for (var k = 5u; k < i; k++) { s += 1u; } r[i] = s;", u(7, 7, 7, 7)},
	{"while", "", "var n = i + 5u; var c = 0u; while (n > 1u) { if (n % 2u == 0u) { n /= 2u; } else { n = 3u * n + 1u; } c++; } r[i] = c;", u(5, 8, 16, 3)},
	{"continue", "", "var s = 0u; for (var k = 0u; k < 8u; k++) { if (k % 3u == i % 3u) { continue; } s += x[k]; } r[i] = s;", u(24, 21, 27, 24)},
	{"break", "", "var k = 0u; loop { if (x[k] > i + 2u) { break; } k++; } r[i] = k;", u(2, 3, 4, 5)},
	{"break if", "", "var k = 0u; var s = 1u; loop { s *= 2u; continuing { k++; break if k > i; } } r[i] = s;", u(2, 4, 8, 16)},
	{"continue with continuing", "", "var k = 0u; var s = 0u; loop { if (k == 2u) { continue; } s += k; continuing { k++; break if k > i + 1u; } } r[i] = s;", u(1, 1, 4, 8)},
	{"nested", "", "var s = 0u; for (var a = 0u; a < 4u; a++) { for (var b = 0u; b < 4u; b++) { if (b > a) { break; } if (a == i) { continue; } s += 10u * a + b; } } r[i] = s;", u(210, 189, 147, 84)},
	{"break after continue", "", "var s = 0u; for (var k = 0u; k < 6u; k++) { if (k == i) { continue; } if (k == 3u) { break; } s += x[k]; } r[i] = s;", u(5, 4, 3, 17)},
	{"return after break", "", "var k = 0u; for (; k < 6u; k++) { if (k == i) { break; } if (k == 2u) { r[i] = 77u; return; } } r[i] = k;", u(0, 1, 2, 77)},
	{"return after continue", "fn g(i: u32) -> u32 { for (var k = 0u; k < 6u; k++) { if (k == i) { continue; } if (k == 2u) { return 7u; } if (k == 3u) { return 50u + i; } } return 9u; }", "r[i] = g(i);", u(7, 7, 52, 7)},
	{"continued variable", "", "var k = 0u; var s = 0u; loop { var t = k; if (k == i) { continue; } t += 10u; continuing { s += t; k++; break if k > 3u; } } r[i] = s;", u(36, 36, 36, 36)},
	{"swapped", "", "var a = 1u; var b = i; for (var k = 0u; k < 5u; k++) { let c = a; a = b; b = c + b; } r[i] = 100u * a + b;", u(305, 813, 1321, 1829)},
	{"old value after the loop", "", "var a = i; var last = 9u; loop { last = a; a += 3u; if (a > 9u) { break; } } r[i] = 100u * last + a;", u(912, 710, 811, 912)},
	{"switch", "", "switch (i) { case 0u: { r[i] = 5u; } case 1u, 3u: { if (x[i] == 2u) { break; } r[i] = 6u; } default: { r[i] = 7u; } }", u(5, 0, 7, 6)},
	{"switch default first", "", "var v = 0u; switch (i32(i) - 1) { default: { v = 1u; } case -1: { v = 2u; } case 2: { v = 3u; } } r[i] = v;", u(2, 1, 1, 3)},
	{"switch in a loop", "", "var s = 0u; for (var k = 0u; k < 6u; k++) { switch (k) { case 1u: { continue; } case 4u: { break; } default: { s += k; } } s += 10u; } r[i] = s + i;", u(60, 61, 62, 63)},
	{"return", "", "if (i == 1u) { return; } for (var k = 0u; k < 9u; k++) { if (k == i) { r[i] = k + 1u; return; } } r[i] = 99u;", u(1, 0, 3, 4)},
	{"functions", "fn g(a: u32) -> u32 { if (a > 2u) { return a * 2u; } var t = a; for (var k = 0u; k < 3u; k++) { if (t > 3u) { return t; } t += 2u; } return 100u + t; } fn h(a: u32, b: u32) -> u32 { return g(a) + g(b); }", "r[i] = h(i, i + 1u);", u(9, 9, 10, 14)},
	{"pointers", "fn add(p: ptr<function, u32>, v: u32) { *p += v; } fn twice(p: ptr<function, array<u32, 3>>) { add(&(*p)[1], 5u); (*p)[2] = (*p)[1]; }", "var a = array<u32, 3>(i, i, i); twice(&a); add(&a[0], 1u); r[i] = 10000u * a[0] + 100u * a[1] + a[2];", u(10505, 20606, 30707, 40808)},
	{"moving elements", "", "var a: array<u32, 8>; for (var k = 0u; k < 8u; k++) { a[(k * 3u) % 8u] = x[k]; } r[i] = a[i] * 10u + a[7u - i];", u(16, 43, 78, 25)},
	{"elements of a value", "", "let a = array<u32, 6>(9u, 8u, 7u, 6u, 5u, x[0]); r[i] = a[i + 2u];", u(7, 6, 5, 1)},
	{"a constant table", "const T = array<u32, 8>(3u, 1u, 4u, 1u, 5u, 9u, 2u, 6u);", "var s = 0u; for (var k = 0u; k < 4u; k++) { s = s * 10u + T[(k + i) & 7u]; } r[i] = s;", u(3141, 1415, 4159, 1592)},
	{"structs", "struct S { a: vec2<u32>, b: array<u32, 2>, c: T } struct T { d: u32 } fn make(k: u32) -> S { return S(vec2<u32>(k, k + 1u), array<u32, 2>(k + 2u, k + 3u), T(k + 4u)); }", "var s = make(i); let t = s; s.b[1] = 9u; s.c.d += t.b[0]; s.a.y = 3u; r[i] = s.a.x + 10u * s.a.y + 100u * s.b[1] + 1000u * s.c.d + 10000u * t.b[1];", u(36930, 48931, 60932, 72933)},
	{"components that move", "", "var v = vec4<u32>(1u, 2u, 3u, 4u); v[i] = 9u; let w = v.wzyx; r[i] = w[i] + 10u * w.w + 100u * v[3u - i];", u(494, 313, 212, 111)},
	{"short cuts", "var<private> calls: u32; fn yes() -> bool { calls += 1u; return true; }", "let a = i < 2u && yes(); let b = i == 1u || yes(); r[i] = calls + 10u * select(0u, 1u, a) + 100u * select(0u, 1u, b);", u(112, 111, 101, 101)},
	{"private", "var<private> p: array<u32, 2> = array<u32, 2>(3u, 4u); fn bump() { p[0] += 1u; } fn sum() -> u32 { return p[0] + p[1]; }", "bump(); if (i > 1u) { bump(); } r[i] = sum();", u(8, 8, 9, 9)},
	{"truths", "", "let v = vec3<u32>(i, 1u, 2u) == vec3<u32>(1u, 1u, 2u); var t = vec2<bool>(i == 2u, false); t.y = any(v.xy); r[i] = select(0u, 1u, all(v)) + select(0u, 10u, any(t)) + select(0u, 100u, all(t)) + u32(v.x) * 1000u + u32(!t.x) * 10000u;", u(10010, 11011, 110, 10010)},
	{
		"truths in memory", "", "var a: array<vec2<bool>, 4>; a[i] = vec2<bool>(true, i == 1u); a[3u - i].y = true; var b = vec3<bool>(false, i > 1u, true); b[i & 1u] = true; let c = a[i]; r[i] = u32(a[i].x) + 10u * u32(a[i][1]) + 100u * u32(a[3u - i][i & 1u]) + 1000u * select(0u, 1u, all(c)) + 10000u * select(vec2<u32>(1u), vec2<u32>(2u), a[3u - i]).y + 100000u * u32(b[2u - (i & 1u)]) + 1000000u * u32(b.y);",
		u(120001, 1121111, 1120001, 1120101),
	},
	{"conversions", "", "let a = f32(i) * 1e9 - 1.5; r[i] = u32(a) ^ bitcast<u32>(i32(a)) ^ u32(f32(i) == 1.0);", u(0xffffffff, 1, 0, 0xb2d05e00^0x7fffffff)},
	{"length", "", "r[i] = arrayLength(&x) + arrayLength(&r);", u(12, 12, 12, 12)},
	{"out of range", "", "var a = array<u32, 2>(5u, 6u); r[i] = x[i + 7u] + a[i] * 10u; r[i + 100u] = x[100u - i];", u(58, 68, 68, 8)},
	{
		"packed", "", "let w = pack4x8snorm(vec4<f32>(-1.0, 0.5, 2.0, 0.0)); let v = unpack4x8unorm(pack4x8unorm(vec4<f32>(0.2, 0.4, 0.6, f32(i)))); let b = pack4xU8(vec4<u32>(1u, 2u, 3u, 300u)); r[i] = w ^ (pack4x8unorm(v) << 8u) ^ b ^ dot4U8Packed(b, 0x01010101u) ^ bitcast<u32>(dot4I8Packed(0xff02u, 0x0103u));",
		u(0xb51a71b7, 0xb51a71b7, 0xb51a71b7, 0xb51a71b7),
	},
	{
		"halves", "", "let v = array<f32, 4>(1.0, 65504.0, 6.1e-5, 1e-7); let h = pack2x16float(vec2<f32>(v[i], -v[i])); r[i] = h ^ (bitcast<u32>(unpack2x16float(h).y) & 0xffff0000u);",
		u(0x3803c00, 0x3c807bff, 0x3b8003ff, 0x34020002),
	},
	{
		"atomics", "var<workgroup> w: atomic<u32>; var<workgroup> m: atomic<i32>;", "let old = atomicAdd(&w, i + 1u); atomicMax(&m, i32(i) - 2); let e = atomicCompareExchangeWeak(&w, 3u, 50u); workgroupBarrier(); r[i] = atomicLoad(&w) + u32(atomicLoad(&m)) * 1000u + select(0u, 10000u, e.exchanged) + old * 100000u + e.old_value * 100000000u;",
		u(100001057, 300111057, 1010033761, 1410333761), /* modulo 2^32 */
	},
	{"barriers", "var<workgroup> w: array<u32, 4>;", "w[i] = x[i]; workgroupBarrier(); let left = w[(i + 3u) % 4u]; workgroupBarrier(); w[i] += left; workgroupBarrier(); r[i] = w[3u - i] * 10u + left;", u(74, 51, 32, 53)},
	{"barriers in a loop", "var<workgroup> w: array<u32, 4>;", "w[i] = x[i]; var mine = 0u; for (var h = 2u; h > 0u; h /= 2u) { workgroupBarrier(); if (i < h) { w[i] += w[i + h]; mine += h; } } workgroupBarrier(); r[i] = w[0] + 100u * mine;", u(310, 210, 10, 10)},
	{"barriers in functions", "var<workgroup> w: array<u32, 4>; fn share(v: u32, p: ptr<function, u32>) -> u32 { w[*p] = v; workgroupBarrier(); let s = w[(*p + 1u) % 4u]; *p += 1u; workgroupBarrier(); return s; }", "var k = i; let a = share(x[i], &k); k = i; let b = share(a, &k); r[i] = 100u * a + 10u * b + k;", u(231, 342, 413, 124)},
	{"barriers behind a condition", "var<workgroup> w: array<u32, 4>;", "if (x[0] == 1u) { w[i] = i; workgroupBarrier(); r[i] = w[3u - i]; if (x[1] == 9u) { return; } } workgroupBarrier(); var a: array<u32, 4>; a[i] = 5u; workgroupBarrier(); if (i == 2u) { return; } r[i] += a[w[i]];", u(8, 7, 1, 5)},
	{"a return before barriers", "var<workgroup> w: u32;", "r[i] = 4u; if (x[0] == 1u) { return; } workgroupBarrier(); r[i] = 5u + w;", u(4, 4, 4, 4)},
	{"barriers in a switch", "var<workgroup> w: array<u32, 4>;", "for (var k = 0u; k < 3u; k++) { switch (k) { case 0u: { w[i] = i + 1u; workgroupBarrier(); continue; } case 1u: { workgroupBarrier(); } default: { break; } } r[i] += 10u * w[3u - i]; }", u(80, 60, 40, 20)},
}

var realPrograms = []program{
	{"matrices", "", "let m = mat3x2<f32>(1.0, 2.0, 3.0, 4.0, 5.0, 6.0); let v = m * vec3<f32>(1.0, f32(i), 2.0); let w = vec2<f32>(1.0, 2.0) * m; let p = transpose(m) * m; r[i] = v.x + 100.0 * v.y + 1000.0 * w.z + 10000.0 * p[1].z - p[i][1];", f(1000*17+10000*39+11+1400-11, 1000*17+10000*39+14+1800-25, 1000*17+10000*39+17+2200-39, 1000*17+10000*39+20+2600-39)},
	{"determinants", "", "let a = mat2x2<f32>(1.0, 2.0, 3.0, 4.0); let b = mat3x3<f32>(2.0, 0.0, 1.0, 1.0, 3.0, 2.0, 1.0, 1.0, 4.0); let c = mat4x4<f32>(1.0, 2.0, 0.0, 1.0, 0.0, 1.0, 3.0, 1.0, 2.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0); r[i] = determinant(a) + 100.0 * determinant(b) + 10000.0 * determinant(c);", f(141798, 141798, 141798, 141798)},
	{"geometry", "", "let a = vec3<f32>(1.0, 2.0, 2.0); let b = vec3<f32>(2.0, 0.0, 1.0); let c = cross(a, b); r[i] = length(a) + 10.0 * dot(a, b) + 100.0 * c.x + 1000.0 * c.y - 10000.0 * c.z + distance(a, b * 2.0 - vec3<f32>(3.0, 2.0, 0.0)) + normalize(a).y * 3.0;", f(3+40+200+3000+40000+4+2, 3+40+200+3000+40000+4+2, 3+40+200+3000+40000+4+2, 3+40+200+3000+40000+4+2)},
	{"mirrors", "", "let n = vec2<f32>(0.0, 1.0); let a = reflect(vec2<f32>(1.0, -2.0), n); let b = faceForward(n, vec2<f32>(0.0, 1.0), n); let c = refract(vec2<f32>(0.6, -0.8), n, 0.5); r[i] = a.x + 10.0 * a.y + 100.0 * b.y + round(1000.0 * c.x);", f(1+20-100+300, 1+20-100+300, 1+20-100+300, 1+20-100+300)},
	{"parts of floats", "", "let v = f32(x[i]) * 0.75 - 2.0; let p = modf(v); let q = frexp(vec2<f32>(v, 1e-40)); r[i] = p.whole + 10.0 * p.fract + ldexp(q.fract.x, q.exp.x) * 100.0 + f32(q.exp.y) * 1000.0;", f(-1-2.5-125-132000, 0-5-50-132000, 0+2.5+25-132000, 1+0+100-132000)},
	{"quantized", "", "r[i] = quantizeToF16(f32(x[i]) * 0.1) + quantizeToF16(vec3<f32>(2049.0)).y;", f(0.099975586+2048, 0.19995117+2048, 0.30004883+2048, 0.39990234+2048)},
	{"vec3 in memory", "struct S { a: vec3<f32>, b: f32 } var<workgroup> w: array<S, 4>;", "w[i] = S(vec3<f32>(1.0, 2.0, f32(i)), 5.0); w[i].a = w[i].a + w[i].b; r[i] = w[i].a.x + 10.0 * w[i].a.y + 100.0 * w[i].a.z + 1000.0 * w[i].b;", f(5576, 5676, 5776, 5876)},
	{"matrices that move", "", "var m = mat4x4<f32>(); for (var k = 0u; k < 4u; k++) { m[k][3u - k] = f32(k + 1u); m[k].x += 1.0; } r[i] = m[i][3u - i] + 10.0 * m[3u - i].x;", f(1+50, 2+10, 3+10, 5+10)},
}

func (p *program) text(kind string) string {
	return "@group(0) @binding(0) var<storage, read> x: array<u32>;\n@group(0) @binding(1) var<storage, read_write> r: array<" + kind + ">;\n" +
		p.before + "\n@compute @workgroup_size(4)\nfn main(@builtin(local_invocation_index) i: u32) {\nlet bound = arrayLength(&x);\n" + p.body + "\n}\n"
}

func TestPrograms(t *testing.T) {
	for kind, list := range map[string][]program{"u32": programs, "f32": realPrograms} {
		for name, o := range each {
			for _, p := range list {
				if o.Exact && p.name == "out of range" {
					continue
				}
				t.Run(name+"/"+p.name, func(t *testing.T) {
					r := make([]byte, 16)
					run(t, o, p.text(kind), nil, words(1, 2, 3, 4, 5, 6, 7, 8), r)
					got := []uint32{word(r, 0), word(r, 1), word(r, 2), word(r, 3)}
					if !slices.Equal(got, p.want) {
						t.Errorf("got %v %v, want %v", got, [4]float64{float(r, 0), float(r, 1), float(r, 2), float(r, 3)}, p.want)
					}
				})
			}
		}
	}
}

// A guarded kernel ends when it is told to, or has turned too often.
func TestGuard(t *testing.T) {
	p := program{before: "fn spin(n: u32) -> u32 { var k = 0u; loop { k += 1u; if (k == n) { return k; } } return 0u; }", body: "r[i] = spin(x[i]);"}
	mod, err := compile.Compile(p.text("u32"), "main", compile.Options{Guard: true})
	if err != nil {
		t.Fatal(err)
	}
	load := func(n uint32) *compiletest.Machine {
		return compiletest.Load(t, mod, [3]uint32{1, 1, 1}, nil, [][]byte{words(n, n, n, n), make([]byte, 16)})
	}
	h := load(3000)
	if r := h.Launch(t); r != 0 {
		t.Errorf("without a limit the result is %d", r)
	}
	h.SetTurns(11990)
	if r := h.Launch(t); r != 2 {
		t.Errorf("with too many turns the result is %d", r)
	}
	h.SetTurns(12001)
	if r := h.Launch(t); r != 0 {
		t.Errorf("within the limit the result is %d", r)
	}
	h = load(0) // never ends
	h.Stop()
	if r := h.Launch(t); r != 1 {
		t.Errorf("told to stop, the result is %d", r)
	}
}

// Turns count as much as they take: what barriers hold together for all invocations, and long memory that is written.
func TestLongTurns(t *testing.T) {
	const turns = 3000 // of each loop
	loop := func(body string) string {
		return "for (var k = 0u; k < " + strconv.Itoa(turns) + "u; k++) { " + body + " } r[i] = x[0] + n;"
	}
	for name, p := range map[string]struct {
		program
		least uint32 // what a turn counts as, at least
	}{
		"barriers": {program{body: "var n = 0u; " + loop("n = (n << 1u) ^ x[n & 7u] ^ (n / 3u) ^ (n * k); workgroupBarrier();")}, 60},
		"zeros":    {program{body: "var n = 0u; " + loop("var a: array<u32, 20000>; a[n & x[0]] = k; n += a[n + k];")}, 3000},
		"copies":   {program{body: "var n = 0u; var a: array<u32, 20000>; var b = a; " + loop("b = a; a[n & x[0]] = k; n += b[n + k];")}, 3000},
	} {
		text := strings.Replace(p.text("u32"), "workgroup_size(4)", "workgroup_size(64)", 1)
		mod, err := compile.Compile(text, "main", compile.Options{Guard: true})
		if err != nil {
			t.Fatal(name, err)
		}
		h := compiletest.Load(t, mod, [3]uint32{1, 1, 1}, nil, [][]byte{words(1, 2, 3, 4, 5, 6, 7, 8), make([]byte, 16)})
		if r := h.Launch(t); r != 0 {
			t.Errorf("%s: without a limit the result is %d", name, r)
		}
		h.SetTurns(turns * p.least)
		if r := h.Launch(t); r != 2 {
			t.Errorf("%s: with %d turns for each the result is %d", name, p.least, r)
		}
	}
}

// A binding that is too small runs nothing.
func TestSmallBinding(t *testing.T) {
	p := program{body: "r[i] = x[i];"}
	if _, err := compile.Compile(p.text("vec4<u32>"), "main", compile.Options{}); err == nil {
		t.Fatal("a vector was given a scalar")
	}
	p.body = "r[i] = vec4<u32>(x[i]);"
	mod, err := compile.Compile(p.text("vec4<u32>"), "main", compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := make([]byte, 12)
	compiletest.Run(t, mod, [3]uint32{1, 1, 1}, nil, [][]byte{words(1, 2, 3, 4), r})
	if !slices.Equal(r, make([]byte, 12)) {
		t.Errorf("wrote %v", r)
	}
}

// Invocations that are run together find the ends of their buffers, whatever they believe.
func TestShortBuffers(t *testing.T) {
	text := "@group(0) @binding(0) var<storage, read> x: array<u32>;\n@group(0) @binding(1) var<storage, read_write> r: array<u32>;\n" +
		"@compute @workgroup_size(32)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n  let i = id.x - START;\n  if (i < 100u) { r[i] = x[i] + x[(i << 2u) & 12u]; }\n}\n"
	for name, o := range map[string]compile.Options{"plain": {}, "guarded": {Guard: true}, "wazero": {Wazero: true}} {
		for _, start := range []string{"0u", "3u", "4u"} {
			for n := 4; n < 14; n++ {
				r := make([]byte, 4*n)
				run(t, o, strings.ReplaceAll(text, "START", start), nil, words(16, 1, 2, 3, 4, 5, 6, 7, 8, 9), r)
				for i := range n - 1 {
					want := []uint32{16, 4, 8, 9}[i%4] + []uint32{16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9}[i]
					if got := word(r, i); got != want {
						t.Errorf("%s, from %s, element %d of %d: got %d, want %d", name, start, i, n, got, want)
					}
				}
			}
		}
	}
}

// What is too large is fault.ErrLimit, at once.
func TestTooLarge(t *testing.T) {
	deep := "fn f0(p: ptr<function, u32>) { *p += 1u; }\n"
	var functions strings.Builder
	for k := range 30 {
		call := "f" + strconv.Itoa(k) + "(p); "
		functions.WriteString("fn f" + strconv.Itoa(k+1) + "(p: ptr<function, u32>) { " + strings.Repeat(call, 4) + "}\n")
	}
	deep += functions.String()
	wide := strings.ReplaceAll(strings.ReplaceAll(deep, "p: ptr<function, u32>", "p: u32"), "*p += 1u;", "")
	for name, p := range map[string]program{
		"pointers":      {before: deep, body: "var a = i; f30(&a); r[i] = a;"},
		"a large frame": {body: strings.Repeat("{ var b: array<u32, 60000>; b[i] = 1u; r[i] = b[3]; }\n", 300)},
		"many branches": {body: strings.Repeat("if (r[i] == i) { r[i] = 1u; }\n", 9000)},
		"many vectors":  {body: "var a = vec4<f32>(f32(i)); " + strings.Repeat("for (var k = 0u; k < i; k++) { a += a.yzwx * f32(k) + sin(a); }\n", 20000) + " r[i] = u32(a.x);"},
	} {
		if _, err := compile.Compile(p.text("u32"), "main", compile.Options{}); !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	p := program{before: wide, body: "f30(i); r[i] = 1u;"}
	if _, err := compile.Compile(p.text("u32"), "main", compile.Options{}); err != nil && !errors.Is(err, fault.ErrLimit) {
		t.Errorf("functions: %.200v", err)
	}
}
