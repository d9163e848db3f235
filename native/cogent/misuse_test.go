// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// refused wants an error of one kind, and the device unharmed.
func refused(t *testing.T, d driver.Device, name string, err error, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got error %v, want %v", name, err, kind)
	}
	healthy(t, d, 90)
	d.FreeBuffer(90)
	d.FreeBuffer(91)
	d.FreeKernel(90)
	var l driver.CommandList
	l.Unbind(90)
	must(t, d.Submit(&l))
}

// Each of these makes wgpu-native report an error or end the process if it gets that far.
func TestRefusedLists(t *testing.T) {
	d := openDevice(t)
	const n = 256
	prepareAxpy(t, d, 1, n) // buffers 1 and 2, kernel 1, set 1
	must(t, d.NewKernel(t.Context(), 2, &bump))
	for id := driver.BufferID(10); id < 14; id++ {
		must(t, d.NewBuffer(id, 1024, id == 12))
	}
	var l driver.CommandList
	l.Bind(2, bump.Layout, []driver.Binding{{Buffer: 10, Size: 1024}})
	l.Bind(3, bump.Layout, []driver.Binding{{Buffer: 11, Size: 1024}})
	l.Bind(4, bump.Layout, []driver.Binding{{Buffer: 12, Size: 1024}})
	must(t, d.Submit(&l))
	d.FreeBuffer(11)
	if _, err := d.Map(t.Context(), 12, 0, 1024); err != nil {
		t.Fatal(err)
	}
	g := groups(n)
	block := gputest.PutU32(nil, n, 1)
	both := driver.NewLayout(driver.AccessRead, driver.AccessReadWrite)
	limits := d.Info().Limits
	half := driver.HostBytes(make([]byte, 8))
	half.Size = 16

	for _, c := range []struct {
		name  string
		kind  error
		build func(l *driver.CommandList)
	}{
		{"write offset", fault.ErrInvalid, func(l *driver.CommandList) { l.Write(10, 2, driver.HostBytes(make([]byte, 4))) }},
		{"write past the end", fault.ErrInvalid, func(l *driver.CommandList) { l.Write(10, 1020, driver.HostBytes(make([]byte, 5))) }},
		{"write far away", fault.ErrInvalid, func(l *driver.CommandList) { l.Write(10, math.MaxUint64-3, driver.HostBytes(make([]byte, 8))) }},
		{"write short memory", fault.ErrInvalid, func(l *driver.CommandList) { l.Write(10, 0, half) }},
		{"write foreign memory", fault.ErrUnsupported, func(l *driver.CommandList) { l.Write(10, 0, driver.Host{Foreign: 1, Size: 8}) }},
		{"write freed", fault.ErrClosed, func(l *driver.CommandList) { l.Write(11, 0, driver.HostBytes(make([]byte, 4))) }},
		{"write mapped", fault.ErrMapped, func(l *driver.CommandList) { l.Write(12, 0, driver.HostBytes(make([]byte, 4))) }},
		{"write unknown", fault.ErrClosed, func(l *driver.CommandList) { l.Write(math.MaxUint32, 0, driver.HostBytes(nil)) }},
		{"copy within", fault.ErrInvalid, func(l *driver.CommandList) { l.Copy(10, 0, 10, 512, 4) }},
		{"copy unaligned", fault.ErrInvalid, func(l *driver.CommandList) { l.Copy(10, 0, 13, 2, 4) }},
		{"copy past the end", fault.ErrInvalid, func(l *driver.CommandList) { l.Copy(10, 0, 13, 4, 1024) }},
		{"copy freed", fault.ErrClosed, func(l *driver.CommandList) { l.Copy(10, 0, 11, 0, 4) }},
		{"copy mapped", fault.ErrMapped, func(l *driver.CommandList) { l.Copy(10, 0, 12, 0, 4) }},
		{"clear unaligned", fault.ErrInvalid, func(l *driver.CommandList) { l.Clear(10, 0, 3) }},
		{"clear past the end", fault.ErrInvalid, func(l *driver.CommandList) { l.Clear(10, 4, 1024) }},
		{"bind nothing", fault.ErrInvalid, func(l *driver.CommandList) { l.Bind(9, bump.Layout, nil) }},
		{"bind size 0", fault.ErrInvalid, func(l *driver.CommandList) { l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 10}}) }},
		{"bind size 6", fault.ErrInvalid, func(l *driver.CommandList) { l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 10, Size: 6}}) }},
		{"bind offset 4", fault.ErrInvalid, func(l *driver.CommandList) {
			l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 10, Offset: 4, Size: 8}})
		}},
		{"bind past the end", fault.ErrInvalid, func(l *driver.CommandList) {
			l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 10, Offset: 256, Size: 1024}})
		}},
		{"bind freed", fault.ErrClosed, func(l *driver.CommandList) { l.Bind(9, bump.Layout, []driver.Binding{{Buffer: 11, Size: 4}}) }},
		{"bind no buffer", fault.ErrClosed, func(l *driver.CommandList) { l.Bind(9, bump.Layout, []driver.Binding{{Size: 4}}) }},
		{"bind id taken", fault.ErrInvalid, func(l *driver.CommandList) { l.Bind(2, bump.Layout, []driver.Binding{{Buffer: 10, Size: 4}}) }},
		{"bind for reading and writing", fault.ErrInvalid, func(l *driver.CommandList) {
			l.Bind(9, both, []driver.Binding{{Buffer: 10, Size: 256}, {Buffer: 10, Offset: 512, Size: 256}})
		}},
		{"bind with two parameter blocks", fault.ErrInvalid, func(l *driver.CommandList) {
			l.Bind(9, driver.NewLayout(driver.AccessParams, driver.AccessParams), nil)
		}},
		{"unbind unknown", fault.ErrInvalid, func(l *driver.CommandList) { l.Unbind(77) }},
		{"dispatch too many groups", fault.ErrLimit, func(l *driver.CommandList) { l.Dispatch(2, 2, [3]uint32{limits.MaxGroups + 1, 1, 1}, nil) }},
		{"dispatch no kernel", fault.ErrClosed, func(l *driver.CommandList) { l.Dispatch(7, 2, g, nil) }},
		{"dispatch no set", fault.ErrInvalid, func(l *driver.CommandList) { l.Dispatch(2, 7, g, nil) }},
		{"dispatch another layout", fault.ErrInvalid, func(l *driver.CommandList) { l.Dispatch(2, 1, g, block) }},
		{"dispatch freed buffer", fault.ErrClosed, func(l *driver.CommandList) { l.Dispatch(2, 3, g, nil) }},
		{"dispatch mapped buffer", fault.ErrMapped, func(l *driver.CommandList) { l.Dispatch(2, 4, g, nil) }},
		{"dispatch without parameters", fault.ErrInvalid, func(l *driver.CommandList) { l.Dispatch(1, 1, g, nil) }},
		{"dispatch with parameters elsewhere", fault.ErrInvalid, func(l *driver.CommandList) {
			l.Dispatch(1, 1, g, block)
			l.Words[len(l.Words)-1] = 256
		}},
		{"no command", fault.ErrInvalid, func(l *driver.CommandList) { l.Words = []uint32{0} }},
		{"unknown command", fault.ErrInvalid, func(l *driver.CommandList) { l.Words = []uint32{1<<8 | 200} }},
		{"length 0", fault.ErrInvalid, func(l *driver.CommandList) { l.Words = []uint32{uint32(driver.OpClear)} }},
		{"length beyond", fault.ErrInvalid, func(l *driver.CommandList) { l.Words = []uint32{100<<8 | uint32(driver.OpClear)} }},
		{"data beyond", fault.ErrInvalid, func(l *driver.CommandList) {
			l.Write(10, 0, driver.HostBytes(make([]byte, 4)))
			l.Data = nil
		}},
	} {
		// A good command before the bad one must not run.
		var l driver.CommandList
		l.Write(10, 0, driver.HostBytes(bytesOf([]uint32{42})))
		c.build(&l)
		refused(t, d, c.name, d.Submit(&l), c.kind)
		want(t, d, 10, []uint32{0})
	}
	refused(t, d, "nil list", d.Submit(nil), fault.ErrInvalid)
}

