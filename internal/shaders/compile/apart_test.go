// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"bytes"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
)

// TestApart has one function's multiplications and additions rounded one by one, called in place or not, and no other's.
func TestApart(t *testing.T) {
	madd, nmadd := []byte{0xfd, 0x85, 0x02}, []byte{0xfd, 0x86, 0x02}
	p := parse(t, `@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> r: array<vec4<f32>>;
fn zero(a: vec4<f32>) -> vec4<f32> { return a * a - a * a; }
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) g: vec3<u32>) { r[g.x] = zero(x[g.x]); r[g.x + 1u] = zero(x[g.x + 1u]); r[g.x + 2u] = x[g.x] * x[g.x + 1u] + x[g.x + 2u]; }
`)
	for apart, fused := range map[string]int{"": 1, "zero": 0, "other": 1} {
		m, err := compile.Generate(p, compile.Options{Exact: true, Relaxed: true, Fuse: true, Apart: apart})
		if err != nil {
			t.Fatal(err)
		}
		if n := min(bytes.Count(m.Wasm, nmadd), 1); n != fused {
			t.Errorf("apart %q: differences are fused: %d, want %d", apart, n, fused)
		}
		if n := bytes.Count(m.Wasm, madd); n != 1 {
			t.Errorf("apart %q: %d sums are fused, want 1", apart, n)
		}
	}
}
