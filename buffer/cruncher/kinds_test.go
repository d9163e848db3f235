// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/host"
)

// TestDimensions computes ranges of two and three dimensions, which are cut along the slowest one.
func TestDimensions(t *testing.T) {
	const w, h, d = 37, 11, 29
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		for _, blobs := range []int{1, 3} {
			cr := onDevices(t, devices, devs, `
fn plane(p: vec2<u32>) { a[p.y * 37u + p.x] += p.x + 1000u * p.y; }
fn space(p: vec3<u32>) { b[(p.z * 11u + p.y) * 37u + p.x] += p.x + 100u * p.y + 10000u * p.z; }`, shifting())
			a, b := wrap(t, "a", make([]uint32, w*d)), wrap(t, "b", make([]uint8, w*h*d))
			edit(a).PartialRead(true)
			edit(b).PartialRead(true)
			flat := cruncher.Range{Global: d - 2, Offset: 2, Inner: []int{w}, Local: 8, Blobs: blobs}
			check(t, a.Compute(t.Context(), cr, 1, "plane", flat))
			deep := cruncher.Range{Global: d, Inner: []int{w, h}, Local: 8, Blobs: blobs}
			check(t, b.Compute(t.Context(), cr, 2, "space", deep))
			for y := range d {
				for x := range w {
					want := uint32(x + 1000*y)
					if y < 2 {
						want = 0
					}
					if got := a.Data()[y*w+x]; got != want {
						t.Fatalf("%d devices: (%d, %d) is %d", devs, x, y, got)
					}
					for k := range h {
						if got, want := b.Data()[(y*h+k)*w+x], uint8(x+100*k+10000*y); got != want {
							t.Fatalf("%d devices: (%d, %d, %d) is %d", devs, x, k, y, got)
						}
					}
				}
			}
			refused(t, "dimensions", b.Compute(t.Context(), cr, 1, "space", flat), cruncher.ErrRange)
			flat.Global++
			refused(t, "a row too many", a.Compute(t.Context(), cr, 1, "plane", flat), cruncher.ErrLength)
		}
	}
}

func TestScalars(t *testing.T) {
	cr := newCruncher(t, 2, `fn axpy(i: u32) { y[i] = alpha * f32(n) + y[i] + f32(shift) + f32(i % stride); }`)
	y := wrap(t, "y", count(100, float32(0)))
	for k := range 3 {
		g := cruncher.Params(y, cruncher.NewScalar("alpha", float32(k)), cruncher.NewScalar("n", int32(-2)), cruncher.NewScalar("shift", uint32(5)),
			cruncher.NewScalar("stride", uint32(1)))
		check(t, cr.Compute(t.Context(), 1, "axpy", cruncher.Range{Global: 100}, g))
	}
	same(t, "y", y.Data(), count(100, float32(9)))
	for _, s := range []cruncher.Param{cruncher.NewScalar("", int32(1)), cruncher.NewScalar("a b", int32(1))} {
		refused(t, "a scalar", cr.Compute(t.Context(), 1, "axpy", cruncher.Range{Global: 1}, cruncher.Params(y, s)), cruncher.ErrName)
	}
}

