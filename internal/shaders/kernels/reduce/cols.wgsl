// cols: reduces each column of a function of a matrix. An invocation takes WIDE vectors of neighbouring columns and every
// parts-th row; with more than one part the results are partial, one row for each part, and a second pass reduces those.
// Neighbours read neighbours and there is nothing to share, so that it serves all adapters; software ones are the faster
// the more of a row an invocation reads at once. Rows are reduced in blocks, which keeps the error of long sums small.
// What is folded is S, one or several vectors of four: see state.go, which has the reference, too.

const SIZE: u32 = 64u; // @param
const WIDE: u32 = 1u; // @param
const BLOCK: u32 = 64u;

struct Shape {
  rows: u32,
  cols: u32,
  parts: u32, // invocations for a column
  wide: u32, // vectors of a row
  down: u32, // indices, of a row and of a column
  along: u32,
  number: u32, // the bits of the number that a result is finished with
  pad1: u32,
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
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[i * p.shape.wide + (j >> 2u)] = r; }
alias S = V;
fn identity() -> S { return S(); }
fn load(f: Fixed, i: u32, j: u32) -> S { return apply(f, i, j, V()); }
fn combine(x: S, y: S) -> S { return x + y; }
fn leading(s: S, n: u32) -> S { return select(identity(), s, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }
fn folded(s: S) -> S { return V(s.x + s.y + s.z + s.w); }
fn put(f: Fixed, i: u32, j: u32, n: u32, s: S, height: u32) { store(f, i, j, n, s); }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let across = (p.shape.wide + WIDE - 1u) / WIDE;
  let part = t / across;
  let j = (t - part * across) * (4u * WIDE);
  if (part >= p.shape.parts) { return; }
  let f = fixed();
  var held: array<S, WIDE>;
  for (var c = 0u; c < WIDE; c++) { // @unroll
    held[c] = identity();
  } // @unroll
  let step = p.shape.parts;
  for (var first = part; first < p.shape.rows; first += BLOCK * step) {
    var block: array<S, WIDE>;
    for (var c = 0u; c < WIDE; c++) { // @unroll
      block[c] = identity();
    } // @unroll
    let end = min(first + BLOCK * step, p.shape.rows);
    for (var i = first; i < end; i += step) {
      for (var c = 0u; c < WIDE; c++) { // @unroll
        block[c] = combine(block[c], load(f, i, j + 4u * c));
      } // @unroll
    }
    for (var c = 0u; c < WIDE; c++) { // @unroll
      held[c] = combine(held[c], block[c]);
    } // @unroll
  }
  for (var c = 0u; c < WIDE; c++) { // @unroll
    let k = j + 4u * c;
    if (k < p.shape.cols) { put(f, part, k, min(p.shape.cols - k, 4u), held[c], p.shape.parts); }
  } // @unroll
}
