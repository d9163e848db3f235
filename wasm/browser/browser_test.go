// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// openDevice opens the first adapter.
func openDevice(t testing.TB) *device {
	t.Helper()
	adapters, err := New().Adapters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(adapters) == 0 {
		t.Fatal("no WebGPU adapter")
	}
	d, err := adapters[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.(*device)
}

func submit(t testing.TB, d driver.Device, build func(l *driver.CommandList)) {
	t.Helper()
	var l driver.CommandList
	build(&l)
	if err := d.Submit(&l); err != nil {
		t.Fatal(err)
	}
}

func newBuffer(t testing.TB, d driver.Device, id driver.BufferID, size uint64) {
	t.Helper()
	if err := d.NewBuffer(id, size, false); err != nil {
		t.Fatal(err)
	}
}

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// readFloats reads a whole buffer.
func readFloats(t testing.TB, d driver.Device, id driver.BufferID, n int) []float32 {
	t.Helper()
	b := make([]byte, 4*n)
	err := d.Read(t.Context(), driver.Transfer{Buffer: id, Host: driver.HostBytes(b), Width: len(b), Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// scale multiplies by a parameter: y = p.factor * y.
var scale = driver.Kernel{
	Label: "scale",
	Source: `struct Params { factor: f32, n: u32 }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<uniform> p: Params;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < p.n) { y[id.x] = p.factor * y[id.x]; }
}`,
	Entry:  "main",
	Layout: driver.NewLayout(driver.AccessReadWrite, driver.AccessParams),
}

// add computes z = x + z, without parameters and with a gap in the bindings.
var add = driver.Kernel{
	Label: "add",
	Source: `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&z)) { z[id.x] += x[id.x]; }
}`,
	Entry:  "main",
	Layout: driver.NewLayout(driver.AccessRead, driver.AccessNone, driver.AccessReadWrite),
}

func newKernel(t testing.TB, d driver.Device, id driver.KernelID, k *driver.Kernel) {
	t.Helper()
	if err := d.NewKernel(t.Context(), id, k); err != nil {
		t.Fatal(err)
	}
}

func scaleParams(factor float32, n uint32) []byte {
	return gputest.PutU32(gputest.PutF32(nil, factor), n)
}

// TestEngine checks that the page got the helper that the runner meant it to, or an error where it lets no program install one.
func TestEngine(t *testing.T) {
	want := os.Getenv("SUBLET_TEST_ENGINE")
	if want == "none" {
		for range 2 {
			_, err := New().Adopt(t.Context(), newGPUDevice(t))
			wantError(t, err, fault.ErrUnsupported)
		}
		return
	}
	d := openDevice(t)
	got := "embedded"
	if d.helper.shared {
		got = "supplied"
	}
	if got != want {
		t.Errorf("the engine is %s, want %s", got, want)
	}
	i := d.Info()
	t.Logf("%s, %s, %s, %v, %+v", i.Name, i.Kind, i.Backend, i.Features.Names(), i.Limits)
}

func TestAdapters(t *testing.T) {
	adapters, err := New().Adapters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(adapters) == 0 {
		t.Fatal("no WebGPU adapter")
	}
	seen := map[string]bool{}
	for _, a := range adapters {
		i := a.Info
		if i.Driver != "browser" || i.Backend != "webgpu" || i.Name == "" || !i.Features.Has(driver.FeatureWGSL) {
			t.Errorf("incomplete info %+v", i)
		}
		if l := i.Limits; l.MaxBufferSize < 1<<28 || l.MaxBindingSize < 1<<27 || l.MaxStorageBuffers < 8 || l.BindingOffsetAlign != 256 {
			t.Errorf("limits below the least of WebGPU: %+v", l)
		}
		id := i.Name + i.Vendor + i.Kind.String()
		if seen[id] {
			t.Errorf("%s is listed twice", i.Name)
		}
		seen[id] = true
	}
	if a := adapters[0].Info; a.Vendor == "google" && (a.Kind != driver.KindCPU || a.Limits.MaxLoopsPerInvoking != 0) {
		t.Errorf("SwiftShader is %s with %d loops", a.Kind, a.Limits.MaxLoopsPerInvoking)
	}
	for range 2 { // an adapter can be opened several times
		d, err := adapters[0].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := d.Info().Limits, adapters[0].Info.Limits; got != want {
			t.Errorf("granted %+v of %+v", got, want)
		}
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestKind(t *testing.T) {
	for _, c := range []struct {
		part
		want driver.Kind
	}{
		{part{words: "google swiftshader"}, driver.KindCPU},
		{part{software: true}, driver.KindCPU},
		{part{words: "llvmpipe (llvm 15.0.6, 256 bits)"}, driver.KindCPU},
		{part{words: "nvidia ampere"}, driver.KindDiscrete},
		{part{words: "intel gen-12lp"}, driver.KindIntegrated},
		{part{words: "intel xe-2hpg"}, driver.KindDiscrete},
		{part{words: "apple metal-3"}, driver.KindIntegrated},
		{part{words: "amd rdna-3"}, driver.KindUnknown},
		{part{words: "virtio-gpu venus"}, driver.KindVirtual},
		{part{}, driver.KindUnknown},
	} {
		if got := c.kind(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.part, got, c.want)
		}
	}
}

func TestCompileError(t *testing.T) {
	d := openDevice(t)
	bad := scale
	bad.Source = "@compute @workgroup_size(1) fn main() {\n  let a = nowhere;\n}"
	err := d.NewKernel(t.Context(), 1, &bad)
	wantError(t, err, fault.ErrCompile)
	e, ok := errors.AsType[*fault.OpError](err)
	if !ok || !contains(e.Detail, "scale: line 2:", "let a = nowhere;") {
		t.Errorf("the error does not show the line: %v", err)
	}
	bad = scale
	bad.Layout = driver.NewLayout(driver.AccessReadWrite) // no parameters
	wantError(t, d.NewKernel(t.Context(), 1, &bad), fault.ErrCompile)
	bad = scale
	bad.Entry = "nowhere"
	wantError(t, d.NewKernel(t.Context(), 1, &bad), fault.ErrCompile)
	wantError(t, d.NewKernel(t.Context(), 1, nil), fault.ErrInvalid)
	newKernel(t, d, 1, &scale) // the id is free, and the mistakes left nothing behind
	wantError(t, d.NewKernel(t.Context(), 1, &scale), fault.ErrInvalid)
	if err := d.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func contains(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}
