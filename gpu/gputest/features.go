// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var featureCases = []testCase{
	{"Half", half},
	{"Subgroups", subgroups},
}

// halfSource adds to a number that the next one in half precision is two away from. The loop is one that drivers may have to watch.
const halfSource = `enable f16;
@group(0) @binding(0) var<storage, read_write> v: array<u32>;
@compute @workgroup_size(1)
fn main() {
	var h = f16(v[0]);
	for (var i = 0u; i < v[1]; i = i + 1u) {
		h = h + 1.0h;
	}
	v[0] = u32(h);
}
`

// half: kernels compute in half precision where the device says so, and are refused elsewhere.
func half(r *rig) {
	id := r.filled(2048, 3)
	if k := r.feature(driver.FeatureHalf, halfSource); k != 0 {
		r.dispatch(k, r.bind(bump, r.whole(id)), groups(1))
		r.want(id, []uint32{2048, 3})
	}
}

const subgroupsSource = `enable subgroups;
@group(0) @binding(0) var<storage, read_write> v: array<u32>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32) {
	v[i] = subgroupAdd(1u);
	v[i + 32u] = size;
}
`

// subgroups: the invocations of a subgroup add up, where the device says so.
func subgroups(r *rig) {
	id := r.buffer(4 * 64)
	if k := r.feature(driver.FeatureSubgroups, subgroupsSource); k != 0 {
		r.dispatch(k, r.bind(bump, r.whole(id)), groups(1))
		got := words(r.bytes(id))
		for i, sum := range got[:32] {
			if size := got[32+i]; size == 0 || sum != min(size, 32) {
				r.Errorf("invocation %d: %d of a subgroup of %d", i, sum, size)
			}
		}
	}
}

// feature compiles a kernel with the layout of bump that needs a feature. It returns 0 where the device does not have it.
func (r *rig) feature(f driver.Features, source string) driver.KernelID {
	r.Helper()
	r.kernels++
	k := &driver.Kernel{Label: "feature", Source: source, Entry: "main", Layout: bump.layout}
	err := r.dev.NewKernel(r.ctx, r.kernels, k)
	if r.has(f) {
		r.check(err)
		return r.kernels
	}
	r.refused("a kernel that needs a feature", err, fault.ErrCompile, fault.ErrUnsupported)
	return 0
}