func TestRefusedKernels(t *testing.T) {
	d := openDevice(t)
	ctx := t.Context()
	kernel := func(change func(k *driver.Kernel)) *driver.Kernel {
		k := axpy
		change(&k)
		return &k
	}
	for _, c := range []struct {
		name string
		kind error
		k    *driver.Kernel
	}{
		{"nil", fault.ErrInvalid, nil},
		{"no source", fault.ErrInvalid, kernel(func(k *driver.Kernel) { k.Source = "" })},
		{"no entry", fault.ErrInvalid, kernel(func(k *driver.Kernel) { k.Entry = "" })},
		{"unknown entry", fault.ErrCompile, kernel(func(k *driver.Kernel) { k.Entry = "start" })},
		{"syntax", fault.ErrCompile, kernel(func(k *driver.Kernel) { k.Source += "x" })},
		{"types", fault.ErrCompile, kernel(func(k *driver.Kernel) { k.Source = strings.Replace(k.Source, "p.k *", "1.5 *", 1) })},
		{"not UTF-8", fault.ErrCompile, kernel(func(k *driver.Kernel) { k.Source += "// \xff" })},
		{"zero byte", fault.ErrCompile, kernel(func(k *driver.Kernel) { k.Source = "\x00" + k.Source })},
		{"zero byte in the entry", fault.ErrCompile, kernel(func(k *driver.Kernel) { k.Entry = "main\x00" })},
		{"entry not UTF-8", fault.ErrCompile, kernel(func(k *driver.Kernel) { k.Entry = "\xff" })},
		{"missing binding", fault.ErrCompile, kernel(func(k *driver.Kernel) { k.Layout = bump.Layout })},
		{"other access", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Layout = driver.NewLayout(driver.AccessReadWrite, driver.AccessReadWrite, driver.AccessParams)
		})},
		{"workgroup too large", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source = strings.Replace(k.Source, "workgroup_size(64)", "workgroup_size(1024, 64)", 1)
		})},
		{"parameters too large", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source = strings.Replace(k.Source, "k: u32", "k: u32, more: array<vec4<u32>, 64>", 1)
		})},
		{"two parameter blocks", fault.ErrInvalid, kernel(func(k *driver.Kernel) {
			k.Layout = driver.NewLayout(driver.AccessParams, driver.AccessParams)
		})},
		{"brackets", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += "fn f() -> i32 { return " + strings.Repeat("(", 50000) + "1" + strings.Repeat(")", 50000) + "; }"
		})},
		{"blocks", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += "fn f() { " + strings.Repeat("{", 50000) + strings.Repeat("}", 50000) + "}"
		})},
		{"minus", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += "fn f() -> i32 { return " + strings.Repeat("- ", 50000) + "1; }"
		})},
		{"sum", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += "fn f(x: i32) -> i32 { return x" + strings.Repeat("+ x", 50000) + "; }"
		})},
		{"calls", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += "fn f(x: f32) -> f32 { return sin(x)" + strings.Repeat("+ sin(x)", 50000) + "; }"
		})},
		{"members", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += "fn f(x: vec2<f32>) -> f32 { return x" + strings.Repeat(".x", 50000) + "; }"
		})},
		{"branches", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += "fn f(x: i32) { if (x == 0) {} " + strings.Repeat("else if (x == 1) { f(x); }", 20000) + "}"
		})},
		{"types", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += "alias T = " + strings.Repeat("array<", 50000) + "f32" + strings.Repeat(", 1>", 50000) + ";"
		})},
		{"constants", fault.ErrCompile, kernel(func(k *driver.Kernel) {
			k.Source += strings.Repeat("const c = 1;\n", 50000)
		})},
	} {
		refused(t, d, c.name, d.NewKernel(ctx, 1, c.k), c.kind)
	}
	must(t, d.NewKernel(ctx, 1, &axpy)) // the id is still free
	refused(t, d, "id taken", d.NewKernel(ctx, 1, &axpy), fault.ErrInvalid)
	refused(t, d, "id 0", d.NewKernel(ctx, 0, &axpy), fault.ErrInvalid)
}

