// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"embed"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

var update = flag.Bool("update", false, "write the golden files, for the next run to compare with")

//go:embed testdata/*.golden
var golden embed.FS

// TestGolden compares whole programs with files.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name, source, kernel string
		arrays               []kernel.Decl
		scalars              []kernel.Decl
		local                [3]int
	}{
		{
			"simple", "fn add3(i: u32) { arr[i] = arr[i] + 3u; }\n", "add3",
			[]kernel.Decl{{Name: "arr", Type: kernel.U8}},
			nil,
			[3]int{100},
		},
		{
			"window", "// a\nfn blur(i: u32) { // b\n  out[i] = in_[min(i + 1u, arrayLength(&in_) - 1u)] * weight;\n}\nfn unused(i: u32) {\n  nothing();\n}", "blur",
			[]kernel.Decl{{Name: "in_", Type: kernel.F32, ReadOnly: true, Window: true}, {Name: "out", Type: kernel.F32, Window: true}, {Name: "more", Type: kernel.F32}},
			kernel.Scalars(kernel.Decl{Name: "weight", Type: kernel.F32}, kernel.Decl{Name: "shift", Type: kernel.Vec(kernel.I32, 3)}),
			[3]int{256},
		},
		{
			"grid", "fn plus(i: vec3u) { c[sublet_total.x * i.y + i.x] = v.y; }", "plus",
			[]kernel.Decl{{Name: "c", Type: kernel.Vec(kernel.F32, 2)}},
			kernel.Scalars(kernel.Decl{Name: "v", Type: kernel.Vec(kernel.F32, 2)}),
			[3]int{8, 4, 2},
		},
		{
			"atomic", "fn inc(i: u32) { sublet_store_b(i, sublet_load_b(i) + sublet_load_h(i)); }", "inc",
			[]kernel.Decl{{Name: "b", Type: kernel.F16, Mode: kernel.Atomic, Window: true}, {Name: "h", Type: kernel.F16, Mode: kernel.Packed, ReadOnly: true}},
			nil,
			[3]int{64},
		},
	} {
		src, err := kernel.Parse(c.source)
		check(t, err)
		p, err := src.Build(c.kernel, append(c.arrays, c.scalars...), c.local)
		check(t, err)
		if *update {
			check(t, os.WriteFile(filepath.Join("testdata", c.name+".wgsl.golden"), []byte(p.WGSL), 0o644))
		}
		want, err := golden.ReadFile("testdata/" + c.name + ".wgsl.golden")
		check(t, err)
		if p.WGSL != string(want) {
			t.Errorf("%s: got\n%s", c.name, p.WGSL)
		}
	}
}

// TestUnits: what an index counts, for every kind of array and for structs of all sorts.
func TestUnits(t *testing.T) {
	const source = `
alias Half = u32;
const N = 3;
struct Inner { a: vec3<f32>, b: Half }
struct Outer { x: array<Inner, N>, @size(32) y: u32, @align(64) m: mat3x3f, n: mat2x4<f32>, z: atomic<i32> }
struct Small { a: u32, b: vec2i }
fn k(i: u32) { _ = a[i].a; }
fn words(i: u32) { a[i] = 1u; }`
	src, err := kernel.Parse(source)
	check(t, err)
	for _, c := range []struct {
		decl kernel.Decl
		fn   string
		want int
	}{
		{kernel.Decl{Type: kernel.U8, Mode: kernel.Packed, Struct: "Inner"}, "k", 16},
		{kernel.Decl{Type: kernel.U8, Mode: kernel.Packed, Struct: "Outer"}, "k", 256},
		{kernel.Decl{Type: kernel.U8, Mode: kernel.Packed, Struct: "Small"}, "k", 16},
		{kernel.Decl{Type: kernel.U8, Mode: kernel.Packed}, "words", 4},
		{kernel.Decl{Type: kernel.U8, Mode: kernel.Atomic}, "words", 4},
		{kernel.Decl{Type: kernel.U8}, "words", 4},
		{kernel.Decl{Type: kernel.F16, Mode: kernel.Packed}, "words", 4},
		{kernel.Decl{Type: kernel.Vec(kernel.F32, 3)}, "words", 16},
		{kernel.Decl{Type: kernel.Vec(kernel.I32, 2)}, "words", 8},
	} {
		c.decl.Name = "a"
		p, err := src.Build(c.fn, []kernel.Decl{c.decl}, [3]int{})
		check(t, err)
		if p.Arrays[0].Unit != c.want {
			t.Errorf("%+v: got %d, want %d", c.decl, p.Arrays[0].Unit, c.want)
		}
	}
}

