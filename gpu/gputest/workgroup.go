// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"strings"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

var workgroupCases = []testCase{{"WorkgroupZeros", workgroupZeros}}

// dirty leaves numbers in a workgroup's memory.
const dirty = `
var<workgroup> left: array<u32, 1024>;
@group(0) @binding(0) var<storage, read_write> v: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
	for (var n = i; n < 1024u; n = n + 64u) {
		left[n] = 77u + v[0];
	}
	workgroupBarrier();
	v[1] = left[1023u - i];
}
`

// clean adds up what a workgroup's memory holds at first. PARAMETER is one of those by which a kernel can know the invocation.
const clean = `
struct Inner { count: atomic<u32>, few: array<atomic<i32>, 5>, plain: vec3<f32> }
alias Row = array<u32, W>;
const W = 32u;
const N = 256u;
var<workgroup> one: u32;
var<workgroup> four: vec4<f32>;
var<workgroup> counter: atomic<u32>;
var<workgroup> numbers: array<u32, N>;
var<workgroup> counters: array<atomic<u32>, 100>;
var<workgroup> rows: array<Row, 4>;
var<workgroup> inner: Inner;
var<workgroup> inners: array<Inner, 3>;
var<workgroup> unused: array<u32, 8>;
struct Built { @builtin(local_invocation_index) at: u32, @builtin(workgroup_id) group: vec3<u32> }
@group(0) @binding(0) var<storage, read_write> v: array<u32>;
fn sum() -> u32 {
	var s = one + u32(four.x + four.y + four.z + four.w) + atomicLoad(&counter);
	for (var n = 0u; n < N; n = n + 1u) { s = s + numbers[n]; }
	for (var n = 0u; n < 100u; n = n + 1u) { s = s + atomicLoad(&counters[n]); }
	for (var n = 0u; n < 128u; n = n + 1u) { s = s + rows[n / W][n % W]; }
	s = s + atomicLoad(&inner.count) + u32(atomicLoad(&inner.few[4])) + u32(inner.plain.y);
	for (var n = 0u; n < 3u; n = n + 1u) { s = s + atomicLoad(&inners[n].count) + u32(inners[n].plain.z); }
	return s;
}
@compute @workgroup_size(4, 2)
fn main(PARAMETER) {
	let s = sum();
	workgroupBarrier();
	numbers[0] = s; one = s;
	v[0] = v[0] + s;
}
`

// workgroupZeros: a workgroup's memory is zero at first, whatever workgroups before it have left there.
func workgroupZeros(r *rig) {
	if !r.has(driver.FeatureWGSL) {
		return
	}
	id := r.filled(1, 0, 0, 0)
	for _, parameter := range []string{
		"", "@builtin(local_invocation_index) i: u32", "b: Built", "@builtin(workgroup_id) inner: vec3<u32>,",
	} {
		compile := func(source string) driver.KernelID {
			r.kernels++
			r.check(r.dev.NewKernel(r.ctx, r.kernels, &driver.Kernel{
				Label: "workgroup", Source: source, Entry: "main", Layout: bump.layout,
			}))
			return r.kernels
		}
		leave, look := compile(dirty), compile(strings.Replace(clean, "PARAMETER", parameter, 1))
		set := r.bind(bump, r.whole(id))
		for range 3 {
			r.dispatch(leave, set, [3]uint32{4, 1, 1})
			r.dispatch(look, set, [3]uint32{4, 1, 1})
		}
		r.want(id, []uint32{1, 78, 0, 0})
	}
}