// TestModule runs complete modules: one that knows which part of the range it has, and one that does not.
func TestModule(t *testing.T) {
	const source = `
struct P { sublet_base: u32, sublet_count: u32, step: u32, sublet_total: u32 }
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(50)
fn part(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < p.sublet_count) { a[p.sublet_base + id.x] += p.step + p.sublet_total; }
}
@compute @workgroup_size(50)
fn all(@builtin(global_invocation_id) id: vec3<u32>) { if (id.x < arrayLength(&a)) { a[id.x] += p.step; } }`
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		cr := onDevices(t, devices, devs, source, shifting())
		a := wrap(t, "a", count(430, uint32(0)))
		edit(a).PartialRead(true)
		g := cruncher.Params(a, cruncher.NewScalar("step", uint32(3)))
		for _, blobs := range []int{1, 4} {
			check(t, cr.Compute(t.Context(), 1, "part", cruncher.Range{Global: 430, Blobs: blobs}, g))
		}
		same(t, fmt.Sprint(devs, " devices"), a.Data(), count(430, uint32(866)))
		refused(t, "another workgroup", cr.Compute(t.Context(), 1, "part", cruncher.Range{Global: 430, Local: 1 << 20}, g), gpu.ErrLimit)
	}
	one := onDevices(t, devices, 2, `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64)
fn all(@builtin(global_invocation_id) id: vec3<u32>) { if (id.x < arrayLength(&a)) { a[id.x] += 1u; } }`)
	a := wrap(t, "a", count(130, uint32(0)))
	check(t, a.Compute(t.Context(), one, 1, "all", cruncher.Range{Global: 130, Blobs: 4}))
	same(t, "a module that cannot be divided", a.Data(), count(130, uint32(1)))
	if got := one.Traffic().Up; got != 4*130 {
		t.Errorf("%d bytes went up to one device", got)
	}
	refused(t, "and cannot begin elsewhere", a.Compute(t.Context(), one, 1, "all", cruncher.Range{Global: 10, Offset: 1}), kernel.ErrKernel)
	same(t, "which changed nothing", a.Data(), count(130, uint32(1)))
}

// TestNarrow has elements of 8 and 16 bits in all modes, with ranges whose borders lie within words.
func TestNarrow(t *testing.T) {
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		narrow[uint8](t, devices, devs, 2)
		narrow[int8](t, devices, devs, 2)
		narrow[uint16](t, devices, devs, 1)
		narrow[int16](t, devices, devs, 1)
	}
}

func narrow[T uint8 | int8 | uint16 | int16](t *testing.T, devices []*gpu.Device, devs int, shift int) {
	t.Helper()
	const n = 403
	atomic := `fn inc(i: u32) { sublet_store_a(i, sublet_load_a(i) + 3); }`
	if T(0)-1 > 0 {
		atomic = `fn inc(i: u32) { sublet_store_a(i, sublet_load_a(i) + 3u); }`
	}
	wide := `fn inc(i: u32) { a[i] = a[i] + 3; }`
	if T(0)-1 > 0 {
		wide = `fn inc(i: u32) { a[i] = a[i] + 3u; }`
	}
	// The words that hold elements of several items belong to none of them: a packed kernel's items are words.
	packed := map[int]string{
		1: `fn inc(w: u32) { a[w] = (((a[w] & 0x7fff7fffu) + 0x00030003u) ^ (a[w] & 0x80008000u)); }`,
		2: `fn inc(w: u32) { a[w] = (((a[w] & 0x7f7f7f7fu) + 0x03030303u) ^ (a[w] & 0x80808080u)); }`,
	}[shift]
	for mode, source := range map[kernel.Mode]string{kernel.Widened: wide, kernel.Atomic: atomic, kernel.Packed: packed} {
		cr := onDevices(t, devices, devs, source, shifting())
		for _, resident := range []bool{false, true} {
			a := wrap(t, "a", count(n, T(0)))
			edit(a).Mode(mode).PartialRead(true)
			r := cruncher.Range{Global: n - 5, Offset: 3, Local: 3}
			if mode == kernel.Packed {
				edit(a).ElementsPerItem(1 << shift)
				r = cruncher.Range{Global: n>>shift - 1, Offset: 1, Local: 3}
			}
			lo, hi := r.Offset*a.Flags().ElementsPerItem, (r.Offset+r.Global)*a.Flags().ElementsPerItem
			if resident {
				edit(a).Write(false)
			}
			const calls = 4
			for k := range calls {
				r.Blobs = 1 + 3*(k%2)
				check(t, a.Compute(t.Context(), cr, 1, "inc", r))
				if resident {
					edit(a).Read(false).PartialRead(false)
				}
			}
			check(t, cr.Fetch(t.Context(), a.Any))
			for i, v := range a.Data() {
				want := T(i)
				if i >= lo && i < hi {
					want += 3 * calls
				}
				if v != want {
					t.Fatalf("%T in mode %d on %d devices, resident %v: element %d is %d, want %d", v, mode, devs, resident, i, v, want)
				}
			}
			check(t, a.Close())
		}
	}
}