// The message of a kernel that does not compile shows the place.
func TestCompileMessage(t *testing.T) {
	d := openDevice(t)
	k := axpy
	k.Source = "@compute @workgroup_size(64)\nfn main() {\n\tlet x: u32 = true;\n}\n"
	err := d.NewKernel(t.Context(), 1, &k)
	for _, part := range []string{"axpy", "wgsl:3:6", "let x: u32 = true;", "expected to be `u32`"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
}

func TestRefusedBuffers(t *testing.T) {
	d, other := openDevice(t), openDevice(t)
	must(t, d.NewBuffer(1, 64, false))
	must(t, other.NewBuffer(1, 64, false))
	dev := d.Handle(0).(*wgpu.Device)
	made := func(desc wgpu.BufferDescriptor) *wgpu.Buffer {
		b, err := dev.CreateBuffer(&desc)
		must(t, err)
		t.Cleanup(b.Release)
		return b
	}
	const usage = wgpu.BufferUsageStorage | wgpu.BufferUsageCopySrc | wgpu.BufferUsageCopyDst
	mapped := made(wgpu.BufferDescriptor{Size: 64, Usage: usage, MappedAtCreation: true})
	mappable := made(wgpu.BufferDescriptor{
		Size: 64, Usage: usage | wgpu.BufferUsageMapWrite, MappedAtCreation: true,
	})
	destroyed := made(wgpu.BufferDescriptor{Size: 64, Usage: usage})
	destroyed.Destroy()

	refused(t, d, "size 0", d.NewBuffer(2, 0, false), fault.ErrInvalid)
	refused(t, d, "size 6", d.NewBuffer(2, 6, false), fault.ErrInvalid)
	refused(t, d, "size 1 PiB", d.NewBuffer(2, 1<<50, false), fault.ErrLimit)
	refused(t, d, "id taken", d.NewBuffer(1, 64, false), fault.ErrInvalid)
	for _, c := range []struct {
		name   string
		handle any
		kind   error
	}{
		{"nil", nil, fault.ErrUnsupported},
		{"a number", 7, fault.ErrUnsupported},
		{"nil buffer", (*wgpu.Buffer)(nil), fault.ErrInvalid},
		{"empty buffer", new(wgpu.Buffer), fault.ErrInvalid},
		{"another device's", other.Handle(1), fault.ErrForeign},
		{"no storage", made(wgpu.BufferDescriptor{Size: 64, Usage: usage &^ wgpu.BufferUsageStorage}), fault.ErrInvalid},
		{"no copy", made(wgpu.BufferDescriptor{Size: 64, Usage: wgpu.BufferUsageStorage}), fault.ErrInvalid},
		{"mapped since its creation", mapped, fault.ErrMapped},
		{"mapped", mappable, fault.ErrMapped},
		{"destroyed", destroyed, fault.ErrInvalid},
	} {
		_, _, err := d.ImportBuffer(3, c.handle)
		refused(t, d, c.name, err, c.kind)
	}
	unseen := runtime.GOOS == "darwin" || runtime.GOOS == "ios" // the linker there cannot tell what is mapped: it no longer is
	if !unseen {
		copy(mapped.GetMappedRange(0, 64), bytesOf(ramp(16, 5)))
		must(t, mapped.Unmap())
	}
	_, _, err := d.ImportBuffer(3, mapped)
	must(t, err)
	if !unseen {
		want(t, d, 3, ramp(16, 5))
	}
	must(t, mappable.Unmap())
	_, _, err = d.ImportBuffer(4, mappable)
	must(t, err)
	known, _, err := d.ImportBuffer(4, mapped)
	must(t, err)
	if known != 3 {
		t.Errorf("imported again as %d, want 3", known)
	}
}

// TestReleased hands over buffers that nobody has a reference to any more: nothing looks behind their pointers.
func TestReleased(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return // the linker there cannot tell when buffers are released
	}
	d := openDevice(t)
	dev := d.Handle(0).(*wgpu.Device)
	const usage = wgpu.BufferUsageStorage | wgpu.BufferUsageCopySrc | wgpu.BufferUsageCopyDst
	var gone []*wgpu.Buffer
	for range 1000 {
		b, err := dev.CreateBuffer(&wgpu.BufferDescriptor{Size: 64, Usage: usage})
		must(t, err)
		gone = append(gone, b)
	}
	for i, b := range gone {
		if i%2 == 0 {
			_, _, err := d.ImportBuffer(driver.BufferID(i+1), b) // holds a reference of its own
			must(t, err)
		}
		b.Release()
		_, _, err := d.ImportBuffer(5000, b)
		if i%2 == 0 {
			must(t, err)
			d.FreeBuffer(5000)
			d.FreeBuffer(driver.BufferID(i + 1))
			_, _, err = d.ImportBuffer(5000, b)
		}
		refused(t, d, "released", err, fault.ErrClosed)
		refused(t, d, "released", d.DestroyBuffer(b), fault.ErrClosed)
	}
}

