// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// axpy computes y = k*x + y on n words.
var axpy = driver.Kernel{
	Label: "axpy",
	Source: `
struct Params { n: u32, k: u32 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < p.n) {
		y[id.x] = p.k * x[id.x] + y[id.x];
	}
}
`,
	Entry:  "main",
	Layout: driver.NewLayout(driver.AccessRead, driver.AccessReadWrite, driver.AccessParams),
}

// bump adds one to every word.
var bump = driver.Kernel{
	Label: "bump",
	Source: `
@group(0) @binding(0) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < arrayLength(&y)) {
		y[id.x] = y[id.x] + 1u;
	}
}
`,
	Entry:  "main",
	Layout: driver.NewLayout(driver.AccessReadWrite),
}

func groups(n int) [3]uint32 { return [3]uint32{uint32(n+63) / 64, 1, 1} }

// ramp returns n words: start, start+1, ...
func ramp(n int, start uint32) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = start + uint32(i)
	}
	return w
}

func bytesOf(w []uint32) []byte { return gputest.PutU32(nil, w...) }

func wordsOf(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// write uploads words to the start of buffer 1.
func write(t testing.TB, d driver.Device, w []uint32) {
	t.Helper()
	var l driver.CommandList
	l.Write(1, 0, driver.HostBytes(bytesOf(w)))
	must(t, d.Submit(&l))
}

// read downloads n words.
func read(ctx context.Context, d driver.Device, id driver.BufferID, n int) ([]uint32, error) {
	b := make([]byte, 4*n)
	err := d.Read(ctx, driver.Transfer{Buffer: id, Host: driver.HostBytes(b), Width: len(b), Count: 1})
	return wordsOf(b), err
}

// want compares the start of a buffer.
func want(t testing.TB, d driver.Device, id driver.BufferID, words []uint32) {
	t.Helper()
	got, err := read(context.Background(), d, id, len(words))
	must(t, err)
	for i := range words {
		if got[i] != words[i] {
			t.Fatalf("buffer %d, word %d: got %d, want %d", id, i, got[i], words[i])
		}
	}
}

// mappable reports whether storage may be mapped.
func mappable(d driver.Device) bool { return d.Info().Features.Has(driver.FeatureMappable) }

// whole binds a buffer from end to end.
func whole(id driver.BufferID, words int) driver.Binding {
	return driver.Binding{Buffer: id, Size: uint64(4 * words)}
}

// prepareAxpy makes buffers x = ramp(n, 1) and y = 0, the kernel and a set for them, all with the id given or one more.
func prepareAxpy(t testing.TB, d driver.Device, id uint32, n int) {
	t.Helper()
	x, y := driver.BufferID(id), driver.BufferID(id+1)
	must(t, d.NewBuffer(x, uint64(4*n), false))
	must(t, d.NewBuffer(y, uint64(4*n), false))
	must(t, d.NewKernel(context.Background(), driver.KernelID(id), &axpy))
	var l driver.CommandList
	l.Write(x, 0, driver.HostBytes(bytesOf(ramp(n, 1))))
	l.Bind(driver.BindingsID(id), axpy.Layout, []driver.Binding{whole(x, n), whole(y, n)})
	must(t, d.Submit(&l))
}

// healthy computes something on fresh objects, to show that the device and the process are well.
func healthy(t testing.TB, d driver.Device, id uint32) {
	t.Helper()
	const n = 100
	prepareAxpy(t, d, id, n)
	var l driver.CommandList
	l.Dispatch(driver.KernelID(id), driver.BindingsID(id), groups(n), gputest.PutU32(nil, n, 2))
	must(t, d.Submit(&l))
	sum := ramp(n, 1)
	for i := range sum {
		sum[i] *= 2
	}
	want(t, d, driver.BufferID(id+1), sum)
}
