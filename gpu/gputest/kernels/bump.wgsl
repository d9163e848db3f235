// SPDX-License-Identifier: Apache-2.0
// v = v * 3 + 1 for all elements of the binding, whose size the kernel asks for. It has no parameters.

@group(0) @binding(0) var<storage, read_write> v: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.x + groups.x * 64u * (id.y + groups.y * id.z);
  if (i < arrayLength(&v)) {
    v[i] = v[i] * 3u + 1u;
  }
}
