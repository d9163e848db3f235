// rotate: makes rows of a matrix orthogonal to each other, two by two, by Jacobi rotations of rows (Hestenes 1958); rotations apply to
// whole rows, of which only the first elements are compared. A round has every block of rows meet one other, in the order of a
// tournament, one workgroup for each meeting, so that no row is in two; a sweep is as many rounds as there are blocks, less one.
// Once nothing was rotated in a sweep, later ones end at once: each leaves a mark in a row of the matrix that is below the others,
// four elements apart.
// Reference: rotate in factorref.go.

const SIZE: u32 = 64u; // @param
const EACH: u32 = 4u; // @param

struct Shape {
  rows: u32,
  inner: u32, // elements of a row that are compared
  cols: u32,
  stride: u32,
  offset: u32,
  blocks: u32, // an even number
  round: u32, // of the sweep
  sweep: u32,
  marks: u32, // of the row of marks
  near: u32, // the bits of the cosine of rows that are orthogonal enough
  pad1: u32,
  pad2: u32,
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;

var<workgroup> sums: array<vec3<f32>, SIZE>;
var<workgroup> over: u32;

// meet rotates two rows.
fn meet(x: u32, y: u32, local: u32) {
  let s = p.shape;
  let a = s.offset + x * s.stride;
  let b = s.offset + y * s.stride;
  var sum = vec3<f32>();
  for (var j = local; j < s.inner; j += SIZE) {
    let u = w[a + j];
    let v = w[b + j];
    sum += vec3<f32>(u * u, v * v, u * v);
  }
  sums[local] = sum;
  workgroupBarrier();
  for (var n = SIZE >> 1u; n > 0u; n = n >> 1u) {
    if (local < n) { sums[local] += sums[local + n]; }
    workgroupBarrier();
  }
  let all = sums[0];
  workgroupBarrier();
  if (abs(all.z) > bitcast<f32>(s.near) * sqrt(all.x) * sqrt(all.y)) {
    if (local == 0u) { w[s.marks + 4u * s.sweep] = 1.0; }
    let zeta = (all.y - all.x) / (2.0 * all.z);
    let size = abs(zeta);
    let tangent = select(1.0, -1.0, zeta < 0.0) * select(1.0 / (size + sqrt(1.0 + size * size)), 0.5 / size, size > 1.0e9);
    let guess = 1.0 / sqrt(1.0 + tangent * tangent);
    // A step of Newton's takes out what sqrt and division are off, which would add up over thousands of rotations.
    let cosine = guess * (1.5 - 0.5 * guess * guess * (1.0 + tangent * tangent));
    let sine = cosine * tangent;
    // Rutishauser's form adds corrections: of small angles the cosine is rounded to 1, and the rows would grow.
    let tau = sine / (1.0 + cosine);
    for (var j = local; j < s.cols; j += SIZE) {
      let u = w[a + j];
      let v = w[b + j];
      w[a + j] = u - sine * (v + tau * u);
      w[b + j] = v + sine * (u - tau * v);
    }
  }
  storageBarrier();
  workgroupBarrier();
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let k = group.x + group.y * groups.x;
  if (k >= s.blocks >> 1u) { return; }
  if (local == 0u) { over = select(0u, 1u, s.sweep > 0u && w[s.marks + 4u * (max(s.sweep, 1u) - 1u)] == 0.0); }
  if (workgroupUniformLoad(&over) == 1u) { return; }
  // The last block stays where it is, the others turn round a circle.
  let circle = s.blocks - 1u;
  let first = select((s.round + k) % circle, circle, k == 0u) * EACH;
  let second = (s.round + circle - k) % circle * EACH;
  for (var x = 0u; x < EACH; x++) {
    if (s.round == 0u) {
      for (var y = x + 1u; y < EACH; y++) {
        if (first + y < s.rows) { meet(first + x, first + y, local); }
        if (second + y < s.rows) { meet(second + x, second + y, local); }
      }
    }
    for (var y = 0u; y < EACH; y++) {
      let i = min(first + x, second + y);
      let j = max(first + x, second + y);
      if (j < s.rows) { meet(i, j, local); }
    }
  }
}
