// rows: reduces each row of a function of a matrix. An invocation takes every parts-th vector of its row, so that
// neighbours read neighbours; with more than one part per row the results are partial, and a second pass reduces those.
// No workgroup memory and no barriers: the family for software adapters.
// Reference: fold in reduce.go.

const SIZE: u32 = 64u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  parts: u32, // invocations per row
  pad0: u32,
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
fn identity() -> V { return V(); }
fn combine(x: V, y: V) -> V { return x + y; }
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
  var q = part;
  let step = parts * 4u;
  while (q + 3u * parts < whole) {
    a = combine(a, apply(f, i, q << 2u, V()));
    b = combine(b, apply(f, i, (q + parts) << 2u, V()));
    c = combine(c, apply(f, i, (q + 2u * parts) << 2u, V()));
    d = combine(d, apply(f, i, (q + 3u * parts) << 2u, V()));
    q += step;
  }
  while (q < whole) {
    a = combine(a, apply(f, i, q << 2u, V()));
    q += parts;
  }
  let rest = p.shape.cols & 3u;
  if (rest > 0u && q == whole) { // the turn of the partial vector
    let last = apply(f, i, q << 2u, V());
    b = combine(b, select(identity(), last, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(rest)));
  }
  a = combine(combine(a, b), combine(c, d));
  let h = combine(V(a.x, a.y, a.x, a.y), V(a.z, a.w, a.z, a.w));
  store(f, i, part, 1u, combine(h, V(h.y)));
}