type body struct {
	Position [3]float32
	Mass     float32
	Kind     uint32
	_        [3]uint32
}

// TestStructs has an array of the caller's structures, as structs of the source and as words.
func TestStructs(t *testing.T) {
	const n = 77
	devices := openDevices(t, 3)
	for devs := 1; devs <= 3; devs++ {
		cr := onDevices(t, devices, devs, `
struct Body { position: vec3<f32>, mass: f32, kind: u32 }
struct Short { position: vec3<f32>, mass: f32 }
fn shift(i: u32) { bodies[i].position.y += bodies[i].mass; bodies[i].kind = i; }
fn words(i: u32) { bodies[8u * i + 4u] += 1u; }`, shifting())
		data := make([]body, n)
		for i := range data {
			data[i].Mass = float32(i)
		}
		bodies := must[*cruncher.Any](t)(cruncher.WrapStructs("bodies", data))
		if bodies.Flags().ElementsPerItem != int(unsafe.Sizeof(body{})) || bodies.Len() != n*32 {
			t.Error("elements per item")
		}
		edit(bodies).PartialRead(true)
		check(t, bodies.Compute(t.Context(), cr, 1, "words", cruncher.Range{Global: n, Local: 4}))
		edit(bodies).Struct("Body")
		check(t, bodies.Compute(t.Context(), cr, 2, "shift", cruncher.Range{Global: n, Local: 4, Blobs: 3}))
		for i, b := range data {
			if b.Position != [3]float32{0, float32(i), 0} || b.Kind != uint32(i) {
				t.Fatalf("%d devices: structure %d is %v", devs, i, b)
			}
		}
		edit(bodies).Struct("")
		check(t, bodies.Compute(t.Context(), cr, 1, "words", cruncher.Range{Global: n, Local: 4}))
		if data[9].Kind != 10 {
			t.Errorf("%d devices: as words, %v", devs, data[9])
		}
		edit(bodies).Struct("Short")
		refused(t, "a struct of another size", bodies.Compute(t.Context(), cr, 2, "shift", cruncher.Range{Global: n}), kernel.ErrKernel)
		edit(bodies).Struct("Nothing")
		refused(t, "no such struct", bodies.Compute(t.Context(), cr, 2, "shift", cruncher.Range{Global: n}), kernel.ErrKernel)
		check(t, bodies.Close())

		clear(data)
		plain := must[*cruncher.Any](t)(cruncher.WrapHost("bodies", cruncher.Bytes, gpu.HostBytes(host.BytesOf(data)), nil))
		edit(plain).Struct("Body")
		check(t, plain.Compute(t.Context(), cr, 3, "shift", cruncher.Range{Global: n, Local: 4}))
		for i, b := range data {
			if b.Kind != uint32(i) {
				t.Fatalf("%d devices, elements per item as they are at first: structure %d is %v", devs, i, b)
			}
		}
		refused(t, "too few structures", plain.Compute(t.Context(), cr, 3, "shift", cruncher.Range{Global: n + 1}), cruncher.ErrLength)
		check(t, plain.Close())
	}
}

