// line: c = a B for a single row and a B that is stored by rows, for processors with vectors of four, which run the invocations of a
// workgroup one after another. Eight rows of B are read side by side, each from its first to its last element, as memory is read the
// fastest in this order; the sums stay in the result, which a cache holds. The result is float32, int32 or uint32 and stored in vectors.
// Workgroup g computes stripe g % s.wide, which has STRIPE vectors of the result, of part g / s.wide of k. The sums of part x are
// stored in row x of the result. Workgroups are folded over x and y.
// STEP is by how much an index of B grows from a vector to the next: 1, or 4 where B is bound as single elements. No index is out of
// range: with EDGE n is no multiple of four, and the elements of the last vector are read one by one.
// Reference: multiply in product.go.

const STEP: u32 = 1u; // @param
const EDGE: bool = false; // @param
const STRIPE: u32 = 1024u;

struct Shape {
  m: u32,
  n: u32,
  k: u32,
  wide: u32, // stripes
  high: u32,
  parts: u32,
  chunk: u32, // quads of k in a part
  next: u32,
  a: vec2<u32>, // offset and, from a k to the next, elements
  b: vec2<u32>, // offset and stride, in what is loaded at once
  pad0: vec4<u32>,
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
fn some(q: u32, n: u32) -> V { return b[q]; }
fn add_product(x: V, y: V, sum: V) -> V { return fma(x, y, sum); }
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.n + j) >> 2u] = r; }
fn stored(f: Fixed, i: u32, j: u32) -> V { return s0[(i * p.shape.n + j) >> 2u]; }
// @end

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let s = p.shape;
  let g = group.x + group.y * groups.x;
  let part = g / s.wide;
  if (part >= s.parts) { return; }
  let first = part * 4u * s.chunk;
  let last = min(first + 4u * s.chunk, s.k);
  let start = g % s.wide * STRIPE;
  let end = min(start + STRIPE, s.n >> 2u);
  let f = fixed();
  var qa = s.a.x + first * s.a.y;
  var qb = s.b.x + first * s.b.y + STEP * start;
  for (var j = start; j < end; j++) { store(f, part, 4u * j, 4u, V()); }
  var l = first;
  for (; l + 8u <= last; l += 8u) {
    var x: array<V, 8>;
    var q: array<u32, 8>;
    for (var r = 0u; r < 8u; r++) { // @unroll
      x[r] = splat(qa);
      q[r] = qb;
      qa += s.a.y;
      qb += s.b.y;
    } // @unroll
    for (var j = 0u; j < end - start; j++) {
      var sum = stored(f, part, 4u * (start + j));
      for (var r = 0u; r < 8u; r++) { // @unroll
        sum = add_product(x[r], quad(q[r] + STEP * j), sum);
      } // @unroll
      store(f, part, 4u * (start + j), 4u, sum);
    }
  }
  for (; l < last; l++) {
    let x = splat(qa);
    for (var j = 0u; j < end - start; j++) {
      let at = 4u * (start + j);
      store(f, part, at, 4u, add_product(x, quad(qb + STEP * j), stored(f, part, at)));
    }
    qa += s.a.y;
    qb += s.b.y;
  }
  if (EDGE && g % s.wide == s.wide - 1u) {
    var sum = V();
    for (l = first; l < last; l++) {
      sum = add_product(splat(s.a.x + l * s.a.y), some(s.b.x + l * s.b.y + STEP * end, s.n & 3u), sum);
    }
    store(f, part, 4u * end, 4u, sum);
  }
}
