// SPDX-License-Identifier: Apache-2.0
// v = v * mul + add for the first n elements. It does not commute, so the order of dispatches shows.

struct Params {
  mul: u32,
  add: u32,
  n: u32,
}

@group(0) @binding(0) var<storage, read_write> v: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.x + groups.x * 64u * (id.y + groups.y * id.z);
  if (i < p.n && i < arrayLength(&v)) {
    v[i] = v[i] * p.mul + p.add;
  }
}
