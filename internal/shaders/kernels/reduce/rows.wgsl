// rows: reduces each row of a function of a matrix. An invocation takes vectors of its row that follow each other, since software
// runs an invocation, or a few side by side, to its end before the next. With more than one part per row the results are partial, and a
// second pass reduces those.
// No workgroup memory and no barriers: the family for software adapters.
// What is folded is S, one or several vectors of four: see state.go, which has the reference, too.

const SIZE: u32 = 64u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  parts: u32, // invocations per row
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

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let parts = p.shape.parts;
  let i = t / parts;
  let part = t - i * parts;
  if (i >= p.shape.rows) { return; }
  let f = fixed();
  let whole = p.shape.cols >> 2u; // vectors without the last, partial one
  var a = identity();
  var b = identity();
  var c = identity();
  var d = identity();
  let chunk = (whole + parts - 1u) / parts;
  var q = min(part * chunk, whole);
  let end = min(q + chunk, whole);
  while (q + 3u < end) {
    a = combine(a, load(f, i, q << 2u));
    b = combine(b, load(f, i, (q + 1u) << 2u));
    c = combine(c, load(f, i, (q + 2u) << 2u));
    d = combine(d, load(f, i, (q + 3u) << 2u));
    q += 4u;
  }
  while (q < end) {
    a = combine(a, load(f, i, q << 2u));
    q++;
  }
  let rest = p.shape.cols & 3u;
  if (rest > 0u && part == parts - 1u) { // somebody takes the partial vector
    b = combine(b, leading(load(f, i, whole << 2u), rest));
  }
  a = combine(combine(a, b), combine(c, d));
  put(f, i, part, 1u, folded(a), p.shape.rows);
}
