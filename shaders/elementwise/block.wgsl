// block: applies a function where an operand is stored the other way round than the result. One invocation computes a
// block of 4x4: such an operand is read in vectors along its own rows and transposed in registers, so that neighbouring
// invocations read and write whole cache lines. Workgroups are folded over x and y.
// Reference: Eval.Apply in package fuse.

const WX: u32 = 8u; // @param
const WY: u32 = 8u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  across: u32, // workgroups along a row
  pad0: u32,
}

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<f32>>;
fn apply4(i: u32, j: u32) -> Block { return Block(V(), V(), V(), V()); }
fn store(i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.cols + j) >> 2u] = r; }
// @end

// rows i to i+3
struct Block { a: V, b: V, c: V, d: V }

@compute @workgroup_size(WX, WY)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g = group.x + group.y * groups.x;
  let i = ((g / p.shape.across) * WY + local.y) << 2u;
  let j = ((g % p.shape.across) * WX + local.x) << 2u;
  if (i >= p.shape.rows || j >= p.shape.cols) { return; }
  let r = apply4(i, j);
  let n = min(p.shape.cols - j, 4u);
  let rows = p.shape.rows - i;
  store(i, j, n, r.a);
  if (rows > 1u) { store(i + 1u, j, n, r.b); }
  if (rows > 2u) { store(i + 2u, j, n, r.c); }
  if (rows > 3u) { store(i + 3u, j, n, r.d); }
}
