// outer: C = A B by register tiles as in tile.wgsl, each the sum of outer products: a turn of the loop multiplies one column of A by one
// row of B, where tile takes four of each. SwiftShader compiles the shorter text sooner. A is read element by element, because SwiftShader
// loads vectors so, too.
// With SHARE the four invocations of a quad compute tiles side by side, in the same rows. Each loads one of four rows of a column of A (RT is
// 4) and broadcasts it to the others. wide is a multiple of four then; tiles beyond n store nothing.
// A tile is RQ x RT rows by 4 x CQ columns. Tiles are numbered along the rows of C, then down, and then through the parts
// that k is cut into, s.chunk quads each; invocation t computes tile t. Part x of the sum is stored in rows x*m to x*m+m-1.
// The products of a stack are its parts: each has all of k, and factors of its own.
// Any m, n and k; with EDGE the last vector of a row may be stored in part. Workgroups are folded over x and y.
// Reference: multiply in product.go.

const GROUP: u32 = 8u; // @param
const RQ: u32 = 1u; // @param
const RT: u32 = 4u; // @param
const CQ: u32 = 1u; // @param
const EDGE: bool = true; // @param
const SHARE: bool = false; // @param

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

alias Column = array<T, RT>; // of RT rows of A

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s0: array<vec4<f32>>;
fn a_start(d: vec2<u32>, i: u32, l: u32) -> u32 { return d.x + i * d.y + l; }
fn a_deep(d: u32) -> u32 { return 1u; }
fn a_wide(d: u32) -> u32 { return 4u * d; }
fn a_load(q: u32, d: u32) -> Column { return Column(a[q], a[q + d], a[q + 2u * d], a[q + 3u * d]); }
fn b_start(d: vec2<u32>, j: u32, l: u32) -> u32 { return d.x + (j >> 2u) + l * d.y; }
fn b_deep(d: u32) -> u32 { return d; }
fn b_wide(d: u32) -> u32 { return 1u; }
fn b_load(q: u32, d: u32) -> V { return b[q]; }
fn add_product(x: V, y: V, sum: V) -> V { return x * y + sum; }
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

  let first = 4u * part * s.next;
  let last = min(first + 4u * s.chunk, s.k);
  let deepA = a_deep(s.a.y);
  let wideA = a_wide(s.a.y);
  let deepB = b_deep(s.b.y);
  let wideB = b_wide(s.b.y);
  var line = row;
  if (SHARE) { line += t & 3u; }
  var qa = a_start(s.a, line, first) + part * s.step.x;
  var qb = b_start(s.b, col, first) + part * s.step.y;
  var acc: array<array<array<V, CQ>, RT>, RQ>;
  var y: array<V, CQ>;
  for (var l = first; l < last; l++) {
    for (var c = 0u; c < CQ; c++) { // @unroll
      y[c] = b_load(qb + c * wideB, s.b.y);
    } // @unroll
    for (var q = 0u; q < RQ; q++) { // @unroll
      let x = a_load(qa + q * wideA, s.a.y);
      for (var r = 0u; r < RT; r++) { // @unroll
        for (var c = 0u; c < CQ; c++) { // @unroll
          acc[q][r][c] = add_product(V(x[r]), y[c], acc[q][r][c]);
        } // @unroll
      } // @unroll
    } // @unroll
    qa += deepA;
    qb += deepB;
  }

  let f = fixed();
  let base = part * s.m;
  var tile: array<V, RQ * RT * CQ>; // a copy: if e were an index of acc, acc would be kept in memory, and the loop above be slow
  for (var q = 0u; q < RQ; q++) { // @unroll
    for (var r = 0u; r < RT; r++) { // @unroll
      for (var c = 0u; c < CQ; c++) { // @unroll
        tile[(q * RT + r) * CQ + c] = acc[q][r][c];
      } // @unroll
    } // @unroll
  } // @unroll
  for (var e = 0u; e < RQ * RT * CQ; e++) {
    let i = row + e / CQ;
    let j = col + 4u * (e % CQ);
    if (i < s.m && j < s.n) {
      var n = 4u;
      if (EDGE) { n = min(s.n - j, 4u); }
      store(f, base + i, j, n, apply(f, base + i, j, tile[e]));
    }
  }
}
