// take: writes the elements of each row of a function of a matrix in the order of indices, or with INDEX the indices. There may be
// fewer columns than indices.
// Reference: sortTake in sort.go.

const SIZE: u32 = 64u; // @param
const INDEX: bool = false; // @param

struct Shape {
  rows: u32,
  cols: u32,
  width: u32,
  stride: u32, // of the rows of indices, which come after those of keys
}

@group(0) @binding(1) var<storage, read> keys: array<u32>;

// @fuse
alias T = f32;
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read_write> s0: array<u32>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[i * p.shape.cols + j] = bitcast<u32>(r.x); }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let i = t / p.shape.cols;
  let j = t - i * p.shape.cols;
  if (i >= p.shape.rows) { return; }
  let f = fixed();
  let at = keys[(i + p.shape.rows) * p.shape.stride + j];
  if (INDEX) {
    store(f, i, j, 1u, V(T(at)));
  } else {
    store(f, i, j, 1u, V(apply(f, i, at & 0xfffffffcu, V())[at & 3u]));
  }
}
