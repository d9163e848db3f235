alias T = f32;
alias V = vec4<f32>;
struct Params {
  shape: Shape,
  views: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
struct Fixed {
  o: vec4<u32>,
  o0: vec4<u32>,
}
fn fixed() -> Fixed {
  return Fixed(p.views[0], p.views[1], );
}
@group(0) @binding(1) var<storage, read_write> s0: array<vec2<u32>>;
fn s0_at(o: u32) -> f32 { return unpack2x16float(s0[o >> 2u][(o >> 1u) & 1u])[o & 1u]; }
fn s0_quad(q: u32) -> vec4<f32> { return vec4<f32>(unpack2x16float(s0[q].x), unpack2x16float(s0[q].y)); }
@group(0) @binding(2) var<storage, read> s1: array<vec2<u32>>;
fn s1_at(o: u32) -> f32 { return unpack2x16float(s1[o >> 2u][(o >> 1u) & 1u])[o & 1u]; }
fn s1_quad(q: u32) -> vec4<f32> { return vec4<f32>(unpack2x16float(s1[q].x), unpack2x16float(s1[q].y)); }
fn load0(f: Fixed, i: u32, j: u32) -> V {
  let v = f.o0;
  let o = v.x + i * v.y + j * v.z;
  return V(s1_at(o), s1_at(o + v.z), s1_at(o + 2u * v.z), s1_at(o + 3u * v.z));
}
fn load4_0(f: Fixed, i: u32, j: u32) -> Block {
  let v = f.o0;
  let o = (v.x + i + j * v.z) >> 2u;
  let d = v.z >> 2u;
  let a = s1_quad(o);
  let b = s1_quad(o + d);
  let c = s1_quad(o + 2u * d);
  let e = s1_quad(o + 3u * d);
  return Block(V(a.x, b.x, c.x, e.x), V(a.y, b.y, c.y, e.y), V(a.z, b.z, c.z, e.z), V(a.w, b.w, c.w, e.w));
}
fn fused(f: Fixed, i: u32, j: u32, acc: V, x0: V) -> V {
  let v0 = x0;
  let v1 = select(v0, V(), v0 < V());
  return v1;
}
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V {
  return fused(f, i, j, acc, load0(f, i, j));
}
fn apply4(f: Fixed, i: u32, j: u32) -> Block {
  let x0 = load4_0(f, i, j);
  return Block(fused(f, i + 0u, j, V(), x0.a), fused(f, i + 1u, j, V(), x0.b), fused(f, i + 2u, j, V(), x0.c), fused(f, i + 3u, j, V(), x0.d));
}
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) {
  let v = f.o;
  let c = float16_4(vec4<f32>(r));
  let o = (v.x + i * v.y + j) >> 2u;
  var d = c;
  if (n < 4u) { d = select(s0_quad(o), c, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }
  s0[o] = pack_floats(d);
}
fn pack_floats(x: vec4<f32>) -> vec2<u32> {
  let bits = bitcast<vec4<u32>>(x);
  let size = bits & vec4<u32>(0x7fffffffu);
  let special = size >= vec4<u32>(0x477ff000u);
  let beyond = select(vec4<u32>(0x7c00u), vec4<u32>(0x7e00u), size > vec4<u32>(0x7f800000u)) | ((bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u));
  let held = clamp(select(x, vec4<f32>(), special), vec4<f32>(-65504.0), vec4<f32>(65504.0));
  let pairs = vec2<u32>(pack2x16float(held.xy), pack2x16float(held.zw));
  let finite = (pairs.xxyy >> vec4<u32>(0u, 16u, 0u, 16u)) & vec4<u32>(0xffffu);
  let h = select(finite, beyond, special);
  return vec2<u32>(h.x | (h.y << 16u), h.z | (h.w << 16u));
}
fn float16_4(x: vec4<f32>) -> vec4<f32> {
  let h = pack_floats(x);
  return vec4<f32>(unpack2x16float(h.x), unpack2x16float(h.y));
}
