// SPDX-License-Identifier: Apache-2.0
// The portable limit: eight storage buffers beside the parameters. y = a + 2b + 3c + 4d + 5e + 6f + 7g, times mul, plus add.

struct Params {
  mul: u32,
  add: u32,
  n: u32,
}

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read> c: array<u32>;
@group(0) @binding(3) var<storage, read> d: array<u32>;
@group(0) @binding(4) var<storage, read> e: array<u32>;
@group(0) @binding(5) var<storage, read> f: array<u32>;
@group(0) @binding(6) var<storage, read> g: array<u32>;
@group(0) @binding(7) var<storage, read_write> y: array<u32>;
@group(0) @binding(8) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let i = id.x + groups.x * 64u * (id.y + groups.y * id.z);
  if (i < p.n && i < arrayLength(&y)) {
    let sum = a[i] + 2u * b[i] + 3u * c[i] + 4u * d[i] + 5u * e[i] + 6u * f[i] + 7u * g[i];
    y[i] = sum * p.mul + p.add;
  }
}
