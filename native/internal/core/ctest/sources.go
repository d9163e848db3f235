// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"unicode/utf8"
)

// sources collects modules.
type sources []string

func (l *sources) add(before, body string) { *l = append(*l, inMain(before, body)) }

// hostile are sources that have ended processes, lost devices or eaten the machine's memory, and their like. Behind the first
// fixed of them stand random ones.
var hostile = sync.OnceValues(func() (list []string, fixed int) {
	var l sources
	l.arrays()
	l.pointers()
	l.textures()
	l.builtins()
	l.constants()
	l.declarations()
	l.statements()
	list, fixed = l, len(l)
	for seed := range times(100) {
		list = append(list, wildModule(uint64(seed)))
	}
	if !long() {
		return list, fixed
	}
	rng := rand.New(rand.NewPCG(13, 2))
	for range 5000 { // the beginning of one, the end of another one, and some words changed
		a, b := list[rng.IntN(len(list))], list[rng.IntN(len(list))]
		words := strings.SplitAfter(a[:rng.IntN(len(a)+1)]+b[rng.IntN(len(b)+1):], " ")
		for range rng.IntN(3) {
			words[rng.IntN(len(words))] = words[rng.IntN(len(words))]
		}
		if text := strings.Join(words, ""); text != "" && utf8.ValidString(text) {
			list = append(list, text, strings.Replace(a, "y[0] = 1u;", text, 1))
		}
	}
	return list, fixed
})

// arrays adds arrays of all lengths, in all address spaces.
func (l *sources) arrays() {
	for _, n := range []string{"1048576", "67108864", "134217728", "268435456", "536870912u", "1073741824", "2147483647", "2147483648u", "4294967295u", "0", "-1", "4294967296", "N", "N * N", "N << 3u", "M", "1u / Z", "arrayLength(&y)", "-M", "~0u", "u32(N)", "select(1u, N, true)"} {
		const c = "const N = 1048576u; const M = 1073741824; const Z = 0u;"
		for _, e := range []string{"u32", "vec4<u32>", "mat4x4<f32>", "array<u32, 4>", "S", "A"} {
			if e != "u32" && strings.ContainsAny(n, "(-~") {
				continue
			}
			t := "array<" + e + ", " + n + ">"
			const types = c + "struct S { a: vec3<f32>, b: u32 } alias A = array<vec2<f32>, 3>; "
			for _, space := range []string{"workgroup", "private"} {
				l.add(types+"var<"+space+"> a: "+t+";", "a[y[0]] = "+e+"(); y[1] = u32(all(vec2<bool>(true)));")
			}
			l.add(types, "var a: "+t+"; let i = y[0]; a[i] = "+e+"();")
			l.add(types+"@group(0) @binding(1) var<storage, read_write> a: "+t+";", "a[y[0]] = "+e+"();")
			l.add(types+"@group(0) @binding(1) var<uniform> a: "+t+";", "let b = a[y[0]];")
			l.add(types+"struct T { a: "+t+" } var<private> b: T;", "b.a[y[0]] = "+e+"();")
			l.add(types+"alias T = "+t+"; var<workgroup> b: array<T, 64>;", "b[3][y[0]] = "+e+"();")
		}
	}
	for _, e := range []string{
		"var a = array<u32>(); y[0] = a[0];", "let a = array<u32>();", "let a = array<u32>(1u, 2u)[y[0]];", "var a: array<u32>;", "let a = array();", "let a = array(1, 2u);",
		"let a = array<u32, 4>()[7];", "let a = array<u32, 4>(); y[0] = a[9];", "y[4294967295u] = 1u;", "y[-1] = 1u;", "let v = vec4<u32>(); y[0] = v[4];", "let a = array<array<u32, 65536>, 65536>();",
		"let a = array<u32, 16777216>();", "var a = array<u32, 16777216>(); y[0] = a[y[1]];", "_ = array<vec4<u32>, 268435456>();", "let a = R(); y[0] = a[0];", "var a = big; y[0] = a[y[1]];", "let a = big; y[0] = a[3];", "var b = more.a; y[0] = b[y[1]];", "big = big;", "more = more;",
	} {
		l.add("alias R = array<u32>; struct More { a: array<u32, 16777216> } @group(0) @binding(1) var<storage, read_write> big: array<u32, 16777216>;", e)
		l.add("alias R = array<u32>; struct More { a: array<u32, 16777216> } @group(0) @binding(1) var<storage, read_write> more: More;", e)
		l.add("", e)
	}
}

