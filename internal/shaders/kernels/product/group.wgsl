// group: C = A B by tiles that a workgroup computes together. For hardware: both operands pass through workgroup memory in
// steps of 4 x KQ of k, and each invocation accumulates a tile of its own in registers.
// There are TX x TY invocations; one has 4 x RQ rows by 4 x CQ columns, in quads that lie TY and TX quads apart, so that
// neighbours touch neighbouring memory. AW and BW are the quads of rows and of columns of a workgroup's tile. The blocks of
// the next step are fetched into registers, LOADS of them, while the current step is computed.
// Tiles are numbered along the rows of C, then down, and then through the parts that k is cut into; workgroup g computes
// tile g. Part x of the sum is stored in rows x*m to x*m+m-1. Any m, n and k. Workgroups are folded over x and y.
// The products of a stack are its parts: each has all of k, and factors of its own.
// Reference: multiply in product.go.

const TX: u32 = 16u; // @param
const TY: u32 = 16u; // @param
const THREADS: u32 = 256u; // @param
const RQ: u32 = 1u; // @param
const CQ: u32 = 1u; // @param
const KQ: u32 = 4u; // @param
const DEPTH: u32 = 16u; // @param
const AW: u32 = 16u; // @param
const BW: u32 = 16u; // @param
const LOADS: u32 = 1u; // @param
const BLOCKS_A: u32 = 64u; // @param
const BLOCKS: u32 = 128u; // @param
const A_ALONG_K: bool = true; // @param
const B_ALONG_K: bool = false; // @param

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

alias Quad = array<V, 4>; // four lines, which are rows of A or columns of B, for each of four k

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
fn a_load(q: u32, d: u32) -> Quad {
  let t = transpose(mat4x4<f32>(a[q], a[q + d], a[q + 2u * d], a[q + 3u * d]));
  return Quad(t[0], t[1], t[2], t[3]);
}
fn b_start(d: vec2<u32>, j: u32, l: u32) -> u32 { return d.x + (j >> 2u) + 4u * l * d.y; }
fn b_deep(d: u32) -> u32 { return 4u * d; }
fn b_wide(d: u32) -> u32 { return 1u; }
fn b_load(q: u32, d: u32) -> Quad { return Quad(b[q], b[q + d], b[q + 2u * d], b[q + 3u * d]); }
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.n + j) >> 2u] = r; }
// @end

var<workgroup> tileA: array<array<V, AW>, DEPTH>;
var<workgroup> tileB: array<array<V, BW>, DEPTH>;

// split turns the number of a block into its quad of lines and its quad of k. Neighbouring blocks are neighbours in memory.
fn split(e: u32, width: u32, along: bool) -> vec2<u32> {
  if (along) { return vec2<u32>(e / KQ, e % KQ); }
  return vec2<u32>(e % width, e / width);
}

// fetch loads block e of the step that begins at quad l of k. Beyond k it is zero.
fn fetch(e: u32, part: u32, row: u32, col: u32, l: u32) -> Quad {
  let s = p.shape;
  var r: Quad;
  var at = l;
  if (e < BLOCKS_A) {
    let x = split(e, AW, A_ALONG_K);
    at += x.y;
    r = a_load(a_start(s.a, row + 4u * x.x, at) + part * s.step.x, s.a.y);
  } else {
    let x = split(e - BLOCKS_A, BW, B_ALONG_K);
    at += x.y;
    r = b_load(b_start(s.b, col + 4u * x.x, at) + part * s.step.y, s.b.y);
  }
  for (var d = 0u; d < 4u; d++) { // @unroll
    r[d] = select(V(), r[d], 4u * at + d < s.k);
  } // @unroll
  return r;
}

// keep puts block e into workgroup memory.
fn keep(e: u32, r: Quad) {
  if (e < BLOCKS_A) {
    let x = split(e, AW, A_ALONG_K);
    for (var d = 0u; d < 4u; d++) { // @unroll
      tileA[4u * x.y + d][x.x] = r[d];
    } // @unroll
  } else {
    let x = split(e - BLOCKS_A, BW, B_ALONG_K);
    for (var d = 0u; d < 4u; d++) { // @unroll
      tileB[4u * x.y + d][x.x] = r[d];
    } // @unroll
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let g = group.x + group.y * groups.x;
  let col = (g % s.wide) * (4u * BW);
  let band = g / s.wide;
  let row = (band % s.high) * (4u * AW);
  let part = band / s.high;
  if (part >= s.parts) { return; }

  let x = local % TX;
  let y = local / TX;
  let first = part * s.next;
  let last = min(first + s.chunk, (s.k + 3u) >> 2u);
  var acc: array<array<array<V, CQ>, 4>, RQ>;
  var next: array<Quad, LOADS>;
  for (var e = 0u; e < LOADS; e++) { // @unroll
    if (local + e * THREADS < BLOCKS) { next[e] = fetch(local + e * THREADS, part, row, col, first); }
  } // @unroll
  for (var l = first; l < last; l += KQ) {
    for (var e = 0u; e < LOADS; e++) { // @unroll
      if (local + e * THREADS < BLOCKS) { keep(local + e * THREADS, next[e]); }
    } // @unroll
    workgroupBarrier();
    if (l + KQ < last) {
      for (var e = 0u; e < LOADS; e++) { // @unroll
        if (local + e * THREADS < BLOCKS) { next[e] = fetch(local + e * THREADS, part, row, col, l + KQ); }
      } // @unroll
    }
    for (var d = 0u; d < DEPTH; d++) {
      var b: array<V, CQ>;
      for (var c = 0u; c < CQ; c++) { // @unroll
        b[c] = tileB[d][x + c * TX];
      } // @unroll
      for (var q = 0u; q < RQ; q++) { // @unroll
        let a = tileA[d][y + q * TY];
        for (var r = 0u; r < 4u; r++) { // @unroll
          for (var c = 0u; c < CQ; c++) { // @unroll
            acc[q][r][c] += a[r] * b[c];
          } // @unroll
        } // @unroll
      } // @unroll
    }
    workgroupBarrier();
  }

  let f = fixed();
  for (var q = 0u; q < RQ; q++) { // @unroll
    for (var r = 0u; r < 4u; r++) { // @unroll
      let i = row + 4u * (y + q * TY) + r;
      if (i < s.m) {
        for (var c = 0u; c < CQ; c++) { // @unroll
          let j = col + 4u * (x + c * TX);
          if (j < s.n) { store(f, part * s.m + i, j, min(s.n - j, 4u), apply(f, part * s.m + i, j, acc[q][r][c])); }
        } // @unroll
      }
    } // @unroll
  } // @unroll
}
