// held: the softmax of each row of a function of a matrix, one invocation per row, in three passes along it: one for the largest element,
// one for the exponentials, which the result holds until the third divides them by their sum. An exponential is computed once, for
// processors that have a row in their cache; the result is float32 and stored in vectors.
// A pass reads an element before it writes it, so that the result may take an operand's place. NaN and infinities are treated as in
// rows.wgsl.
// Reference: softmax in reduce.go.

const SIZE: u32 = 16u; // @param
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
fn stored(f: Fixed, i: u32, j: u32) -> V { return s0[(i * p.shape.cols + j) >> 2u]; }
// @end

// lanes tells which elements of the vector at j belong to the row.
fn lanes(j: u32) -> vec4<bool> { return vec4<u32>(j, j + 1u, j + 2u, j + 3u) < vec4<u32>(p.shape.cols); }

fn size(x: V) -> vec4<u32> { return bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu); }

// exponential is that of numbers that are not positive: Cephes' expf, 0 below the least normal number and of NaN.
fn exponential(x: V) -> V {
  let y = clamp(x, V(-87.3), V());
  let n = round(y * 1.44269504);
  let r = fma(n, V(2.12194440e-4), fma(n, V(-0.693359375), y));
  var q = fma(V(1.9875691500e-4), r, V(1.3981999507e-3));
  q = fma(q, r, V(8.3334519073e-3));
  q = fma(q, r, V(4.1665795894e-2));
  q = fma(q, r, V(1.6666665459e-1));
  q = fma(q, r, V(5.0000001201e-1));
  let e = fma(q, r * r, r) + 1.0;
  let power = bitcast<V>(bitcast<vec4<u32>>(vec4<i32>(n) + 127) << vec4<u32>(23u));
  return select(V(), e * power, x > V(-87.3));
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (group.x + group.y * groups.x) * SIZE + local;
  if (i >= p.shape.rows) { return; }
  let cols = p.shape.cols;
  let f = fixed();
  let whole = cols & ~3u;
  let quads = cols >> 2u;

  var tops = array<V, 4>(V(LOWEST), V(LOWEST), V(LOWEST), V(LOWEST));
  var sizes: array<vec4<u32>, 4>; // the largest, without signs
  var q = 0u;
  for (; q + 4u <= quads; q += 4u) {
    for (var k = 0u; k < 4u; k++) { // @unroll
      let x = apply(f, i, 4u * (q + k), V());
      sizes[k] = max(sizes[k], size(x));
      tops[k] = max(tops[k], x);
    } // @unroll
  }
  for (; q < quads; q++) {
    let x = apply(f, i, 4u * q, V());
    sizes[0] = max(sizes[0], size(x));
    tops[0] = max(tops[0], x);
  }
  if (whole < cols) {
    let x = select(V(LOWEST), apply(f, i, whole, V()), lanes(whole));
    sizes[1] = max(sizes[1], size(x));
    tops[1] = max(tops[1], x);
  }
  let bits = max(max(sizes[0], sizes[1]), max(sizes[2], sizes[3]));
  let m = max(max(tops[0], tops[1]), max(tops[2], tops[3]));
  let top = max(max(m.x, m.y), max(m.z, m.w));

  var sum = V();
  for (q = 0u; q < quads; q++) {
    let e = exponential(apply(f, i, 4u * q, V()) - top);
    sum += e;
    store(f, i, 4u * q, 4u, e);
  }
  if (whole < cols) {
    let e = exponential(apply(f, i, whole, V()) - top);
    sum += select(V(), e, lanes(whole));
    store(f, i, whole, cols - whole, e);
  }
  var total = (sum.x + sum.y) + (sum.z + sum.w);
  if (any(bits > vec4<u32>(0x7f800000u)) || top > -LOWEST) { total = bitcast<f32>(p.shape.nan); }

  let scale = 1.0 / total;
  for (q = 0u; q + 4u <= quads; q += 4u) {
    for (var k = 0u; k < 4u; k++) { // @unroll
      store(f, i, 4u * (q + k), 4u, stored(f, i, 4u * (q + k)) * scale);
    } // @unroll
  }
  for (; q < quads; q++) { store(f, i, 4u * q, 4u, stored(f, i, 4u * q) * scale); }
  if (whole < cols) { store(f, i, whole, cols - whole, stored(f, i, whole) * scale); }
}
