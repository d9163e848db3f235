// cols: reduces each column of a function of a matrix. An invocation takes four neighbouring columns and every parts-th
// row; with more than one part the results are partial, one row for each part, and a second pass reduces those.
// Neighbours read neighbours and there is nothing to share, so that it serves all adapters.
// Reference: twin in reduce.go.

const SIZE: u32 = 64u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  parts: u32, // invocations per column
  across: u32, // vectors of a row
}

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<f32>>;
fn apply(i: u32, j: u32, acc: V) -> V { return acc; }
fn store(i: u32, j: u32, n: u32, r: V) { s0[i * p.shape.across + (j >> 2u)] = r; }
fn identity() -> V { return V(); }
fn combine(x: V, y: V) -> V { return x + y; }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let part = t / p.shape.across;
  let j = (t - part * p.shape.across) << 2u;
  if (part >= p.shape.parts) { return; }
  var a = identity();
  var b = identity();
  var i = part;
  let step = p.shape.parts;
  while (i + step < p.shape.rows) {
    a = combine(a, apply(i, j, V()));
    b = combine(b, apply(i + step, j, V()));
    i += 2u * step;
  }
  if (i < p.shape.rows) { a = combine(a, apply(i, j, V())); }
  store(part, j, min(p.shape.cols - j, 4u), combine(a, b));
}
