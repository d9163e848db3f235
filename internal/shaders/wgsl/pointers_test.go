// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strings"
	"testing"
)

const pointersOf = `struct S { a: f32, b: array<f32, 4> }
alias F = ptr<function, f32>; alias A = array<S, 2>; alias B = A;
var<private> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
fn f(p: F) {
  *p = 1.0;
}
fn g(q: ptr<private, f32>, s: f32) { *q += s; }
fn h(p: ptr<function, S>) { f(&(*p).a); }
@must_use
fn count(p: ptr<storage, array<u32>, read_write>) -> u32 {
  return arrayLength(p);
}
fn main() {
`

func TestPointers(t *testing.T) {
	for _, c := range []struct{ body, want, copies string }{
		{"var x: f32; let p = &x; f(p); f(&x); f(&(x)); var t: S; h(&t);", "", ""}, // but for what h does
		{
			"var t: S; f(&t.a);", "var t: S; f_1(&t);",
			"fn f_1(pointer_2: ptr<function, S>) { let p = &(*pointer_2).a;\n  *p = 1.0;\n}",
		},
		{
			"var t = array<S, 2>();\nlet p = &t[i + 1];\nh(p);", "var t = array<S, 2>();\nlet index_1 = u32(~(~(i + 1))); let p = &t[index_1];\nh_4(&t, index_1);",
			"fn h_4(pointer_5: ptr<function, array<S,2>>, index_6: u32) { let p = &(*pointer_5)[index_6]; f_7(pointer_5, index_6); }\n" +
				"fn f_7(pointer_8: ptr<function, array<S,2>>, index_9: u32) { let p = &(*pointer_8)[index_9].a;\n",
		},
		{
			"var t: array<B, 3>; let p = &t[1]; { const N = 2; f(&(*p)[N - 1].a); }",
			"{ const N = 2; f_3(&t, u32(~(~(N - 1)))); }", "fn f_3(pointer_4: ptr<function, array<B,3>>, index_5: u32) { let p = &(*pointer_4)[1][index_5].a;",
		},
		{"g(&s.b[1],\n 2.0);", "g_3(2.0)\n;", "fn g_3(s_4: f32) { let q = &s.b[1]; *q += s_4; }"},
		{"let t = &s; { let s = 1; g(&t.a, 1.0); }", "{ let s = 1; g_3(1.0); }", "let q = &s.a;"},
		{"var t: S; let p = &t.a; { let t = 1; f(p); }", "var t_1: S; let p = &t_1.a; { let t = 1; f_2(&t_1); }", ""},
		{"_ = count(&y);", "\n\n\n\nfn main() {\n_ = count_3();", "fn count_3() -> u32 { let p = &y;\n  return arrayLength(p);\n}"},
	} {
		s, err := Tokenize(pointersOf + c.body + "\n}")
		if err != nil {
			t.Fatal(err)
		}
		whole, why := s.Pointers()
		if why != "" {
			t.Errorf("%s: %s", c.body, why)
			continue
		}
		if !strings.Contains(whole.Text, c.want) || !strings.Contains(whole.Text, c.copies) {
			t.Errorf("%s: got\n%s", c.body, whole.Text)
		}
	}
}

func TestPointersLeavesTexts(t *testing.T) {
	for _, text := range []string{
		"", "fn f(p: ptr<function, f32>) { *p = 1.0; } fn main() { var x: f32; f(&x); let q = &x; f(q); }",
		"fn f(p: ptr<function, f32>) { g(p); } fn g(q: ptr<function, f32>) {}",
		"fn f(p: ptr<function, u32>) -> u32 { return *p; } fn main() { var x = 1u; if x < f(&x) && x > 2u { } }",
		"fn f(a: u32, b: bool, c: u32) {} fn main() { f(1u, 2u < 3u, 4u); f(array<u32, 2>(1u, 2u)[0], 1u < 2u && 4u < 3u, 3u,); }",
		"fn f(p: ptr<storage, array<u32>>) -> u32 { return (*p)[0]; }",
		"fn main() { let p = &s.a; *p = 1.0; atomicAdd(&y[i], 1u); }",
	} {
		s, err := Tokenize(text)
		if err != nil {
			t.Fatal(err)
		}
		if whole, why := s.Pointers(); whole != nil || why != "" {
			t.Errorf("%s: %s, %+v", text, why, whole)
		}
	}
}

