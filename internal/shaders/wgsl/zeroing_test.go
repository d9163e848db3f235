// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
	"testing"
)

const zeroedOf = `const N = 4u; alias U = u32; alias List = array<array<U, 2>, N>; alias More = S;
struct S { a: atomic<u32>, n: array<u32, 2>, deep: array<T, 3,>, }
struct T { b: array<atomic<i32>, N>, c: f32 }
var<workgroup> a: List; var<workgroup> b: array<More, 2 * N,>; var<private> p: u32;
var<workgroup> c: /* one */ array /* two */ < // three
  vec2<f32>, // four
  1u << 2u // five
>; var<workgroup> d: vec3f; var<workgroup> e: atomic<u32>; var<workgroup> x: T; var<workgroup> long: array<u32, max(3, 2)>;
fn use() { d.x = 1.0; }
struct In { @builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) i: u32 } alias Also = In;
`

func TestZeroed(t *testing.T) {
	const group = "@compute @workgroup_size(8) "
	for _, c := range []struct{ entry, want, behind string }{
		{group + "fn main() { p = 1u; }", "", ""},
		{group + "fn main(@builtin(local_invocation_index) i: u32) { p = i; }", "", ""},
		{
			group + "fn main() { use(); }", "fn main(@builtin(local_invocation_index) ZERO_index: u32, ) { ZERO(ZERO_index); workgroupBarrier(); use(); }",
			" fn ZERO(ZERO_index: u32) { let ZERO_size = u32(8); if (ZERO_index == 0u) { d = vec3f(); } }",
		},
		{
			group + "fn main(@builtin(workgroup_id) d: vec3u, @builtin(local_invocation_index) i: u32,) { use(); }", "{ ZERO(i); workgroupBarrier(); use(); }",
			"{ d = vec3f(); } }",
		},
		{group + "fn main(in: In) { use(); }", "fn main(in: In) { ZERO(in.i);", ""},
		{group + "fn main(in: Also,) { use(); }", "fn main(in: Also,) { ZERO(in.i);", ""},
		{
			"@workgroup_size(N * 2u, 3, 1, ) @compute fn main() { a[0][1] = 1u; }", "ZERO(ZERO_index);",
			"let ZERO_size = u32(N * 2u) * u32(3) * u32(1); for (var ZERO0 = ZERO_index; ZERO0 < u32(N); ZERO0 = ZERO0 + ZERO_size) { a[ZERO0] = array<U, 2>(); } }",
		},
		{
			group + "fn main() { b[0].n[0] = 1u; }", "ZERO(ZERO_index);",
			"for (var ZERO0 = ZERO_index; ZERO0 < u32(2 * N); ZERO0 = ZERO0 + ZERO_size) { atomicStore(&b[ZERO0].a, u32(0)); b[ZERO0].n = array<u32, 2>();" +
				" for (var ZERO1 = 0u; ZERO1 < u32(3); ZERO1 = ZERO1 + 1u) {" +
				" for (var ZERO2 = 0u; ZERO2 < u32(N); ZERO2 = ZERO2 + 1u) { atomicStore(&b[ZERO0].deep[ZERO1].b[ZERO2], i32(0)); } b[ZERO0].deep[ZERO1].c = f32(); } } }",
		},
		{group + "fn main( // it\n) { c[0].x = 1.0; }", "main(@builtin(local_invocation_index) ZERO_index: u32,  // it\n) { ZERO", "u32(1u << 2u); ZERO0 = ZERO0 + ZERO_size) { c[ZERO0] = vec2<f32>(); } }"},
		{group + "fn main() { atomicAdd(&e, 1u); }", "ZERO(", "if (ZERO_index == 0u) { atomicStore(&e, u32(0)); } }"},
		{group + "fn main() { x.c = 1.0; }", "ZERO(", "{ atomicStore(&x.b[ZERO0], i32(0)); } if (ZERO_index == 0u) { x.c = f32(); } }"},
		{group + "fn main() { long[0] = 1u; }", "ZERO(", "ZERO0 < u32(max(3, 2)); ZERO0 = ZERO0 + ZERO_size) { long[ZERO0] = u32(); } }"},
		{group + "fn sublet_zero() { use(); } @compute @workgroup_size(2) fn main() { sublet_zero(); }", "{ sublet_zero_(sublet_zero__index);", "{ d = vec3f(); } }"},
		{group + "fn other() { e = 1; } @compute @workgroup_size(2) fn main() { use(); } // end", "fn other() { e = 1; }", "let ZERO_size = u32(2); if (ZERO_index == 0u) { d = vec3f(); } } // end"},
	} {
		source := zeroedOf + c.entry
		s, err := Tokenize(source)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Zeroed("main")
		name := func(text string) string { return strings.ReplaceAll(text, "ZERO", "sublet_zero") }
		if c.want == "" && got != source {
			t.Errorf("%s: changed:\n%s", c.entry, got)
		}
		if !strings.Contains(got, name(c.want)) || !strings.HasSuffix(got, name(c.behind)) {
			t.Errorf("%s: got\n%s", c.entry, got[len(zeroedOf):])
		}
		if strings.Count(got, "\n") != strings.Count(source, "\n") {
			t.Errorf("%s: other lines:\n%s", c.entry, got)
		}
	}
}

