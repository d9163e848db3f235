// scatter: writes the entries of a sparse matrix to where they belong in a dense one of any layout, which was filled with
// zeros before. One invocation moves one entry, as bits: the element type does not matter. With pointers (CSC and CSR) it
// looks for the column, or row, that holds its entry by bisection, so that the time does not depend on how the entries are
// spread. With BLOCKS, whole columns, it divides. "Major" is what the pointers or ids count, "minor" the other dimension.
// The structure may be memory of the caller's who changed it: indices out of range are passed over, never written to.
// Workgroups are folded over x and y.
// Reference: scatter in sparse.go.

const SIZE: u32 = 64u; // @param
const BLOCKS: bool = false; // @param

struct Shape {
  count: u32, // entries
  begin: u32, // what the pointers call the first of them
  base: u32, // where the first one's value is bound
  first: u32, // where the first major's pointer is bound
  majors: u32,
  minors: u32,
  offset: u32, // of the result, in elements
  major_step: u32,
  minor_step: u32,
  index: u32, // where the first one's index is bound
  pad1: u32,
  pad2: u32,
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> values: array<u32>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
@group(0) @binding(3) var<storage, read> pointers: array<u32>;
@group(0) @binding(4) var<storage, read_write> dense: array<u32>;

// owner returns the last of the majors that begins at entry q or before it.
fn owner(q: u32) -> u32 {
  var lo = 0u;
  var hi = p.shape.majors;
  while (hi - lo > 1u) {
    let mid = lo + (hi - lo) / 2u;
    if (pointers[p.shape.first + mid] <= q) { lo = mid; } else { hi = mid; }
  }
  return lo;
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let s = p.shape;
  if (t >= s.count) { return; }
  var major = 0u;
  var minor = 0u;
  if (BLOCKS) {
    let block = t / s.minors;
    major = indices[block];
    minor = t - block * s.minors;
  } else {
    major = owner(s.begin + t);
    minor = indices[s.index + t];
  }
  if (major >= s.majors || minor >= s.minors) { return; }
  dense[s.offset + major * s.major_step + minor * s.minor_step] = values[s.base + t];
}