// pointers adds pointers to all that there is.
func (l *sources) pointers() {
	const f = "struct S { a: f32, b: array<f32, 4>, c: vec4<f32> } var<private> s: S; var<private> x: f32; "
	functions := map[string]string{
		"f(": "fn f(p: ptr<function, f32>) { *p = 1.0; }", "g(": "fn g(p: ptr<private, f32>) { *p = 1.0; }",
		"h(": "fn h(p: ptr<storage, array<u32>, read_write>) {}", "v(": "fn v(p: ptr<function, vec4<f32>>) { (*p).x = 1.0; }",
		"a(": "fn a(p: ptr<function, array<f32, 4>>) { (*p)[1] = 1.0; }",
	}
	for _, e := range []string{
		"var v = vec4<f32>(); f(&v.x);", "var v = vec4<f32>(); f(&v[1]);", "var v = vec4<f32>(); f(&v[y[0]]);", "var t: S; f(&t.a);", "var t: S; f(&t.b[2]);", "var t: S; v(&t.c);", "var t: S; f(&t.c.y);", "g(&s.a);", "g(&s.b[y[0]]);", "g(&x);", "f(&x);",
		"h(&y);", "h(&y[0]);", "var z: f32; f(&z);", "let p = &x; g(p);", "let p = &s.a; g(p);", "var t: S; let p = &t.a; f(p);", "var t: S; let p = &t; f(&(*p).a);", "var t: S; let p = &t; f(&p.a);", "var t: array<S, 3>; f(&t[1].a);", "var m: mat4x4<f32>; v(&m[1]);",
		"var t: S; a(&t.b);", "f();", "f(1.0);", "f(&1.0);", "var z: f32; f(*z);", "var z: f32; f(z);", "var z: f32; let p = &&z;", "let p = &y; let q = *p;", "f(&(x));", "g(&(s.a));", "g((&s.a));", "g(&*&s.a);",
		"let p = &y[0]; atomicAdd(p, 1u);", "atomicAdd(&y, 1u);", "atomicAdd(&y[0], 1u);", "atomicAdd();", "atomicLoad();", "atomicStore(&y[0]);", "var z: u32; atomicAdd(&z, 1u);", "_ = &y; _ = &s.a;",
	} {
		var head strings.Builder
		head.WriteString(f)
		for call, text := range functions {
			if strings.Contains(e, call) {
				head.WriteString(text)
			}
		}
		l.add(head.String(), e)
	}
}

// textures adds textures and samplers, which no layout has, and types.
func (l *sources) textures() {
	const tex = "@group(0) @binding(1) var t: texture_2d<f32>; @group(0) @binding(2) var s: sampler; @group(0) @binding(3) var d: texture_depth_2d; @group(0) @binding(4) var w: texture_storage_2d<rgba8unorm, write>; @group(0) @binding(5) var c: sampler_comparison; @group(0) @binding(6) var m: texture_multisampled_2d<f32>; @group(0) @binding(7) var r: texture_2d_array<f32>; "
	for _, fn := range []string{"textureSample", "textureSampleLevel", "textureSampleBias", "textureSampleGrad", "textureSampleCompare", "textureSampleCompareLevel", "textureSampleBaseClampToEdge", "textureGather", "textureGatherCompare", "textureLoad", "textureStore", "textureDimensions", "textureNumLayers", "textureNumLevels", "textureNumSamples"} {
		for _, args := range []string{"", "t", "s", "t, s", "d, c", "w", "r, s", "t, s, vec2<f32>()", "d, c, vec2<f32>()", "0, t", "0, t, s", "m", "w, vec2<i32>()", "t, vec2<i32>()", "r, s, vec2<f32>()", "1", "y", "t, t, t, t, t, t, t, t"} {
			l.add(tex, "_ = "+fn+"("+args+");")
			l.add(tex, fn+"("+args+");")
		}
	}
	for _, args := range []string{"", "t", "t, s", "s, t", "t, s, 1.0", "1, 2"} {
		l.add(tex+"fn f(t: texture_2d<f32>, s: sampler) -> vec4<f32> { return textureSampleLevel(t, s, vec2<f32>(), 0.0); }", "let v = f("+args+");")
		l.add(tex+"fn f(s: sampler, t: texture_2d<f32>, l: f32) -> vec4<f32> { return textureSampleLevel(t, s, vec2<f32>(), l); }", "let v = f("+args+");")
	}
	for _, typ := range []string{"texture_2d", "texture_2d<>", "texture_2d<f32", "texture_2d<bool>", "texture_storage_2d<rgba8unorm>", "texture_storage_2d<>", "texture_storage_2d", "sampler<f32>", "texture_9d<f32>", "atomic", "atomic<>", "atomic<f32>", "vec", "vec2", "vec2<>", "vec5<f32>", "mat2x2", "mat2x2<u32>", "mat9x9<f32>", "array", "array<>", "ptr", "ptr<>", "ptr<function>", "ptr<function, u32>", "binding_array<u32>", "binding_array<texture_2d<f32>>", "binding_array<texture_2d<f32>, 4294967295>", "ray_query", "acceleration_structure", "bool", "f16", "f64", "i64"} {
		l.add("@group(0) @binding(1) var t: "+typ+";", "_ = t;")
		l.add("var<private> t: "+typ+";", "_ = t;")
		l.add("", "var t: "+typ+"; _ = t;")
		l.add("struct T { a: "+typ+" } @group(0) @binding(1) var<storage> t: T;", "_ = t.a;")
	}
}

