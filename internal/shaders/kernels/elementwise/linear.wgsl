// linear: applies a function to a matrix whose operands and result are all contiguous in the same order, as one long row.
// An invocation computes EACH vectors of four, SIZE vectors apart, so that neighbouring invocations touch neighbouring memory.
// Workgroups are folded over x and y. TAIL is set when the number of elements is no multiple of 4: the last vector is then written
// in part.
// Reference: apply in elementwise.go.

const SIZE: u32 = 256u; // @param
const EACH: u32 = 2u; // @param
const TAIL: bool = true; // @param

struct Shape {
  cols: u32, // elements
  vectors: u32,
  pad0: u32,
  pad1: u32,
}

// @fuse
alias V = vec4<f32>;
struct Params { shape: Shape }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<f32>>;
struct Fixed { at: u32 }
fn fixed() -> Fixed { return Fixed(0u); }
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V { return acc; }
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) { s0[j >> 2u] = r; }
fn assign(f: Fixed, i: u32, j: u32) { s0[j >> 2u] = V(); }
// @end

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let first = (group.x + group.y * groups.x) * (SIZE * EACH) + local;
  let f = fixed();
  for (var n = 0u; n < EACH; n++) { // @unroll
    let q = first + n * SIZE;
    if (q >= p.shape.vectors) { return; }
    let j = q << 2u;
    if (TAIL) {
      store(f, 0u, j, min(p.shape.cols - j, 4u), apply(f, 0u, j, V()));
    } else {
      assign(f, 0u, j);
    }
  } // @unroll
}
