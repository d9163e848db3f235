// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/compile"
)

// number writes a text for each number below n.
func number(n int, text string) string {
	var b strings.Builder
	for k := range n {
		b.WriteString(strings.ReplaceAll(text, "#", strconv.Itoa(k)))
	}
	return b.String()
}

// Long programs are translated, or are too large; what is made of them is valid.
func TestLongPrograms(t *testing.T) {
	for name, p := range map[string]program{
		"shifts":   {body: "var x = i; " + number(2000, "x = (x << 1u) + 1u; ") + "r[x & 3u] = x;"},
		"sums":     {body: "var x = i; " + number(2000, "x = x + x; ") + "r[x >> 2u] = x;"},
		"swizzles": {body: "var x = vec4<u32>(i, i + 1u, i + 2u, i + 3u); " + number(2000, "x = x.yzwx; x.x = i; ") + "r[i] = x.x + x.w;"},
		"breaks":   {body: "var x = i; loop { " + number(500, "x += 1u; if (x == 7u) { break; } ") + "} r[i] = x;"},
		"ifs":      {body: "var x = i; var y = x; " + number(500, "if (x == y) { x += r[y]; } else { y += 3u; r[x] = y; } ") + "r[i] = x;"},
		"loops":    {body: "var x = i; var y = x; " + number(300, "for (var k = 0u; k < x; k++) { y += r[k]; x = y; } ") + "r[i] = x;"},
		"many variables": {
			body: number(1000, "var v# = r[#u + i]; ") + "loop { if (r[0] == i) { break; } " + number(1000, "v# += r[v#] + v7; ") + "} r[i] = v7;",
		},
		"sines":    {body: "var x = f32(i); " + number(100, "x = sin(x) * x + exp(x); ") + "r[i] = u32(x);"},
		"barriers": {before: "var<workgroup> w: array<u32, 64>;", body: "var x = i; var y = x; " + number(100, "w[i] = x; workgroupBarrier(); y += w[3u - i]; let z# = y; workgroupBarrier(); x += z#; ") + "r[i] = x;"},
		"blocks":   {body: strings.Repeat("{ ", 90) + "r[i] = 1u;" + strings.Repeat(" }", 90)},
		"nested":   {body: "var x = i; " + number(60, "for (var k# = 0u; k# < x; k#++) { if (k# == x) { continue; } ") + "x += 1u;" + strings.Repeat(" }", 60) + " r[i] = x;"},
	} {
		mod, err := compile.Compile(p.text("u32"), "main", compile.Options{Guard: true})
		if err != nil {
			if !errors.Is(err, fault.ErrLimit) {
				t.Errorf("%s: %.200v", name, err)
			}
			continue
		}
		rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
		if _, err = rt.CompileModule(t.Context(), mod.Wasm); err != nil {
			t.Errorf("%s: %.200v", name, err)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
