// rows: the softmax of each row of a function of a matrix, one invocation per row, in two passes along it: one for the
// largest element and the sum, which is scaled anew whenever a larger element turns up, one for the quotients. With LOG the
// logarithm of the softmax. No workgroup memory and no barriers: the family for software adapters.
// The first pass only reads, and the second reads an element before it writes it, so that the result may take an operand's
// place. A NaN or an infinity makes the whole row NaN; negative infinities are as good as missing, unless there is nothing
// else. Drivers do not agree on exp of NaN, so that the bits are watched.
// Reference: softmax in softmax.go.

const SIZE: u32 = 16u; // @param
const LOG: bool = false; // @param
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

// lanes tells which elements of the vector at j belong to the row.
fn lanes(j: u32) -> vec4<bool> { return vec4<u32>(j, j + 1u, j + 2u, j + 3u) < vec4<u32>(p.shape.cols); }

fn size(x: V) -> vec4<u32> { return bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu); }

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (group.x + group.y * groups.x) * SIZE + local;
  if (i >= p.shape.rows) { return; }
  let cols = p.shape.cols;
  let f = fixed();

  // Four vectors at a time, so that scaling costs a quarter. Their sum is NaN if one of them is, or if there are infinities
  // of both signs, and then the row is NaN as well.
  var m = V(LOWEST);
  var sum = V();
  var bits = vec4<u32>(); // the largest, without signs
  var j = 0u;
  for (; j + 15u < cols; j += 16u) {
    let a = apply(f, i, j, V());
    let b = apply(f, i, j + 4u, V());
    let c = apply(f, i, j + 8u, V());
    let d = apply(f, i, j + 12u, V());
    bits = max(bits, size((a + b) + (c + d)));
    let t = max(max(max(a, b), max(c, d)), m);
    sum = sum * exp(m - t) + ((exp(a - t) + exp(b - t)) + (exp(c - t) + exp(d - t)));
    m = t;
  }
  for (; j < cols; j += 4u) {
    let inside = lanes(j);
    let x = select(V(LOWEST), apply(f, i, j, V()), inside);
    bits = max(bits, size(x));
    let t = max(x, m);
    sum = sum * exp(m - t) + select(V(), exp(x - t), inside);
    m = t;
  }
  let top = max(max(m.x, m.y), max(m.z, m.w));
  let sums = sum * exp(m - top);
  var total = (sums.x + sums.y) + (sums.z + sums.w);
  if (any(bits > vec4<u32>(0x7f800000u)) || top > -LOWEST) { total = bitcast<f32>(p.shape.nan); }

  let scale = 1.0 / total;
  var shift = V();
  if (LOG) { shift = logarithm(V(total)); }
  for (j = 0u; j + 15u < cols; j += 16u) {
    for (var n = 0u; n < 4u; n++) { // @unroll
      let q = j + 4u * n;
      store(f, i, q, 4u, finish(apply(f, i, q, V()), top, scale, shift));
    } // @unroll
  }
  for (; j + 3u < cols; j += 4u) {
    store(f, i, j, 4u, finish(apply(f, i, j, V()), top, scale, shift));
  }
  if (j < cols) { store(f, i, j, cols - j, finish(apply(f, i, j, V()), top, scale, shift)); }
}

fn finish(x: V, top: f32, scale: f32, shift: V) -> V {
  if (LOG) { return (x - top) - shift; }
  return exp(x - top) * scale;
}