// Buffers that are destroyed or mapped without the driver's register knowing: through a handle, and under another id.
func TestBuffersOthersSpoil(t *testing.T) {
	d := openDevice(t)
	const n = 64
	must(t, d.NewKernel(t.Context(), 1, &bump))
	for id := driver.BufferID(1); id < 4; id++ {
		must(t, d.NewBuffer(id, 4*n, id == 2))
	}
	_, _, err := d.ImportBuffer(4, d.Handle(2))
	must(t, err)
	var l driver.CommandList
	for _, id := range []uint32{1, 4} {
		l.Bind(driver.BindingsID(id), bump.Layout, []driver.Binding{whole(driver.BufferID(id), n)})
	}
	must(t, d.Submit(&l))
	spoilt := func(name string, id driver.BufferID, kind error) {
		t.Helper()
		for _, use := range []func(l *driver.CommandList){
			func(l *driver.CommandList) { l.Dispatch(1, driver.BindingsID(id), groups(n), nil) },
			func(l *driver.CommandList) { l.Copy(id, 0, 3, 0, 4) },
			func(l *driver.CommandList) { l.Copy(3, 0, id, 0, 4) },
			func(l *driver.CommandList) { l.Clear(id, 0, 4) },
		} {
			var l driver.CommandList
			use(&l)
			refused(t, d, name, d.Submit(&l), kind)
		}
		_, err := read(t.Context(), d, id, n)
		refused(t, d, name, err, kind)
	}
	d.Handle(1).(*wgpu.Buffer).Destroy()
	spoilt("destroyed", 1, fault.ErrInvalid)

	_, err = d.Map(t.Context(), 2, 0, 8)
	must(t, err)
	spoilt("mapped", 4, fault.ErrMapped)
	must(t, d.Unmap(2))
	l.Reset()
	l.Dispatch(1, 4, groups(n), nil)
	must(t, d.Submit(&l))
	want(t, d, 2, []uint32{1, 1, 1})
	want(t, d, 3, make([]uint32, n))
}

