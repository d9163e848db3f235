// pairs: what rotate does, one invocation for each two rows, with neither barriers nor workgroup memory. The family for software
// adapters. Rows are whole vectors; what fills them up is 0.
// Reference: rotate in factorref.go.

const SIZE: u32 = 16u; // @param

struct Shape {
  rows: u32,
  inner: u32, // elements of a row that are compared
  cols: u32,
  stride: u32,
  offset: u32,
  blocks: u32, // rows, or one more: an even number
  round: u32, // of the sweep
  sweep: u32,
  marks: u32, // of the row of marks
  near: u32, // the bits of the cosine of rows that are orthogonal enough
  pad0: u32,
  pad1: u32,
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;

fn total(x: vec4<f32>) -> f32 { return (x.x + x.y) + (x.z + x.w); }

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let k = (group.x + group.y * groups.x) * SIZE + local;
  if (k >= s.blocks >> 1u) { return; }
  let marks = s.marks >> 2u;
  if (s.sweep > 0u && w[marks + max(s.sweep, 1u) - 1u].x == 0.0) { return; }
  // The last row stays where it is, the others turn round a circle.
  let circle = s.blocks - 1u;
  let first = select((s.round + k) % circle, circle, k == 0u);
  let second = (s.round + circle - k) % circle;
  if (max(first, second) >= s.rows) { return; }
  let a = (s.offset + min(first, second) * s.stride) >> 2u;
  let b = (s.offset + max(first, second) * s.stride) >> 2u;
  var aa = vec4<f32>();
  var bb = vec4<f32>();
  var ab = vec4<f32>();
  let inner = (s.inner + 3u) >> 2u;
  for (var j = 0u; j < inner; j++) {
    let u = w[a + j];
    let v = w[b + j];
    aa += u * u;
    bb += v * v;
    ab += u * v;
  }
  let x = total(aa);
  let y = total(bb);
  let z = total(ab);
  if (!(abs(z) > bitcast<f32>(s.near) * sqrt(x) * sqrt(y))) { return; }
  w[marks + s.sweep] = vec4<f32>(1.0);
  let zeta = (y - x) / (2.0 * z);
  let size = abs(zeta);
  let tangent = select(1.0, -1.0, zeta < 0.0) * select(1.0 / (size + sqrt(1.0 + size * size)), 0.5 / size, size > 1.0e9);
  let guess = 1.0 / sqrt(1.0 + tangent * tangent);
  // A step of Newton's takes out what sqrt and division are off, which would add up over thousands of rotations.
  let cosine = guess * (1.5 - 0.5 * guess * guess * (1.0 + tangent * tangent));
  let sine = cosine * tangent;
  // Rutishauser's form adds corrections: of small angles the cosine is rounded to 1, and the rows would grow.
  let tau = sine / (1.0 + cosine);
  let all = (s.cols + 3u) >> 2u;
  for (var j = 0u; j < all; j++) {
    let u = w[a + j];
    let v = w[b + j];
    w[a + j] = u - sine * (v + tau * u);
    w[b + j] = v + sine * (u - tau * v);
  }
}
