// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// badKernel is a kernel that is refused.
type badKernel struct {
	name string
	kind error
	k    *driver.Kernel
}

// axpyBut changes a copy of axpy.
func axpyBut(change func(k *driver.Kernel)) *driver.Kernel {
	k := axpy
	change(&k)
	return &k
}

var badKernels = []badKernel{
	{"nil", fault.ErrInvalid, nil},
	{"no source", fault.ErrInvalid, axpyBut(func(k *driver.Kernel) { k.Source = "" })},
	{"no entry", fault.ErrInvalid, axpyBut(func(k *driver.Kernel) { k.Entry = "" })},
	{"unknown entry", fault.ErrCompile, axpyBut(func(k *driver.Kernel) { k.Entry = "start" })},
	{"syntax", fault.ErrCompile, axpyBut(func(k *driver.Kernel) { k.Source += "x" })},
	{"types", fault.ErrCompile, axpyBut(func(k *driver.Kernel) { k.Source = strings.Replace(k.Source, "p.k *", "1.5 *", 1) })},
	{"not UTF-8", fault.ErrCompile, axpyBut(func(k *driver.Kernel) { k.Source += "// \xff" })},
	{"zero byte", fault.ErrCompile, axpyBut(func(k *driver.Kernel) { k.Source = "\x00" + k.Source })},
	{"zero byte in the entry", fault.ErrCompile, axpyBut(func(k *driver.Kernel) { k.Entry = "main\x00" })},
	{"entry not UTF-8", fault.ErrCompile, axpyBut(func(k *driver.Kernel) { k.Entry = "\xff" })},
	{"missing binding", fault.ErrCompile, axpyBut(func(k *driver.Kernel) { k.Layout = bump.Layout })},
	{"other access", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Layout = driver.NewLayout(driver.AccessReadWrite, driver.AccessReadWrite, driver.AccessParams)
	})},
	{"workgroup too large", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source = strings.Replace(k.Source, "workgroup_size(64)", "workgroup_size(1024, 64)", 1)
	})},
	{"parameters too large", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source = strings.Replace(k.Source, "k: u32", "k: u32, more: array<vec4<u32>, 64>", 1)
	})},
	{"two parameter blocks", fault.ErrInvalid, axpyBut(func(k *driver.Kernel) {
		k.Layout = driver.NewLayout(driver.AccessParams, driver.AccessParams)
	})},
}

// deepKernels are nested so deeply, or so long, that compilers run out of stack.
var deepKernels = []badKernel{
	{"brackets", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += "fn f() -> i32 { return " + strings.Repeat("(", 50000) + "1" + strings.Repeat(")", 50000) + "; }"
	})},
	{"blocks", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += "fn f() { " + strings.Repeat("{", 50000) + strings.Repeat("}", 50000) + "}"
	})},
	{"minus", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += "fn f() -> i32 { return " + strings.Repeat("- ", 50000) + "1; }"
	})},
	{"sum", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += "fn f(x: i32) -> i32 { return x" + strings.Repeat("+ x", 50000) + "; }"
	})},
	{"calls", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += "fn f(x: f32) -> f32 { return sin(x)" + strings.Repeat("+ sin(x)", 50000) + "; }"
	})},
	{"members", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += "fn f(x: vec2<f32>) -> f32 { return x" + strings.Repeat(".x", 50000) + "; }"
	})},
	{"branches", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += "fn f(x: i32) { if (x == 0) {} " + strings.Repeat("else if (x == 1) { f(x); }", 20000) + "}"
	})},
	{"types", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += "alias T = " + strings.Repeat("array<", 50000) + "f32" + strings.Repeat(", 1>", 50000) + ";"
	})},
	{"constants", fault.ErrCompile, axpyBut(func(k *driver.Kernel) {
		k.Source += strings.Repeat("const c = 1;\n", 50000)
	})},
}

func testRefusedKernels(t *testing.T, bench *Bench) {
	d := bench.open(t)
	ctx := t.Context()
	for _, c := range slices.Concat(badKernels, deepKernels) {
		if bench.Takes != "" && bench.Takes == c.name {
			continue
		}
		refused(t, d, c.name, d.NewKernel(ctx, 1, c.k), c.kind)
	}
	must(t, d.NewKernel(ctx, 1, &axpy)) // the id is still free
	refused(t, d, "id taken", d.NewKernel(ctx, 1, &axpy), fault.ErrInvalid)
	refused(t, d, "id 0", d.NewKernel(ctx, 0, &axpy), fault.ErrInvalid)
}

// The message of a kernel that does not compile shows the place.
func testCompileMessage(t *testing.T, bench *Bench) {
	d := bench.open(t)
	k := axpy
	k.Source = "@compute @workgroup_size(64)\nfn main() {\n\tlet x: u32 = true;\n}\n"
	err := d.NewKernel(t.Context(), 1, &k)
	for _, part := range []string{"axpy", "wgsl:3:6", "let x: u32 = true;", "expected to be `u32`"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
}
