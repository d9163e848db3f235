alias T = f32;
alias V = vec4<f32>;
struct Params {
  shape: Shape,
  views: array<vec4<u32>, 3>,
  scalars: array<vec4<u32>, 1>,
}
@group(0) @binding(0) var<uniform> p: Params;
struct Fixed {
  o: vec4<u32>,
  o0: vec4<u32>,
  o1: vec4<u32>,
  c0: f32,
}
fn fixed() -> Fixed {
  return Fixed(p.views[0], p.views[1], p.views[2], bitcast<f32>(p.scalars[0].x), );
}
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<f32>>;
fn s0_at(o: u32) -> f32 { return s0[o >> 2u][o & 3u]; }
fn s0_quad(q: u32) -> vec4<f32> { return s0[q]; }
@group(0) @binding(2) var<storage, read> s1: array<vec4<f32>>;
fn s1_at(o: u32) -> f32 { return s1[o >> 2u][o & 3u]; }
fn s1_quad(q: u32) -> vec4<f32> { return s1[q]; }
@group(0) @binding(3) var<storage, read> s2: array<f32>;
fn s2_at(o: u32) -> f32 { return s2[o]; }
fn s2_quad(q: u32) -> vec4<f32> { return vec4<f32>(s2[4u * q], s2[4u * q + 1u], s2[4u * q + 2u], s2[4u * q + 3u]); }
fn load0(f: Fixed, i: u32, j: u32) -> V {
  let v = f.o0;
  return s1_quad((i * v.y + j) >> 2u);
}
fn load1(f: Fixed, i: u32, j: u32) -> V {
  let v = f.o1;
  let o = i * v.y + j * v.z;
  return V(s2_at(o), s2_at(o + v.z), s2_at(o + 2u * v.z), s2_at(o + 3u * v.z));
}
fn fused(f: Fixed, i: u32, j: u32, acc: V, x0: V, x1: V) -> V {
  let v0 = x0;
  let v1 = V(f.c0);
  let v2 = v0 * v1;
  let v3 = x1;
  let v4 = v2 + v3;
  let v5 = V(1.0) / (V(1.0) + exp4(-v4));
  return v5;
}
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V {
  return fused(f, i, j, acc, load0(f, i, j), load1(f, i, j));
}
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) {
  let v = f.o;
  let c = vec4<f32>(r);
  let o = (i * v.y + j) >> 2u;
  var d = c;
  if (n < 4u) { d = select(s0_quad(o), c, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }
  s0[o] = d;
}
fn exp4(x: vec4<f32>) -> vec4<f32> {
  let y = min(bitcast<vec4<i32>>(fma(x, vec4<f32>(1.44269504), vec4<f32>(768.0))), vec4<i32>(0x445fc000)) & vec4<i32>(-16384);
  let n = bitcast<vec4<f32>>(y) - 768.0;
  let r = fma(n, vec4<f32>(2.12194440e-4), x - n * 0.693359375);
  let z = r * r;
  let high = fma(z, vec4<f32>(1.9124915125e-3), fma(r, vec4<f32>(7.8684184700e-3), vec4<f32>(4.1854988784e-2)));
  let q = fma(z, high, fma(r, vec4<f32>(1.6663190722e-1), vec4<f32>(5.0000226498e-1)));
  let v = (fma(z, q, r) + 1.0) * bitcast<vec4<f32>>(vec4<u32>(y) * vec4<u32>(512u) + vec4<u32>(0xbf800000u));
  return select(v, vec4<f32>(), x < vec4<f32>(-87.33654));
}
