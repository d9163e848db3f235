// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// programs compute the first words of y.
var programs = []struct {
	name, before, body string
	want               []uint32
}{
	{"declarations in any order", "fn f() -> u32 { return A + g; } const A = B * 2; const B = 3; var<private> g: u32 = B;", "y[0] = f();", []uint32{9}},
	{"shadowing", "const a = 1; fn min(a: u32) -> u32 { return a + 1; }", "var b = a; { let a = 2; b += a; } y[0] = min(u32(b)); let f32 = 7u; y[1] = f32;", []uint32{4, 7}},
	{"a let is taken once", "", "var i = 1u; let a = i; i = 2; y[0] = a; y[1] = i;", []uint32{1, 2}},
	{"pointers", "fn inc(p: ptr<function, u32>) { *p += 1; }", "var a: array<u32, 4>; var i = 1; let p = &a[i]; i = 2; inc(p); inc(&a[i]); *p += 5; y[0] = a[1]; y[1] = a[2];", []uint32{6, 1}},
	{
		"pointers without stars", "struct S { a: u32, v: vec2<u32> } fn write(p: ptr<private, S>) { p.a = 3; p.v.y = 4; let q = &p.v; q.x = 5; (*q)[1] += 1; } var<private> s: S;",
		"write(&s); y[0] = s.a; y[1] = s.v.x; y[2] = s.v.y;",
		[]uint32{3, 5, 5},
	},
	{"an index is evaluated once", "var<private> n: u32; fn next() -> u32 { n += 1; return n; }", "y[next()] += 10; y[next()]++; y[0] = n;", []uint32{2, 10, 1}},
	{"the order of operands", "var<private> n: u32; fn next() -> u32 { n = n * 10 + 1; return n; }", "n = 2; y[0] = n + next(); y[1] = next() - n; y[2] = n;", []uint32{23, 0, 211}},
	{
		"the order of pointers", "var<private> n: u32; fn next() -> u32 { n += 1; return n; } fn f(a: u32, p: ptr<function, u32>, b: u32) -> u32 { *p = 1; return a * 100 + b; }",
		"var t: array<u32, 8>; y[0] = f(next(), &t[next()], next()); y[1] = t[2]; y[2] = f(next(), &t[n], next()); y[3] = t[4]; y[4] = f(1, &t[next()], n);",
		[]uint32{103, 1, 405, 1, 106},
	},
	{
		"operands that decide", "var<private> n: u32; fn yes() -> bool { n++; return true; }",
		"let a = y[0] == 1 && yes(); let b = y[0] == 0 || yes(); let c = y[0] == 0 && yes(); y[0] = n; y[1] = u32(a) + 2 * u32(b) + 4 * u32(c); let d = false && 1 / 0 == 1;",
		[]uint32{1, 6},
	},
	{
		"barriers in operands", "var<private> n: u32; var<workgroup> w: array<u32, 4>; fn next() -> u32 { n += 1; workgroupBarrier(); return n; }",
		"n = 5; y[0] = n + next() * 10 + n * 1000; if ((n == 7 && next() == 7) || next() == 7) { y[1] = n; } w[1] = 4; y[2] = workgroupUniformLoad(&w[1]); " +
			"y[next()] = next(); for (; next() < 12; ) {} y[3] = n; while next() < 15 {} y[4] = n; loop { continuing { break if next() > 20; } } y[5] = n; switch next() { case 22: { y[6] = 1; } default {} }",
		[]uint32{6065, 7, 4, 12, 15, 21, 1, 0, 9},
	},
	{"loops", "", "for (var i = 0u; i < 9; i++) { if i == 2 { continue; } if i == 5 { break; } y[0] += i; } var j = 0u; while j < 4 { j++; } y[1] = j; loop { j++; if j == 7 { continue; } y[2]++; continuing { y[3]++; break if j > 8; } }", []uint32{8, 4, 4, 5}},
	{"a loop in a continuing", "", "var i = 0u; loop { continuing { loop { i++; if i % 4 == 0 { break; } continue; } break if i > 6; } } y[0] = i;", []uint32{8}},
	{"switches", "", "for (var i = 0i; i < 5; i++) { switch i { case 0, 1: { y[0]++; } case 2 { if y[0] == 2 { break; } y[1] = 9; } case default, 7 { y[2] += u32(i); } } }", []uint32{2, 0, 7}},
	{"branches", "", "for (var i = 0; i < 4; i++) { if i == 0 { y[0]++; } else if i == 1 { y[1] += 2; } else { y[2] += 3; } }", []uint32{1, 2, 6}},
	{"returns", "fn f(a: u32) -> u32 { if a > 1 { return 5; } else { return 6; } } fn g(a: u32) -> u32 { loop { return a; } }", "y[0] = f(1); y[1] = f(2); y[2] = g(7);", []uint32{6, 5, 7}},
	{"vectors", "", "var v = vec3<u32>(1, 2, 3); v.x += 5; v[1] = 7; let w = v.zyx; y[0] = w.x; y[1] = w.g; y[2] = v.bgr[2]; v.xz = v.zx; y[3] = v.x * 10 + v.z; v *= 2; y[4] = v.y; let i = y[3] - 34; y[5] = v[i];", []uint32{3, 7, 6, 36, 14, 12}},
	{"scalars beside vectors", "", "let v = vec2<u32>(3, 4); let s = y[0] + 2; let w = s * v + 1; y[0] = w.x; y[1] = w.y; y[2] = u32((vec2(1.5) * 2.0 - f32(s)).x * 4.0);", []uint32{7, 9, 4}},
	{"structs and arrays", "struct S { a: u32, b: array<vec2<u32>, 2> } fn make(a: u32) -> S { return S(a, array(vec2(a, 1), vec2(2, 3))); }", "var s = make(4); s.b[1].y = 8; let t = s; y[0] = t.a; y[1] = t.b[0].x; y[2] = t.b[1].y; let i = y[0] - 3; y[3] = t.b[i][i]; y[4] = make(6).b[0].x;", []uint32{4, 4, 8, 8, 6}},
	{"tables", "const T = array(5u, 6u, 7u); const M = mat2x2(1, 2, 3, 4);", "for (var i = 0u; i < 3; i++) { y[i] = T[i]; } var j = 1; y[3] = u32(M[j].x);", []uint32{5, 6, 7, 3}},
	{"atomics", "var<workgroup> a: atomic<u32>; fn add(p: ptr<workgroup, atomic<u32>>) -> u32 { return atomicAdd(p, 2); }", "atomicStore(&a, 5); y[0] = add(&a); atomicAdd(&a, 1); let r = atomicCompareExchangeWeak(&a, 8, 9); y[1] = r.old_value; y[2] = u32(r.exchanged); y[3] = workgroupUniformLoad(&a);", []uint32{5, 8, 1, 9}},
	{"lengths", "fn n(p: ptr<storage, array<u32>, read_write>) -> u32 { return arrayLength(p); }", "y[0] = arrayLength(&y); y[1] = n(&y);", []uint32{16, 16}},
	{"phony assignments", "var<private> n: u32; fn next() -> u32 { n++; return n; }", "_ = y[0]; _ = &y; _ = next(); _ = &y[next()]; _ = 1; y[0] = n;", []uint32{2}},
	{"attributes", "@diagnostic(off, derivative_uniformity) fn f() { }", "@diagnostic(warning, a.b) if true @diagnostic(off, c) { f(); y[0] = 1; };;", []uint32{1}},
	{"template lists", "const n = 3; alias A = array<u32, n+1>;", "var a=A(1,2,3,4); let b = a[0]<a[1]; let c: array<u32,4>=a; y[0] = c[n]; y[0]>>=1; y[1] = u32(b) << 2; y[2] = u32(2 > 1);", []uint32{2, 4, 1}},
}