func TestRefusedTransfers(t *testing.T) {
	d := openDevice(t)
	must(t, d.NewBuffer(1, 64, false))
	must(t, d.NewBuffer(2, 64, true))
	if _, err := d.Map(t.Context(), 2, 0, 8); err != nil {
		t.Fatal(err)
	}
	host := driver.HostBytes(make([]byte, 64))
	long := host
	long.Size = 128
	for _, c := range []struct {
		name string
		kind error
		tr   driver.Transfer
	}{
		{"past the end", fault.ErrInvalid, driver.Transfer{Buffer: 1, Offset: 60, Host: host, Width: 8, Count: 1}},
		{"far away", fault.ErrInvalid, driver.Transfer{Buffer: 1, Offset: math.MaxUint64, Host: host, Width: 8, Count: 1}},
		{"host too short", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, HostOffset: 60, Width: 8, Count: 1}},
		{"host shorter than it says", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: long, Width: 8, Count: 1}},
		{"host foreign", fault.ErrUnsupported, driver.Transfer{Buffer: 1, Host: driver.Host{Foreign: 1, Size: 64}, Width: 8, Count: 1}},
		{"negative width", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, Width: -4, Count: 1}},
		{"negative count", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, Width: 4, Count: -1}},
		{"negative host offset", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, HostOffset: -4, Width: 4, Count: 1}},
		{"overlapping rows", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, Width: 8, Pitch: 4, Count: 2}},
		{"overflow", fault.ErrInvalid, driver.Transfer{Buffer: 1, Host: host, Width: 8, Pitch: math.MaxInt / 2, Count: math.MaxInt}},
		{"unknown buffer", fault.ErrClosed, driver.Transfer{Buffer: 9, Host: host, Width: 8, Count: 1}},
		{"mapped buffer", fault.ErrMapped, driver.Transfer{Buffer: 2, Host: host, Width: 8, Count: 1}},
	} {
		refused(t, d, c.name, d.Read(t.Context(), c.tr), c.kind)
	}
}

