// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestLaunch binds arguments by their names, in any order, and checks them.
func TestLaunch(t *testing.T) {
	src, err := kernel.Parse("fn k(i: u32) { y[i] = x[i] + step; }")
	check(t, err)
	p, err := src.Build("k", []kernel.Decl{{Name: "x", Type: kernel.U32, ReadOnly: true}, {Name: "y", Type: kernel.U32}, {Name: "z", Type: kernel.F32}, {Name: "step", Type: kernel.U32, Scalar: true}}, [3]int{64})
	check(t, err)
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x, y := upload(t, dev, count(100)), upload(t, dev, make([]uint32, 100))
		in := kernel.Argument{Name: "x", Type: kernel.U32, Buffer: x, Length: 100}
		out := kernel.Argument{Name: "y", Type: kernel.U32, Buffer: y, Length: 100}
		step := kernel.Argument{Name: "step", Type: kernel.U32, Bits: []uint32{5}}
		if dev.Stats().Kernels != 0 {
			t.Error("compiled before the first launch")
		}
		check(t, p.Launch(t.Context(), dev, line(10, 50, 100), out, step, in, kernel.Argument{Name: "other"}))
		want := make([]uint32, 100)
		for i := 10; i < 60; i++ {
			want[i] = uint32(i) + 5
		}
		equal(t, "y", download(t, y, 100), want)
		if dev.Stats().Kernels != 1 {
			t.Error("not compiled once")
		}
		with := func(a kernel.Argument, change func(a *kernel.Argument)) kernel.Argument { change(&a); return a }
		for i, args := range [][]kernel.Argument{
			{in, out},
			{in, step},
			{in, out, with(step, func(a *kernel.Argument) { a.Type = kernel.F32 })},
			{in, out, with(step, func(a *kernel.Argument) { a.Bits = nil })},
			{in, step, with(out, func(a *kernel.Argument) { a.Type = kernel.I32 })},
			{in, step, with(out, func(a *kernel.Argument) { a.Buffer = nil })},
			{in, step, with(out, func(a *kernel.Argument) { a.First = 1 })},
			{in, step, with(out, func(a *kernel.Argument) { a.Length = -1 })},
		} {
			if err := p.Launch(t.Context(), dev, line(0, 100, 100), args...); !isKernel(err) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if err := p.Launch(t.Context(), dev, line(-1, 100, 100), in, out, step); !isKernel(err) {
			t.Error(err)
		}
		if err := p.Launch(t.Context(), nil, line(0, 1, 1)); !isKernel(err) {
			t.Error(err)
		}
		p.Close()
		if dev.Stats().Kernels != 0 {
			t.Error("compiled after Close")
		}
	})
	var none *kernel.Program
	none.Close()
	if _, err := none.Compile(t.Context(), nil); !isKernel(err) {
		t.Error("no program:", err)
	}
}

// TestLaunchMany divides a range whose workgroups are more than one dispatch of an entry point can have.
func TestLaunchMany(t *testing.T) {
	src, err := kernel.Parse(`struct P { sublet_base: u32, sublet_count: u32 }
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn k(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < p.sublet_count) { y[p.sublet_base + id.x] += 1u; }
}`)
	check(t, err)
	p, err := src.Build("k", []kernel.Decl{{Name: "y", Type: kernel.U32}}, [3]int{})
	check(t, err)
	defer p.Close()
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n = 3*65535 + 2
		y := upload(t, dev, make([]uint32, n))
		check(t, p.Launch(t.Context(), dev, line(1, n-2, n), kernel.Argument{Name: "y", Type: kernel.U32, Buffer: y, Length: n}))
		want := make([]uint32, n)
		for i := 1; i < n-1; i++ {
			want[i] = 1
		}
		equal(t, "y", download(t, y, n), want)
	})
}
