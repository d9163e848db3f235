// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"bytes"
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/front"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/lanes"
)

// widened are the options that run four invocations at a time.
var widened = []compile.Options{{Lanes: compile.LanesAlways}, {Lanes: compile.LanesAlways, Guard: true, Wazero: true}}

func parse(t *testing.T, text string) *ir.Program {
	t.Helper()
	p, err := front.Parse(text, "main")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// TestLanesPrograms runs the programs four invocations at a time.
func TestLanesPrograms(t *testing.T) {
	for kind, list := range map[string][]program{"u32": programs, "f32": realPrograms} {
		for _, p := range list {
			want := p.want
			if p.name == "atomics" { // each function by all before the next one
				want = u(1000001010, 1000101010, 1000301010, 1000601010)
			}
			if lanes.Widen(parse(t, p.text(kind))) == nil {
				t.Errorf("%s stays as it is", p.name)
			}
			for _, o := range widened {
				r := make([]byte, 16)
				run(t, o, p.text(kind), nil, words(1, 2, 3, 4, 5, 6, 7, 8), r)
				if got := []uint32{word(r, 0), word(r, 1), word(r, 2), word(r, 3)}; !slices.Equal(got, want) {
					t.Errorf("%s: got %v, want %v", p.name, got, want)
				}
			}
		}
	}
}

// TestLanesElementwise computes what is computed by component.
func TestLanesElementwise(t *testing.T) {
	for _, o := range widened {
		for _, e := range elementwises {
			t.Run(e.name+" "+e.sig, func(t *testing.T) { e.run(t, o) })
		}
	}
}

// TestLanesShortBuffers has some of the invocations out of range.
func TestLanesShortBuffers(t *testing.T) {
	text := "@group(0) @binding(0) var<storage, read> x: array<u32>;\n@group(0) @binding(1) var<storage, read_write> r: array<u32>;\n" +
		"var<workgroup> b: array<bool, 20>;\n@compute @workgroup_size(20)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n" +
		"  let i = id.x; b[i] = i % 3u == 0u; if (i < LIMITu) { r[i] = x[i + 2u] + 100u * x[3u * i + 1u] + 10000u * u32(b[i]); }\n}\n"
	for limit := range 20 {
		for n := 1; n < 14; n++ {
			mod := parse(t, strings.ReplaceAll(text, "LIMIT", strconv.Itoa(limit)))
			var got [2][]byte
			for k, mode := range []compile.Lanes{compile.LanesNever, compile.LanesAlways} {
				m, err := compile.Generate(mod, compile.Options{Lanes: mode})
				if err != nil {
					t.Fatal(err)
				}
				got[k] = make([]byte, 4*n)
				compiletest.Run(t, m, [3]uint32{1, 1, 1}, nil, [][]byte{words(16, 1, 2, 3, 4, 5, 6, 7, 8, 9)[:4*min(n, 10)], got[k]})
			}
			if at := min(n, limit); !bytes.Equal(got[0][:4*(at-at/n)], got[1][:4*(at-at/n)]) { // the last element may be anybody's
				t.Errorf("%d elements below %d: got %v, want %v", n, limit, got[1], got[0])
			}
		}
	}
}

// TestLanesEndless stops loops that some of the invocations never leave.
func TestLanesEndless(t *testing.T) {
	for _, body := range []string{
		"loop { if (x[i] == 77u) { break; } }", "while (i < 2u) { }", "loop { if (i == 1u) { continue; } break; }",
		"loop { loop { if (i < 2u) { continue; } return; } }", "loop { switch (i) { case 1u: { continue; } default: { } } if (i != 1u) { return; } }",
		"loop { continuing { break if x[i] == 99u && i > 2u; } }", "spin(i);",
	} {
		p := program{before: "fn spin(k: u32) { loop { if (k == x[k]) { return; } } }", body: "r[0] = x[0]; " + body}
		mod, err := compile.Generate(parse(t, p.text("u32")), compile.Options{Guard: true, Lanes: compile.LanesAlways})
		if err != nil {
			t.Fatal(err)
		}
		h := compiletest.Load(t, mod, [3]uint32{1, 1, 1}, nil, [][]byte{words(1, 2, 3, 4, 5, 6, 7, 8), make([]byte, 16)})
		h.SetTurns(20000)
		if r := h.Launch(t); r != 2 {
			t.Errorf("%s: with too many turns the result is %d", body, r)
		}
		h.SetTurns(0)
		h.Stop()
		if r := h.Launch(t); r != 1 {
			t.Errorf("%s: told to stop, the result is %d", body, r)
		}
	}
}

var (
	firstKernel = flag.Uint64("kernel", 1, "the first random kernel")
	kernelCount = flag.Uint64("kernels", 150, "how many random kernels")
)

// TestLanesRandom compares what random kernels compute four invocations at a time with what one after another do.
func TestLanesRandom(t *testing.T) {
	in := floats(someFloats...)
	for k := range 40 {
		in = append(in, floats(float32(k)*0.37)...)
	}
	refused, same := uint64(0), uint64(0)
	for seed := *firstKernel; seed < *firstKernel+*kernelCount; seed++ {
		size := []struct {
			text string
			n    int
		}{{"4", 4}, {"8", 8}, {"6", 6}, {"5, 2", 10}, {"8, 2", 16}, {"3", 3}, {"4, 2, 2", 16}}[seed%7]
		text := kernel(seed, size.text, size.n)
		p, err := front.Parse(text, "main")
		switch {
		case err != nil:
			refused++
			continue
		case lanes.Widen(p) == nil:
			same++
		}
		var got [2][]byte
		for i, mode := range []compile.Lanes{compile.LanesNever, compile.LanesAlways} {
			mod, err := compile.Generate(p, compile.Options{Guard: seed%2 == 0, Wazero: seed%3 > 0, Lanes: mode})
			if err != nil {
				t.Fatalf("%d: %v", seed, err)
			}
			got[i] = bytes.Repeat([]byte{1, 2, 3, 5, 0, 0, 9, 0}, 2*size.n*4)
			compiletest.Run(t, mod, [3]uint32{2, 1, 1}, nil, [][]byte{in, got[i]})
		}
		for k := range len(got[0]) / 4 {
			if a, b := word(got[0], k), word(got[1], k); a != b {
				t.Errorf("%d: word %d of invocation %d is %#x, want %#x\n%s", seed, k%8, k/8, b, a, text)
				break
			}
		}
	}
	if refused+same > *kernelCount/10 {
		t.Errorf("of %d kernels %d are refused, and %d stay as they are", *kernelCount, refused, same)
	}
}
