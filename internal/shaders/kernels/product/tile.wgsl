// tile: C = A B by register tiles. One invocation computes a tile of C in registers, straight from global memory: for
// software adapters, which pay dearly for workgroup memory, barriers and each element loaded, and little for big tiles.
// A tile is RQ x RT rows by 4 x CQ columns. Tiles are numbered along the rows of C, then down, and then through the parts
// that k is cut into, s.chunk quads each; invocation t computes tile t. Part x of the sum is stored in rows x*m to x*m+m-1.
// The products of a stack are its parts: each has all of k, and factors of its own.
// Any m, n and k: with RAGGED what lies beyond k, a multiple of four otherwise, is replaced by zero; with EDGE the last
// vector of a row may be stored in part. Workgroups are folded over x and y.
// Reference: multiply in product.go.

const GROUP: u32 = 8u; // @param
const RQ: u32 = 1u; // @param
const RT: u32 = 4u; // @param
const CQ: u32 = 1u; // @param
const RAGGED: bool = true; // @param
const EDGE: bool = true; // @param

struct Shape {
  m: u32,
  n: u32,
  k: u32,
  wide: u32, // tiles side by side
  high: u32, // tiles one above the other
  parts: u32,
  chunk: u32, // quads of k in a part
  next: u32, // quads of k from a part to the next: none in a stack
  a: vec2<u32>, // offset and stride, in what is loaded at once
  b: vec2<u32>,
  step: vec2<u32>, // from the factors of a part to those of the next: none where k is cut
  pad0: vec2<u32>,
}

alias Rows = array<V, RT>; // four columns of RT rows of A
alias Quad = array<V, 4>; // four columns of four rows of B

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s0: array<vec4<f32>>;
fn a_start(d: vec2<u32>, i: u32, l: u32) -> u32 { return d.x + i * d.y + l; }
fn a_deep(d: u32) -> u32 { return 1u; }
fn a_wide(d: u32) -> u32 { return 4u * d; }
fn a_load(q: u32, d: u32) -> Rows { return Rows(a[q], a[q + d], a[q + 2u * d], a[q + 3u * d]); }
fn b_start(d: vec2<u32>, j: u32, l: u32) -> u32 { return d.x + (j >> 2u) + 4u * l * d.y; }
fn b_deep(d: u32) -> u32 { return 4u * d; }
fn b_wide(d: u32) -> u32 { return 1u; }
fn b_load(q: u32, d: u32) -> Quad { return Quad(b[q], b[q + d], b[q + 2u * d], b[q + 3u * d]); }
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.n + j) >> 2u] = r; }
// @end

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let t = (group.x + group.y * groups.x) * GROUP + local;
  let col = (t % s.wide) * (4u * CQ);
  let band = t / s.wide;
  let row = (band % s.high) * (RQ * RT);
  let part = band / s.high;
  if (part >= s.parts) { return; }

  let first = part * s.next;
  let last = min(first + s.chunk, (s.k + 3u) >> 2u);
  let deepA = a_deep(s.a.y);
  let wideA = a_wide(s.a.y);
  let deepB = b_deep(s.b.y);
  let wideB = b_wide(s.b.y);
  var qa = a_start(s.a, row, first) + part * s.step.x;
  var qb = b_start(s.b, col, first) + part * s.step.y;
  var acc: array<array<array<V, CQ>, RT>, RQ>;
  var x: array<Rows, RQ>;
  for (var l = first; l < last; l++) {
    let left = s.k - 4u * l;
    for (var q = 0u; q < RQ; q++) { // @unroll
      x[q] = a_load(qa + q * wideA, s.a.y);
      if (RAGGED) {
        for (var r = 0u; r < RT; r++) { // @unroll
          x[q][r] = select(V(), x[q][r], vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(left));
        } // @unroll
      }
    } // @unroll
    for (var c = 0u; c < CQ; c++) { // @unroll
      var y = b_load(qb + c * wideB, s.b.y);
      if (RAGGED) {
        for (var d = 0u; d < 4u; d++) { // @unroll
          y[d] = select(V(), y[d], d < left);
        } // @unroll
      }
      for (var q = 0u; q < RQ; q++) { // @unroll
        for (var r = 0u; r < RT; r++) { // @unroll
          acc[q][r][c] += x[q][r].x * y[0] + x[q][r].y * y[1] + x[q][r].z * y[2] + x[q][r].w * y[3];
        } // @unroll
      } // @unroll
    } // @unroll
    qa += deepA;
    qb += deepB;
  }

  let f = fixed();
  let base = part * s.m;
  for (var q = 0u; q < RQ; q++) { // @unroll
    for (var r = 0u; r < RT; r++) { // @unroll
      let i = row + q * RT + r;
      if (i < s.m) {
        for (var c = 0u; c < CQ; c++) { // @unroll
          let j = col + 4u * c;
          if (j < s.n) {
            var n = 4u;
            if (EDGE) { n = min(s.n - j, 4u); }
            store(f, base + i, j, n, apply(f, base + i, j, acc[q][r][c]));
          }
        } // @unroll
      }
    } // @unroll
  } // @unroll
}
