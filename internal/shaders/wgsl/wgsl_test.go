// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"slices"
	"strings"
	"testing"
)

func TestTokenize(t *testing.T) {
	s, err := Tokenize("fn\tf(a: vec2<f32>) { // x(\n return 1e+3 - a.x; /* /* ) */ */ }\u2028@x 0x1p-2")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range s.Tokens {
		got = append(got, s.At(i))
	}
	want := strings.Fields("fn f ( a : vec2 < f32 > ) { return 1e+3 - a . x ; } @ x 0x1p-2")
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if s.Match[2] != 9 || s.Match[9] != 2 || s.Line(11) != 2 {
		t.Errorf("brackets %v, line %d", s.Match, s.Line(11))
	}
}

func TestTokenizeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a\n(]":                          "line 2: a \"]\" without",
		"a\n\n{ (":                       "line 3: a \"(\" without",
		"\n)":                            "line 2: a \")\" without",
		"x /* /* */":                     "line 1: a comment",
		"a\xff":                          "UTF-8",
		"a\x00":                          "zero byte",
		strings.Repeat(" ", maxSource+1): "16 MiB",
	} {
		if _, err := Tokenize(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

func TestQualify(t *testing.T) {
	const text = `
const N = 2; alias F = f32; // N
var<private> state: F;
override o: f32 = 1.0;
struct S { @align(16) a: array<F, N>, N: f32 }
@must_use fn f(x: F) -> F { let a = S(); return g(a.N) + a.a[N] + state * o; }
fn g(N: F) -> F { return N; }
`
	const want = `
const N_z = 2; alias F_z = f32; // N
var<private> state_z: F_z;
override o_z: f32 = 1.0;
struct S_z { @align(16) a: array<F_z, N_z>, N: f32 }
@must_use fn f_z(x: F_z) -> F_z { let a = S_z(); return g_z(a.N) + a.a[N_z] + state_z * o_z; }
fn g_z(N_z: F_z) -> F_z { return N_z; }
`
	s, err := Tokenize(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Qualify("_z"); got != want {
		t.Error(got)
	}
	if name, params, returns := s.Function(); name != "f" || params != 1 || !returns {
		t.Errorf("%s with %d parameters, returns something: %t", name, params, returns)
	}
}

// FuzzQualify reads any text: what is cut must be the text again, and as many tokens after qualifying.
func FuzzQualify(f *testing.F) {
	f.Add("fn f(x: f32) -> f32 { return x; }")
	f.Add("struct S { a: f32, } var<private x")
	f.Add("fn fn struct { var < const")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Tokenize(text)
		if err != nil {
			return
		}
		s.Function()
		q, err := Tokenize(s.Qualify("_z"))
		if err != nil || len(q.Tokens) != len(s.Tokens) {
			t.Fatalf("%d tokens became others: %v", len(s.Tokens), err)
		}
		for i := range s.Tokens {
			if old := s.At(i); q.At(i) != old && q.At(i) != old+"_z" {
				t.Fatalf("%q became %q", old, q.At(i))
			}
		}
		Diagnostics(text, text)
	})
}

// TestWithoutEnable leaves everything else where it is.
func TestWithoutEnable(t *testing.T) {
	for text, want := range map[string]string{
		"enable subgroups;\nfn f() {}":           "                 \nfn f() {}",
		"enable f16;enable subgroups; fn f() {}": "enable f16;                  fn f() {}",
		"enable subgroups, other;":               "                        ",
		"enable f16, subgroups;":                 "enable f16, subgroups;",
		"// enable subgroups;":                   "// enable subgroups;",
		"fn enable() {}":                         "fn enable() {}",
		"enable":                                 "enable",
		"enable subgroups":                       "enable subgroups",
		"enable ( subgroups;":                    "enable ( subgroups;",
	} {
		if got := WithoutEnable(text, []string{"subgroups", "other"}); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
