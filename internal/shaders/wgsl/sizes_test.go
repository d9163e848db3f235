// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strings"
	"testing"
)

// excess wraps declarations and a body into a compute shader and asks what is too large in it.
func excess(t *testing.T, before, body string) string {
	t.Helper()
	s, err := Tokenize(before + "\n@compute @workgroup_size(1) fn main() { " + body + " }")
	if err != nil {
		t.Fatal(err)
	}
	return s.Excess("main", 32768, Effort)
}

func TestExcess(t *testing.T) {
	const types = `const N = 64; const M: u32 = N * (N / 2 + 1u) % 2000 << 2u; const Z = 0; struct S { a: vec3<f32>, b: u32, c: array<atomic<u32>, 3> }
		alias A = array<vec3f, 2>; struct B { @size(100) a: u32, @align(64) b: mat3x3<f32> }`
	const memory = "@group(0) @binding(0) var<storage, read_write> a: array<u32>; var<private> i: u32;"
	for _, c := range []struct{ before, body, want string }{
		// Workgroups: 32768 bytes.
		{"var<workgroup> a: array<u32, 8192>;", "a[0] = 1u;", ""},
		{"var<workgroup> a: array<u32, 8193>;", "a[0] = 1u;", "line 1: more than the 32768 bytes"},
		{"var<workgroup> a: array<u32, 4096>;\nvar<workgroup> b: array<vec4<f32>, 1025>;", "a[0] = 1u; b[0].x = 1.0;", "line 2: more than the 32768 bytes"},
		{"var<workgroup> a: array<u32, 4096>;\nvar<workgroup> b: array<vec4<f32>, 1025>;", "a[0] = 1u;", ""}, // of another entry point
		{"var<workgroup> a: array<u32, 9000>; fn f() { a[0] = 1u; } fn g() { f(); }", "g();", "32768"},
		{"var<workgroup> a: array<vec3<u32>, 2048>;", "a[0].x = 1u;", ""},
		{"var<workgroup> a: array<vec3<u32>, 2049>;", "a[0].x = 1u;", "32768"},
		{types + "var<workgroup> a: array<S, 1024>;", "a[0].b = 1u;", ""},
		{types + "var<workgroup> a: array<S, 1025>;", "a[0].b = 1u;", "32768"},
		{types + "var<workgroup> a: array<A, 1024>;", "a[0][1].x = 1.0;", ""},
		{types + "var<workgroup> a: array<A, 1025>;", "a[0][1].x = 1.0;", "32768"},
		{types + "var<workgroup> a: array<B, 170>;", "a[0].a = 1u;", ""}, // 192 bytes each
		{types + "var<workgroup> a: array<B, 171>;", "a[0].a = 1u;", "32768"},
		{types + "var<workgroup> a: array<u32, M>;", "a[0] = 1u;", ""},
		{types + "var<workgroup> a: array<u32, M / Z>;", "a[0] = 1u;", "32768"},
		{types + "var<workgroup> a: array<mat2x2f, N * N / 2>;", "a[0][0].x = 1.0;", ""},
		{"override O = 5u; var<workgroup> a: array<u32, O>;", "a[0] = 1u;", "32768"},
		// An invocation.
		{"var<private> a: array<u32, 65536>;", "", ""},
		{"var<private> a: array<u32, 65537>;", "", "262144"},
		{"var<private> a = array<u32, 65537>();", "", "262144"},
		{"var<private> a: array<u32, 60000>;", "var b: array<u32, 10000>;", "262144"},
		{"", "var b: array<u32, 65536>;", ""},
		{"", "var b: array<u32, 40000>; let c = array<u32, 40000>();", "262144"},
		{"fn f() { var b: array<u32, 9000>; }", "f(); f(); f(); f(); f(); f(); f();", ""},
		{"fn f() { var b: array<u32, 9000>; }", "f(); f(); f(); f(); f(); f(); f(); f();", "262144"},
		{"fn f(p: ptr<function, array<u32, 65536>>) {}", "var b: array<u32, 65536>; f(&b);", ""},
		{"@group(0) @binding(0) var<storage> a: array<u32, 1000000>;", "let b = a[3] + atomicLoad(&a[4]);", ""},
		{"@group(0) @binding(0) var<storage> a: array<u32, 1000000>;", "let b = a;", "262144"},
		{"fn a() {} fn b() { a(); a(); a(); a(); a(); a(); a(); a(); } fn c() { b(); b(); b(); b(); b(); b(); b(); b(); } fn d() { c(); c(); c(); c(); c(); c(); c(); c(); }", "d(); d(); d(); d(); d(); d(); d(); d();", "too long"},
		{"struct B { n: u32, a: array<u32, 1000000> } @group(0) @binding(0) var<storage> b: B;", "let c = b.n + b.a[3];", ""},
		{"struct B { n: u32, a: array<u32, 1000000> } @group(0) @binding(0) var<storage> b: B;", "let c = b.a;", "262144"},
		{"struct B { a: array<u32, 1000000> } alias C = array<B, 3>; @group(0) @binding(0) var<storage> b: C;", "let p = &b[2].a; var c = *p;", "262144"},
		{"struct B { v: vec4<f32>, a: array<u32> } @group(0) @binding(0) var<storage> b: B;", "let n = arrayLength(&b.a); let c = b.v.x + f32(b.a[1]);", ""},
		// Types.
		{"@group(0) @binding(0) var<storage> a: array<vec4<u32>, 134217727>;", "", ""},
		{"@group(0) @binding(0) var<storage> a: array<vec4<u32>, 134217728>;", "", "2 GiB"},
		{"@group(0) @binding(0) var<uniform> a: array<vec4<u32>, 2147483648u>;", "", "2 GiB"},
		{"struct T { @size(4294967295) a: u32, b: u32 }", "var t: T;", "2 GiB"},
		{"alias T = array<array<u32, 65536>, 65536>;", "", "2 GiB"},
		{"@group(0) @binding(0) var<storage> a: array<u32>;", "let b = a[1];", ""},
		{"", "let a = array<u32>();", "without a length"},
		{"alias R = array<u32>; alias Q = R;", "var a = Q(1u);", "without a length"},
		{"", "let a = array(1u, 2u); let b = array<u32, 2>(1u, 2u);", ""},
		{"\nvar<private> a: array<u32, 0>;", "", "line 2: a length that is no positive number"},
		{"var<private> a: array<u32, -1>;", "", "no positive number"},
		{"const N = 3; alias A = array<u32, -N>;", "", "no positive number"},
		{"@group(0) @binding(0) var<storage> a: array<vec4<u32>, 4 - 2 * 2>;", "", "no positive number"},
		{"@group(0) @binding(0) var<storage> a: array<u32, -1 + 4>;", "", ""},
		// What a compiler takes half a minute for.
		{memory, strings.Repeat("a[i] = a[i] + 1u; ", 2000), ""},
		{memory, strings.Repeat("a[i] = a[i] + 1u; ", 2600), "too long"},
		{memory, strings.Repeat("a[i + 1u] = a[i + 2u]; ", 1000), ""},
		{memory, strings.Repeat("a[i + 1u] = a[i + 2u]; ", 1300), "too long"},
		{memory, strings.Repeat("a[1] = 2u; ", 5000), ""},
		// Nonsense.
		{"alias A = A; struct T { t: T } const c = c; const d = e; const e = d; var<private> x: array<A, c>; var<private> y: array<T, d>;", "", "262144"},
		{"struct T", "", ""},
		{"alias", "", ""},
		{"var<workgroup>", "", ""},
		{"var<workgroup> a:", "a = 1;", ""},
		{"fn f", "", ""},
		{"fn f() { " + strings.Repeat("var b: mat4x4<f32>; ", 100) + "}", strings.Repeat("f(); ", 100), ""},
		{"fn f() { " + strings.Repeat("var b: mat4x4<f32>; ", 5000) + "}", "f();", "262144"},
		{"fn f() { var b: array<u32, 17>; }", strings.Repeat("f(); ", 3900), "262144"},
	} {
		if got := excess(t, c.before, c.body); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%.200s | %.200s: got %q, want %q", c.before, c.body, got, c.want)
		}
	}
}

