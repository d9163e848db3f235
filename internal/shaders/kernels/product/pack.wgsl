// pack: copies a factor B into panels, the result's rows: those of k of 4 x CQ columns, and then those of the next columns. Zeros stand
// behind the last column. One invocation copies a row of a panel, neighbours those of the same row of B, or of the same panel
// where B lies along k.
// Reference: packPanels in panel.go.

const SIZE: u32 = 64u; // @param
const CQ: u32 = 2u; // @param
const ALONG_K: bool = false; // @param

struct Shape {
  k: u32,
  n: u32,
  wide: u32, // panels
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
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[i * CQ + (j >> 2u)] = r; }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let s = p.shape;
  if (t >= s.k * s.wide) { return; }
  var l = t / s.wide;
  var panel = t % s.wide;
  if (ALONG_K) {
    l = t % s.k;
    panel = t / s.k;
  }
  let f = fixed();
  for (var c = 0u; c < CQ; c++) { // @unroll
    let j = panel * (4u * CQ) + 4u * c;
    let behind = vec4<u32>(j) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(s.n);
    store(f, panel * s.k + l, 4u * c, 4u, select(apply(f, l, j, V()), V(), behind));
  } // @unroll
}
