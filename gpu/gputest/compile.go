// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var compileCases = []testCase{
	{"KernelRefused", kernelRefused},
	{"KernelReused", kernelReused},
	{"KernelWithoutReference", kernelWithoutReference},
	{"KernelErrors", kernelErrors},
	{"KernelCancelled", kernelCancelled},
}

// kernelRefused is what no device takes, whatever it compiles.
func kernelRefused(r *rig) {
	good, err := bump.kernel()
	r.check(err)
	taken := r.kernel(bump)
	free := taken + 1
	with := func(change func(k *driver.Kernel)) *driver.Kernel {
		k := *good
		change(&k)
		return &k
	}
	for _, c := range []struct {
		name string
		id   driver.KernelID
		k    *driver.Kernel
		want error
	}{
		{"nil", free, nil, fault.ErrInvalid},
		{"id 0", 0, good, fault.ErrInvalid},
		{"id taken", taken, good, fault.ErrInvalid},
		{"id out of all proportion", math.MaxUint32, good, fault.ErrInvalid},
		{"no source", free, with(func(k *driver.Kernel) { k.Source = "" }), fault.ErrInvalid},
		{"no entry point", free, with(func(k *driver.Kernel) { k.Entry = "" }), fault.ErrInvalid},
		{"two parameter blocks", free, with(func(k *driver.Kernel) {
			k.Layout = driver.NewLayout(readWrite, params, params)
		}), fault.ErrInvalid},
	} {
		r.refused(c.name, r.dev.NewKernel(r.ctx, c.id, c.k), c.want)
	}
	if most := int(r.info.Limits.MaxStorageBuffers); most < driver.MaxBindings {
		many := with(func(k *driver.Kernel) {
			k.Layout = driver.NewLayout(slices.Repeat([]driver.Access{readOnly}, most+1)...)
		})
		r.refused("too many storage bindings", r.dev.NewKernel(r.ctx, free, many), fault.ErrLimit)
	}
	r.runs(r.kernel(bump)) // with the id that was refused all the time
	r.runs(taken)
}

// runs shows that a kernel with the layout of bump is bump.
func (r *rig) runs(k driver.KernelID) {
	r.Helper()
	id := r.filled(1, 2, 3)
	r.dispatch(k, r.bind(bump, r.whole(id)), groups(3))
	r.want(id, []uint32{4, 7, 10})
}

func kernelReused(r *rig) {
	id := r.kernel(bump)
	for range 3 {
		r.runs(id)
		r.dev.FreeKernel(id)
		r.dev.FreeKernel(id) // a second time, and one that never was: both do nothing
		r.dev.FreeKernel(0)
		r.dev.FreeKernel(math.MaxUint32)
		b := r.filled(1)
		r.dispatch(id, r.bind(bump, r.whole(b)), groups(1))
		r.submitRefused("dispatch of a freed kernel", fault.ErrClosed)
		r.sets--
		r.compileAs(id, bump)
	}
	id2 := r.kernel(affine) // freed while it may still run
	b := r.filled(1, 2)
	r.dispatch(id2, r.bind(affine, r.whole(b)), groups(2), 2, 1, 2)
	r.submit()
	r.dev.FreeKernel(id2)
	r.want(b, []uint32{3, 5})
}

// kernelWithoutReference: any WGSL runs where the device compiles it, and then the reference does not matter. The oracle says that
// it cannot.
func kernelWithoutReference(r *rig) {
	k, err := bump.kernel()
	r.check(err)
	r.kernels++
	id := r.kernels
	k.Reference = nil
	if !r.has(driver.FeatureWGSL) {
		err := r.dev.NewKernel(r.ctx, id, k)
		r.refused("no reference", err, fault.ErrUnsupported)
		r.compileAs(id, bump) // the id is still free
		r.runs(id)
		return
	}
	r.check(r.dev.NewKernel(r.ctx, id, k))
	r.runs(id)
	r.dev.FreeKernel(id)
	k.Reference = func([3]uint32, []byte, [][]byte) { r.Error("a device that compiles WGSL ran the reference") }
	r.check(r.dev.NewKernel(r.ctx, id, k))
	r.runs(id)
}

// mistakeLine is a number that no message contains by chance.
const mistakeLine = 73

