// scatter: writes the entries of a sparse matrix to where they belong in a dense one of any layout, which was filled with
// zeros before. One invocation moves one entry, as bits: the element type does not matter. The structure may be memory of the
// caller's who changed it: rows and columns out of range are passed over, never written to. Workgroups are folded over x and y.
// Reference: scatter in sparse.go.

const SIZE: u32 = 64u; // @param

struct Shape {
  count: u32, // entries
  rows: u32, // of the result
  cols: u32,
  value: u32, // where the first entry's value is bound
  row: u32, // where its row is
  col: u32,
  offset: u32, // of the result, in elements
  row_step: u32,
  col_step: u32,
  pad0: u32,
  pad1: u32,
  pad2: u32,
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> values: array<u32>;
@group(0) @binding(2) var<storage, read> rows: array<u32>;
@group(0) @binding(3) var<storage, read> cols: array<u32>;
@group(0) @binding(4) var<storage, read_write> dense: array<u32>;

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let s = p.shape;
  if (t >= s.count) { return; }
  let i = rows[s.row + t];
  let j = cols[s.col + t];
  if (i >= s.rows || j >= s.cols) { return; }
  dense[s.offset + i * s.row_step + j * s.col_step] = values[s.value + t];
}
