// hard: 1 at the element whose index the function gives, and 0 elsewhere: for each row, or for all elements. What is stored is bits.
// Reference: oneHot in hardmax.go.

const SIZE: u32 = 64u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  down: u32, // indices, of a row and of a column
  along: u32,
  one: u32, // the bits of 1
  pad0: u32,
  pad1: u32,
  pad2: u32,
}

// @fuse
alias T = i32;
alias V = vec4<i32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<u32>>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: vec4<u32>) { s0[(i * p.shape.cols + j) >> 2u] = r; }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let across = (p.shape.cols + 3u) >> 2u;
  let i = t / across;
  let j = (t - i * across) << 2u;
  if (i >= p.shape.rows) { return; }
  let f = fixed();
  let at = vec4<u32>(i * p.shape.down + j * p.shape.along) + vec4<u32>(0u, 1u, 2u, 3u) * p.shape.along;
  let chosen = vec4<u32>(apply(f, i, j, V())) == at;
  store(f, i, j, min(p.shape.cols - j, 4u), select(vec4<u32>(), vec4<u32>(p.shape.one), chosen));
}
