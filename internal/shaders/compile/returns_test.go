// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
)

// TestReturnsAfterBarriers has some invocations return after the last barrier of a function, or of a part of one, while others stay.
func TestReturnsAfterBarriers(t *testing.T) {
	head := "@group(0) @binding(0) var<storage, read> x: array<u32>;\n@group(0) @binding(1) var<storage, read_write> r: array<u32>;\nvar<workgroup> w: array<u32, 8>;\n"
	arm := "{ workgroupBarrier(); if (i > 3u) { r[i] = 7u; return; } r[i] = 1u; }"
	for _, c := range []struct {
		name, before, body string
		want               []uint32
	}{
		{"call", "fn g(i: u32) -> u32 { w[i] = i; workgroupBarrier(); if (w[7u - i] > 3u) { return 50u + w[i]; } return x[i]; }", "r[i] = g(i);", u(50, 51, 52, 53, 5, 6, 7, 8)},
		{"two calls", "fn g(i: u32) -> u32 { w[i] = i; workgroupBarrier(); if (w[7u - i] > 3u) { return 50u; } return x[i]; }", "let k = g(i); workgroupBarrier(); r[i] = k + 100u * g(i);", u(5050, 5050, 5050, 5050, 505, 606, 707, 808)},
		{"if", "", "if (x[0] == 1u) " + arm + " r[i] += 10u;", u(11, 11, 11, 11, 7, 7, 7, 7)},
		{"break of a switch", "", "switch (x[0]) { case 1u: { w[i] = i; workgroupBarrier(); if (w[7u - i] > 3u) { break; } r[i] = 5u; } default: { } } r[i] += 10u;", u(30, 30, 30, 30, 15, 15, 15, 15)},
		{"break of an if in a switch", "", "switch (x[0]) { case 1u: { if (x[1] == 2u) { w[i] = i; workgroupBarrier(); if (i % 2u == 0u) { break; } r[i] = 5u; } r[i] += 20u; break; } default: { } } r[i] += 10u;", u(30, 35, 30, 35, 30, 35, 30, 35)},
		{"break before a barrier", "", "switch (x[0]) { case 1u: { if (x[2] == 3u) { break; } workgroupBarrier(); r[i] = 5u; } default: { } } r[i] += 10u;", u(30, 30, 30, 30, 30, 30, 30, 30)},
		{"break in a loop in a switch", "", "switch (x[0]) { case 1u: { workgroupBarrier(); for (var k = 0u; k < 9u; k++) { if (k == i) { break; } r[i] = k; } switch (i) { case 3u: { if (x[0] == 1u) { break; } } default: { r[i] += 1u; } } r[i] += 5u; } default: { } }", u(18, 6, 7, 7, 9, 10, 11, 12)},
		{"switch", "", "switch (x[0]) { case 1u: " + arm + " default: { } } r[i] += 10u;", u(11, 11, 11, 11, 7, 7, 7, 7)},
	} {
		p := parse(t, head+c.before+"\n@compute @workgroup_size(8)\nfn main(@builtin(local_invocation_index) i: u32) {\n"+c.body+"\n}\n")
		for _, o := range append([]compile.Options{{}, {Guard: true, Wazero: true}}, widened...) {
			m, err := compile.Generate(p, o)
			if err != nil {
				t.Fatal(err)
			}
			r := make([]byte, 32)
			compiletest.Run(t, m, [3]uint32{3, 1, 1}, nil, [][]byte{words(1, 2, 3, 4, 5, 6, 7, 8), r}) // the frames of the first workgroup are used again
			var got []uint32
			for k := range 8 {
				got = append(got, word(r, k))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %+v: got %v, want %v", c.name, o, got, c.want)
			}
		}
	}
}
