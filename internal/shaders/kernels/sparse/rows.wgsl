// rows: C = A B for a sparse A, by the rows of A. One invocation computes four neighbours of a row of C: it walks along the
// row's entries and adds what each takes from the row of B that it names. apply(f, i, j) loads B. Sums are made in blocks,
// which keeps the error of long rows small; their order never varies. FORM tells where the entries of a row are:
//
//   0  one after the other, from pointers[i] to pointers[i + 1]: CSR
//   1  likewise, but the value of entry q is number places[q]: CSC, whose rows were listed on the host
//   2  one in each block: value q * high + i is that of block q in row i
//
// A row of more than a chunk of entries was cut on the host into several rows, which the kernel "sum" adds up. The structure
// may be memory of the caller's who changed it: pointers are cut to the entries that there are, entries that name no row of
// B are passed over, and LIMIT bounds a row's turns. Workgroups are folded over x and y.
// Reference: multiplySparse in sparse.go.

const SIZE: u32 = 64u; // @param
const FORM: u32 = 0u; // @param
const BLOCK: u32 = 32u;
const LIMIT: u32 = 58000u; // and a turn for each block of them: below 60000 together

struct Shape {
  rows: u32, // after cutting
  cols: u32,
  quads: u32, // vectors in a row of C
  inner: u32, // rows of B
  entries: u32, // of the structure; blocks in form 2
  base: u32, // where value 0 is bound: before the binding, as a number modulo 2^32, if that begins later
  high: u32, // form 2: rows of A
  parts: u32, // form 2: rows that each row of A was cut into
  chunk: u32, // form 2: blocks in each of them
  pad0: u32,
  pad1: u32,
  pad2: u32,
}
@group(0) @binding(1) var<storage, read> values: array<T>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
@group(0) @binding(3) var<storage, read> pointers: array<u32>;
@group(0) @binding(4) var<storage, read> places: array<u32>;

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(5) var<storage, read_write> s0: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> s1: array<vec4<f32>>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return s1[i * p.shape.quads + (j >> 2u)]; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[i * p.shape.quads + (j >> 2u)] = r; }
// @end

// place returns the number of the value of entry q of row i.
fn place(q: u32, i: u32, high: u32) -> u32 {
  if (FORM == 1u) { return places[q]; }
  if (FORM == 2u) { return q * high + i; }
  return q;
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let s = p.shape;
  let row = t / s.quads;
  let j = 4u * (t - row * s.quads);
  if (row >= s.rows) { return; }
  var i = row;
  var first = 0u;
  var last = 0u;
  if (FORM == 2u) {
    i = row / s.parts;
    first = (row - i * s.parts) * s.chunk;
    last = min(first + s.chunk, s.entries);
  } else {
    first = min(pointers[row], s.entries);
    last = min(pointers[row + 1u], s.entries);
  }
  last = min(last, first + LIMIT);
  let f = fixed();
  var held = V();
  for (var block = first; block < last; block += BLOCK) {
    var acc = V();
    let end = min(block + BLOCK, last);
    for (var q = block; q < end; q++) {
      let l = indices[q];
      if (l < s.inner) { acc += V(values[place(q, i, s.high) + s.base]) * apply(f, l, j, V()); }
    }
    held += acc;
  }
  store(f, row, j, min(s.cols - j, 4u), held);
}
