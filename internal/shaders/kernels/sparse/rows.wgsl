// rows: C = A B for a sparse A, by the rows of A. One invocation computes WIDE neighbouring vectors of a row of C: it walks along the
// row's entries and adds what each takes from the row of B that it names. apply(f, i, j) loads B. Sums are made in blocks,
// which keeps the error of long rows small; their order never varies. The entries of row i are those from pointers[i] to
// pointers[i + 1]: CSR. If PLACED the value of entry q is number places[q]: of columns, whose rows were listed on the host.
//
// A row of more than a chunk of entries was cut on the host into several rows, which the kernel "sum" adds up. The structure
// may be memory of the caller's who changed it: pointers are cut to the entries that there are, entries that name no row of
// B are passed over, and LIMIT bounds a row's turns. Workgroups are folded over x and y.
// Reference: multiplySparse in sparse.go.

const SIZE: u32 = 64u; // @param
const WIDE: u32 = 1u; // @param
const PLACED: bool = false; // @param
const BLOCK: u32 = 32u;
const LIMIT: u32 = 58000u; // and a turn for each block of them: below 60000 together

struct Shape {
  rows: u32, // after cutting
  cols: u32,
  quads: u32, // vectors in a row of C
  inner: u32, // rows of B
  entries: u32, // of the structure
  base: u32, // where value 0 is bound: before the binding, as a number modulo 2^32, if that begins later
  pad0: u32,
  pad1: u32,
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

// place returns the number of the value of entry q.
fn place(q: u32) -> u32 {
  if (!PLACED) { return q; } // the other way round the binding would be left out
  return places[q];
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let s = p.shape;
  let across = (s.quads + WIDE - 1u) / WIDE;
  let row = t / across;
  let j = (t - row * across) * (4u * WIDE);
  if (row >= s.rows) { return; }
  let first = min(pointers[row], s.entries);
  let last = min(min(pointers[row + 1u], s.entries), first + LIMIT);
  let f = fixed();
  var held = array<V, WIDE>();
  for (var block = first; block < last; block += BLOCK) {
    var sums = array<V, WIDE>();
    let end = min(block + BLOCK, last);
    for (var q = block; q < end; q++) {
      let l = indices[q];
      if (l >= s.inner) { continue; }
      let value = V(values[place(q) + s.base]);
      for (var c = 0u; c < WIDE; c++) { // @unroll
        sums[c] += value * apply(f, l, j + 4u * c, V());
      } // @unroll
    }
    for (var c = 0u; c < WIDE; c++) { // @unroll
      held[c] += sums[c];
    } // @unroll
  }
  for (var c = 0u; c < WIDE; c++) { // @unroll
    let k = j + 4u * c;
    if (k < s.cols) { store(f, row, k, min(s.cols - k, 4u), held[c]); }
  } // @unroll
}