func TestGuarded(t *testing.T) {
	for _, c := range []struct{ source, entry, want string }{
		{"@compute @workgroup_size(1) fn main() { y = 1; }", "main", ""},
		{"fn f() { loop { break; } }\n@compute @workgroup_size(1)\nfn main() {}", "other", ""},
		{
			"fn f() { while a { } }\n@compute @workgroup_size(64, 1) // loop {\nfn main(@builtin(workgroup_id) w: vec3<u32>, /* for */ in: I,) { }", "main",
			"fn f() { while a { if (sublet_guard_end != 0u) { break; } } }\nfn main(w: vec3<u32>, /* for */ in: I,) { }\n" +
				"@group(1) @binding(0) var<storage, read_write> sublet_guard: array<atomic<u32>, 4>;\nvar<private> sublet_guard_end: u32;\n" +
				"@compute @workgroup_size(64, 1) // loop {\n fn sublet_guard_main(@builtin(workgroup_id) sublet_guard_0: vec3<u32>, sublet_guard_1: I, ) {\n" +
				"  sublet_guard_end = atomicLoad(&sublet_guard[2]);\n  main(sublet_guard_0, sublet_guard_1, );\n",
		},
		{"fn sublet_guard() { for (;;) { } } @compute fn main() { }", "main", "sublet_guard0_end"},
	} {
		s, err := Tokenize(c.source)
		if err != nil {
			t.Fatal(err)
		}
		text, entry := s.Guarded(c.entry, 7)
		if (text == "") != (c.want == "") || (entry == "") != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s:\n%s", c.source, text)
		}
	}
}