// What no compiler takes is left alone, and in time: the work of types within types is bounded.
func TestZeroedHostile(t *testing.T) {
	const main = " @compute @workgroup_size(1) fn main() { _ = a; }"
	var twice strings.Builder
	for i := range 100 {
		twice.WriteString(strings.NewReplacer("#", strconv.Itoa(i), "@", strconv.Itoa(i+1)).Replace("struct S# { a: S@, b: S@ } "))
	}
	for _, source := range []string{
		"var<workgroup> a:", "var<workgroup> a: array<", "var<workgroup> a: array<f32", "var<workgroup> a: array<f32,", "fn main() -> u32; fn f() { a = 1; } var<workgroup> a: u32;",
		"var<workgroup> a: array<f32>;" + main, "var<workgroup> a: array<f32,>;" + main, "var<workgroup> a: array<,>;" + main, "var<workgroup> a: array<array<f32>, 2>;" + main,
		"alias A = A; var<workgroup> a: A;" + main, "alias A = array<A, 2>; var<workgroup> a: A;" + main, "var<workgroup> a: array<f32, 2;" + main,
		"struct S { a: S, b: S } var<workgroup> a: S;" + main, "struct S { x: atomic<u32>, a: S, b: S } var<workgroup> a: S;" + main,
		twice.String() + "alias S100 = f32; var<workgroup> a: S0;" + main, twice.String() + "alias S100 = atomic<u32>; var<workgroup> a: S0;" + main,
		twice.String() + "alias S100 = atomic<u32>; var<workgroup> a: S80;" + main,
		strings.ReplaceAll(twice.String(), "a:", "x: atomic<u32>, a:") + "var<workgroup> a: S0;" + main,
		"var<workgroup> a: u32; @workgroup_size(,) fn main() { a = 1u; }", "var<workgroup> a: u32; @workgroup_size() fn main(,) { a = 1u; }",
		"var<workgroup> a: u32; @workgroup_size(1) fn main(: In, @builtin(local_invocation_index) : u32) { a = 1u; }",
		"struct In { " + strings.Repeat("a: u32, ", 1<<15) + "} var<workgroup> a: u32; fn main(" + strings.Repeat("i: In, ", 1<<15) + ") { a = 1u; }",
		strings.Repeat("fn main() { a = 1u; } ", 10) + "var<workgroup> a: " + strings.Repeat("array<", 1<<15) + "f32" + strings.Repeat(", 2>", 1<<15) + ";",
	} {
		s, err := Tokenize(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Zeroed("main"); len(got) > len(source)+2*maxZeroing {
			t.Errorf("%.100s: %d bytes", source, len(got))
		}
	}
}
