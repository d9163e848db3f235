// parts: folds chunks of each row of a function of a matrix, for what comes after them to begin with.
// Reference: scanParts in scan.go.

const SIZE: u32 = 64u; // @param
const CHUNK: u32 = 256u;

struct Shape {
  rows: u32,
  cols: u32,
  parts: u32, // chunks of a row
  stride: u32, // of the rows of what the chunks begin with
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
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[i * p.shape.cols + j] = r.x; }
fn identity() -> T { return T(); }
fn combine(x: T, y: T) -> T { return x + y; }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let chunk = t / p.shape.rows; // neighbours take neighbouring rows, which sums down columns lie side by side in
  let i = t - chunk * p.shape.rows;
  if (chunk >= p.shape.parts) { return; }
  let f = fixed();
  let end = min((chunk + 1u) * CHUNK, p.shape.cols);
  var held = identity();
  for (var j = chunk * CHUNK; j < end; j += 4u) {
    let x = apply(f, i, j, V());
    held = combine(held, x.x);
    if (j + 1u < end) { held = combine(held, x.y); }
    if (j + 2u < end) { held = combine(held, x.z); }
    if (j + 3u < end) { held = combine(held, x.w); }
  }
  store(f, i, chunk, 1u, V(held));
}
