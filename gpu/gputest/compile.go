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

var compileCases = append([]testCase{
	{"KernelRefused", kernelRefused},
	{"KernelReused", kernelReused},
	{"KernelWithoutReference", kernelWithoutReference},
	{"KernelCancelled", kernelCancelled},
}, mistakeCases()...)

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

// mistake is what a kernel does not compile for.
type mistake struct {
	name, source, entry string
	layout              driver.Layout
	line                bool // whether it is in mistakeLine
}

const good = "v[0] = v[0] + 1u;"

var mistakes = []mistake{
	{"syntax", at("let = ;"), "main", bump.layout, true},
	{"unknown name", at("v[0] = nonsense;"), "main", bump.layout, true},
	{"unknown function", at("v[0] = nonsense(1u);"), "main", bump.layout, true},
	{"types", at("v[0] = 1.5;"), "main", bump.layout, false},
	{"no WGSL", "This is not WGSL.", "main", bump.layout, false},
	{"entry point", at(good), "other", bump.layout, false},
	{"missing binding", at(good), "main", driver.NewLayout(none, readWrite), false},
	{"read-only binding", at(good), "main", driver.NewLayout(readOnly), false},
	{"parameters for storage", at(good), "main", driver.NewLayout(params), false},
	{"an array without a length as a value", at("let a = array<u32>();"), "main", bump.layout, false},
	{"a type too large", "struct S { a: array<vec4<u32>, 2147483648u> } @group(0) @binding(0) var<storage> s: S;\n" +
		"@compute @workgroup_size(1) fn main() { let a = s.a[0]; }", "main", driver.NewLayout(readOnly), false},
	{"workgroup too large", strings.Replace(at(good), "size(1)", "size(65536, 65536)", 1), "main", bump.layout, false},
	{"workgroup of none", strings.Replace(at(good), "size(1)", "size(0)", 1), "main", bump.layout, false},
	{"recursion", at(good) + "fn f(x: u32) -> u32 { if (x == 0u) { return 0u; } return f(x - 1u); }", "main", bump.layout, false},
}

// mistakeCases: a kernel that does not compile says where, and harms nothing. Each mistake is a case, as drivers differ in what they find.
func mistakeCases() (list []testCase) {
	add := func(name string, of func(r *rig) mistake) {
		list = append(list, testCase{"KernelErrors/" + name, func(r *rig) { kernelError(r, of(r)) }})
	}
	for _, m := range mistakes {
		add(m.name, func(*rig) mistake { return m })
	}
	for _, c := range []struct {
		name string
		more int
	}{{"workgroup memory", 1}, {"workgroup memory beyond all measure", 1 << 29}} {
		add(c.name, func(r *rig) mistake { return mistake{c.name, r.shared(c.more), "main", bump.layout, false} })
	}
	return list
}

// shared is a kernel that has so many words more than the memory of workgroups.
func (r *rig) shared(more int) string {
	n := strconv.Itoa(int(r.info.Limits.MaxWorkgroupMemory/4) - 64 + more)
	return "const N = " + n + "u;\nalias A = array<u32, N>; var<workgroup> w: A; var<workgroup> x: array<vec4<f32>, 16>;\n" +
		at("w[v[1]] = 1u; x[v[2]].x = 1.0; v[0] = w[v[3]];")
}

func kernelError(r *rig, m mistake) {
	want := fault.ErrCompile
	if !r.has(driver.FeatureWGSL) {
		want = fault.ErrUnsupported
	}
	r.kernels++
	id := r.kernels
	err := r.dev.NewKernel(r.ctx, id, &driver.Kernel{Label: m.name, Source: m.source, Entry: m.entry, Layout: m.layout})
	r.refused(m.name, err, want)
	if m.line && r.has(driver.FeatureWGSL) && err != nil && !mentions(err.Error(), mistakeLine) {
		r.Errorf("%s: the message does not name line %d: %v", m.name, mistakeLine, err)
	}
	if err == nil {
		r.dev.FreeKernel(id)
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