// TestWindows has arrays that are larger than what the devices can bind.
func TestWindows(t *testing.T) {
	const most = 4096
	var devices []*gpu.Device
	devices = append(devices, openDevices(t, 3, gpu.WithMaxBuffer(most))...)
	const source = `
struct S { a: u32, b: u32, c: u32 }
fn inc(i: u32) { a[i] = a[i] + i; }
fn narrow(i: u32) { b[i] = b[i] + 1u; }
fn swap(i: u32) { let s = c[i]; c[i].a = s.c; c[i].c = s.a; }
fn near(i: u32) { if (i > 0u && i < arrayLength(&a) - 1u) { z[i] = a[i - 1u] + a[i + 1u]; } }`
	cr := onDevices(t, devices, 3, source, even())
	ctx := t.Context()
	a := wrap(t, "a", count(3000, uint32(0)))
	refused(t, "everything to all", a.Compute(ctx, cr, 1, "inc", cruncher.Range{Global: 3000, Local: 10}), gpu.ErrLimit)
	edit(a).PartialRead(true)
	for k := range 3 {
		check(t, a.Compute(ctx, cr, 1, "inc", cruncher.Range{Global: 3000, Local: 10, Blobs: 1 + k}))
	}
	for i, v := range a.Data() {
		if v != uint32(4*i) {
			t.Fatalf("element %d is %d", i, v)
		}
	}
	z := wrap(t, "z", make([]uint32, 3000))
	edit(z).WriteOnly(true)
	edit(a).Halo(1).Write(false)
	check(t, cr.Compute(ctx, 1, "near", cruncher.Range{Global: 2700, Local: 10}, a, z))
	for i := 1; i < 2700; i++ {
		if z.Data()[i] != uint32(8*i) {
			t.Fatalf("beside element %d: %d", i, z.Data()[i])
		}
	}
	edit(a).Halo(0).Write(true)
	refused(t, "too much for one", a.Compute(ctx, onDevices(t, devices, 1, source), 1, "inc", cruncher.Range{Global: 3000}), gpu.ErrLimit)

	b := wrap(t, "b", count(3001, uint8(0))) // four bytes for each on the device
	edit(b).PartialRead(true)
	check(t, b.Compute(ctx, cr, 1, "narrow", cruncher.Range{Global: 2995, Offset: 5, Local: 7}))
	for i, v := range b.Data() {
		want := uint8(i)
		if i >= 5 && i < 3000 {
			want++
		}
		if v != want {
			t.Fatalf("byte %d is %d, want %d", i, v, want)
		}
	}
	structs := make([][3]uint32, 1000)
	for i := range structs {
		structs[i] = [3]uint32{uint32(i), 0, uint32(2 * i)}
	}
	c := must[*cruncher.Any](t)(cruncher.WrapStructs("c", structs))
	edit(c).Struct("S").PartialRead(true)
	check(t, c.Compute(ctx, cr, 1, "swap", cruncher.Range{Global: 980, Offset: 20, Local: 10}))
	for i, s := range structs {
		if want := [3]uint32{uint32(2 * i), 0, uint32(i)}; i >= 20 && s != want || i < 20 && s[0] != uint32(i) {
			t.Fatalf("structure %d is %v", i, s)
		}
	}
}

// TestSlidingWindows moves resident elements of large arrays between devices, and between the windows of one.
func TestSlidingWindows(t *testing.T) {
	devices := openDevices(t, 3, gpu.WithMaxBuffer(8192))
	cr := onDevices(t, devices, 3, checksSource, shifting())
	a := newArray[uint32](t, "a", 3000)
	edit(a).Read(false).Write(false)
	for range 7 {
		check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 3000, Local: 10}))
	}
	check(t, cr.Fetch(t.Context(), a.Any))
	for i, v := range a.Data() {
		if v != 7 {
			t.Fatalf("element %d is %d", i, v)
		}
	}
	one := onDevices(t, devices, 1, checksSource)
	b := newArray[uint32](t, "a", 6000)
	edit(b).Read(false).Write(false)
	check(t, b.Compute(t.Context(), one, 1, "inc", cruncher.Range{Global: 1500}))
	check(t, b.Compute(t.Context(), one, 1, "inc", cruncher.Range{Global: 1500, Offset: 3000})) // leaves elements behind
	check(t, b.Compute(t.Context(), one, 1, "inc", cruncher.Range{Global: 1500, Offset: 750}))
	check(t, one.Fetch(t.Context(), b.Any))
	for i, want := range map[int]uint32{0: 1, 749: 1, 750: 2, 1499: 2, 1500: 1, 2249: 1, 2250: 0, 3000: 1, 4499: 1, 4500: 0} {
		if got := b.Data()[i]; got != want {
			t.Errorf("after sliding: element %d is %d, want %d", i, got, want)
		}
	}
}

