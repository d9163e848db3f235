// tree: reduces each row of a function of a matrix, a workgroup or several of them for each row: every invocation takes
// vectors at the distance of all of them, then the workgroup halves what it holds until one is left. With more than one
// workgroup per row the results are partial, and a second pass reduces those. The family for hardware.
// What is folded is S, one or several vectors of four: see state.go, which has the reference, too.

const SIZE: u32 = 256u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  parts: u32, // workgroups per row
  pad0: u32,
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
@group(0) @binding(1) var<storage, read_write> s0: array<f32>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[i * p.shape.parts + j] = r.x; }
alias S = V;
fn identity() -> S { return S(); }
fn load(f: Fixed, i: u32, j: u32) -> S { return apply(f, i, j, V()); }
fn combine(x: S, y: S) -> S { return x + y; }
fn leading(s: S, n: u32) -> S { return select(identity(), s, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }
fn folded(s: S) -> S { return V(s.x + s.y + s.z + s.w); }
fn put(f: Fixed, i: u32, j: u32, n: u32, s: S, height: u32) { store(f, i, j, n, s); }
// @end

var<workgroup> held: array<S, SIZE>;

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let g = group.x + group.y * groups.x;
  let i = g / p.shape.parts;
  let part = g - i * p.shape.parts;
  let f = fixed();
  let whole = p.shape.cols >> 2u;
  let rest = p.shape.cols & 3u;
  var a = identity();
  var b = identity();
  if (i < p.shape.rows) {
    let step = p.shape.parts * SIZE;
    var q = part * SIZE + local;
    while (q + step < whole) {
      a = combine(a, load(f, i, q << 2u));
      b = combine(b, load(f, i, (q + step) << 2u));
      q += 2u * step;
    }
    while (q < whole) {
      a = combine(a, load(f, i, q << 2u));
      q += step;
    }
    if (rest > 0u && q == whole) { // the turn of the partial vector
      b = combine(b, leading(load(f, i, q << 2u), rest));
    }
  }
  held[local] = combine(a, b);
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) { held[local] = combine(held[local], held[local + n]); }
    workgroupBarrier();
  }
  if (local == 0u && i < p.shape.rows) {
    put(f, i, part, 1u, folded(held[0]), p.shape.rows);
  }
}
