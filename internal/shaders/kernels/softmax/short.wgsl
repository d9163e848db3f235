// short: the softmax of each row of a function of a matrix, one invocation per row, which keeps the row's QUADS vectors in registers: an
// element is read once, and its exponential is computed once. With LOG the logarithm of the softmax. For software adapters.
// The result may take an operand's place. NaN and infinities are treated as in rows.wgsl.
// Reference: softmax in reduce.go.

const SIZE: u32 = 16u; // @param
const LOG: bool = false; // @param
const QUADS: u32 = 2u; // @param
const LOWEST: f32 = -3.4028234e38;

struct Shape {
  rows: u32,
  cols: u32,
  nan: u32, // the bits of a NaN: compilers refuse it as a constant
  pad0: u32,
}

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<f32>>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.cols + j) >> 2u] = r; }
fn logarithm(x: V) -> V { return log(x); }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (group.x + group.y * groups.x) * SIZE + local;
  if (i >= p.shape.rows) { return; }
  let cols = p.shape.cols;
  let f = fixed();

  var x: array<V, QUADS>;
  var inside: array<vec4<bool>, QUADS>; // the elements that belong to the row
  var m = V(LOWEST);
  var bits = vec4<u32>(); // the largest, without signs
  for (var q = 0u; q < QUADS; q++) { // @unroll
    inside[q] = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(cols - 4u * q);
    x[q] = select(V(LOWEST), apply(f, i, 4u * q, V()), inside[q]);
    m = max(m, x[q]);
    bits = max(bits, bitcast<vec4<u32>>(x[q]) & vec4<u32>(0x7fffffffu));
  } // @unroll
  let top = max(max(m.x, m.y), max(m.z, m.w));

  var e: array<V, QUADS>;
  var sum = V();
  for (var q = 0u; q < QUADS; q++) { // @unroll
    x[q] -= top;
    e[q] = exp(x[q]);
    sum += select(V(), e[q], inside[q]);
  } // @unroll
  var total = (sum.x + sum.y) + (sum.z + sum.w);
  if (any(bits > vec4<u32>(0x7f800000u)) || top > -LOWEST) { total = bitcast<f32>(p.shape.nan); }

  let scale = 1.0 / total;
  var shift = V();
  if (LOG) { shift = logarithm(V(total)); }
  for (var q = 0u; q < QUADS; q++) { // @unroll
    var r = e[q] * scale;
    if (LOG) { r = x[q] - shift; }
    store(f, i, 4u * q, min(cols - 4u * q, 4u), r);
  } // @unroll
}