// TestBytes runs kernels over words, atomic words and 32-bit atomics.
func TestBytes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		words := &array{Decl: kernel.Decl{Name: "w", Type: kernel.U8, Mode: kernel.Packed}, words: count(32)}
		bits := &array{Decl: kernel.Decl{Name: "b", Type: kernel.U8, Mode: kernel.Atomic}, words: make([]uint32, 4)}
		sum := &array{Decl: kernel.Decl{Name: "sum", Type: kernel.I32, Mode: kernel.Atomic}, words: make([]uint32, 4)}
		l := launch{
			source: "fn k(i: u32) { w[i] += 5u; atomicOr(&b[0], 1u << i); atomicSub(&sum[1], i32(i)); }",
			kernel: "k", local: [3]int{8}, rng: line(0, 32, 32), arrays: []*array{words, bits, sum},
		}
		l.run(t, dev)
		want := count(32)
		for i := range want {
			want[i] += 5
		}
		equal(t, "words", words.words, want)
		equal(t, "bits", bits.words, []uint32{math.MaxUint32, 0, 0, 0})
		minus := -31 * 32 / 2
		equal(t, "sum", sum.words, []uint32{0, uint32(minus), 0, 0})
	})
}

// TestTop runs the last items that 32 bits can count.
func TestTop(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := u32s("arr", make([]uint32, 16)...)
		l := launch{
			source: "fn k(i: u32) { arr[~i] = i; }", kernel: "k", local: [3]int{64},
			rng: line(math.MaxUint32-9, 10, math.MaxUint32), arrays: []*array{a},
		}
		l.run(t, dev)
		want := make([]uint32, 16)
		for i := range 10 {
			want[i] = ^uint32(i)
		}
		equal(t, "arr", a.words, want)
	})
}

// TestLayouts lays out workgroups, and refuses what no launch can compute.
func TestLayouts(t *testing.T) {
	src, err := kernel.Parse("fn k(i: u32) {}\nfn g(i: vec2u) {}")
	check(t, err)
	p, err := src.Build("k", nil, [3]int{64})
	check(t, err)
	grid, err := src.Build("g", nil, [3]int{1, 1})
	check(t, err)
	mod, err := kernel.Parse("@group(0) @binding(0) var<uniform> sublet_count: u32;\n@compute @workgroup_size(1) fn m() { _ = sublet_count; }\n@compute @workgroup_size(4) fn n() {}")
	check(t, err)
	m, err := mod.Build("m", nil, [3]int{})
	check(t, err)
	n, err := mod.Build("n", nil, [3]int{})
	check(t, err)
	for i, c := range []struct {
		p   *kernel.Program
		rng kernel.Range
	}{
		{p, line(-1, 1, 1)},
		{p, line(0, -1, 1)},
		{p, line(0, 1, -1)},
		{p, line(math.MaxInt, math.MaxInt, 1)},
		{p, line(math.MaxUint32, 2, 1)},
		{p, line(0, math.MaxUint32+1, 1)},
		{p, line(0, 1, math.MaxUint32+1)},
		{p, kernel.Range{Count: [3]int{1, 2}}},
		{p, kernel.Range{Base: [3]int{0, 1}, Count: [3]int{1}}},
		{m, line(1, 1, 2)},
	} {
		if _, _, err := c.p.Groups(c.rng); !isKernel(err) {
			t.Errorf("%d: got %v", i, err)
		}
	}
	for _, c := range []struct {
		p    *kernel.Program
		rng  kernel.Range
		want [3]uint32
		fits bool
	}{
		{p, line(0, 0, 0), [3]uint32{}, true},
		{p, line(5, 64*65535, 0), [3]uint32{65535, 1, 1}, true},
		{p, line(5, 64*65535+1, 0), [3]uint32{32768, 2, 1}, true},
		{grid, kernel.Range{Count: [3]int{65535, 65535}}, [3]uint32{65535, 65535, 1}, true},
		{grid, kernel.Range{Count: [3]int{math.MaxUint32, math.MaxUint32}}, [3]uint32{}, false},
		{grid, kernel.Range{Count: [3]int{1 << 17, 1 << 16}}, [3]uint32{}, false},
		{m, kernel.Range{Count: [3]int{5, 6, 7}}, [3]uint32{5, 6, 7}, true},
		{m, line(0, 65536, 65536), [3]uint32{65536, 1, 1}, false},
		{n, line(0, 9, 9), [3]uint32{3, 1, 1}, true},
		{n, kernel.Range{Count: [3]int{9, 0}, Total: [3]int{9, 3}}, [3]uint32{}, true},
	} {
		if got, fits, err := c.p.Groups(c.rng); err != nil || got != c.want || fits != c.fits {
			t.Errorf("%s %v: got %v, %v, %v", c.p.Name, c.rng, got, fits, err)
		}
	}
}

