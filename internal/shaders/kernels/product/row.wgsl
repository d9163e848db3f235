// row: c = a B for a single row. For hardware: a workgroup computes 4 x COLS columns, LANES invocations share the sum of
// each, and the sums meet in workgroup memory. Whether neighbouring invocations walk along k or across the columns depends
// on how B lies in memory, so that they always read neighbouring vectors.
// Stripes of columns are numbered by s.wide, then the parts that k is cut into; workgroup g computes stripe g. Part x of
// the sum is stored in row x. Any n and k. Workgroups are folded over x and y. The products of a stack are its parts: each has
// all of k, and factors of its own.
// Reference: multiply in product.go.

const LANES: u32 = 16u; // @param
const COLS: u32 = 16u; // @param
const THREADS: u32 = 256u; // @param
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

alias Rows = array<V, 1>; // four columns of the row
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
fn a_load(q: u32, d: u32) -> Rows { return Rows(a[q]); }
fn b_start(d: vec2<u32>, j: u32, l: u32) -> u32 { return d.x + (j >> 2u) + 4u * l * d.y; }
fn b_deep(d: u32) -> u32 { return 4u * d; }
fn b_wide(d: u32) -> u32 { return 1u; }
fn b_load(q: u32, d: u32) -> Quad { return Quad(b[q], b[q + d], b[q + 2u * d], b[q + 3u * d]); }
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.n + j) >> 2u] = r; }
// @end

var<workgroup> sums: array<V, THREADS>;

// part_of sums a quad of k, of which only the first n count.
fn part_of(qa: u32, qb: u32, n: u32) -> V {
  var x = a_load(qa, p.shape.a.y)[0];
  var y = b_load(qb, p.shape.b.y);
  if (n < 4u) {
    x = select(V(), x, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n));
    for (var d = 0u; d < 4u; d++) { // @unroll
      y[d] = select(V(), y[d], d < n);
    } // @unroll
  }
  return x.x * y[0] + x.y * y[1] + x.z * y[2] + x.w * y[3];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let g = group.x + group.y * groups.x;
  let part = g / s.wide;
  if (part >= s.parts) { return; }

  var lane = local / COLS;
  var c = local % COLS;
  if (B_ALONG_K) {
    lane = local % LANES;
    c = local / LANES;
  }
  let j = 4u * ((g % s.wide) * COLS + c);
  let first = part * s.next;
  let stepA = part * s.step.x;
  let stepB = part * s.step.y;
  let last = min(first + s.chunk, (s.k + 3u) >> 2u);
  var acc = V();
  for (var l = first + lane; l < last; l += LANES) {
    acc += part_of(a_start(s.a, 0u, l) + stepA, b_start(s.b, j, l) + stepB, min(s.k - 4u * l, 4u));
  }
  sums[lane * COLS + c] = acc;
  workgroupBarrier();
  for (var h = LANES / 2u; h > 0u; h /= 2u) {
    if (local < h * COLS) { sums[local] += sums[local + h * COLS]; }
    workgroupBarrier();
  }
  let out = 4u * ((g % s.wide) * COLS + local);
  let f = fixed();
  if (local < COLS && out < s.n) { store(f, part, out, min(s.n - out, 4u), apply(f, part, out, sums[local])); }
}