func TestPointersRefused(t *testing.T) {
	const before = "struct S { a: f32, v: vec4<f32> } alias P = ptr<function, f32>; fn f(n: u32, p: P) {} fn main() {\n"
	for _, c := range []struct{ body, want string }{
		{"var v: vec4<f32>; f(1u, &v.x);", "not of the parameter's type"},
		{"var v: S; let p = &v.v[1]; let q = p; f(1u, q);", "not of the parameter's type"},
		{"var v = vec4(1.0); f(1u, &v.x);", "not of the parameter's type"},
		{"var v: array<u32, 2>; f(1u, &v[0]);", "not of the parameter's type"},
		{"const N = 2; var v: array<f32, N>; f(1u, &v[0]);", "plain from its declaration"},
		{"f(1u);", "too few"},
		{"f(1u, 1.0);", "should be a pointer"},
		{"f(1u, &f);", "should be a pointer"},
		{"let x = 1.0; f(1u, &x);", "should be a pointer"},
		{"var v: array<f32, 2>; for (let p = &v[i]; ; ) { f(1u, p); }", "head of a loop"},
	} {
		s, err := Tokenize(before + c.body + "\n}")
		if err != nil {
			t.Fatal(err)
		}
		if _, why := s.Pointers(); !strings.HasPrefix(why, "line 2: ") || !strings.Contains(why, c.want) {
			t.Errorf("%s: got %q, want %q", c.body, why, c.want)
		}
	}
}

// Copies of copies end: by their number, and by their size.
func TestPointersEnds(t *testing.T) {
	for _, text := range []string{
		"struct S { s: array<S, 2> } fn f(p: ptr<function, S>) { f(&(*p).s[0]); } fn main() { var t: S; f(&t.s[0]); }",
		"struct S { a: f32 } fn f(p: ptr<private, f32>) { " + strings.Repeat("*p += 1.0; ", 10000) + "}\n" + func() string {
			var all strings.Builder
			for i := range 20 {
				all.WriteString(strings.ReplaceAll("var<private> s#: S; fn f#() { f(&s#.a); }\n", "#", string(rune('a'+i))))
			}
			return all.String()
		}(),
	} {
		s, err := Tokenize(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, why := s.Pointers(); !strings.Contains(why, "one for each kind of pointer") {
			t.Errorf("got %q", why)
		}
	}
}

// What compilers say about copies names lines of the user's text.
func TestPointersReport(t *testing.T) {
	s, err := Tokenize(pointersOf + "var t: S; f(&t.a);\n}")
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := s.Pointers()
	line := 1 + strings.Count(whole.Text[:strings.Index(whole.Text, "fn f_1")], "\n")
	for n, want := range map[int]int{1: 1, 16: 16, line: 5, line + 1: 6} {
		if got := whole.Original(n); got != want {
			t.Errorf("line %d is line %d of the user's text, want %d", n, got, want)
		}
	}
	const report = "no `x`\n   ┌─ wgsl:NN:4\n   │\nNN │ *p = x\nline NN: and 7 wgsl: line \n"
	lines := strings.NewReplacer("NN", "18")
	if line != 17 {
		t.Fatalf("the copy is on line %d", line)
	}
	if got, want := whole.Report(lines.Replace(report)), strings.NewReplacer("wgsl:NN", "wgsl:6", "line NN", "line 6", "NN", " 6").Replace(report); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
