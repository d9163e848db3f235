// sum: finishes a product with rows that were cut into several. One invocation adds those of one vector of C, in order.
// Workgroups are folded over x and y.
// Reference: addParts in product.go.

const SIZE: u32 = 64u; // @param
const BLOCK: u32 = 32u;

struct Shape {
  rows: u32, // of C
  cols: u32,
  quads: u32, // vectors in a row of the parts
  pad0: u32,
}
@group(0) @binding(1) var<storage, read> parts: array<V>;
@group(0) @binding(2) var<storage, read> pointers: array<u32>; // row i of C is the sum of those from pointers[i] on

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(3) var<storage, read_write> s0: array<vec4<f32>>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[i * p.shape.quads + (j >> 2u)] = r; }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let s = p.shape;
  let i = t / s.quads;
  let quad = t - i * s.quads;
  if (i >= s.rows) { return; }
  let last = pointers[i + 1u];
  var held = V();
  for (var block = pointers[i]; block < last; block += BLOCK) {
    var acc = V();
    let end = min(block + BLOCK, last);
    for (var r = block; r < end; r++) {
      acc += parts[r * s.quads + quad];
    }
    held += acc;
  }
  let f = fixed();
  store(f, i, 4u * quad, min(s.cols - 4u * quad, 4u), apply(f, i, 4u * quad, held));
}
