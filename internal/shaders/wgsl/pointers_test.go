// SPDX-License-Identifier: Apache-2.0

package wgsl

import "testing"

func TestTmp(t *testing.T) {
	for _, src := range []string{
		"struct S { a: f32, b: array<f32, 4> } var<private> s: S;\nfn f(p: ptr<function, f32>) {\n *p = 1.0;\n}\nfn g(q: ptr<private, f32>, n: u32) -> f32 { *q += 1.0; return *q; }\nfn h(p: ptr<function, S>) { f(&(*p).a); f(&p.b[2]); }\n" +
			"fn st(p: ptr<storage, array<u32>, read_write>, i: u32) { (*p)[i] = arrayLength(p); }\n@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n" +
			"@compute @workgroup_size(1) fn main() { var t: S; f(&t.a); let i = 2; let p = &t.b[i + 1]; f(p); if g(&s.b[y[0]], 3u) > 1.0 { h(&t); } let q = &s.a; _ = g(q, 1u); st(&y, 3u); var u: array<S, 3>; h(&u[i]); f(&u[1].b[g(\n&s.a, 1u)]); { let t = 1; f(p); } }",
	} {
		s, err := Tokenize(src)
		if err != nil {
			t.Fatal(err)
		}
		w, why := s.Pointers()
		t.Log(why)
		if w != nil {
			t.Log(w.Text)
		}
	}
}
