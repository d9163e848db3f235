// swap: exchanges rows of a matrix as the elimination of a block did, in its columns outside of the block; with REVERSE in the
// opposite order, which undoes it. One invocation works through a column. The pivots, numbers of rows, are a column of the matrix.
// Reference: swap in factorref.go.

const SIZE: u32 = 64u; // @param
const REVERSE: bool = false; // @param

struct Shape {
  cols: u32, // without those of the block
  skip: u32, // the block's first column
  skipped: u32, // and how many it has
  stride: u32,
  offset: u32,
  pivots: u32, // of the first one
  first: u32, // the row that it is of
  count: u32,
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  var j = (group.x + group.y * groups.x) * SIZE + local;
  if (j >= s.cols) { return; }
  if (j >= s.skip) { j += s.skipped; }
  for (var n = 0u; n < s.count; n++) {
    let t = select(n, s.count - 1u - n, REVERSE);
    let place = s.offset + (s.first + t) * s.stride + j;
    let source = s.offset + u32(w[s.pivots + t * s.stride]) * s.stride + j;
    if (source != place) {
      let x = w[place];
      w[place] = w[source];
      w[source] = x;
    }
  }
}
