// sum: finishes a product whose k was cut into parts. One invocation adds the parts of one vector of C and applies the
// function. Workgroups are folded over x and y.
// Reference: addParts in product.go.

const GROUP: u32 = 64u; // @param

struct Shape {
  m: u32,
  n: u32,
  quads: u32, // vectors in a row of the parts
  parts: u32,
}
@group(0) @binding(1) var<storage, read> a: array<V>;

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(2) var<storage, read_write> s0: array<vec4<f32>>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[(i * p.shape.n + j) >> 2u] = r; }
// @end

@compute @workgroup_size(GROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let t = (group.x + group.y * groups.x) * GROUP + local;
  let i = t / s.quads;
  let j = 4u * (t % s.quads);
  if (i >= s.m) { return; }
  let step = s.m * s.quads;
  var acc = V();
  var q = t;
  var x = 0u;
  for (; x + 3u < s.parts; x += 4u) {
    acc += (a[q] + a[q + step]) + (a[q + 2u * step] + a[q + 3u * step]);
    q += 4u * step;
  }
  for (; x < s.parts; x++) {
    acc += a[q];
    q += step;
  }
  let f = fixed();
  store(f, i, j, min(s.n - j, 4u), apply(f, i, j, acc));
}