// FuzzChecks: whatever the text, it is checked and guarded, or is not.
func FuzzChecks(f *testing.F) {
	f.Add("struct S { @align(16) a: array<vec3<f32>, N>, } const N = 1u << 4u; alias A = array<S, 2>; var<workgroup> a: A;\n"+
		"fn f(p: ptr<function, u32>) { while *p > 0u { *p -= 1u; } }\n@compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3<u32>) { var n = 5u; f(&n); }", "main")
	f.Add(pointersOf+"var t: S; f(&t.b[g(&s.a, 1.0)]); let p = &t; h(p); count(&y); }", "main")
	f.Add(zeroedOf+"@compute @workgroup_size(8, 2,) fn main(@builtin(local_invocation_index) i: u32) { use(); b[0].n[1] = 1u; }", "main")
	f.Fuzz(func(t *testing.T, source, entry string) {
		s, err := Tokenize(source)
		if err != nil {
			return
		}
		s.Excess(entry, 1<<14, Effort)
		if whole, _ := s.Pointers(); whole != nil {
			again, err := Tokenize(whole.Text)
			if err != nil {
				t.Fatalf("%v:\n%s", err, whole.Text)
			}
			if whole, why := again.Pointers(); whole != nil || why != "" {
				t.Fatalf("again: %s, %v", why, whole)
			}
		}
		if lines := strings.Count(s.Zeroed(entry), "\n"); lines != strings.Count(source, "\n") {
			t.Fatalf("%d lines:\n%s", lines, s.Zeroed(entry))
		}
		text, main := s.Guarded(entry, 1)
		if text == "" {
			return
		}
		again, err := Tokenize(text)
		if err != nil || !strings.Contains(text, main) {
			t.Fatalf("%v:\n%s", err, text)
		}
		again.Excess(main, 1<<14, Effort)
	})
}

// TestLayout lays out types as WGSL's tables do.
func TestLayout(t *testing.T) {
	const text = `const N = 2u * 3u; alias V = vec3<f32>; struct S { a: f32, b: V, @size(32) c: u32, d: array<vec2u, N>, @align(64) e: mat3x2f }
struct B { a: u32, b: bool } struct R { n: u32, list: array<S> }`
	type row struct {
		typ         string
		size, align int64
		shared      bool
		scalar      string
		lanes       int
		each        int64
	}
	for _, c := range []row{
		{"f32", 4, 4, true, "f32", 1, 0},
		{"V", 12, 16, true, "f32", 3, 0},
		{"vec2<i32>", 8, 8, true, "i32", 2, 0},
		{"vec4h", 8, 8, true, "f16", 4, 0},
		{"bool", 4, 4, false, "bool", 1, 0},
		{"mat3x3<f32>", 48, 16, true, "", 0, 0},
		{"atomic<u32>", 4, 4, true, "", 0, 0},
		{"array<V>", 0, 16, false, "f32", 3, 16},
		{"array<vec2<u32>, N>", 48, 8, true, "u32", 2, 8},
		{"array<bool, 4>", 16, 4, false, "", 0, 0},
		{"S", 192, 64, true, "", 0, 0},
		{"array<S>", 0, 64, false, "", 0, 192},
		{"B", 8, 4, false, "", 0, 0},
		{"R", 64, 64, false, "", 0, 0},
		{"texture_2d<f32>", 0, 0, false, "", 0, 0},
		{"array<f32, M>", -1, 4, false, "f32", 1, 4},
	} {
		s, err := Tokenize(text + " alias T = " + c.typ + ";")
		if err != nil {
			t.Fatal(err)
		}
		var at int
		s.declared(func(_ string, name int) { at = name + 2 })
		l := s.Types().Layout(at)
		if got := (row{c.typ, l.Size, l.Align, l.Shared, l.Scalar, l.Lanes, l.Each}); got != c {
			t.Errorf("got %+v, want %+v", got, c)
		}
		if c.typ != "S" {
			continue
		}
		for i, offset := range []int64{0, 16, 28, 64, 128} {
			if m := l.Members[i]; m.Offset != offset || s.At(m.Name) != string(rune('a'+i)) {
				t.Errorf("member %s is at %d, want %d", s.At(m.Name), m.Offset, offset)
			}
		}
	}
}
