// SPDX-License-Identifier: Apache-2.0
// Each workgroup counts itself and notes where it is, two words per workgroup in the order x, y, z.

@group(0) @binding(0) var<storage, read_write> seen: array<u32>;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
  let i = 2u * (g.x + n.x * (g.y + n.y * g.z));
  if (i + 1u < arrayLength(&seen)) {
    seen[i] = seen[i] + 1u;
    seen[i + 1u] = g.x ^ (g.y << 8u) ^ (g.z << 16u);
  }
}
