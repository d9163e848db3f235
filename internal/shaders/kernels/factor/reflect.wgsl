// reflect: the QR factorisation of a block of columns in place by Householder reflections, one workgroup. Column t is reflected to
// beta on the diagonal and 0 below; there the vector of the reflection, whose first element is 1, takes the zeros' place. The
// factor of a reflection is 2 / (v, v) and need not be kept. An invocation works on one column and on one of every LANES rows.
// Reference: reflect in factorref.go.

const SIZE: u32 = 256u; // @param
const COLS: u32 = 32u; // @param
const LANES: u32 = SIZE / COLS;

struct Shape {
  rows: u32, // from the block's first one on
  cols: u32, // of the block, COLS at most
  stride: u32,
  offset: u32,
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;

var<workgroup> sums: array<f32, SIZE>;

// folded is the largest, or with add the sum, of the values of all invocations.
fn folded(x: f32, add: bool, local: u32) -> f32 {
  sums[local] = x;
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) { sums[local] = select(max(sums[local], sums[local + n]), sums[local] + sums[local + n], add); }
    workgroupBarrier();
  }
  let all = sums[0];
  workgroupBarrier();
  return all;
}

// length is the norm of column t from the diagonal on. Dividing by the largest element keeps squares in range.
fn length(t: u32, local: u32) -> f32 {
  let s = p.shape;
  var top = 0.0;
  for (var i = t + local; i < s.rows; i += SIZE) { top = max(top, abs(w[s.offset + i * s.stride + t])); }
  top = folded(top, false, local);
  let scale = select(top, 1.0, top == 0.0);
  var sum = 0.0;
  for (var i = t + local; i < s.rows; i += SIZE) {
    let x = w[s.offset + i * s.stride + t] / scale;
    sum += x * x;
  }
  return scale * sqrt(folded(sum, true, local));
}

@compute @workgroup_size(SIZE)
fn main(@builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let lane = local / COLS;
  let c = local % COLS;
  for (var t = 0u; t < s.cols; t++) {
    let row = s.offset + t * s.stride;
    let alpha = w[row + t];
    let norm = length(t, local);
    let beta = select(-norm, norm, alpha < 0.0);
    let head = alpha - beta;
    let factor = select((beta - alpha) / beta, 2.0, beta == 0.0);
    storageBarrier();
    workgroupBarrier();
    for (var i = t + 1u + local; i < s.rows; i += SIZE) {
      let at = s.offset + i * s.stride + t;
      w[at] = select(w[at] / head, 0.0, head == 0.0);
    }
    if (local == 0u) { w[row + t] = beta; }
    storageBarrier();
    workgroupBarrier();
    let works = c > t && c < s.cols;
    var sum = 0.0;
    if (works) {
      for (var i = t + 1u + lane; i < s.rows; i += LANES) {
        let at = s.offset + i * s.stride;
        sum += w[at + t] * w[at + c];
      }
    }
    sums[local] = sum;
    workgroupBarrier();
    for (var n = LANES >> 1u; n > 0u; n = n >> 1u) {
      if (lane < n) { sums[local] += sums[local + n * COLS]; }
      workgroupBarrier();
    }
    var x = 0.0;
    if (works) {
      x = factor * (w[row + c] + sums[c]);
      for (var i = t + 1u + lane; i < s.rows; i += LANES) {
        let at = s.offset + i * s.stride;
        w[at + c] -= w[at + t] * x;
      }
    }
    workgroupBarrier();
    if (works && lane == 0u) { w[row + c] -= x; }
    storageBarrier();
    workgroupBarrier();
  }
}
