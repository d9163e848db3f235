// chunks: the running sums or products of each row of a function of a matrix, chunk by chunk. What was folded up to the end of every
// chunk is there already.
// Reference: scan in scan.go.

const SIZE: u32 = 64u; // @param
const CHUNK: u32 = 256u;

struct Shape {
  rows: u32,
  cols: u32,
  parts: u32, // chunks of a row
  stride: u32, // of the rows of what the chunks begin with
}

@group(0) @binding(1) var<storage, read> before: array<u32>;

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read_write> s0: array<f32>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[i * p.shape.cols + j] = r.x; }
fn value(bits: u32) -> T { return bitcast<T>(bits); }
fn identity() -> T { return T(); }
fn combine(x: T, y: T) -> T { return x + y; }
// @end

fn begin(i: u32, chunk: u32) -> T {
  if (chunk == 0u) { return identity(); }
  return value(before[i * p.shape.stride + chunk - 1u]);
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let chunk = t / p.shape.rows; // neighbours take neighbouring rows, which sums down columns lie side by side in
  let i = t - chunk * p.shape.rows;
  if (chunk >= p.shape.parts) { return; }
  let f = fixed();
  let end = min((chunk + 1u) * CHUNK, p.shape.cols);
  var held = begin(i, chunk);
  for (var j = chunk * CHUNK; j < end; j += 4u) {
    let x = apply(f, i, j, V());
    let a = combine(held, x.x);
    let b = combine(a, x.y);
    let c = combine(b, x.z);
    held = combine(c, x.w);
    store(f, i, j, min(end - j, 4u), V(a, b, c, held));
  }
}
