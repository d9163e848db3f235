// SPDX-License-Identifier: Apache-2.0
// dst[i] = src[i] * 5 + src[i + 1] + 1, cyclic: each element depends on what other workgroups wrote before.

@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.x + groups.x * 64u * (id.y + groups.y * id.z);
  let n = arrayLength(&src);
  if (i < n && i < arrayLength(&dst)) {
    dst[i] = src[i] * 5u + src[(i + 1u) % n] + 1u;
  }
}
