// words: applies a function whose result is packed, in a layout that is not aligned to vectors. Several elements share a
// word of 32 bits and may belong to different rows, or some of them to nobody here, so an invocation owns a word: it
// computes what lies in it and keeps the rest. Workgroups are folded over x and y.
// Reference: apply in elementwise.go.

const SIZE: u32 = 64u; // @param
// How many elements a word holds.
const EACH: u32 = 2u; // @param

struct Shape {
  rows: u32,
  cols: u32,
  words: u32, // how many words the result spans
  pad0: u32,
}

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape, views: array<vec4<u32>, 1> }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<u32>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn inserted(word: u32, k: u32, v: f32) -> u32 { return word; }
// @end

// element puts element e of the buffer into its word, number k of it, if it is the result's.
fn element(word: u32, e: u32, k: u32) -> u32 {
  let v = p.views[0];
  if (e < v.x) { return word; }
  let at = e - v.x;
  let i = at / v.y;
  let j = at - i * v.y;
  if (i >= p.shape.rows || j >= p.shape.cols) { return word; }
  return inserted(word, k, apply(fixed(), i, j, V()).x);
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let n = (group.x + group.y * groups.x) * SIZE + local;
  if (n >= p.shape.words) { return; }
  let w = p.views[0].x / EACH + n;
  var word = s0[w];
  for (var k = 0u; k < EACH; k++) { word = element(word, w * EACH + k, k); }
  s0[w] = word;
}
