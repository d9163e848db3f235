alias T = f32;
alias V = vec4<f32>;
struct Params {
  shape: Shape,
  views: array<vec4<u32>, 1>,
}
@group(0) @binding(0) var<uniform> p: Params;
struct Fixed {
  o: vec4<u32>,
}
fn fixed() -> Fixed {
  return Fixed(p.views[0], );
}
@group(0) @binding(1) var<storage, read_write> s0: array<vec4<f32>>;
fn s0_at(o: u32) -> f32 { return s0[o >> 2u][o & 3u]; }
fn s0_quad(q: u32) -> vec4<f32> { return s0[q]; }
fn fused(f: Fixed, acc: V) -> V {
  let v0 = acc;
  let v1 = tanh4(v0);
  let v2 = exp4(v1);
  let v3 = pow4(v2, v1);
  let v4 = select(v0, v3, (v3 > v0) | nan4(v3));
  return v4;
}
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V {
  return fused(f, acc);
}
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) {
  let v = f.o;
  let c = vec4<f32>(r);
  let o = (v.x + i * v.y + j) >> 2u;
  var d = c;
  if (n < 4u) { d = select(s0_quad(o), c, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }
  s0[o] = d;
}
fn pow4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let whole = trunc(y) == y;
  let odd = abs(y - vec4<f32>(2.0) * trunc(y * 0.5)) == vec4<f32>(1.0);
  let zero = x == vec4<f32>();
  let m = select(pow(select(a, vec4<f32>(1.0), zero), y), select(vec4<f32>(), vec4<f32>(1.0) / a, y < vec4<f32>()), zero);
  let s = select(m, -m, odd & (x < vec4<f32>()));
  let endless = (bitcast<vec4<u32>>(select(x, y, a == vec4<f32>(1.0))) & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u);
  let none = nan4(x) | nan4(y) | ((x < vec4<f32>()) & !whole & !endless);
  let bad = bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(s), vec4<u32>(0x7fc00000u), none));
  return select(bad, vec4<f32>(1.0), (y == vec4<f32>()) | (x == vec4<f32>(1.0)) | ((a == vec4<f32>(1.0)) & endless));
}
fn tanh4(x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let z = x * x;
  let q = (((vec4<f32>(-5.70498872745e-3) * z + vec4<f32>(2.06390887954e-2)) * z - vec4<f32>(5.37397155531e-2)) * z + vec4<f32>(1.33314422036e-1)) * z - vec4<f32>(3.33332819422e-1);
  let small = q * z * x + x;
  let big = vec4<f32>(1.0) - vec4<f32>(2.0) / (exp4(min(a, vec4<f32>(10.0)) * 2.0) + vec4<f32>(1.0));
  let r = select(big * sign(x), small, a < vec4<f32>(0.625));
  return select(r, x, (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));
}
fn exp4(x: vec4<f32>) -> vec4<f32> {
  let c = clamp(x, vec4<f32>(-87.336), vec4<f32>(88.7228));
  let n = floor(c * 1.44269504 + 0.5);
  let r = (c - n * 0.693359375) + n * 2.12194440e-4;
  return exp_ends4(times_power4(exp_rest4(r) + 1.0, n), x, -87.336, 88.7228);
}
fn exp_rest4(r: vec4<f32>) -> vec4<f32> {
  let q = ((((r * 1.9875691500e-4 + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r + 1.6666665459e-1) * r + 5.0000001201e-1;
  return q * (r * r) + r;
}
fn times_power4(y: vec4<f32>, n: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<i32>>(y) + (vec4<i32>(n) << vec4<u32>(23u)));
}
fn exp_ends4(v: vec4<f32>, x: vec4<f32>, lo: f32, hi: f32) -> vec4<f32> {
  return select(inf_where4(select(v, vec4<f32>(), x < vec4<f32>(lo)), x > vec4<f32>(hi)), x, nan4(x));
}
fn nan4(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
fn inf_where4(v: vec4<f32>, on: vec4<bool>) -> vec4<f32> {
  return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(v), vec4<u32>(0x7f800000u), on));
}