func TestPrograms(t *testing.T) {
	for _, c := range programs {
		prog, err := Parse(head+c.before+begin+c.body+"}", "main")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		verify(t, c.name, prog)
		if got := run(prog, 16); !slices.Equal(got[:len(c.want)], c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got[:len(c.want)], c.want)
		}
	}
}

func f32s(x ...float32) (words []uint32) {
	for _, v := range x {
		words = append(words, math.Float32bits(v))
	}
	return words
}

// constants are expressions with their types and scalars.
var constants = []struct {
	text, typ string
	want      []uint32
}{
	{"1", "i32", []uint32{1}},
	{"1.0", "f32", f32s(1)},
	{"-1", "i32", []uint32{0xffffffff}},
	{"0xFFu", "u32", []uint32{255}},
	{"0x1.8p1", "f32", f32s(3)},
	{"0x.8", "f32", f32s(0.5)},
	{".5e1f", "f32", f32s(5)},
	{"1f", "f32", f32s(1)},
	{"true && !false", "bool", []uint32{1}},
	{"2147483647i + 1i", "i32", []uint32{0x80000000}},
	{"0u - 1u", "u32", []uint32{0xffffffff}},
	{"-7 / 2", "i32", []uint32{0xfffffffd}},
	{"-7 % 3", "i32", []uint32{0xffffffff}},
	{"-7.5 % 2.0", "f32", f32s(-1.5)},
	{"7 / 2.0", "f32", f32s(3.5)},
	{"1u << 31u", "u32", []uint32{1 << 31}},
	{"-8i >> 1u", "i32", []uint32{0xfffffffc}},
	{"~0u", "u32", []uint32{0xffffffff}},
	{"5 & 6 & 4", "i32", []uint32{4}},
	{"vec2(1, 2.5) + 1", "vec2<f32>", f32s(2, 3.5)},
	{"vec3<u32>(vec2(1, 2), 3).zx", "vec2<u32>", []uint32{3, 1}},
	{"vec2(1, 3) < vec2(2, 2)", "vec2<bool>", []uint32{1, 0}},
	{"vec4<f32>()", "vec4<f32>", f32s(0, 0, 0, 0)},
	{"vec3i(7)", "vec3<i32>", []uint32{7, 7, 7}},
	{"vec2u(vec2(1.9, -3.0))", "vec2<u32>", []uint32{1, 0}},
	{"i32(3e9f)", "i32", []uint32{math.MaxInt32}},
	{"u32(-1i)", "u32", []uint32{0xffffffff}},
	{"f32(true) + f32(7u)", "f32", f32s(8)},
	{"bool(-0.0)", "bool", []uint32{0}},
	{"bool(4)", "bool", []uint32{1}},
	{"bitcast<u32>(1.0)", "u32", []uint32{0x3f800000}},
	{"bitcast<u32>(0xffffffff)", "u32", []uint32{0xffffffff}},
	{"bitcast<f32>(0x80000000u)", "f32", []uint32{0x80000000}},
	{"bitcast<vec2i>(vec2(1.0, 2.0))", "vec2<i32>", []uint32{0x3f800000, 0x40000000}},
	{"array(1, 2.0)", "array<f32, 2>", f32s(1, 2)},
	{"array<vec2<u32>, 2>(vec2(1, 2), vec2(3))[1]", "vec2<u32>", []uint32{3, 3}},
	{"mat2x2(1, 2, 3, 4) * vec2(1.0, 10.0)", "vec2<f32>", f32s(31, 42)},
	{"vec2(1.0, 10.0) * mat2x2(1, 2, 3, 4)", "vec2<f32>", f32s(21, 43)},
	{"mat2x3(1, 2, 3, 4, 5, 6) * mat2x2(1, 0, 1, 1)", "mat2x3<f32>", f32s(1, 2, 3, 5, 7, 9)},
	{"2 * mat2x2f(vec2(1, 2), vec2(3, 4)) + mat2x2f()", "mat2x2<f32>", f32s(2, 4, 6, 8)},
	{"transpose(mat2x3(1, 2, 3, 4, 5, 6))[0]", "vec2<f32>", f32s(1, 4)},
	{"determinant(mat3x3(2, 0, 1, 0, 3, 0, 1, 0, 1))", "f32", f32s(3)},
	{"max(1, 2.5)", "f32", f32s(2.5)},
	{"min(vec2(1u, 5u), vec2(3))", "vec2<u32>", []uint32{1, 3}},
	{"abs(-3)", "i32", []uint32{3}},
	{"clamp(5, 1, 3)", "i32", []uint32{3}},
	{"sign(-2.5)", "f32", f32s(-1)},
	{"select(vec2(1, 2), vec2(3, 4), vec2(true, false))", "vec2<i32>", []uint32{3, 2}},
	{"select(1u, 2, true)", "u32", []uint32{2}},
	{"all(vec2(true, false))", "bool", []uint32{0}},
	{"any(vec2(true, false))", "bool", []uint32{1}},
	{"dot(vec3(1, 2, 3), vec3(4, 5, 6))", "i32", []uint32{32}},
	{"cross(vec3(1, 0, 0), vec3(0, 1, 0))", "vec3<f32>", f32s(0, 0, 1)},
	{"length(vec2(3, 4))", "f32", f32s(5)},
	{"normalize(vec2(3.0, 4.0))", "vec2<f32>", f32s(0.6, 0.8)},
	{"mix(vec2(0.0, 4.0), vec2(2.0), 0.5)", "vec2<f32>", f32s(1, 3)},
	{"fma(2.0, 3.0, 4.0)", "f32", f32s(10)},
	{"round(vec2(2.5, -0.5))", "vec2<f32>", []uint32{0x40000000, 0x80000000}},
	{"fract(-1.25)", "f32", f32s(0.75)},
	{"step(1.0, 2.0)", "f32", f32s(1)},
	{"smoothstep(0.0, 2.0, 1.0)", "f32", f32s(0.5)},
	{"ldexp(1.5, 3)", "f32", f32s(12)},
	{"frexp(6.0).exp", "i32", []uint32{3}},
	{"frexp(6.0).fract", "f32", f32s(0.75)},
	{"modf(-1.25).whole", "f32", f32s(-1)},
	{"countOneBits(-1)", "i32", []uint32{32}},
	{"countLeadingZeros(1u)", "u32", []uint32{31}},
	{"firstLeadingBit(-1)", "i32", []uint32{0xffffffff}},
	{"firstLeadingBit(8u)", "u32", []uint32{3}},
	{"firstTrailingBit(8u)", "u32", []uint32{3}},
	{"reverseBits(1u)", "u32", []uint32{1 << 31}},
	{"extractBits(0xf0u, 4u, 4u)", "u32", []uint32{15}},
	{"extractBits(0xf0i, 4u, 4u)", "i32", []uint32{0xffffffff}},
	{"extractBits(-1i, 4u, 0u)", "i32", []uint32{0}},
	{"extractBits(-1i, 0u, 32u)", "i32", []uint32{0xffffffff}},
	{"insertBits(7u, 15u, 32u, 0u)", "u32", []uint32{7}},
	{"insertBits(0u, 5u, 0u, 32u)", "u32", []uint32{5}},
	{"insertBits(0u, 15u, 4u, 4u)", "u32", []uint32{0xf0}},
	{"reflect(vec2(1.0, -1.0), vec2(0.0, 1.0))", "vec2<f32>", f32s(1, 1)},
	{"quantizeToF16(1.0003)", "f32", []uint32{0x3f800000}},
	{"quantizeToF16(1e-7)", "f32", []uint32{0x34000000}},
	{"pack2x16float(vec2(1.5, -2.0))", "u32", []uint32{0xc0003e00}},
	{"pack2x16float(vec2(0.0, 65504.0))", "u32", []uint32{0x7bff0000}},
	{"unpack2x16float(0xc0003e00u)", "vec2<f32>", f32s(1.5, -2)},
	{"pack4x8snorm(vec4(1, -1, 0, 0.5))", "u32", []uint32{0x4000817f}},
	{"unpack4x8unorm(0xff000000u)", "vec4<f32>", f32s(0, 0, 0, 1)},
	{"unpack4xI8(0xff800102u)", "vec4<i32>", []uint32{2, 1, 0xffffff80, 0xffffffff}},
	{"dot4I8Packed(0xff01u, 0x0203u)", "i32", []uint32{1}},
}