func TestRefusedMappings(t *testing.T) {
	d := openDevice(t)
	must(t, d.NewBuffer(1, 64, false))
	must(t, d.NewBuffer(2, 64, true))
	mapErr := func(id driver.BufferID) error {
		_, err := d.Map(t.Context(), id, 0, 64)
		return err
	}
	refused(t, d, "not mappable", mapErr(1), fault.ErrUnsupported)
	refused(t, d, "unknown", mapErr(7), fault.ErrClosed)
	refused(t, d, "unmap unmapped", d.Unmap(2), fault.ErrInvalid)
	refused(t, d, "unmap unknown", d.Unmap(7), fault.ErrInvalid)
	must(t, mapErr(2))
	refused(t, d, "twice", mapErr(2), fault.ErrMapped)
	must(t, d.Unmap(2))
	refused(t, d, "unmap twice", d.Unmap(2), fault.ErrInvalid)
	must(t, mapErr(2))
	d.FreeBuffer(2) // while it is mapped
	refused(t, d, "unmap freed", d.Unmap(2), fault.ErrInvalid)
}

func TestRefusedContexts(t *testing.T) {
	d := openDevice(t)
	must(t, d.NewBuffer(1, 64, true))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func(ctx context.Context) error{
		"Wait": d.Wait,
		"Map": func(ctx context.Context) error {
			_, err := d.Map(ctx, 1, 0, 64)
			return err
		},
		"Read": func(ctx context.Context) error {
			_, err := read(ctx, d, 1, 1)
			return err
		},
		"NewKernel": func(ctx context.Context) error { return d.NewKernel(ctx, 1, &axpy) },
		"Open": func(ctx context.Context) error {
			_, err := open(ctx)
			return err
		},
		"Adopt": func(ctx context.Context) error {
			_, err := New().Adopt(ctx, d.Handle(0))
			return err
		},
	} {
		refused(t, d, name+" cancelled", call(gone), context.Canceled)
		refused(t, d, name+" without context", call(nil), fault.ErrInvalid)
	}
}

func TestRefusedAdoptions(t *testing.T) {
	for _, c := range []struct {
		name   string
		handle any
		kind   error
	}{
		{"nil", nil, fault.ErrUnsupported},
		{"a number", 7, fault.ErrUnsupported},
		{"nil device", (*wgpu.Device)(nil), fault.ErrInvalid},
		{"empty device", new(wgpu.Device), fault.ErrInvalid},
	} {
		if _, err := New().Adopt(t.Context(), c.handle); !errors.Is(err, c.kind) {
			t.Errorf("%s: got error %v, want %v", c.name, err, c.kind)
		}
	}
}

func TestUseAfterClose(t *testing.T) {
	d := openDevice(t)
	must(t, d.NewBuffer(1, 64, true))
	must(t, d.Close())
	must(t, d.Close())
	ctx := t.Context()
	_, mapped := d.Map(ctx, 1, 0, 64)
	_, _, imported := d.ImportBuffer(2, new(wgpu.Buffer))
	_, got := read(ctx, d, 1, 1)
	for name, err := range map[string]error{
		"NewBuffer":    d.NewBuffer(2, 64, false),
		"NewKernel":    d.NewKernel(ctx, 1, &axpy),
		"Submit":       d.Submit(new(driver.CommandList)),
		"Wait":         d.Wait(ctx),
		"Map":          mapped,
		"Unmap":        d.Unmap(1),
		"Read":         got,
		"ImportBuffer": imported,
	} {
		if !errors.Is(err, fault.ErrClosed) {
			t.Errorf("%s: got error %v, want %v", name, err, fault.ErrClosed)
		}
	}
	d.FreeBuffer(1)
	d.FreeKernel(1)
	if d.Handle(0) != nil || d.Handle(1) != nil {
		t.Error("a closed device gives out handles")
	}
	if d.LostReason() != "" {
		t.Errorf("a closed device was lost: %s", d.LostReason())
	}
}
