// block: applies a function where an operand is stored the other way round than the result. One invocation computes
// EACH blocks of 4x4: such an operand is read in vectors along its own rows and transposed in registers, so that
// neighbouring invocations read and write whole cache lines. Workgroups are arranged as in grid.wgsl. TAIL is set when the
// number of columns is no multiple of 4, EDGE when that or the number of rows is not.
// Reference: apply in elementwise.go.

const WX: u32 = 8u; // @param
const WY: u32 = 8u; // @param
const EACH: u32 = 1u; // @param
const EDGE: bool = true; // @param
const TAIL: bool = true; // @param
const FOLD: bool = true; // @param

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
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply4(f: Fixed, i: u32, j: u32) -> Block { return Block(V(), V(), V(), V()); }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.cols + j) >> 2u] = r; }
fn assign4(f: Fixed, i: u32, j: u32) {}
// @end

// rows i to i+3
struct Block { a: V, b: V, c: V, d: V }

@compute @workgroup_size(WX, WY)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  var place = group.xy;
  if (FOLD) {
    let g = group.x + group.y * groups.x;
    place = vec2<u32>(g % p.shape.across, g / p.shape.across);
  }
  let i = (place.y * WY + local / WX) << 2u;
  let first = (place.x * (WX * EACH) + local % WX) << 2u;
  if (i >= p.shape.rows) { return; }
  let f = fixed();
  for (var n = 0u; n < EACH; n++) { // @unroll
    let j = first + n * (4u * WX);
    if (j >= p.shape.cols) { return; }
    if (EDGE) {
      let r = apply4(f, i, j);
      var width = 4u;
      if (TAIL) { width = min(p.shape.cols - j, 4u); }
      let rows = p.shape.rows - i;
      store(f, i, j, width, r.a);
      if (rows > 1u) { store(f, i + 1u, j, width, r.b); }
      if (rows > 2u) { store(f, i + 2u, j, width, r.c); }
      if (rows > 3u) { store(f, i + 3u, j, width, r.d); }
    } else {
      assign4(f, i, j);
    }
  } // @unroll
}
