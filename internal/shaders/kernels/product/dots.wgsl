// dots: c = a B for a single row and a B that is stored by columns, for processors with vectors of four, which run the invocations of a
// workgroup one after another. An invocation computes four columns, each the sum of the products of two vectors.
// STEP_A and STEP_B are by how much an index of a factor grows from a vector to the next: 1, or 4 where the factor is bound as single
// elements. No index is out of range: columns beyond the last one read that one, and with RAGGED k is no multiple of four, and the
// elements of the last vectors are read one by one.
// Workgroups are folded over x and y.
// Reference: multiply in product.go.

const GROUP: u32 = 4u; // @param
const STEP_A: u32 = 1u; // @param
const STEP_B: u32 = 1u; // @param
const A_ALONG_K: bool = true; // @param
const RAGGED: bool = false; // @param
const EDGE: bool = false; // @param

struct Shape {
  m: u32,
  n: u32,
  k: u32,
  wide: u32,
  high: u32,
  parts: u32,
  chunk: u32, // quads of k
  next: u32,
  a: vec2<u32>, // offset and stride, in what is loaded at once
  b: vec2<u32>,
  pad0: vec4<u32>,
}

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s0: array<vec4<f32>>;
fn left(q: u32) -> V { return a[q]; }
fn quad(q: u32) -> V { return b[q]; }
fn some_left(q: u32, n: u32) -> V { return a[q]; }
fn some(q: u32, n: u32) -> V { return b[q]; }
fn add_product(x: V, y: V, sum: V) -> V { return fma(x, y, sum); }
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.n + j) >> 2u] = r; }
// @end

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let j = 4u * ((group.x + group.y * groups.x) * GROUP + local);
  if (j >= s.n) { return; }
  var qb: array<u32, 4>;
  for (var c = 0u; c < 4u; c++) { // @unroll
    qb[c] = s.b.x + min(j + c, s.n - 1u) * s.b.y;
  } // @unroll
  var deep = STEP_A; // from a vector of a to the next
  if (!A_ALONG_K) { deep = STEP_A * s.a.y; }
  var even: array<V, 4>;
  var odd: array<V, 4>;
  let whole = s.k >> 2u;
  var l = 0u;
  for (; l + 2u <= whole; l += 2u) {
    let x = left(s.a.x + deep * l);
    for (var c = 0u; c < 4u; c++) { // @unroll
      even[c] = add_product(x, quad(qb[c] + STEP_B * l), even[c]);
    } // @unroll
    let y = left(s.a.x + deep * l + deep);
    for (var c = 0u; c < 4u; c++) { // @unroll
      odd[c] = add_product(y, quad(qb[c] + STEP_B * l + STEP_B), odd[c]);
    } // @unroll
  }
  if (l < whole) {
    let x = left(s.a.x + deep * l);
    for (var c = 0u; c < 4u; c++) { // @unroll
      even[c] = add_product(x, quad(qb[c] + STEP_B * l), even[c]);
    } // @unroll
  }
  if (RAGGED) {
    let x = some_left(s.a.x + deep * whole, s.k & 3u);
    for (var c = 0u; c < 4u; c++) { // @unroll
      odd[c] = add_product(x, some(qb[c] + STEP_B * whole, s.k & 3u), odd[c]);
    } // @unroll
  }
  var r = V();
  for (var c = 0u; c < 4u; c++) { // @unroll
    let sum = even[c] + odd[c];
    r[c] = sum.x + sum.y + sum.z + sum.w;
  } // @unroll
  let f = fixed();
  var n = 4u;
  if (EDGE) { n = min(s.n - j, 4u); }
  store(f, 0u, j, n, apply(f, 0u, j, r));
}
