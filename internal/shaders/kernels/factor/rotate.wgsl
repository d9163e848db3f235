// rotate: makes rows of a matrix orthogonal to each other by a round of one-sided Jacobi rotations (Hestenes, J. SIAM 6(1), 1958) in
// blocks of four rows (Golub and Van Loan, Matrix Computations, 8.5.6 and 8.6.4). A round has every block meet one other, in the order
// of a tournament; a sweep is as many rounds as there are blocks, less one. Two blocks that meet make the matrix of the inner products
// of their eight rows. One cyclic sweep of rotations of that small matrix, four at once, gives the orthogonal factor by which the rows
// are multiplied: they are read twice and written once for 28 rotations.
// Once a sweep has rotated nothing, later ones end at once: each sweep leaves a mark in a row below the others, four elements apart.
// Hardware has many invocations for each meeting, which share its columns; software adapters have one, because barriers are slow there.
// Reference: rotate in factorref.go.

const PAIRS: u32 = 1u; // @param
const LANES: u32 = 64u; // @param
const SIZE: u32 = PAIRS * LANES;

struct Shape {
  blocks: u32, // an even number
  cols: u32, // vectors of a row
  stride: u32, // this and the places are in elements
  offset: u32,
  marks: u32, // of the row of marks
  round: u32, // of the sweep
  sweep: u32,
  near: u32, // the bits of the cosine of rows that are orthogonal enough
}
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> w: array<vec4<f32>>;

// Eight is a matrix of eight rows and columns. Its rows are those at the top and those at the bottom, and so are its columns; the
// matrices have columns of rows.
struct Eight {
  tt: mat4x4<f32>,
  tb: mat4x4<f32>, // top rows, bottom columns
  bt: mat4x4<f32>,
  bb: mat4x4<f32>,
}

var<workgroup> sums: array<array<mat4x4<f32>, 3>, SIZE>;

fn diagonal(m: mat4x4<f32>) -> vec4<f32> { return vec4<f32>(m[0].x, m[1].y, m[2].z, m[3].w); }

fn scaled(s: vec4<f32>, m: mat4x4<f32>) -> mat4x4<f32> { return mat4x4<f32>(s * m[0], s * m[1], s * m[2], s * m[3]); }

fn transposed(m: Eight) -> Eight { return Eight(transpose(m.tt), transpose(m.bt), transpose(m.tb), transpose(m.bb)); }

// change is what rotations of each top row with the bottom row of the same number add to rows, in Rutishauser's form, which keeps
// their length where the cosine of a small angle is rounded to 1.
fn change(m: Eight, sine: vec4<f32>, tau: vec4<f32>) -> Eight {
  return Eight(
    scaled(-sine, m.bt + scaled(tau, m.tt)), scaled(-sine, m.bb + scaled(tau, m.tb)),
    scaled(sine, m.tt - scaled(tau, m.bt)), scaled(sine, m.tb - scaled(tau, m.bb)));
}

fn add(a: Eight, b: Eight) -> Eight { return Eight(a.tt + b.tt, a.tb + b.tb, a.bt + b.bt, a.bb + b.bb); }

// The first stays where it is, the others turn round a circle.
fn top(t: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return vec4<f32>(t.x, b.x, t.y, t.z); }
fn bottom(t: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return vec4<f32>(b.y, b.z, b.w, t.w); }

// turned has rows and columns in the order of the next round.
fn turned(m: Eight) -> Eight {
  return Eight(
    mat4x4<f32>(top(m.tt[0], m.bt[0]), top(m.tb[0], m.bb[0]), top(m.tt[1], m.bt[1]), top(m.tt[2], m.bt[2])),
    mat4x4<f32>(top(m.tb[1], m.bb[1]), top(m.tb[2], m.bb[2]), top(m.tb[3], m.bb[3]), top(m.tt[3], m.bt[3])),
    mat4x4<f32>(bottom(m.tt[0], m.bt[0]), bottom(m.tb[0], m.bb[0]), bottom(m.tt[1], m.bt[1]), bottom(m.tt[2], m.bt[2])),
    mat4x4<f32>(bottom(m.tb[1], m.bb[1]), bottom(m.tb[2], m.bb[2]), bottom(m.tb[3], m.bb[3]), bottom(m.tt[3], m.bt[3])));
}

