// SPDX-License-Identifier: Apache-2.0
// Copies the largest parameter block there may be, 1024 bytes, to a buffer.

struct Params {
  v: array<vec4<u32>, 64>,
}

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.x + groups.x * 64u * (id.y + groups.y * id.z);
  if (i < 64u && 4u * i + 3u < arrayLength(&y)) {
    let q = p.v[i];
    y[4u * i] = q.x;
    y[4u * i + 1u] = q.y;
    y[4u * i + 2u] = q.z;
    y[4u * i + 3u] = q.w;
  }
}
