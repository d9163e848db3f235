// nbody: the acceleration of each point by the gravity of the first bodies, softened so that a body next to itself or to another does
// not divide by zero. One invocation for each point. It is made to be timed; see NBody.

const bodies = 1024u;

@group(0) @binding(0) var<storage, read> position: array<vec4<f32>>; // and the mass
@group(0) @binding(1) var<storage, read_write> acceleration: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= arrayLength(&position)) {
    return;
  }
  let here = position[id.x].xyz;
  var sum = vec3<f32>(0.0, 0.0, 0.0);
  for (var i = 0u; i < bodies; i++) {
    let body = position[i];
    let d = body.xyz - here;
    let r = inverseSqrt(dot(d, d) + 0.001);
    sum = sum + d * (body.w * r * r * r);
  }
  acceleration[id.x] = vec4<f32>(sum, 0.0);
}
