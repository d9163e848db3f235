// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

func isKernel(err error) bool { return errors.Is(err, kernel.ErrKernel) }

// TestCompileErrors: the compiler's errors name the user's lines and columns, whatever the library made of the text.
func TestCompileErrors(t *testing.T) {
	arr := kernel.Decl{Name: "arr", Type: kernel.U32}
	window := kernel.Decl{Name: "arr", Type: kernel.U32, Window: true}
	for _, c := range []struct {
		name, source string
		decl         kernel.Decl
		line, column int // column 0: not looked at
		shown        string
	}{
		{"syntax", "fn k(i: u32) {\n  arr[i] = ;\n}", arr, 2, 12, "arr[i] = ;"},
		{"unknown name", "\n\n/* a /* nested\n */ */ fn k(i: u32) {\n  arr[i] = nonsense; // here\n}\n", arr, 5, 12, "arr[i] = nonsense; // here"},
		{"CRLF", "// one\r\n// two\r\nfn k(i: u32) {\r\n\tarr[i] = nonsense;\r\n}\r\n", arr, 4, 11, "arr[i] = nonsense;"},
		{"types", "fn k(i: u32) {\n  let x = 1u;\n  arr[i] = 1.5;\n}", arr, 3, 0, "arr[i] = 1.5;"},
		{"operands", "fn k(i: u32) {\n\n\n  arr[i] = arr[i] + vec2<f32>(1.0, 1.0);\n}", arr, 4, 0, "arr[i] = arr[i] + vec2<f32>(1.0, 1.0);"},
		{"condition", "fn k(i: u32) {\n  if (arr[i]) {\n    return;\n  }\n}", arr, 2, 0, "if (arr[i]) {"},
		{"helper", "fn h(x: u32) -> u32 {\n  return y;\n}\nfn k(i: u32) { arr[i] = h(1u); }", arr, 2, 10, "return y;"},
		{"left out", "fn z(i: u32) {\n  arr[i] =\n  nothing;\n}\nfn k(i: u32) {\n  arr[i] = nonsense; }", arr, 6, 12, "arr[i] = nonsense; }"},
		{"window", "fn k(i: u32) {\n  arr[arr[i]] = arrayLength(&arr) + nonsense;\n}", window, 2, 37, "arr[arr[i]] = arrayLength(&arr) + nonsense;"},
		{"length", "fn k(i: u32) {\n  arr[i] = arrayLength(\n  & arr) + nonsense;\n}", arr, 3, 12, "& arr) + nonsense;"},
		{"umlauts", "fn k(i: u32) { /* größer */ arr[i] = nonsense; }", arr, 1, 38, "fn k(i: u32) { /* größer */ arr[i] = nonsense; }"},
		{"unknown function", "const c = 5u;\nfn k(i: u32) {\n  arr[i] = missing(c);\n}", arr, 3, 12, "arr[i] = missing(c);"},
		{"complete", "@group(0) @binding(0) var<storage, read_write> arr: array<u32>;\n@compute @workgroup_size(1) fn k() {\n  arr[0] = ;\n}", arr, 3, 12, "arr[0] = ;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onDevices(t, func(t *testing.T, dev *gpu.Device) {
				src, err := kernel.Parse(c.source)
				check(t, err)
				p, err := src.Build("k", []kernel.Decl{c.decl}, [3]int{})
				check(t, err)
				_, raw := dev.Kernel(t.Context(), gpu.KernelDesc{Source: p.WGSL, Entry: p.Entry, Bindings: p.Bindings, Label: "user's: own"})
				if !errors.Is(raw, gpu.ErrCompile) {
					t.Fatalf("compiled: %v", raw)
				}
				err = p.Translate(raw)
				place := fmt.Sprintf(": line %d:", c.line)
				if c.column > 0 {
					place += fmt.Sprintf("%d: ", c.column)
				}
				if !strings.Contains(err.Error(), place) {
					t.Fatalf("got %v, want %s\n%v", err, place, raw)
				}
				if !errors.Is(err, gpu.ErrCompile) || !strings.Contains(err.Error(), "\n\t"+c.shown) || strings.Contains(err.Error(), "sublet_") {
					t.Errorf("translated: %v", err)
				}
			})
		})
	}
}