// hostile are sources that want too much of a parser.
func hostile() []string {
	const mib = 1 << 20
	funcs := "fn k(i: u32) {}\n"
	var structs strings.Builder
	for i := range 40 {
		n, m := string(rune('A'+i/26))+string(rune('A'+i%26)), string(rune('A'+(i+1)/26))+string(rune('A'+(i+1)%26))
		structs.WriteString("struct " + n + " { a: " + m + ", b: " + m + ", c: array<" + m + ", 1000000> }\n")
	}
	deep := structs.String()
	return []string{
		strings.Repeat("(", mib),
		funcs + strings.Repeat("(", mib) + strings.Repeat(")", mib),
		funcs + strings.Repeat("/*", mib/2),
		funcs + strings.Repeat("@", mib),
		funcs + strings.Repeat("@a(", mib/3),
		funcs + strings.Repeat("<", mib),
		"fn k(i: " + strings.Repeat("array<", mib/6) + ") {}",
		"fn k(i: u32) {" + strings.Repeat("{", mib/2) + strings.Repeat("}", mib/2) + "}",
		"fn k(i: u32) {" + strings.Repeat("for(", mib/8) + strings.Repeat(")", mib/8) + "}",
		"fn k(i: u32) {" + strings.Repeat("let x = x; ", mib/11) + "}",
		"fn k(i: u32) {" + strings.Repeat("let x ", mib/6) + "}",
		"fn k(i: u32) {" + strings.Repeat("for () @a ", mib/10) + "}",
		"fn k(i: u32) {" + strings.Repeat("arrayLength(&arr)\n", mib/18) + "}",
		"fn k(i: u32) {" + strings.Repeat("arr[", mib/8) + strings.Repeat("]", mib/8) + "}",
		"fn k(i: u32) { arr[" + strings.Repeat("x", mib) + "]; }",
		"fn " + strings.Repeat("k", mib) + "(i: u32) {}",
		strings.Repeat("fn k(i: u32) {}\n", mib/16),
		"const a = b; const b = a; @compute @workgroup_size(a) fn k() {}",
		"alias A = B; alias B = A; struct AA { a: A } @group(0) @binding(0) var<uniform> u: A; @compute @workgroup_size(1) fn k() { _ = u; }",
		deep + funcs,
		deep + "@group(0) @binding(0) var<uniform> arr: AA; @compute @workgroup_size(1) fn k() { _ = arr; }",
		"@group(0) @binding(0) var<storage> arr: " + strings.Repeat("array<", 10000) + "u32" + strings.Repeat(", 2>", 10000) + "; @compute @workgroup_size(1) fn k() { _ = arr; }",
		"fn k(i: u32) { &(&(arr)); arrayLength(arrayLength(&&arr)); (((arr))); & arr; arr",
		"fn k(i: u32) { let = arr[; }",
		"fn k(i: u32) { let }", "fn k(i: u32) { var< }", "fn k(i: u32) { var<function> x", "var", "var<", "var<;>x:u32;", "var<a>;", "fn", "fn k", "fn k(", "@", "@(", "@a(", "const", "const ;", "struct", "alias = ;",
		"fn k(i: u32) { for", "fn k(i: u32) { for(;;) @", "fn k() -> ", "fn k() -> {", "fn k(i: u32) {} @", "0x", "1e", "1e+", "/", "//", "/*", "*/", "\ufeff\ufeff", "fn k(i: u32) { .arr @arr @arr(arr) }",
	}
}

// TestHostile takes sources that a recursive or a quadratic parser would not survive.
func TestHostile(t *testing.T) {
	for _, s := range hostile() {
		abuse(s)
	}
}

// abuse calls everything with a source.
func abuse(source string) {
	src, err := kernel.Parse(source)
	if err != nil {
		return
	}
	decls := []kernel.Decl{{Name: "arr", Type: kernel.F32, Window: true}, {Name: "b", Type: kernel.U8, Mode: kernel.Atomic, Window: true}, {Name: "S", Type: kernel.U8, Mode: kernel.Packed, Struct: "AA"}}
	scalars := kernel.Scalars(kernel.Decl{Name: "x", Type: kernel.Vec(kernel.F32, 3)})
	for _, name := range src.Kernels()[:min(len(src.Kernels()), 3)] {
		for n := range len(decls) + 1 {
			p, err := src.Build(name, slices.Concat(decls[:n], scalars), [3]int{})
			if err != nil {
				continue
			}
			_, _, _ = p.Groups(line(1, 100, 200))
			for _, text := range []string{"line 1:99: x", "Shader 'x' parsing error: x\n  ┌─ wgsl:1:30\n  │\n1 │ " + source + "\n  │  ^"} {
				_ = p.Translate(&gpu.OpError{Err: gpu.ErrCompile, Detail: text})
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range hostile() {
		if len(s) < 4096 {
			f.Add(s)
		}
	}
	for _, s := range []string{
		"fn k(i: u32) { arr[arr[i]] = arrayLength(&arr) + u32(x.y) + sublet_load_b(i); }",
		"struct AA { @align(16) a: vec3<f32>, b: array<u32, 3> }\nfn k(i: vec2u) { for (var arr = 0u; arr < 3u; arr++) { let x = arr; } sublet_store_b(i.x, 1u); }",
		"struct P { sublet_base: u32, x: vec3f, pad: mat4x4<f32> }\n@group(0) @binding(1) var<uniform> p: P; @group(0) @binding(0) var<storage, read_write> arr: array<f32>;\n@compute @workgroup_size(8, 8) fn k() { arr[p.sublet_base] = p.x.x; }",
		"/* /* */ */ fn k(i: u32) { // x\r\n\t arr[i] = 1u; }\r\nfn l(i: u32) { k(i); }",
	} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, source string) { abuse(source) })
}
