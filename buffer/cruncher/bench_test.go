// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// heavySource computes for a while and moves little.
const heavySource = `fn heavy(i: u32) {
  var v = f32(i % 1000u) * 0.001;
  for (var k = 0u; k < turns; k++) { v = v * 1.0000001 + 0.0000001 * sin(v); }
  out[i] = v;
}`

// heavy is a call of many steps for each device.
type heavy struct {
	items, turns int
	out          *cruncher.Array[float32]
}

const heavyLocal = 64

func newHeavy(b *testing.B, items, turns int) *heavy {
	h := &heavy{items: items, turns: turns, out: newArray[float32](b, "out", items)}
	edit(h.out).WriteOnly(true)
	return h
}

func (h *heavy) run(b *testing.B, cr *cruncher.Cruncher) time.Duration {
	b.Helper()
	start := time.Now()
	call := cruncher.Params(h.out, cruncher.NewScalar("turns", uint32(h.turns)))
	check(b, cr.Compute(b.Context(), 1, "heavy", cruncher.Range{Global: h.items, Local: heavyLocal}, call))
	return time.Since(start)
}

// BenchmarkEfficiency computes one range on all adapters that compile WGSL, each alone and all together, in turns, so that what
// else the machine does touches all of them alike. With Mesa's and Chromium's software adapters in one process,
//
//	VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.x86_64.json:/usr/lib/chromium/vk_swiftshader_icd.json LP_NUM_THREADS=1
//
// there are two of different speed; SwiftShader takes all cores unless a file SwiftShader.ini in the working directory has a
// section [Processor] with ThreadCount=1. Efficiency is the speed together by the sum of the speeds alone, after ten calls. Software
// adapters share the processor's cores with each other and with everything else that runs: each time is therefore the least of
// all rounds.
func BenchmarkEfficiency(b *testing.B) {
	var devices []*gpu.Device
	for a, err := range gpu.Adapters(b.Context()) {
		if err != nil || !a.Info.Features.Has(driver.FeatureWGSL) {
			continue
		}
		d := must[*gpu.Device](b)(a.Open(b.Context()))
		b.Cleanup(func() { check(b, d.Close()) })
		b.Logf("device %d: %s", len(devices), a.Info.Name)
		devices = append(devices, d)
	}
	if len(devices) == 1 {
		devices = append(devices, openDevices(b, 1)...)
		b.Log("device 1: the same adapter")
	}
	h := newHeavy(b, 1<<16, 1000)
	all := onDevices(b, devices, len(devices), heavySource)
	single := make([]*cruncher.Cruncher, len(devices))
	alone := make([]time.Duration, len(devices))
	for i, d := range devices {
		single[i] = onDevices(b, []*gpu.Device{d}, 1, heavySource)
		h.run(b, single[i]) // compiles
		alone[i] = time.Hour
	}
	for range 10 {
		h.run(b, all)
	}
	together := time.Hour
	for b.Loop() {
		together = min(together, h.run(b, all))
		for i, cr := range single {
			alone[i] = min(alone[i], h.run(b, cr))
		}
	}
	speeds := 0.0
	shares := all.Stats(1).Shares
	for i, t := range alone {
		speeds += 1 / t.Seconds()
		name := string(rune('0' + i))
		b.ReportMetric(t.Seconds()*1000, "ms/alone-"+name)
		b.ReportMetric(shares[i], "share-"+name)
	}
	b.ReportMetric(together.Seconds()*1000, "ms/together")
	b.ReportMetric(1/together.Seconds()/speeds, "efficiency")
	b.ReportMetric(float64(h.items/heavyLocal/len(devices)), "steps/device")
}

// BenchmarkOverhead is what a call of one device costs beside the same kernel, launched and read without a cruncher, for a
// call of nothing and for one of about a second. Each time is the least of all rounds.
func BenchmarkOverhead(b *testing.B) {
	for _, c := range []struct {
		name         string
		items, turns int
	}{{"nothing", 64, 0}, {"second", 1 << 16, 4000}} {
		b.Run(c.name, func(b *testing.B) { overhead(b, c.items, c.turns) })
	}
}

func overhead(b *testing.B, items, turns int) {
	b.Helper()
	d := openDevices(b, 1)[0]
	cr := onDevices(b, []*gpu.Device{d}, 1, heavySource)
	h := newHeavy(b, items, turns)
	plain := newPlain(b, d, items, turns)
	h.run(b, cr)
	plain.run(b)
	with, without := time.Hour, time.Hour
	for b.Loop() {
		with = min(with, h.run(b, cr))
		without = min(without, plain.run(b))
	}
	b.ReportMetric(float64((with - without).Microseconds()), "us/overhead")
	b.ReportMetric(float64(without.Microseconds()), "us/plain")
	b.ReportMetric(100*float64(with-without)/float64(without), "%/overhead")
}

// plain is the kernel of heavySource as a program of package gpu.
type plain struct {
	kernel *gpu.Kernel
	out    *gpu.Buffer
	groups uint32
	params []byte
	host   []byte
}

func newPlain(b *testing.B, d *gpu.Device, items, turns int) *plain {
	b.Helper()
	p := &plain{groups: uint32(items / heavyLocal), params: make([]byte, 16), host: make([]byte, 4*items)}
	p.params[0], p.params[1], p.params[2] = byte(turns), byte(turns>>8), byte(turns>>16)
	p.kernel = must[*gpu.Kernel](b)(d.Kernel(b.Context(), gpu.KernelDesc{
		Bindings: []driver.Access{driver.AccessParams, driver.AccessReadWrite},
		Source: `struct P { turns: u32 }
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&out)) { return; }
  var v = f32(i % 1000u) * 0.001;
  for (var k = 0u; k < p.turns; k++) { v = v * 1.0000001 + 0.0000001 * sin(v); }
  out[i] = v;
}`,
	}))
	p.out = must[*gpu.Buffer](b)(d.NewBuffer(uint64(4 * items)))
	b.Cleanup(func() { check(b, p.out.Close()) })
	return p
}

func (p *plain) run(b *testing.B) time.Duration {
	b.Helper()
	start := time.Now()
	check(b, p.kernel.Dispatch([3]uint32{p.groups, 1, 1}, p.params, gpu.Arg{Buffer: p.out}))
	t := gpu.Transfer{Host: gpu.HostBytes(p.host), Width: len(p.host), Pitch: len(p.host), Count: 1}
	check(b, p.out.Read(context.Background(), t))
	return time.Since(start)
}