// at puts a line of WGSL into line mistakeLine of a kernel with the layout of bump.
func at(line string) string {
	const head = "@group(0) @binding(0) var<storage, read_write> v: array<u32>;\n" +
		"@compute @workgroup_size(1)\n" + "fn main() {\n" + "v[0] = 1u;"
	return head + strings.Repeat("\n", mistakeLine-strings.Count(head, "\n")-1) + line + "\n}\n"
}

// kernelErrors: a kernel that does not compile says where, and harms nothing.
func kernelErrors(r *rig) {
	if !r.has(driver.FeatureWGSL) {
		r.refused("wrong WGSL", r.dev.NewKernel(r.ctx, 1, &driver.Kernel{Source: at("let = ;"), Entry: "main", Layout: bump.layout}), fault.ErrUnsupported)
		return
	}
	good := at("v[0] = v[0] + 1u;")
	shared := func(more int) string { // than the workgroups' memory, in words
		n := strconv.Itoa(int(r.info.Limits.MaxWorkgroupMemory/4) - 64 + more)
		return "const N = " + n + "u;\nalias A = array<u32, N>; var<workgroup> w: A; var<workgroup> x: array<vec4<f32>, 16>;\n" +
			at("w[v[1]] = 1u; x[v[2]].x = 1.0; v[0] = w[v[3]];")
	}
	r.kernels++
	id := r.kernels
	for _, c := range []struct {
		name, source, entry string
		layout              driver.Layout
		line                bool // whether the mistake is in mistakeLine
	}{
		{"syntax", at("let = ;"), "main", bump.layout, true},
		{"unknown name", at("v[0] = nonsense;"), "main", bump.layout, true},
		{"unknown function", at("v[0] = nonsense(1u);"), "main", bump.layout, true},
		{"types", at("v[0] = 1.5;"), "main", bump.layout, false},
		{"no WGSL", "This is not WGSL.", "main", bump.layout, false},
		{"entry point", good, "other", bump.layout, false},
		{"missing binding", good, "main", driver.NewLayout(none, readWrite), false},
		{"read-only binding", good, "main", driver.NewLayout(readOnly), false},
		{"parameters for storage", good, "main", driver.NewLayout(params), false},
		{"workgroup memory", shared(1), "main", bump.layout, false},
		{"workgroup memory beyond all measure", shared(1 << 29), "main", bump.layout, false},
		{"an array without a length as a value", at("let a = array<u32>();"), "main", bump.layout, false},
		{"a type too large", "struct S { a: array<vec4<u32>, 2147483648u> } @group(0) @binding(0) var<storage> s: S;\n" +
			"@compute @workgroup_size(1) fn main() { let a = s.a[0]; }", "main", driver.NewLayout(readOnly), false},
		{"workgroup too large", strings.Replace(good, "size(1)", "size(65536, 65536)", 1), "main", bump.layout, false},
		{"workgroup of none", strings.Replace(good, "size(1)", "size(0)", 1), "main", bump.layout, false},
		{"recursion", good + "fn f(x: u32) -> u32 { if (x == 0u) { return 0u; } return f(x - 1u); }", "main", bump.layout, false},
	} {
		err := r.dev.NewKernel(r.ctx, id, &driver.Kernel{Label: c.name, Source: c.source, Entry: c.entry, Layout: c.layout})
		r.refused(c.name, err, fault.ErrCompile)
		if c.line && err != nil && !mentions(err.Error(), mistakeLine) {
			r.Errorf("%s: the message does not name line %d: %v", c.name, mistakeLine, err)
		}
	}
	r.compileAs(id, bump)
	r.runs(id)
}

func mentions(text string, number int) bool {
	digits := strings.FieldsFunc(text, func(c rune) bool { return c < '0' || c > '9' })
	return slices.Contains(digits, strconv.Itoa(number))
}

// kernelCancelled: a driver may or may not heed the context, but it says which, and the id tells the same.
func kernelCancelled(r *rig) {
	k, err := bump.kernel()
	r.check(err)
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	r.kernels++
	id := r.kernels
	if err := r.dev.NewKernel(ctx, id, k); err != nil {
		if !errors.Is(err, context.Canceled) {
			r.Errorf("got error %v, want %v", err, context.Canceled)
		}
		r.check(r.dev.NewKernel(r.ctx, id, k))
	}
	r.runs(id)
}
