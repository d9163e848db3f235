// eliminate: Gaussian elimination of a block of columns of a matrix in place, one workgroup for each matrix of a stack. Afterwards the
// block holds the multipliers below the diagonal (a unit lower triangle) and the upper triangle above it. With PIVOT, rows are
// exchanged so that the largest element of a column is its pivot (partial pivoting), and the number of the row that was taken is
// written to a column of the matrix itself. With JORDAN, rows above the diagonal are eliminated too and no multipliers are kept:
// what stands to the right of the block is then the solution, but for the division by the pivots.
// A pivot of 0 leaves its column as it is: the matrix is singular, and the 0 on the diagonal says so.
// Reference: eliminate in factorref.go.

const SIZE: u32 = 256u; // @param
const PIVOT: bool = true; // @param
const JORDAN: bool = false; // @param

struct Shape {
  items: u32, // matrices of the stack
  item: u32, // their distance, in elements
  rows: u32, // from the block's first one on
  cols: u32, // of the block
  width: u32, // columns that are updated, the block's included
  stride: u32,
  offset: u32, // of the block
  pivots: u32, // of the column that takes the pivots, at the block's first row
  first: u32, // the number of the block's first row in the matrix
  pad0: u32,
  pad1: u32,
  pad2: u32,
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;

var<workgroup> tops: array<f32, SIZE>;
var<workgroup> rows: array<u32, SIZE>;

// exchange finds the pivot of column t and exchanges rows so that it is on the diagonal.
fn exchange(begin: u32, t: u32, local: u32) {
  let s = p.shape;
  var top = -1.0;
  var row = t;
  for (var i = t + local; i < s.rows; i += SIZE) {
    let x = abs(w[begin + i * s.stride + t]);
    if (x > top) {
      top = x;
      row = i;
    }
  }
  tops[local] = top;
  rows[local] = row;
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) {
      let other = tops[local + n];
      if (other > tops[local] || (other == tops[local] && rows[local + n] < rows[local])) {
        tops[local] = other;
        rows[local] = rows[local + n];
      }
    }
    workgroupBarrier();
  }
  let source = begin + rows[0] * s.stride;
  let place = begin + t * s.stride;
  if (source != place) {
    for (var j = local; j < s.width; j += SIZE) {
      let x = w[place + j];
      w[place + j] = w[source + j];
      w[source + j] = x;
    }
  }
  if (local == 0u) { w[s.pivots + (begin - s.offset) + t * s.stride] = f32(s.first + rows[0]); }
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let item = group.x + group.y * groups.x;
  if (item >= s.items) { return; }
  let begin = s.offset + item * s.item;
  for (var t = 0u; t < s.cols; t++) {
    if (PIVOT) {
      exchange(begin, t, local);
      storageBarrier();
      workgroupBarrier();
    }
    let row = begin + t * s.stride;
    let pivot = w[row + t];
    for (var i = select(t + 1u, 0u, JORDAN) + local; i < s.rows; i += SIZE) {
      if (i != t && pivot != 0.0) {
        let at = begin + i * s.stride;
        let factor = w[at + t] / pivot;
        w[at + t] = select(factor, 0.0, JORDAN);
        for (var j = t + 1u; j < s.width; j++) { w[at + j] -= factor * w[row + j]; }
      }
    }
    storageBarrier();
    workgroupBarrier();
  }
}