// builtins adds built-in functions with arguments that are missing, of wrong types, or too many.
func (l *sources) builtins() {
	for fn := range strings.FieldsSeq("abs acos all any arrayLength atan2 bitcast ceil clamp cos countOneBits cross degrees determinant distance dot exp extractBits faceForward firstLeadingBit fma fract frexp insertBits inverseSqrt ldexp length mix modf normalize pack2x16float pack4x8snorm pow quantizeToF16 reflect refract select sign step transpose unpack2x16float unpack4x8unorm workgroupBarrier workgroupUniformLoad storageBarrier atomicMax atomicCompareExchangeWeak dpdx fwidth outerProduct inverse dot4U8Packed vec2 vec3<f32> mat2x2 mat3x3<f32> u32 bool subgroupAdd rayQueryInitialize") {
		for _, args := range []string{"", "1", "y", "&y", "1.0, 2.0", "vec2<f32>(), 1u", "true, false, true", "vec3<u32>(), vec3<u32>(), vec3<u32>(), vec3<u32>()", "mat2x2<f32>()", "1, 2, 3, 4, 5, 6, 7, 8, 9"} {
			l.add("", "_ = "+fn+"("+args+");")
			l.add("", fn+"("+args+");")
		}
	}
}

// constants adds constant expressions, many of which have no value.
func (l *sources) constants() {
	for _, e := range []string{"1 / 0", "1u / 0u", "1 % 0", "1.0 / 0.0", "-2147483648 / -1", "i32(-2147483648) / -1", "1u << 99u", "1 << 32u", "1 >> 99u", "2147483647 + 1", "4294967295u + 1u", "0u - 1u", "-(-2147483648)", "abs(-2147483648)", "1e400", "1e-400", "0x1p9999", "99999999999999999999", "1e38f * 1e38f", "log(-1.0)", "pow(0.0, -1.0)", "sqrt(-1.0)", "i32(1e30)", "u32(-1.0)", "u32(-1)", "f32(0x7fffffff)", "clamp(1, 5, 2)", "vec2(1, 2)[2]", "vec2(1, 2)[-1]", "array(1, 2)[5]", "vec4<f32>(1.0).zzzzz", "vec2(1.0).z", "vec3<f32>(vec4<f32>())", "mat2x2(1, 2, 3)", "C", "D", "countOneBits(1)", "select(1, 2.0, true)", "bitcast<f32>(0x7fc00000u)", "extractBits(1u, 40u, 40u)", "insertBits(1u, 2u, 33u, 1u)", "ldexp(1.0, 5000)", "!1", "-true", "~1.5", "1 + true", "vec2(1) + vec3(1)", "\"a\"", "@1", "1;;2"} {
		*l = append(*l, inMain("const D = C; const C = D;", "const k = "+e+"; let l = "+e+"; var v = "+e+";"), inMain("const k = "+e+"; var<private> p = "+e+";", ""))
		l.add("override o = "+e+"; @id(1) override q: u32 = "+e+";", "")
	}
}

