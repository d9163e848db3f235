// words: applies a function whose result is binary16 in a layout that is not aligned to vectors. Two elements share a
// word of 32 bits and may belong to different rows, or one of them to nobody here, so an invocation owns a word: it
// computes what lies in it and keeps the rest. Workgroups are folded over x and y.
// Reference: apply in elementwise.go.

const SIZE: u32 = 64u; // @param

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
// @end

// value returns the new value of element e of the buffer, or old where it is not the result's.
fn value(e: u32, old: f32) -> f32 {
  let v = p.views[0];
  if (e < v.x) { return old; }
  let at = e - v.x;
  let i = at / v.y;
  let j = at - i * v.y;
  if (i >= p.shape.rows || j >= p.shape.cols) { return old; }
  return apply(fixed(), i, j, V()).x;
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let n = (group.x + group.y * groups.x) * SIZE + local;
  if (n >= p.shape.words) { return; }
  let w = (p.views[0].x >> 1u) + n;
  let old = unpack2x16float(s0[w]);
  let e = w << 1u;
  s0[w] = pack2x16float(vec2<f32>(value(e, old.x), value(e + 1u, old.y)));
}
