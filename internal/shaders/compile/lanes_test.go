// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"bytes"
	"flag"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/front"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/lanes"
)

// widened are the options that run four invocations at a time.
var widened = []compile.Options{{Widen: lanes.Widen, Always: true}, {Widen: lanes.Widen, Always: true, Guard: true, Wazero: true}}

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
			for k, mode := range []compile.Options{{}, widened[0]} {
				m, err := compile.Generate(mod, mode)
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

// TestLanesLikeOne compares kernels four invocations at a time with the same ones one after another: values that are used twice, variables
// that invocations need after they have left a loop, and barriers in the middle of expressions. With 13 the last group is not full.
func TestLanesLikeOne(t *testing.T) {
	head := "@group(0) @binding(0) var<storage, read> x: array<u32>;\n@group(0) @binding(1) var<storage, read_write> r: array<u32>;\nvar<workgroup> w: array<u32, 16>;\n"
	for _, c := range []struct{ name, before, body string }{
		{"distance of a value", "", "let a = vec2f(f32(x[i]), 1.0); let b = vec2f(f32(x[i] * 3u), 2.0); let d = distance(a, b); r[i] = u32(b.x) + 1000u * u32(10.0 * d);"},
		{"variable begins with another", "", "var a = 0u; var j = 0u; loop { if (j >= i) { break; } j++; a = j; } var b = a; b += 1u; r[i] = b + x[0];"},
		{"index by another", "", "var a = 0u; var j = 0u; loop { if (j >= i) { break; } j++; a = j; } var c = a + 1u; r[i] = c + x[0];"},
		{"barrier in call", "fn g(i: u32) -> u32 { w[i] = i; workgroupBarrier(); return w[15u - i]; }", "r[i] = x[i] * 7u + g(i) + i;"},
		{"barrier in call, index", "fn g(i: u32) -> u32 { w[i] = i; workgroupBarrier(); return w[15u - i]; }", "r[(i * 5u + x[i]) % 16u] = g(i) + i;"},
		{"barrier in condition", "fn g(i: u32) -> u32 { w[i] = i; workgroupBarrier(); return w[15u - i]; }", "var k = x[i]; if (x[i] * 3u + g(i) > 9u) { k += 100u; } r[i] = k;"},
		{"barrier in loop", "fn g(i: u32) -> u32 { w[i] += i; workgroupBarrier(); let v = w[15u - i]; workgroupBarrier(); return v; }", "var k = x[i]; for (var j = 0u; j < 3u; j++) { k = k * 3u + g(i); } r[i] = k;"},
		{"break if", "", "var s = 0u; var j = 0u; loop { if (x[i] == 3u) { continue; } s += j; continuing { j++; break if j > x[i]; } } r[i] = s * 100u + j;"},
		{"switch", "", "var s = 0u; for (var j = 0u; j < 6u; j++) { switch (x[i] % 4u) { case 1u: { if (j > i) { break; } s += 1u; } case 2u: { if (j < 3u) { continue; } s += 10u; } default: { if (j == 4u) { break; } s += 100u; } } s += 1000u; } r[i] = s;"},
		{"return in loops", "fn g(i: u32) -> u32 { var s = 0u; loop { loop { s++; if (s > i) { return s; } if (s % 3u == x[i] % 3u) { break; } } s += 5u; if (s > 40u) { break; } } return s + 1000u; }", "r[i] = g(i) + g(2u * i) + x[i];"},
		{"declared between", "", "var a = i; loop { if (a > 20u) { break; } a += x[i]; } var b = a; var c = b + a; loop { if (c > 100u) { break; } c += 7u + b; } r[i] = a + b * 100u + c * 10000u;"},
		{"continuing part", "", "var s = 0u; var k = 0u; loop { var a = 0u; var j = 0u; loop { if (j >= i) { break; } j++; a = j; } continuing { s += a; k++; break if k > 2u; } } r[i] = s + x[0];"},
		{"break if", "", "var k = 0u; loop { var a = 0u; var j = 0u; loop { if (j >= i) { break; } j++; a = j; } continuing { k++; break if k > a; } } r[i] = k + x[0];"},
		{"array", "", "var s = 0u; for (var k = 0u; k < 9u; k++) { var a: array<u32, 4>; if (k > i) { break; } a[x[i] % 4u] += k; a[k & 3u] += i; s += a[i & 3u] + 3u * a[2]; } r[i] = s;"},
		{"arms", "", "var s = vec2u(i, 1u); if (x[i] > 4u) { s = s.yx; if (i % 2u == 0u) { s.x += 7u; } else if (x[i] > 9u) { r[i] = 5u; return; } s.y += 3u; } else { for (var k = i; k < 8u; k += 2u) { s.x += k; if (s.x > 11u) { s.y = k; break; } } } r[i] = s.x * 100u + s.y;"},
		{"pointers", "fn add(p: ptr<function, u32>, n: u32) -> u32 { if (n > 6u) { return 1u; } *p += n; return *p; }", "var s = i; let a = s + add(&s, x[i]) * 10u; if (i > 3u) { s += add(&s, 2u); } r[i] = s + 1000u * a;"},
		{"short cut", "fn f(n: u32) -> bool { r[n] += 1u; return n > 6u; }", "var s = 0u; loop { if ((s > 4u && f(i)) || (s > x[i] && f((i + 3u) % 16u))) { break; } s++; if (s > 9u) { break; } } r[i] += 100u * s;"},
		{"condition before a barrier", "fn h(n: u32) -> u32 { var s = n; for (var j = 0u; j < 3u; j++) { s = s * 3u + x[s % 16u]; } return s; } fn g(i: u32) -> u32 { w[i] += i; workgroupBarrier(); let v = w[15u - i]; workgroupBarrier(); return v; }", "var k = i; if (h(x[1]) > 3u) { k += g(i); } if (h(x[1]) < 3u) { k += 100u * g(i); } else { k += 3u * g(i); } r[i] = k;"},
		{"loop with barriers", "fn h(n: u32) -> u32 { var s = n; for (var j = 0u; j < 3u; j++) { s = s * 3u + x[s % 16u]; } return s; } fn g(i: u32) -> u32 { w[i] += i; workgroupBarrier(); let v = w[15u - i]; workgroupBarrier(); return v; }", "var k = i; for (var j = 0u; h(j) < 200u && j < 9u; j++) { k += g(i); } r[i] = k;"},
		{"break if with barriers", "fn h(n: u32) -> u32 { var s = n; for (var j = 0u; j < 3u; j++) { s = s * 3u + x[s % 16u]; } return s; } fn g(i: u32) -> u32 { w[i] += i; workgroupBarrier(); let v = w[15u - i]; workgroupBarrier(); return v; }", "var k = i; var j = 0u; loop { k += g(i) + x[i]; continuing { j++; break if h(j) > 120u || j > 5u; } } r[i] = k + 1000u * j;"},
		{"choice with barriers", "fn h(n: u32) -> u32 { var s = n; for (var j = 0u; j < 3u; j++) { s = s * 3u + x[s % 16u]; } return s; } fn g(i: u32) -> u32 { w[i] += i; workgroupBarrier(); let v = w[15u - i]; workgroupBarrier(); return v; }", "var k = i; switch (h(2u) & 3u) { case 0u: { k += g(i); } case 1u: { k += 3u * g(i); } default: { k += 7u * g(i) + x[h(k) & 15u]; } } r[i] = k + h(k);"},
		{"loads for all", "fn h(n: u32) -> u32 { var s = n; for (var j = 0u; j < 3u; j++) { s = s * 3u + x[s % 16u]; } return s; } fn g(i: u32) -> u32 { w[i] += i; workgroupBarrier(); let v = w[15u - i]; workgroupBarrier(); return v; } var<workgroup> n: u32;", "if (i == 5u) { n = x[i]; } let m = workgroupUniformLoad(&n); var k = m + i; if (workgroupUniformLoad(&n) > 2u) { k += g(i) * x[workgroupUniformLoad(&n)]; } r[i] = k;"},
		{"return after a barrier", "", "w[i] = x[i]; workgroupBarrier(); if (w[15u - i] > 5u) { r[i] = 1u; return; } r[i] = w[(i + 1u) % 16u] + 10u;"},
		{"returns in loops after a barrier", "", "w[i] = x[i]; workgroupBarrier(); var k = 0u; loop { k += w[(i + k) % 16u]; if (k > 20u) { r[i] = k; return; } if (k % 5u == 3u) { break; } k++; } r[i] = k * 100u;"},
		{"return after a barrier in a call", "fn g(i: u32) -> u32 { w[i] += i; workgroupBarrier(); if (w[15u - i] > 3u) { return 7u + w[i]; } return x[i]; }", "let k = g(i); workgroupBarrier(); var a: array<u32, 3>; a[k % 3u] = k; a[1] += g(i); r[i] = a[0] + 10u * a[1] + 100u * a[2];"},
		{"barriers between variables", "", "var a: array<u32, 4>; var v = vec3u(i, x[i], 2u); for (var j = 0u; j < 3u; j++) { a[(v.y + j) % 4u] += v.x; w[i] = a[j]; workgroupBarrier(); if (i % 3u > 0u) { v = v.yzx + w[15u - i]; } workgroupBarrier(); } r[i] = a[0] + 3u * a[1] + 9u * a[2] + 27u * a[3] + 100u * v.x;"},
		{"call as an index", "const T = array<u32, 5>(3u, 1u, 4u, 1u, 5u); var<private> n: u32; fn f(a: u32) -> u32 { if (a > 5u) { n += 1u; } return a + 1u; }", "let k = T[f(x[i])]; r[i] = k + 100u * n;"},
		{"wrapping index", "", "r[i] = x[i + 4294967293u] + 100u * x[i - 2u] + 10000u * x[3u - i];"},
	} {
		for _, size := range []string{"16", "13"} {
			text := head + c.before + "\n@compute @workgroup_size(" + size + ")\nfn main(@builtin(local_invocation_index) i: u32) {\n  " + c.body + "\n}\n"
			mod := parse(t, text)
			if lanes.Widen(mod) == nil {
				t.Errorf("%s stays as it is", c.name)
			}
			var got [2][]byte
			for k, mode := range []compile.Options{{}, widened[0]} {
				m, err := compile.Generate(mod, mode)
				if err != nil {
					t.Fatal(err)
				}
				got[k] = make([]byte, 64)
				compiletest.Run(t, m, [3]uint32{1, 1, 1}, nil, [][]byte{words(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16), got[k]})
			}
			if !bytes.Equal(got[0], got[1]) {
				t.Errorf("%s: workgroups of %s: got %v, want %v", c.name, size, got[1], got[0])
			}
		}
	}
}

// TestLanesAtOnce translates programs in several goroutines, as devices do that compile kernels at the same time.
func TestLanesAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		p := parse(t, programs[0].text("u32"))
		all.Go(func() {
			if lanes.Widen(p) == nil {
				t.Error("the program stays as it is")
			}
		})
	}
	all.Wait()
}

// TestLanesEndless stops loops that some of the invocations never leave.
func TestLanesEndless(t *testing.T) {
	for _, body := range []string{
		"loop { if (x[i] == 77u) { break; } }", "while (i < 2u) { }", "loop { if (i == 1u) { continue; } break; }",
		"loop { loop { if (i < 2u) { continue; } return; } }", "loop { switch (i) { case 1u: { continue; } default: { } } if (i != 1u) { return; } }",
		"loop { continuing { break if x[i] == 99u && i > 2u; } }", "spin(i);",
	} {
		p := program{before: "fn spin(k: u32) { loop { if (k == x[k]) { return; } } }", body: "r[0] = x[0]; " + body}
		mod, err := compile.Generate(parse(t, p.text("u32")), compile.Options{Guard: true, Widen: lanes.Widen, Always: true})
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
		for i, mode := range []compile.Options{{}, widened[0]} {
			mod, err := compile.Generate(p, compile.Options{Guard: seed%2 == 0, Wazero: seed%3 > 0, Widen: mode.Widen, Always: true})
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