fn read(at: u32) -> mat4x4<f32> {
  let stride = p.shape.stride >> 2u;
  return mat4x4<f32>(w[at], w[at + stride], w[at + 2u * stride], w[at + 3u * stride]);
}

fn write(at: u32, m: mat4x4<f32>) {
  let stride = p.shape.stride >> 2u;
  w[at] = m[0];
  w[at + stride] = m[1];
  w[at + 2u * stride] = m[2];
  w[at + 3u * stride] = m[3];
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let s = p.shape;
  let k = (group.x + group.y * groups.x) * PAIRS + local / LANES;
  let lane = local % LANES;
  let done = s.sweep > 0u && w[(s.marks >> 2u) + max(s.sweep, 1u) - 1u].x == 0.0;
  let cols = select(s.cols, 0u, done || k >= s.blocks >> 1u);
  // The last block stays where it is, the others turn round a circle. Four rows of so many elements are as many vectors.
  let circle = s.blocks - 1u;
  let a = (s.offset >> 2u) + s.stride * select((s.round + k) % circle, circle, k == 0u);
  let b = (s.offset >> 2u) + s.stride * ((s.round + circle - k % circle) % circle);
  var tt = mat4x4<f32>();
  var tb = mat4x4<f32>();
  var bb = mat4x4<f32>();
  for (var j = lane; j < cols; j += LANES) {
    let t = read(a + j);
    let u = read(b + j);
    let across = transpose(t);
    tt += across * t;
    tb += across * u;
    bb += transpose(u) * u;
  }
  if (LANES > 1u) {
    sums[local] = array<mat4x4<f32>, 3>(tt, tb, bb);
    workgroupBarrier();
    for (var n = LANES >> 1u; n > 0u; n = n >> 1u) {
      if (lane < n) {
        sums[local][0] += sums[local + n][0];
        sums[local][1] += sums[local + n][1];
        sums[local][2] += sums[local + n][2];
      }
      workgroupBarrier();
    }
    tt = sums[local - lane][0];
    tb = sums[local - lane][1];
    bb = sums[local - lane][2];
  }
  var g = Eight(tt, tb, transpose(tb), bb);
  var q = Eight(mat4x4<f32>(), mat4x4<f32>(), mat4x4<f32>(), mat4x4<f32>()); // the factor, less the identity
  let zero = mat4x4<f32>();
  let one = mat4x4<f32>(1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0);
  let unit = Eight(one, zero, zero, one);
  var rotated = false;
  for (var turn = 0u; turn < 7u; turn++) {
    let x = diagonal(g.tt);
    let y = diagonal(g.bb);
    let z = diagonal(g.tb);
    let far = abs(z) > bitcast<f32>(s.near) * sqrt(x) * sqrt(y);
    rotated = rotated || any(far);
    let zeta = (y - x) / (2.0 * z);
    let size = abs(zeta);
    let least = select(1.0 / (size + sqrt(1.0 + size * size)), 0.5 / size, size > vec4<f32>(1.0e9));
    let tangent = select(vec4<f32>(), select(least, -least, zeta < vec4<f32>()), far);
    let guess = 1.0 / sqrt(1.0 + tangent * tangent);
    // A step of Newton's takes out what sqrt and division are off, which would add up over thousands of rotations.
    let cosine = guess * (1.5 - 0.5 * guess * guess * (1.0 + tangent * tangent));
    let sine = cosine * tangent;
    let tau = sine / (1.0 + cosine);
    q = turned(add(q, change(add(unit, q), sine, tau)));
    g = transposed(add(g, change(g, sine, tau)));
    g = turned(add(g, change(g, sine, tau)));
  }
  if (cols == 0u || !rotated) { return; }
  if (lane == 0u) { w[(s.marks >> 2u) + s.sweep] = vec4<f32>(1.0); }
  let f = transposed(q);
  for (var j = lane; j < cols; j += LANES) {
    let t = read(a + j);
    let u = read(b + j);
    let above = t + (t * f.tt + u * f.bt);
    let below = u + (t * f.tb + u * f.bb);
    write(a + j, above);
    write(b + j, below);
  }
}