// declarations adds declarations.
func (l *sources) declarations() {
	for _, d := range []string{
		"alias A = A; var<private> a: A;", "alias A = B; alias B = A;", "struct S { s: S } var<private> s: S;", "struct S { t: T } struct T { s: S }", "struct S { a: array<S, 4> }", "struct S {} var<private> s: S;", "struct S { a: array<u32>, b: u32 } @group(0) @binding(1) var<storage> s: S;",
		"fn f() { f(); }", "fn f() { g(); } fn g() { f(); }", "fn f() -> u32 { return f(); } const x = f();", "fn f() -> u32 { }", "fn f() -> u32 { return; }", "fn f(a: array<u32>) {}", "fn f() -> array<u32> { }", "fn f(a: u32, a: u32) {}", "fn f() {} fn f() {}", "fn main() {}",
		"@group(0) @binding(0) var<storage> z: u32;", "@group(0) @binding(4294967295) var<storage> z: u32;", "@group(4294967295) @binding(1) var<storage> z: u32;", "@group(-1) @binding(-1) var<storage> z: u32;", "@binding(1) var<storage> z: u32;", "var<storage> z: u32;", "var z: u32;", "var<function> z: u32;", "var<uniform, read_write> z: u32;", "var<workgroup> z: u32 = 1u;", "var<nonsense> z: u32;", "var<> z: u32;", "var<push_constant> z: array<u32, 1073741824>;", "var<push_constant> z: u32;",
		"struct S { @size(4294967295) a: u32, b: u32 } var<private> s: S;", "struct S { @size(2147483648) a: u32, @size(2147483648) b: u32 } @group(0) @binding(1) var<storage> s: S;", "struct S { @align(0) a: u32 } var<private> s: S;", "struct S { @align(3) a: u32 } var<private> s: S;", "struct S { @align(2147483648) a: u32, b: u32 } var<private> s: S;", "struct S { @align(2147483648) a: u32, b: u32 } @group(0) @binding(1) var<storage> s: S;", "struct S { @size(1) a: u32 } var<private> s: S;", "struct S { @size(-1) a: u32 } var<private> s: S;",
		"@compute @workgroup_size(0) fn other() {}", "@compute @workgroup_size(4294967295) fn other() {}", "@compute @workgroup_size(65536, 65536, 65536) fn other() {}", "@compute @workgroup_size(-1) fn other() {}", "@compute @workgroup_size() fn other() {}", "@compute fn other() {}", "@workgroup_size(1) fn other() {}", "@compute @workgroup_size(1, 1, 1, 1) fn other() {}", "@compute @workgroup_size(1u + 3) fn other() {}", "@compute @compute @workgroup_size(1) fn other() {}", "@vertex fn other() {}", "@vertex fn other() -> @builtin(position) vec4<f32> { return vec4<f32>(); }", "@fragment fn other(@location(99999999) a: f32) {}", "@compute @workgroup_size(1) fn other(a: u32) {}", "@compute @workgroup_size(1) fn other(@builtin(nonsense) a: u32) {}", "@compute @workgroup_size(1) fn other(@builtin(position) a: u32) {}", "@compute @workgroup_size(1) fn other() -> u32 { return 1u; }",
		"enable f16;", "enable nonsense;", "requires nonsense;", "diagnostic(off, nonsense);", "const_assert false;", "const_assert 1;", "@must_use fn f() {}", "@const fn f() {}", "@", "@group", "@group(", ";;;;", "fn", "struct", "var<", "alias", "const", "override", "import a;", "/*", "/* /* */", "//", "\u200b", "\ufeff", "é", "_", "__a", "const _ = 1;", "fn fn() {}", "let a = 1;", "loop {}",
	} {
		l.add(d, "")
		*l = append(*l, d, d+"\n"+inMain("", ""))
	}
}

// statements adds statements.
func (l *sources) statements() {
	for _, s := range []string{
		"loop {}", "for (;;) {}", "while true {}", "loop { continuing { break; } }", "loop { continuing { return; } }", "loop { continuing { continue; } }", "break;", "continue;", "switch 1 {}", "switch 1 { default {} default {} }", "switch 1 { case 1: {} case 1: {} default: {} }", "switch 1u { case -1: {} default: {} }", "switch 1.0 { default: {} }", "switch vec2<u32>(y[0], 5u) { case 1u: { y[0] = 1u; } default: {} }", "switch y[0] { case y[1]: {} default: {} }", "switch y[0] { case default, 1u: {} }", "switch 1 { case 1: { fallthrough; } default: {} }", "if 1 {}", "if true {} else", "return 1;", "discard;", "let a = 1; a = 2;", "let a = 1; let a = 2;", "1 = 2;", "y[0]++; y[0]--;", "y++;", "y[0] += true;", "y[0] <<= 99u;", "_ = y;", "y = y;", "let z = y;", "{ { { } } }", "var a;", "const a;", "let a;", "var a: u32 = 1.5;", "workgroupBarrier(); if y[0] == 1u { workgroupBarrier(); }", "const_assert 1 > 2;", "let v = vec4<f32>(); v.x = 1.0;", "var v = vec4<f32>(); v.xy = vec2<f32>();", "var v = vec4<f32>(); v.q = 1.0;", "var v = vec4<f32>(); v[99] = 1.0;", "var m: mat2x2<f32>; m[7] = vec2<f32>();", "var m: mat2x2<f32>; m[y[0]][y[1]] = 1.0;", "let s = 1u >> y[0]; y[0] = s / y[1] % y[2];", "var i = -2147483648; i = i / -1;", "let x = y[y[y[y[0]]]];", "main();", "y();", "unknown();", "u32;", "f32(1)(2);", "let a = u32; let b = main;", "y[0] = u32(y);",
	} {
		l.add("", s)
		l.add("fn f(i: u32) -> u32 { "+s+" return i; }", "y[0] = f(1u);")
	}
}
