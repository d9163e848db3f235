// rows: the softmax of each row of a function of a matrix, one invocation per row: the largest element first, then the
// exponentials and their sum, then the quotients. Reads and writes of a row stay in the cache. No workgroup memory and no
// barriers: the family for software adapters. With LOG the logarithm of the softmax. With KEEP the exponentials wait in
// the result for their division; without, where the result would round them, they are computed twice.
// Each invocation reads an element before it writes it, so that the result may take an operand's place.
// Reference: twin in softmax.go.

const SIZE: u32 = 16u; // @param
const LOG: bool = false; // @param
const KEEP: bool = true; // @param

struct Shape {
  rows: u32,
  cols: u32,
  pad0: u32,
  pad1: u32,
}

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<f32>>;
fn apply(i: u32, j: u32, acc: V) -> V { return acc; }
fn store(i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.cols + j) >> 2u] = r; }
fn reload(i: u32, j: u32) -> V { return s0[(i * p.shape.cols + j) >> 2u]; }
fn power(x: V) -> V { return exp(x); }
// @end

// lanes of the vector at j that belong to the row
fn lanes(j: u32) -> vec4<bool> { return vec4<u32>(j, j + 1u, j + 2u, j + 3u) < vec4<u32>(p.shape.cols); }

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (group.x + group.y * groups.x) * SIZE + local;
  if (i >= p.shape.rows) { return; }
  let cols = p.shape.cols;
  let whole = cols & 0xfffffffcu;

  // The partial vector comes first, its missing lanes filled with the row's first element.
  let first = apply(i, 0u, V()).x;
  var m = V(first);
  if (whole < cols) { m = select(m, apply(i, whole, V()), lanes(whole)); }
  for (var j = 0u; j < whole; j += 4u) {
    let x = apply(i, j, V());
    m = select(m, x, x > m);
  }
  let top = max(max(m.x, m.y), max(m.z, m.w));

  var sum = V();
  for (var j = 0u; j < whole; j += 4u) {
    let e = power(apply(i, j, V()) - top);
    if (KEEP && !LOG) { store(i, j, 4u, e); }
    sum += e;
  }
  if (whole < cols) {
    let e = power(apply(i, whole, V()) - top);
    if (KEEP && !LOG) { store(i, whole, cols - whole, e); }
    sum += select(V(), e, lanes(whole));
  }
  let total = sum.x + sum.y + sum.z + sum.w;

  if (LOG) {
    let shift = top + log(total);
    for (var j = 0u; j < cols; j += 4u) {
      store(i, j, min(cols - j, 4u), apply(i, j, V()) - shift);
    }
  } else if (KEEP) {
    let scale = 1.0 / total;
    for (var j = 0u; j < cols; j += 4u) {
      store(i, j, min(cols - j, 4u), reload(i, j) * scale);
    }
  } else {
    let scale = 1.0 / total;
    for (var j = 0u; j < cols; j += 4u) {
      store(i, j, min(cols - j, 4u), power(apply(i, j, V()) - top) * scale);
    }
  }
}
