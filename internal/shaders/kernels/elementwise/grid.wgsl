// grid: applies a function to a matrix of any layout. One invocation computes four neighbours of a row. A workgroup covers
// WX vectors of WY rows, and workgroups lie in two dimensions as the matrix does. With FOLD one dimension has more of them than a
// launch allows: they are numbered row by row, and that row is folded over x and y. TAIL is set when rows end within a vector. Software
// adapters divide a vector of invocations one by one, unless the divisor is a constant.
// Reference: apply in elementwise.go.

const WX: u32 = 16u; // @param
const WY: u32 = 16u; // @param
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
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.cols + j) >> 2u] = r; }
fn assign(f: Fixed, i: u32, j: u32) { s0[j >> 2u] = V(); }
// @end

@compute @workgroup_size(WX, WY)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  var place = group.xy;
  if (FOLD) {
    let g = group.x + group.y * groups.x;
    place = vec2<u32>(g % p.shape.across, g / p.shape.across);
  }
  let i = place.y * WY + local / WX;
  let j = (place.x * WX + local % WX) << 2u;
  if (i >= p.shape.rows || j >= p.shape.cols) { return; }
  let f = fixed();
  if (TAIL) {
    store(f, i, j, min(p.shape.cols - j, 4u), apply(f, i, j, V()));
  } else {
    assign(f, i, j);
  }
}
