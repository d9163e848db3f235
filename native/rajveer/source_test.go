// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package rajveer

import "testing"

func TestRewrite(t *testing.T) {
	const declared = "const N = M * 2u; const M = 0x8u;\n"
	for source, want := range map[string]string{
		"@workgroup_size(N) fn k() {}":                 "@workgroup_size(16) fn k() {}",
		"@workgroup_size(WIDE)\nconst WIDE = 8;":       "@workgroup_size(8   )\nconst WIDE = 8;",
		"@workgroup_size(N, 4, M-1u) fn k()":           "@workgroup_size(16, 4, 7   ) fn k()",
		"@workgroup_size(M +\nM) fn k() {}":            "@workgroup_size(16\n   ) fn k() {}",
		"@workgroup_size(64u, X) fn k() {}":            "@workgroup_size(64u, X) fn k() {}",
		"@workgroup_size(N // size\n)":                 "@workgroup_size(16 // size\n)",
		"// @workgroup_size(N)":                        "// @workgroup_size(N)",
		"const A: u32 = N / 4u; fn f() {}":             "const A: u32 = 4u    ; fn f() {}",
		"const A: i32 =\n(3 - 1) * 2;":                 "const A: i32 =\n4i         ;",
		"const A = f32(9e-01); const B = u32(2u);":     "const A = 9e-01f; const B = 2u;",
		"const A: f32 = f32 (3);":                      "const A: f32 = 3f;",
		"const A = f32(0xf); const B = u32(2.0);":      "const A = f32(0xf); const B = u32(2.0);",
		"const A = f32(N); const B = vec2(1)":          "const A = f32(N); const B = vec2(1)",
		"const A = N; const B: f32 = 1.0 / 2.0; const": "const A = N; const B: f32 = 1.0 / 2.0; const",
		"const A: u32 = A; const B: u32 = 3":           "const A: u32 = A; const B: u32 = 3",
		"@workgroup_size()":                            "@workgroup_size()",

		"loop { continuing { break if i > a[i]; } }": "loop { continuing { let sublet_break = i > a[i]; break if sublet_break; } }",
		"break if (a);\nbreak if\nsublet_break;":     "let sublet_break0 = (a); break if sublet_break0;\nlet sublet_break0 =\nsublet_break; break if sublet_break0;",
		"{ break if }":                               "{ break if }",
		"{ break if ; }":                             "{ break if ; }",
		"break if":                                   "break if",
		"break if (a":                                "break if (a",
	} {
		if got := rewrite(declared + source); got != declared+want {
			t.Errorf("%q became %q, want %q", source, got[len(declared):], want)
		}
	}
}