// TestSharesFit gives devices no more than they can bind, whatever the balancer says.
func TestSharesFit(t *testing.T) {
	devices := openDevices(t, 3, gpu.WithMaxBuffer(512))
	shares := [][]int{{301, 0, 0}, {0, 301, 0}, {4, 297, 0}, {0, 0, 301}, {100, 100, 101}}
	cr := onDevices(t, devices, 3, checksSource, fixed(shares))
	a := wrap(t, "a", count(301, uint32(0)))
	edit(a).PartialRead(true).Halo(2)
	for k := range shares {
		check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 301, Local: 4}))
		same(t, "in windows", a.Data(), count(301, uint32(k+1)))
		for _, s := range cr.Last().Shares {
			if s.Count > 128-2*2 {
				t.Errorf("call %d: %+v", k, s)
			}
		}
	}
	large := wrap(t, "a", count(500, uint32(0)))
	edit(large).PartialRead(true)
	err := large.Compute(t.Context(), onDevices(t, devices, 3, checksSource), 1, "inc", cruncher.Range{Global: 500, Local: 4})
	isError(t, "too much for all", err, gpu.ErrLimit)
	same(t, "refused", large.Data(), count(500, uint32(0)))
}

// TestZeroCopy has memory that the CPU can reach, where there is such, and the same results and traffic.
func TestZeroCopy(t *testing.T) {
	devices := openDevices(t, 2)
	cr := onDevices(t, devices, 2, checksSource, shifting())
	a, s := wrap(t, "a", count(1001, uint32(0))), newArray[uint32](t, "a", 1001)
	edit(a).ZeroCopy(true)
	edit(s).ZeroCopy(true).Read(false).Write(false)
	for k := range uint32(6) {
		edit(a).PartialRead(k%2 == 0)
		r := cruncher.Range{Global: 1001, Local: 4, Blobs: int(1 + 2*(k%3))}
		check(t, a.Compute(t.Context(), cr, 1, "inc", r))
		same(t, "shared", a.Data(), count(1001, k+1))
		check(t, s.Compute(t.Context(), cr, 1, "inc", r))
	}
	check(t, cr.Fetch(t.Context(), s.Any))
	if s.Data()[1000] != 6 {
		t.Errorf("resident: %d", s.Data()[1000])
	}
	if !devices[0].Info().Features.Has(driver.FeatureMappable) {
		return
	}
	before := devices[0].Stats()
	check(t, a.Compute(t.Context(), cr, 1, "inc", cruncher.Range{Global: 1001, Local: 4}))
	if after := devices[0].Stats(); after.BytesUp != before.BytesUp || after.BytesDown != before.BytesDown {
		t.Error("elements took the way over a stage")
	}
}

// TestReadOnlyMemory has memory that nothing may be written to.
func TestReadOnlyMemory(t *testing.T) {
	cr := newCruncher(t, 2, `fn add(i: u32) { b[i] = b[i] + a[i]; }`)
	released := 0
	mem := gpu.Host{Bytes: []byte{9, 1, 0, 0, 0, 2, 0, 0, 0}, Offset: 1, Size: 8, ReadOnly: true}
	a := must[*cruncher.Any](t)(cruncher.WrapHost("a", dtype.Uint32, mem, func() { released++ }))
	if !a.Flags().ReadOnly {
		t.Error("the array is not read-only")
	}
	b := newArray[uint32](t, "b", 2)
	check(t, cr.Compute(t.Context(), 1, "add", cruncher.Range{Global: 2, Local: 1}, a, b))
	same(t, "b", b.Data(), []uint32{1, 2})
	edit(a).ReadOnly(false).Write(true)
	refused(t, "writing back", cr.Compute(t.Context(), 1, "add", cruncher.Range{Global: 2}, a, b), gpu.ErrReadOnly)
	check(t, a.Close())
	check(t, a.Close())
	if released != 1 {
		t.Errorf("released %d times", released)
	}
	refused(t, "closed", cr.Compute(t.Context(), 1, "add", cruncher.Range{Global: 2}, a, b), gpu.ErrClosed)
	refused(t, "closed", cr.Fetch(t.Context(), a), gpu.ErrClosed)
}
