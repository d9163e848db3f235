// merge: merges neighbouring runs of sorted keys, of the given width, in each row; what was first stays first among equal ones. An
// invocation finds the place of one key: where it is in its own run, and by halving in the other one.
// Reference: sortMerge in sort.go.

const SIZE: u32 = 64u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  width: u32,
  stride: u32, // of the rows of keys
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
fn store(f: Fixed, i: u32, j: u32, n: u32, r: vec4<u32>) { s0[i * p.shape.cols + j] = r.x; }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let t = (group.x + group.y * groups.x) * SIZE + local;
  let i = t / p.shape.cols;
  let j = t - i * p.shape.cols;
  if (i >= p.shape.rows) { return; }
  let f = fixed();
  let row = i * p.shape.stride;
  let own = j / p.shape.width * p.shape.width; // where the run begins
  let second = ((j / p.shape.width) & 1u) == 1u;
  let other = select(own + p.shape.width, own - p.shape.width, second);
  let key = keys[row + j];
  var low = min(other, p.shape.cols);
  let begin = low;
  var high = min(other + p.shape.width, p.shape.cols);
  while (low < high) { // how many of the other run come first
    let middle = (low + high) >> 1u;
    let at = keys[row + middle];
    if (at < key || (second && at == key)) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  let to = min(own, other) + (j - own) + (low - begin);
  store(f, i, to, 1u, vec4<u32>(key));
  store(f, i + p.shape.rows, to, 1u, vec4<u32>(keys[(i + p.shape.rows) * p.shape.stride + j]));
}
