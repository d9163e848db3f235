// panel: C = A B by register tiles for processors with vectors of four, which run the invocations of a workgroup one after another.
// A tile is RT rows by 4 x CQ columns. The elements of A are read one by one, whatever their layout, and become vectors of four
// equal ones; B is read in panels of 4 x CQ columns, where it lies or as pack.wgsl has copied it.
// A workgroup computes GROUP tiles one below the other, which read the same panel of B; the next workgroup has the next panel and the
// same rows of A. Workgroups are folded over x and y.
// No index is out of range: rows beyond the last one read that one, and n is a multiple of a panel or B is packed with zeros behind.
// Reference: multiplyPanels in panel.go.

const GROUP: u32 = 16u; // @param
const RT: u32 = 4u; // @param
const CQ: u32 = 2u; // @param
const A_ALONG_K: bool = true; // @param
const PACKED: bool = true; // @param
const EDGE: bool = true; // @param

struct Shape {
  m: u32,
  n: u32,
  k: u32,
  wide: u32, // panels
  panel: u32, // vectors from a panel of B to the next
  pad0: u32,
  pad1: u32,
  pad2: u32,
  a: vec2<u32>, // offset and stride, in elements
  b: vec2<u32>, // offset and, from a k to the next, vectors
  pad3: vec4<u32>,
}

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s0: array<vec4<f32>>;
fn splat(q: u32) -> V { return V(a[q]); }
fn quad(q: u32) -> V { return b[q]; }
fn add_product(x: V, y: V, sum: V) -> V { return fma(x, y, sum); }
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.n + j) >> 2u] = r; }
// @end

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let g = group.x + group.y * groups.x;
  let row = (g / s.wide * GROUP + local) * RT;
  if (row >= s.m) { return; }
  let panel = g % s.wide;
  var qa: array<u32, RT>;
  for (var r = 0u; r < RT; r++) { // @unroll
    let i = min(row + r, s.m - 1u);
    if (A_ALONG_K) { qa[r] = s.a.x + i * s.a.y; } else { qa[r] = s.a.x + i; }
  } // @unroll
  var deep = 1u; // from a k to the next
  if (!A_ALONG_K) { deep = s.a.y; }
  var down = CQ;
  if (!PACKED) { down = s.b.y; }
  var qb = s.b.x + panel * s.panel;
  var acc: array<array<V, CQ>, RT>;
  var y: array<V, CQ>;
  var l = 0u;
  for (; l + 4u <= s.k; l += 4u) {
    for (var d = 0u; d < 4u; d++) { // @unroll
      for (var c = 0u; c < CQ; c++) { // @unroll
        y[c] = quad(qb + d * down + c);
      } // @unroll
      for (var r = 0u; r < RT; r++) { // @unroll
        let x = splat(qa[r] + d * deep);
        for (var c = 0u; c < CQ; c++) { // @unroll
          acc[r][c] = add_product(x, y[c], acc[r][c]);
        } // @unroll
      } // @unroll
    } // @unroll
    for (var r = 0u; r < RT; r++) { // @unroll
      qa[r] += 4u * deep;
    } // @unroll
    qb += 4u * down;
  }
  for (; l < s.k; l++) {
    for (var c = 0u; c < CQ; c++) { // @unroll
      y[c] = quad(qb + c);
    } // @unroll
    for (var r = 0u; r < RT; r++) { // @unroll
      let x = splat(qa[r]);
      for (var c = 0u; c < CQ; c++) { // @unroll
        acc[r][c] = add_product(x, y[c], acc[r][c]);
      } // @unroll
      qa[r] += deep;
    } // @unroll
    qb += down;
  }

  let f = fixed();
  for (var r = 0u; r < RT; r++) { // @unroll
    if (row + r < s.m) {
      for (var c = 0u; c < CQ; c++) { // @unroll
        let j = panel * (4u * CQ) + 4u * c;
        if (j < s.n) {
          var n = 4u;
          if (EDGE) { n = min(s.n - j, 4u); }
          store(f, row + r, j, n, apply(f, row + r, j, acc[r][c]));
        }
      } // @unroll
    }
  } // @unroll
}
