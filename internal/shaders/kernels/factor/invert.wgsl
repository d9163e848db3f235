// invert: inverts the square blocks on the diagonal of a lower triangular matrix, one workgroup for each block and one invocation for
// each column of it, by forward substitution. Products with the inverses stand in for substitution within a block, so that the
// rest is products of matrices. With UNIT the diagonal is taken for 1. Of an upper triangle the transpose is inverted, with rows
// and columns exchanged on both sides.
// Reference: invert in factorref.go.

const SIZE: u32 = 32u; // @param
const UNIT: bool = false; // @param

struct Shape {
  rows: u32, // of the whole matrix
  offset: u32,
  row: u32, // the distance of two rows
  col: u32, // and of two columns
  to: u32, // the same of the inverses, which stand below each other
  to_row: u32,
  to_col: u32,
  to_block: u32, // the distance of two blocks
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> lower: array<f32>;
@group(0) @binding(2) var<storage, read_write> inverse: array<f32>;

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) j: u32) {
  let s = p.shape;
  let block = group.x + group.y * groups.x;
  if (block * SIZE >= s.rows) { return; }
  let n = min(SIZE, s.rows - block * SIZE);
  if (j >= n) { return; }
  let source = s.offset + block * SIZE * (s.row + s.col);
  let place = s.to + block * s.to_block + j * s.to_col;
  for (var i = 0u; i < n; i++) {
    var x = select(0.0, 1.0, i == j);
    for (var k = j; k < i; k++) { x -= lower[source + i * s.row + k * s.col] * inverse[place + k * s.to_row]; }
    if (!UNIT && i >= j) { x = x / lower[source + i * (s.row + s.col)]; }
    inverse[place + i * s.to_row] = x;
  }
}
