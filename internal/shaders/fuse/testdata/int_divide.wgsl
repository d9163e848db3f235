alias T = i32;
alias V = vec4<i32>;
struct Params {
  shape: Shape,
  views: array<vec4<u32>, 3>,
}
@group(0) @binding(0) var<uniform> p: Params;
struct Fixed {
  o: vec4<u32>,
  o0: vec4<u32>,
  o1: vec4<u32>,
}
fn fixed() -> Fixed {
  return Fixed(p.views[0], p.views[1], p.views[2], );
}
@group(0) @binding(1) var<storage, read_write> s0: array<i32>;
fn s0_at(o: u32) -> i32 { return s0[o]; }
fn s0_quad(q: u32) -> vec4<i32> { return vec4<i32>(s0[4u * q], s0[4u * q + 1u], s0[4u * q + 2u], s0[4u * q + 3u]); }
@group(0) @binding(2) var<storage, read> s1: array<i32>;
fn s1_at(o: u32) -> i32 { return s1[o]; }
fn s1_quad(q: u32) -> vec4<i32> { return vec4<i32>(s1[4u * q], s1[4u * q + 1u], s1[4u * q + 2u], s1[4u * q + 3u]); }
@group(0) @binding(3) var<storage, read> s2: array<vec4<f32>>;
fn s2_at(o: u32) -> f32 { return s2[o >> 2u][o & 3u]; }
fn s2_quad(q: u32) -> vec4<f32> { return s2[q]; }
fn load0(f: Fixed, i: u32, j: u32) -> V {
  let v = f.o0;
  return V(s1_at(v.x + i * v.y));
}
fn load1(f: Fixed, i: u32, j: u32) -> vec4<f32> {
  let v = f.o1;
  return s2_quad((v.x + i * v.y + j) >> 2u);
}
fn fused(f: Fixed, i: u32, j: u32, acc: V, x0: V, x1: vec4<f32>) -> V {
  let v0 = x0;
  let v1 = x1;
  let v2 = vec4<f32>(v1);
  let v3 = (v0 / select(v2, V(T(1)), v2 == V()));
  let v4 = select(V(), V(1), v3 > V()) - select(V(), V(1), v3 < V());
  return v4;
}
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V {
  return fused(f, i, j, acc, load0(f, i, j), load1(f, i, j));
}
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) {
  let v = f.o;
  let c = vec4<i32>(r);
  let o = v.x + i * v.y + j * v.z;
  s0[o] = c.x;
  if (n > 1u) { s0[o + v.z] = c.y; }
  if (n > 2u) { s0[o + 2u * v.z] = c.z; }
  if (n > 3u) { s0[o + 3u * v.z] = c.w; }
}
