// SPDX-License-Identifier: Apache-2.0
// y = y * 2 + x. Binding 1 does not exist, and binding 4 exists in the layout but not here.

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.x + groups.x * 64u * (id.y + groups.y * id.z);
  if (i < min(arrayLength(&x), arrayLength(&y))) {
    y[i] = y[i] * 2u + x[i];
  }
}
