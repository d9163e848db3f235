// stream: a product of a single row and a B that is stored by rows, for software adapters whose invocations wait for memory: each reads
// eight rows of B side by side, along a stripe of STRIPE vectors, as memory is read the fastest in this order. Part x of the sum, which
// has rows 8x to 8x+7, is stored in row x of the result, in whole vectors.
// Any n and k: with RAGGED k is no multiple of eight, and what lies beyond it is replaced by zero. Workgroups are folded over x and y.
// Reference: multiply in product.go.

const GROUP: u32 = 8u;
const STRIPE: u32 = 64u;
const RAGGED: bool = true; // @param

struct Shape {
  m: u32,
  n: u32,
  k: u32,
  wide: u32,
  high: u32,
  parts: u32,
  chunk: u32, // quads of k in a part: two
  next: u32,
  a: vec2<u32>, // offset and stride, in what is loaded at once
  b: vec2<u32>,
  pad0: vec4<u32>,
}

alias Rows = array<V, 1>;
alias Quad = array<V, 4>; // four columns of four rows of B

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> s0: array<vec4<f32>>;
fn a_start(d: vec2<u32>, i: u32, l: u32) -> u32 { return d.x + i * d.y + l; }
fn a_load(q: u32, d: u32) -> Rows { return Rows(a[q]); }
fn b_start(d: vec2<u32>, j: u32, l: u32) -> u32 { return d.x + (j >> 2u) + 4u * l * d.y; }
fn b_wide(d: u32) -> u32 { return 1u; }
fn b_load(q: u32, d: u32) -> Quad { return Quad(b[q], b[q + d], b[q + 2u * d], b[q + 3u * d]); }
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.n + j) >> 2u] = r; }
// @end

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let t = (group.x + group.y * groups.x) * GROUP + local;
  let part = t % s.parts;
  let first = t / s.parts * STRIPE;
  let end = min(first + STRIPE, (s.n + 3u) >> 2u);
  var x: array<V, 2>;
  var q: array<u32, 2>;
  for (var d = 0u; d < 2u; d++) { // @unroll
    x[d] = a_load(a_start(s.a, 0u, 2u * part + d), s.a.y)[0];
    q[d] = b_start(s.b, 4u * first, 2u * part + d);
  } // @unroll
  let wide = b_wide(s.b.y);
  let left = s.k - 8u * part;
  let f = fixed();
  for (var j = first; j < end; j++) {
    var sum = V();
    for (var d = 0u; d < 2u; d++) { // @unroll
      let y = b_load(q[d], s.b.y);
      for (var r = 0u; r < 4u; r++) { // @unroll
        let product = x[d][r] * y[r];
        if (RAGGED) { sum += select(V(), product, 4u * d + r < left); } else { sum += product; }
      } // @unroll
      q[d] += wide;
    } // @unroll
    store(f, part, 4u * j, 4u, sum);
  }
}
