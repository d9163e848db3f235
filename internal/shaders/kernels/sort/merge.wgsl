// merge: merges neighbouring runs of sorted keys, of the given width, in each row; what was first stays first among equal ones. An
// invocation writes some keys that follow one another: it finds by halving how many of both runs come before them, and then takes
// the smaller of the next two again and again. This is the merge path of Odeh, Green, Mwassi, Shmueli and Birk (2012).
// Reference: sortMerge in sort.go.

const SIZE: u32 = 64u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  width: u32,
  stride: u32, // of the rows of keys
  each: u32, // at most twice the width
  pad0: u32,
  pad1: u32,
  pad2: u32,
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
  let cols = p.shape.cols;
  let each = p.shape.each;
  let across = (cols + each - 1u) / each;
  let i = t / across;
  if (i >= p.shape.rows) { return; }
  let start = (t - i * across) * each;
  let f = fixed();
  let row = i * p.shape.stride;
  let indices = (i + p.shape.rows) * p.shape.stride;
  let begin = start / (2u * p.shape.width) * (2u * p.shape.width);
  let middle = min(begin + p.shape.width, cols);
  let end = min(middle + p.shape.width, cols);

  // Of the keys before these, low are of the first run.
  let before = start - begin;
  var low = before - min(before, end - middle);
  var high = min(before, middle - begin);
  while (low < high) {
    let half = (low + high) >> 1u;
    if (keys[row + begin + half] <= keys[row + middle + before - 1u - half]) {
      low = half + 1u;
    } else {
      high = half;
    }
  }
  var a = begin + low;
  var b = middle + before - low;
  let last = cols - 1u; // what is read beyond the end of a run is not used
  var first = keys[row + min(a, last)];
  var second = keys[row + min(b, last)];
  for (var j = start; j < min(start + each, end); j += 4u) {
    var key = vec4<u32>();
    var index = vec4<u32>();
    for (var c = 0u; c < 4u; c++) { // @unroll
      let own = a < middle && (b >= end || first <= second);
      key[c] = select(second, first, own);
      index[c] = keys[indices + min(select(b, a, own), last)];
      a += u32(own);
      b += u32(!own);
      let next = keys[row + min(select(b, a, own), last)];
      first = select(first, next, own);
      second = select(next, second, own);
    } // @unroll
    let n = min(cols - j, 4u);
    store(f, i, j, n, key);
    store(f, i + p.shape.rows, j, n, index);
  }
}
