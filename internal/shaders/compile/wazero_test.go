// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/lanes"
)

// TestComparedConjunctions branches on comparisons of 0 with a conjunction, either of which may be the first, in kernels that wazero
// compiled wrongly, and has functions change a variable of the module through a pointer.
func TestComparedConjunctions(t *testing.T) {
	for _, c := range []struct {
		name, before, body string
		want               []uint32
	}{
		{"for", "", "var v = 0u; for (var k = 0u; k < x[i] % 2u; k++) { v = 100u; break; } r[i] = v;", u(0, 100, 0, 100)},
		{"not less", "", "var v = 0u; loop { if (0u >= (x[i] & 1u)) { break; } v = 100u; break; } r[i] = v;", u(0, 100, 0, 100)},
		{"greater", "", "var v = 0u; loop { if (!((x[i] & 1u) > 0u)) { break; } v = 100u; break; } r[i] = v;", u(0, 100, 0, 100)},
		{"less", "", "if (0u < (x[i] & 2u)) { r[i] = 7u; } else { r[i] = 8u; }", u(8, 8, 7, 7)},
		{"with a sign", "", "let v = bitcast<i32>(x[i] << 31u) & -5; if (0 > v) { r[i] = 7u; } else if (v >= 0) { r[i] = 8u; }", u(8, 7, 8, 7)},
		{"chosen", "", "r[i] = select(3u, 4u, 0u < (x[i] & 2u)) + 10u * select(3u, 4u, (x[i] & 1u) <= 0u);", u(43, 33, 44, 34)},
		{"pointer to a variable of the module", "var<private> s: u32; fn up(p: ptr<private, u32>) { *p += 2u; }", "for (var k = 0u; k < i; k++) { up(&s); } r[i] = s;", u(0, 2, 4, 6)},
		{"pointer handed on", "var<private> s: u32; fn up(p: ptr<private, u32>) { *p += 2u; } fn twice(p: ptr<private, u32>) { up(p); up(p); }", "if (x[i] > 1u) { twice(&s); } s += 1u; r[i] = s;", u(1, 1, 5, 5)},
	} {
		p := parse(t, "@group(0) @binding(0) var<storage, read> x: array<u32>;\n@group(0) @binding(1) var<storage, read_write> r: array<u32>;\n"+c.before+
			"\n@compute @workgroup_size(1)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\nlet i = id.x + x[0];\n"+c.body+"\n}\n")
		for _, o := range []compile.Options{{Wazero: true}, {Wazero: true, Guard: true}, {Wazero: true, Widen: lanes.Widen, Always: true}} {
			m, err := compile.Generate(p, o)
			if err != nil {
				t.Errorf("%s: %+v: %v", c.name, o, err)
				continue
			}
			r := make([]byte, 16)
			compiletest.Run(t, m, [3]uint32{4, 1, 1}, nil, [][]byte{words(0, 1, 2, 3), r})
			if got := []uint32{word(r, 0), word(r, 1), word(r, 2), word(r, 3)}; !slices.Equal(got, c.want) {
				t.Errorf("%s: %+v: got %v, want %v", c.name, o, got, c.want)
			}
		}
	}
}
