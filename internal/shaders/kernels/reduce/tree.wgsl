// tree: reduces each row of a function of a matrix, a workgroup or several of them for each row: every invocation takes
// vectors at the distance of all of them, then the workgroup halves what it holds until one is left. With more than one
// workgroup per row the results are partial, and a second pass reduces those. The family for hardware.
// Reference: fold in reduce.go.

const SIZE: u32 = 256u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  parts: u32, // workgroups per row
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

var<workgroup> held: array<V, SIZE>;

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
      a = combine(a, apply(f, i, q << 2u, V()));
      b = combine(b, apply(f, i, (q + step) << 2u, V()));
      q += 2u * step;
    }
    while (q < whole) {
      a = combine(a, apply(f, i, q << 2u, V()));
      q += step;
    }
    if (rest > 0u && q == whole) { // the turn of the partial vector
      let last = apply(f, i, q << 2u, V());
      b = combine(b, select(identity(), last, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(rest)));
    }
  }
  held[local] = combine(a, b);
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) { held[local] = combine(held[local], held[local + n]); }
    workgroupBarrier();
  }
  if (local == 0u && i < p.shape.rows) {
    let r = held[0];
    let h = combine(V(r.x, r.y, r.x, r.y), V(r.z, r.w, r.z, r.w));
    store(f, i, part, 1u, combine(h, V(h.y)));
  }
}
