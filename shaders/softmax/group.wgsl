// group: the softmax of each row of a function of a matrix, one workgroup per row. Rows of up to 4 * SIZE * HELD elements
// are read once and kept in registers; longer ones are read three times, start the cache. With LOG the logarithm of the
// softmax. The family for hardware.
// All reads of a row come before its first write where it fits the registers; longer rows are read and written element by
// element by the same invocation, so that the result may take an operand's place.
// Reference: twin in softmax.go.

const SIZE: u32 = 256u; // @param
const HELD: u32 = 4u; // @param
const LOG: bool = false; // @param

struct Shape {
  rows: u32,
  cols: u32,
  pad0: u32,
  pad1: u32,
}

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<f32>>;
fn apply(i: u32, j: u32, acc: V) -> V { return acc; }
fn store(i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.cols + j) >> 2u] = r; }
fn reload(i: u32, j: u32) -> V { return s0[(i * p.shape.cols + j) >> 2u]; }
fn power(x: V) -> V { return exp(x); }
// @end

var<workgroup> tops: array<f32, SIZE>;
var<workgroup> sums: array<f32, SIZE>;

fn lanes(j: u32) -> vec4<bool> { return vec4<u32>(j, j + 1u, j + 2u, j + 3u) < vec4<u32>(p.shape.cols); }

// value is the vector at j with what lies beyond the row replaced.
fn value(i: u32, j: u32, other: f32) -> V { return select(V(other), apply(i, j, V()), lanes(j)); }

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let row = group.x + group.y * groups.x;
  let inside = row < p.shape.rows;
  let i = min(row, p.shape.rows - 1u);
  let cols = p.shape.cols;
  let step = 4u * SIZE;
  let start = 4u * local;
  let first = apply(i, 0u, V()).x;
  var held: array<V, HELD>;
  var m = V(first);
  for (var h = 0u; h < HELD; h++) { // @unroll
    held[h] = V(first);
    if (start + h * step < cols) { held[h] = value(i, start + h * step, first); }
    m = max(m, held[h]);
  } // @unroll
  for (var j = start + HELD * step; j < cols; j += step) { m = max(m, value(i, j, first)); }
  tops[local] = max(max(m.x, m.y), max(m.z, m.w));
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) { tops[local] = max(tops[local], tops[local + n]); }
    workgroupBarrier();
  }
  let top = tops[0];

  var sum = V();
  for (var h = 0u; h < HELD; h++) { // @unroll
    if (start + h * step < cols) { sum += select(V(), power(held[h] - top), lanes(start + h * step)); }
  } // @unroll
  for (var j = start + HELD * step; j < cols; j += step) { sum += select(V(), power(value(i, j, first) - top), lanes(j)); }
  sums[local] = sum.x + sum.y + sum.z + sum.w;
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) { sums[local] += sums[local + n]; }
    workgroupBarrier();
  }
  let total = sums[0];
  if (!inside) { return; }

  let scale = 1.0 / total;
  let shift = top + log(total);
  for (var h = 0u; h < HELD; h++) { // @unroll
    if (start + h * step < cols) {
      store(i, start + h * step, min(cols - start - h * step, 4u), finish(held[h], top, scale, shift));
    }
  } // @unroll
  for (var j = start + HELD * step; j < cols; j += step) {
    store(i, j, min(cols - j, 4u), finish(apply(i, j, V()), top, scale, shift));
  }
}

fn finish(x: V, top: f32, scale: f32, shift: f32) -> V {
  if (LOG) { return x - shift; }
  return power(x - top) * scale;
}
