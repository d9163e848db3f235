// keys: makes whole numbers of the elements of a function of a matrix that are in the elements' order, and below them the indices of
// the columns. NaN is the largest and zeros of both signs are equal. The keys of each vector are sorted already, by comparing
// neighbours, so that what was first stays first among equal ones.
// Reference: sortKeys in sort.go.

const SIZE: u32 = 64u; // @param
const DOWN: bool = false; // @param

struct Shape {
  rows: u32,
  cols: u32,
  width: u32,
  stride: u32,
}

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<u32>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: vec4<u32>) { s0[i * p.shape.cols + j] = r.x; }
fn key(x: V) -> vec4<u32> { return bitcast<vec4<u32>>(x); }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let across = (p.shape.cols + 3u) >> 2u;
  let i = t / across;
  let j = (t - i * across) << 2u;
  if (i >= p.shape.rows) { return; }
  let f = fixed();
  let n = min(p.shape.cols - j, 4u);
  let up = key(apply(f, i, j, V()));
  let inside = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n);
  var keys = select(vec4<u32>(0xffffffffu), select(up, ~up, vec4<bool>(DOWN)), inside);
  var at = vec4<u32>(j, j + 1u, j + 2u, j + 3u);
  for (var turn = 0u; turn < 2u; turn++) {
    let pairs = vec4<bool>(vec2<bool>(keys.x > keys.y), vec2<bool>(keys.z > keys.w));
    at = select(at, at.yxwz, pairs);
    keys = select(keys, keys.yxwz, pairs);
    let middle = vec4<bool>(false, vec2<bool>(keys.y > keys.z), false);
    at = select(at, at.xzyw, middle);
    keys = select(keys, keys.xzyw, middle);
  }
  store(f, i, j, n, keys);
  store(f, i + p.shape.rows, j, n, at);
}
