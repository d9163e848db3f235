// group: the softmax of each row of a function of a matrix, one workgroup per row. Rows of up to 4 * SIZE * HELD elements
// are read once and kept in registers; longer ones are read three times, from the cache. With LOG the logarithm of the
// softmax. The family for hardware.
// All reads of a row come before its first write where it fits the registers; longer rows are read and written element by
// element by the same invocation, so that the result may take an operand's place.
// A NaN or an infinity makes the whole row NaN; negative infinities are as good as missing, unless there is nothing else.
// Drivers do not agree on exp of NaN, so that the bits are watched.
// Reference: softmax in softmax.go.

const SIZE: u32 = 256u; // @param
const HELD: u32 = 4u; // @param
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

var<workgroup> tops: array<f32, SIZE>;
var<workgroup> sums: array<f32, SIZE>;

// lanes tells which elements of the vector at j belong to the row.
fn lanes(j: u32) -> vec4<bool> { return vec4<u32>(j, j + 1u, j + 2u, j + 3u) < vec4<u32>(p.shape.cols); }

// value is the vector at j; what lies beyond the row is as small as can be.
fn value(f: Fixed, i: u32, j: u32) -> V { return select(V(LOWEST), apply(f, i, j, V()), lanes(j)); }

fn size(x: V) -> vec4<u32> { return bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu); }

// powers is the exponentials of the vector at j; there are none beyond the row.
fn powers(x: V, top: f32, j: u32) -> V { return select(V(), exp(x - top), lanes(j)); }

fn finish(x: V, top: f32, scale: f32, shift: V) -> V {
  if (LOG) { return (x - top) - shift; }
  return exp(x - top) * scale;
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = group.x + group.y * groups.x;
  if (i >= p.shape.rows) { return; }
  let cols = p.shape.cols;
  let f = fixed();
  let step = 4u * SIZE;
  let start = 4u * local;
  var held: array<V, HELD>;
  var m = V(LOWEST);
  var bits = vec4<u32>(); // the largest, without signs
  for (var h = 0u; h < HELD; h++) { // @unroll
    held[h] = V(LOWEST);
    if (start + h * step < cols) { held[h] = value(f, i, start + h * step); }
    m = max(m, held[h]);
    bits = max(bits, size(held[h]));
  } // @unroll
  for (var j = start + HELD * step; j < cols; j += step) {
    let x = value(f, i, j);
    m = max(m, x);
    bits = max(bits, size(x));
  }
  tops[local] = max(max(m.x, m.y), max(m.z, m.w));
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) { tops[local] = max(tops[local], tops[local + n]); }
    workgroupBarrier();
  }
  let top = tops[0];

  var sum = V();
  for (var h = 0u; h < HELD; h++) { // @unroll
    sum += powers(held[h], top, start + h * step);
  } // @unroll
  for (var j = start + HELD * step; j < cols; j += step) { sum += powers(value(f, i, j), top, j); }
  if (any(bits > vec4<u32>(0x7f800000u)) || top > -LOWEST) { sum = V(bitcast<f32>(p.shape.nan)); }
  sums[local] = (sum.x + sum.y) + (sum.z + sum.w);
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) { sums[local] += sums[local + n]; }
    workgroupBarrier();
  }
  let total = sums[0];
  let scale = 1.0 / total;
  var shift = V();
  if (LOG) { shift = logarithm(V(total)); }
  for (var h = 0u; h < HELD; h++) { // @unroll
    if (start + h * step < cols) {
      store(f, i, start + h * step, min(cols - start - h * step, 4u), finish(held[h], top, scale, shift));
    }
  } // @unroll
  for (var j = start + HELD * step; j < cols; j += step) {
    store(f, i, j, min(cols - j, 4u), finish(apply(f, i, j, V()), top, scale, shift));
  }
}