// TestConstants looks at the value that a let of each constant has.
func TestConstants(t *testing.T) {
	for _, c := range constants {
		prog, err := Parse(module("")+"fn f() { var v = "+c.text+"; }", "main")
		if err == nil {
			prog, err = Parse(head+begin+"var v = "+c.text+"; const w = "+c.text+"; }", "main")
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		x, ok := prog.Entry.Body[0].(*ir.Declare).Init.(*ir.Const)
		if !ok || typeName(x.T) != c.typ || !slices.Equal(x.Words, c.want) {
			t.Errorf("%s: got %+v, want %s %x", c.text, x, c.typ, c.want)
		}
	}
}

func TestProgram(t *testing.T) {
	const text = `diagnostic(off, derivative_uniformity);
requires packed_4x8_integer_dot_product;
struct In { @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32 }
struct S { a: u32, @align(32) b: vec3<f32>, @size(64) c: f32, d: array<vec3<u32>> }
@group(0) @binding(2) var<storage, read_write> s: S;
@group(0) @binding(1) var<uniform> u: vec4<u32>;
@group(0) @binding(7) var<storage> unused: array<u32>;
@group(3) @binding(7) var<storage> elsewhere: array<u32>;
var<workgroup> w: array<u32, N>;
var<private> p = 3;
override N = 4 * 2;
const LARGE = N > 100;
@fragment fn other() -> @location(0) vec4<f32> { return nonsense; }
fn unreached() { _ = elsewhere[0]; }
fn inner() -> u32 { return w[0]; }
fn outer() -> u32 { workgroupBarrier(); return u.x; }
@compute @workgroup_size(N, N / 4) fn main(in: In, @builtin(num_workgroups) n: vec3<u32>) {
  if LARGE { s.a = inner(); workgroupBarrier(); p = 4; }
  s.d[0] = in.group;
  return;
  s.a = outer();
}
@compute @workgroup_size(1) fn second() { s.a = outer() + inner(); }
`
	prog, err := Parse(text, "main")
	if err != nil {
		t.Fatal(err)
	}
	if prog.Size != [3]int{8, 2, 1} || prog.Entry.Barrier || len(prog.Funcs) != 1 || len(prog.Vars) != 2 {
		t.Errorf("size %v, barrier %v, %d functions, %d variables", prog.Size, prog.Entry.Barrier, len(prog.Funcs), len(prog.Vars))
	}
	s, u := prog.Vars[0], prog.Vars[1]
	if s.Name != "s" || s.Binding != 2 || !s.Write || s.Space != ir.Storage || u.Name != "u" || u.Binding != 1 || u.Space != ir.Uniform {
		t.Errorf("variables %+v and %+v", s, u)
	}
	var offsets []int
	for _, f := range s.Type.Fields {
		offsets = append(offsets, f.Offset)
	}
	if !slices.Equal(offsets, []int{0, 32, 44, 112}) || s.Type.Size != 128 || s.Type.Align != 32 || s.Type.Fields[3].Type.Stride != 16 {
		t.Errorf("offsets %v, size %d, align %d", offsets, s.Type.Size, s.Type.Align)
	}
	var inputs []ir.Input
	for _, q := range prog.Entry.Params {
		inputs = append(inputs, q.Input)
	}
	if !slices.Equal(inputs, []ir.Input{ir.WorkgroupID, ir.LocalInvocationIndex, ir.NumWorkgroups}) {
		t.Errorf("inputs %v", inputs)
	}
	prog, err = Parse(text, "second")
	if err != nil || !prog.Entry.Barrier || len(prog.Funcs) != 3 || len(prog.Vars) != 3 {
		t.Errorf("got %+v, %v", prog, err)
	}
}