// TestTranslateOthers: errors about something else stay what they are.
func TestTranslateOthers(t *testing.T) {
	src, err := kernel.Parse("fn k(i: u32) { arr[i] = 1u; }")
	check(t, err)
	p, err := src.Build("k", []kernel.Decl{{Name: "arr", Type: kernel.U32}}, [3]int{})
	check(t, err)
	plain := errors.New("line 3:5: x")
	vague := &gpu.OpError{Op: "x", Err: gpu.ErrCompile, Detail: "brackets are nested too deeply"}
	for _, err := range []error{nil, plain, vague, &gpu.OpError{Op: "x", Err: gpu.ErrLimit, Detail: "line 1:1: y"}, &gpu.OpError{Err: gpu.ErrCompile, Detail: "┌─ a:b\n"}} {
		if got := p.Translate(err); !same(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	ours := &gpu.OpError{Op: "x", Err: gpu.ErrCompile, Detail: "line 9:5: something\n\tstruct line 4:4: x\nline 1:16: other"}
	if got := p.Translate(ours).Error(); got != "x: "+gpu.ErrCompile.Error()+": what the library adds to kernel k: something\nline 1:16: other\n\tfn k(i: u32) { arr[i] = 1u; }" {
		t.Errorf("got %s", got)
	}
}

// TestDrawn reads a report of wgpu's whose marks are inside of a frame, under tabs, in text that was changed.
func TestDrawn(t *testing.T) {
	src, err := kernel.Parse("fn k(i: u32) {\n\tif (true) {\n \t\tarr[i] = arr[i] + 1.5;\t// x\n\t}\n}")
	check(t, err)
	p, err := src.Build("k", []kernel.Decl{{Name: "arr", Type: kernel.U32, Window: true}}, [3]int{})
	check(t, err)
	report := `Shader validation error:
  ┌─ a:b:1:1
  │
1 │ ╭ fn k(i: u32) {
2 │ │     if (true) {
3 │ │         arr[u32(i) - sublet_off_arr] = arr[u32(i) - sublet_off_arr] + 1.5;  // x
  │ │                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ naga::Expression [11]
  │ ╰──────────────^ naga::Function [1]
Function [1] 'k' is invalid
Operation Add can't work with [6] and [10]`
	want := "line 3:13: Function [1] 'k' is invalid: Operation Add can't work with [6] and [10]\n\tarr[i] = arr[i] + 1.5;\t// x"
	got := p.Translate(&gpu.OpError{Op: "x", Err: gpu.ErrCompile, Detail: report}).Error()
	if !strings.HasSuffix(got, ": "+want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// same compares errors themselves, not what they wrap.
func same(a, b error) bool { return any(a) == any(b) }

func TestParse(t *testing.T) {
	for _, c := range []struct {
		source  string
		kernels string
	}{
		{"fn a(i: u32) {}", "a"},
		{"\ufefffn a(i: u32) {}", "a"},
		{"fn b(j: vec2u) {} fn a(i: vec3<u32>) {} fn c(x: f32) {} fn d(i: u32) -> u32 { return i; } fn e() {} fn f(i: u32, j: u32) {}", "b a"},
		{"/* fn no(i: u32) {} /* */ */ // fn no2(i: u32) {}\nfn yes(i : /* */ u32 ,) { /* } */ }", "yes"},
		{"struct S { a: array<vec2<f32>, 2>, @align(16) b: u32 };;\nalias V = vec3<f32>; const c: f32 = 1.0; var<private> p: array<u32, 4>; var<workgroup> w: u32;\n@must_use fn h() -> @location(0) array<f32, 2> { return x; } fn k(i: u32) { for (var i = 0; i < 3; i++) { let a = i; } }", "k"},
		{"enable f16; diagnostic(off, derivative_uniformity);\nfn k(i: u32) {}", "k"},
		{"fn helper(i: u32) {}\n@group(0) @binding(0) var<storage> x: array<f32>;\n@compute @workgroup_size(2, N) fn b() {}\nconst N = 0x4u; @workgroup_size(1) @compute fn a(@builtin(local_invocation_index) i: u32) {}", "b a"},
		{"fn größe(i: u32) { let 日本 = 1.5e-3 + 0x1.8p-3 + .5; }", "größe"},
	} {
		src, err := kernel.Parse(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
		} else if got := strings.Join(src.Kernels(), " "); got != c.kernels {
			t.Errorf("%s: got %s, want %s", c.source, got, c.kernels)
		}
	}
	src, err := kernel.Parse("\n@compute @workgroup_size(2, N) fn b() {}\nconst N = M; const M = 0x4u;")
	check(t, err)
	if local, err := src.Local("b"); err != nil || local != [3]int{2, 4, 1} {
		t.Errorf("got %v, %v", local, err)
	}
	src, err = kernel.Parse("\n\nfn b(i: vec2u) {}")
	check(t, err)
	if local, err := src.Local("b"); err != nil || local != [3]int{} {
		t.Errorf("got %v, %v", local, err)
	}
	if p, err := src.Build("b", nil, [3]int{8, 4}); err != nil || p.Dims != 2 || p.Local != [3]int{8, 4, 1} {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := src.Local("c"); !isKernel(err) {
		t.Errorf("no kernel: %v", err)
	}
	if _, err := (*kernel.Source)(nil).Build("c", nil, [3]int{}); !isKernel(err) || (*kernel.Source)(nil).Kernels() != nil {
		t.Errorf("nil source: %v", err)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"", "no kernels"},
		{"fn a() {}", "no kernels"},
		{"fn a(i: u32) {}\nfn a(i: u32) {}", "line 2: \"a\" is declared already, in line 1"},
		{"const a = 1u;\n\nfn a(i: u32) {}", "line 3: \"a\" is declared already, in line 1"},
		{"fn a(i: u32) {\n(]}", "line 2: a \"]\" without"},
		{"fn a(i: u32) {\n", "line 1: a \"{\" without"},
		{"fn a(i: u32) {}\r\n}", "line 2: a \"}\" without"},
		{"fn a(i: u32) {}\n/* /* */", "line 2: a comment"},
		{"fn a(i: u32) {}\nnonsense", "line 2: no declaration begins with \"nonsense\""},
		{"const a = 1u\nfn k(i: u32) {}", "line 1: no ;"},
		{"fn k(i: u32) {} var<private> x: u32", "line 1: no ;"},
		{"fn k(i: u32)", "line 1: a function without a body"},
		{"fn k(i: u32) -> u32;", "line 1: a function without a body"},
		{"fn k", "without parameters"},
		{"fn (i: u32) {}", "without parameters"},
		{"fn 1(i: u32) {}", "without a name"},
		{"fn k(i) {}", "not a name and a type"},
		{"fn k(@) {}", "not a name and a type"},
		{"struct k", "without members"},
		{"@compute", "an attribute of nothing"},
		{"@compute fn k() {}", "without a workgroup size"},
		{"@compute @workgroup_size(0) fn k() {}", "workgroup size"},
		{"@compute @workgroup_size(1, 1, 1, 1) fn k() {}", "workgroup size"},
		{"@compute @workgroup_size(N) fn k() {}", "workgroup size"},
		{"const N = N; @compute @workgroup_size(N) fn k() {}", "workgroup size"},
		{"fn k(i: u32) {}\n@group(0) @binding(0) var<storage> x: array<f32>;", "line 2: a binding needs a complete module"},
		{"fn k(i: u32) {} var t: texture_2d<f32>;", "a binding needs"},
		{"fn k(i: u32) {} var<private", "does not end"},
		{"const sublet_x = 1;\nfn k(i: u32) {}", "line 1: names that begin with sublet_"},
		{"fn k(i: u32) {\n let sublet_x = 1; }", "line 2: names that begin with sublet_"},
		{"fn k(sublet_i: u32) {}", "names that begin with sublet_"},
		{"alias u32 = f32; fn k(i: u32) {}", "needs the name \"u32\""},
		{"fn k(i: u32) {} \x00", "UTF-8"},
		{"fn k(i: u32) {} \xff", "UTF-8"},
		{strings.Repeat(" ", 16<<20) + "fn k(i: u32) {}", "16 MiB"},
	} {
		if _, err := kernel.Parse(c.source); !isKernel(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: got %v, want %s", c.source, err, c.want)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	const functions = `struct S { a: u32 }
struct B { a: bool }
fn helper() {}
fn k(i: u32) { arr[i] = 1u; }
fn two(i: vec2<u32>) {}
fn p(i: u32) {
  let q = &arr; }
fn q(i: u32) {

 sublet_x = 1u; }`
	const module = `struct P { sublet_base: u32, a: f32 }
@group(0) @binding(1) var<uniform> p: P;
@group(0) @binding(0) var<storage, read_write> arr: array<u32>;
@group(1) @binding(0) var<storage> far: array<u32>;
@group(0) @binding(0) var<storage> same: array<u32>;
@group(0) @binding(7) var t: texture_2d<f32>;
@group(0) @binding(2) var<uniform> u: u32;
@compute @workgroup_size(8, 2) fn k() { arr[0] = p.sublet_base; }
@compute @workgroup_size(1) fn far_() { _ = far[0]; }
@compute @workgroup_size(1) fn same_() { _ = same[arr[0]]; }
@compute @workgroup_size(1) fn tex() { _ = t; }
@compute @workgroup_size(1) fn uni() { _ = u + u32(p.a); }`
	arr := kernel.Decl{Name: "arr", Type: kernel.U32}
	with := func(change func(d *kernel.Decl)) []kernel.Decl {
		d := arr
		change(&d)
		return []kernel.Decl{d}
	}
	a := kernel.Scalars(kernel.Decl{Name: "a", Type: kernel.F32})
	many := make([]kernel.Decl, 80)
	var use strings.Builder
	use.WriteString("fn k(i: u32) { let x = ")
	for i := range many {
		many[i] = kernel.Decl{Scalar: true, Name: "w_" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Type: kernel.Vec(kernel.F32, 3)}
		use.WriteString(many[i].Name + ".x + ")
	}
	use.WriteString("1.0; }")
	for i, c := range []struct {
		source, kernel string
		arrays         []kernel.Decl
		scalars        []kernel.Decl
		local          [3]int
		want           string
	}{
		{functions, "missing", nil, nil, [3]int{}, "no kernel \"missing\""},
		{functions, "helper", nil, nil, [3]int{}, "no kernel"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "" }), nil, [3]int{}, "is no name"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "a b" }), nil, [3]int{}, "is no name"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "a;" }), nil, [3]int{}, "is no name"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "1a" }), nil, [3]int{}, "is no name"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "_" }), nil, [3]int{}, "is no name"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "\xff" }), nil, [3]int{}, "is no name"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "a\u2028b" }), nil, [3]int{}, "is no name"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "__a" }), nil, [3]int{}, "underscores"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "sublet_p" }), nil, [3]int{}, "begins with sublet_"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "vec4" }), nil, [3]int{}, "the library needs"},
		{functions, "k", with(func(d *kernel.Decl) { d.Name = "helper" }), nil, [3]int{}, "line 3: \"helper\" is declared here"},
		{functions, "k", []kernel.Decl{arr, arr}, nil, [3]int{}, "declared twice"},
		{functions, "k", []kernel.Decl{arr}, kernel.Scalars(kernel.Decl{Name: "arr", Type: kernel.F32}), [3]int{}, "declared twice"},
		{functions, "k", []kernel.Decl{arr}, kernel.Scalars(kernel.Decl{Name: "x", Type: kernel.U8}), [3]int{}, "cannot be of type uint8"},
		{functions, "k", with(func(d *kernel.Decl) { d.Type = dtype.Type{Code: 200} }), nil, [3]int{}, "unknown type"},
		{functions, "k", with(func(d *kernel.Decl) { d.Mode = 9 }), nil, [3]int{}, "unknown type or mode"},
		{functions, "k", with(func(d *kernel.Decl) { d.Type = dtype.Int64 }), nil, [3]int{}, "unknown type or mode"},
		{functions, "k", with(func(d *kernel.Decl) { d.Mode = kernel.Packed }), nil, [3]int{}, "packed"},
		{functions, "k", with(func(d *kernel.Decl) { d.Type, d.Mode = kernel.F32, kernel.Atomic }), nil, [3]int{}, "float32, which cannot be atomic"},
		{functions, "k", with(func(d *kernel.Decl) { d.ReadOnly, d.Mode = true, kernel.Atomic }), nil, [3]int{}, "cannot be read-only"},
		{functions, "k", with(func(d *kernel.Decl) { d.Struct = "S" }), nil, [3]int{}, "only packed uint8 can"},
		{functions, "k", with(func(d *kernel.Decl) { d.Type, d.Mode, d.Struct = kernel.U8, kernel.Packed, "T" }), nil, [3]int{}, "no struct \"T\""},
		{functions, "k", with(func(d *kernel.Decl) { d.Type, d.Mode, d.Struct = kernel.U8, kernel.Packed, "helper" }), nil, [3]int{}, "no struct"},
		{functions, "k", with(func(d *kernel.Decl) { d.Type, d.Mode, d.Struct = kernel.U8, kernel.Packed, "B" }), nil, [3]int{}, "cannot lie in a buffer"},
		{functions, "k", with(func(d *kernel.Decl) { d.Type, d.Struct, d.Mode = kernel.U8, "S", kernel.Atomic }), nil, [3]int{}, "only packed uint8 can"},
		{functions, "k", []kernel.Decl{arr}, nil, [3]int{-1}, "a workgroup of -1"},
		{functions, "k", []kernel.Decl{arr}, nil, [3]int{8, 8}, "8x8x1 for a kernel of 1"},
		{functions, "k", []kernel.Decl{arr}, nil, [3]int{1 << 40}, "a workgroup of"},
		{functions, "two", nil, nil, [3]int{1 << 10, 1 << 10}, "a workgroup of"},
		{functions, "p", with(func(d *kernel.Decl) { d.Window = true }), nil, [3]int{}, "line 7: \"arr\" has a window"},
		{functions, "q", []kernel.Decl{arr}, nil, [3]int{}, "line 10: the library has no \"sublet_x\""},
		{"fn k(i: u32) { sublet_store_arr(i, 1u); }", "k", with(func(d *kernel.Decl) { d.Type, d.Mode = kernel.U8, kernel.Packed }), nil, [3]int{}, "the library has no"},
		{"fn k(i: u32) { sublet_load_arr(i); }", "k", with(func(d *kernel.Decl) { d.Type = kernel.U8 }), nil, [3]int{}, "the library has no"},
		{"fn k(i: u32) { sublet_load_none(i); }", "k", nil, nil, [3]int{}, "the library has no"},
		{use.String(), "k", nil, many, [3]int{}, "the most are 1024"},
		{module, "k", nil, a, [3]int{}, "line 3: no array is called \"arr\""},
		{module, "k", []kernel.Decl{arr}, nil, [3]int{}, "line 1: no scalar is called \"a\""},
		{module, "k", []kernel.Decl{arr}, kernel.Scalars(kernel.Decl{Name: "a", Type: kernel.U32}), [3]int{}, "line 1: the scalar \"a\" is a u32"},
		{module, "k", with(func(d *kernel.Decl) { d.Type = kernel.F32 }), a, [3]int{}, "line 3: \"arr\" is of u32 here, and its elements are float32"},
		{module, "k", with(func(d *kernel.Decl) { d.Type, d.Mode = kernel.I32, kernel.Widened }), a, [3]int{}, "is of u32 here"},
		{module, "k", with(func(d *kernel.Decl) { d.ReadOnly = true }), a, [3]int{}, "read-only, and the module may write"},
		{module, "k", with(func(d *kernel.Decl) { d.Window = true }), a, [3]int{}, "does not take sublet_off_arr"},
		{module, "far_", []kernel.Decl{{Name: "far", Type: kernel.F32}}, nil, [3]int{}, "@group(0)"},
		{module, "same_", []kernel.Decl{arr, {Name: "same", Type: kernel.F32}}, nil, [3]int{}, "the binding of another"},
		{module, "tex", nil, nil, [3]int{}, "no buffer"},
		{module, "uni", nil, a, [3]int{}, "a second uniform"},
	} {
		src, err := kernel.Parse(c.source)
		check(t, err)
		if _, err := src.Build(c.kernel, append(c.arrays, c.scalars...), c.local); !isKernel(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: got %v, want %s", i, err, c.want)
		}
	}
}
