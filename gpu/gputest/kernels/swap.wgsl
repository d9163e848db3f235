// SPDX-License-Identifier: Apache-2.0
// Exchanges the elements of two bindings, which may be two parts of one buffer.

@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.x + groups.x * 64u * (id.y + groups.y * id.z);
  if (i < min(arrayLength(&a), arrayLength(&b))) {
    let t = a[i];
    a[i] = b[i];
    b[i] = t;
  }
}
