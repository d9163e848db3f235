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
fn fused(f: Fixed, i: u32, j: u32, acc: V) -> V {
  let v0 = acc;
  let v1 = tanh4(v0);
  let v2 = exp4(v1);
  let v3 = pow4(v2, v1);
  let v4 = select(v0, v3, (v3 > v0) | nan4(v3));
  return v4;
}
fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V {
  return fused(f, i, j, acc);
}
fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) {
  let v = f.o;
  let c = vec4<f32>(r);
  let o = (v.x + i * v.y + j) >> 2u;
  var d = c;
  if (n < 4u) { d = select(s0_quad(o), c, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }
  s0[o] = d;
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
  let y = min(bitcast<vec4<i32>>(fma(x, vec4<f32>(1.44269504), vec4<f32>(768.0))), vec4<i32>(0x445fc000)) & vec4<i32>(-16384);
  let n = bitcast<vec4<f32>>(y) - 768.0;
  let r = fma(n, vec4<f32>(2.12194440e-4), x - n * 0.693359375);
  let z = r * r;
  let high = fma(z, vec4<f32>(1.9124915125e-3), fma(r, vec4<f32>(7.8684184700e-3), vec4<f32>(4.1854988784e-2)));
  let q = fma(z, high, fma(r, vec4<f32>(1.6663190722e-1), vec4<f32>(5.0000226498e-1)));
  let v = (fma(z, q, r) + 1.0) * bitcast<vec4<f32>>(vec4<u32>(y) * vec4<u32>(512u) + vec4<u32>(0xbf800000u));
  return select(v, vec4<f32>(), x < vec4<f32>(-87.33654));
}
fn nan4(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
fn pow4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let minus = x < vec4<f32>();
  let whole = trunc(y) == y;
  let odd = abs(y - 2.0 * trunc(y * 0.5)) == vec4<f32>(1.0);
  let edge = (a == vec4<f32>()) | infinite4(a);
  let up = (a < vec4<f32>(1.0)) == (y < vec4<f32>());
  let v = select(power4(a, clamp(y, vec4<f32>(-4e9), vec4<f32>(4e9))), vec4<f32>(), (edge | infinite4(y)) & !up);
  let m = inf_where4(v, (edge | infinite4(y)) & up);
  let s = select(m, -m, odd & negative4(x));
  let none = nan4(x) | nan4(y) | (minus & !whole & !edge);
  let one = (y == vec4<f32>()) | (x == vec4<f32>(1.0)) | ((a == vec4<f32>(1.0)) & infinite4(y));
  return select(nan_where4(s, none), vec4<f32>(1.0), one);
}
fn power4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let f = fraction4(x);
  let u = f[0] - 1.0;
  let d = f[0] + 1.0;
  let s = u / d;
  let sh = upper4(s);
  let dh = upper4(d);
  let sl = ((u - sh * dh) - sh * (f[0] - (dh - 1.0))) / d;
  let z = s * s;
  let q = ((((z * 2.3066075146e-1 + 2.7272811532e-1) * z + 3.3333334327e-1) * z + 4.2857143283e-1) * z + 6.0000002384e-1) * z * z + sl * (sh + s);
  let zh = sh * sh;
  let th = upper4(3.0 + zh + q);
  let t = sl * th + (q - ((th - 3.0) - zh)) * s;
  let ph = upper4(sh * th + t);
  let lh = 9.6166992188e-1 * ph;
  let ll = 1.2677205086e-4 * ph + (t - (ph - sh * th)) * 9.6179670095e-1;
  let h = upper4(lh + ll + f[1]);
  let l = ll - ((h - f[1]) - lh);
  let yh = upper4(y);
  let low = (y - yh) * h + y * l;
  let e = yh * h + low;
  let c = clamp(e, vec4<f32>(-126.0), vec4<f32>(128.0));
  let n = floor(c + 0.5);
  let r = select(vec4<f32>(), (yh * h - n) + low, c == e);
  let top = e + select(vec4<f32>(), vec4<f32>(1.0), r >= vec4<f32>()); // at 128 it matters how the sum was rounded
  return exp_ends4(times_power4(exp_rest4(r * 0.6931471806) + 1.0, n), select(e, top, n == vec4<f32>(128.0)), -126.0, 128.0);
}
fn upper4(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u));
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
fn negative4(x: vec4<f32>) -> vec4<bool> {
  return bitcast<vec4<i32>>(x) < vec4<i32>();
}
fn infinite4(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u);
}
fn inf_where4(v: vec4<f32>, on: vec4<bool>) -> vec4<f32> {
  return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(v), vec4<u32>(0x7f800000u), on));
}
fn fraction4(x: vec4<f32>) -> mat2x4<f32> {
  let tiny = x < vec4<f32>(1.1754944e-38);
  let b = bitcast<vec4<u32>>(select(x, x * 16777216.0, tiny));
  let e = vec4<f32>((b >> vec4<u32>(23u)) & vec4<u32>(0xffu)) - select(vec4<f32>(126.0), vec4<f32>(150.0), tiny);
  let f = bitcast<vec4<f32>>((b & vec4<u32>(0x7fffffu)) | vec4<u32>(0x3f000000u));
  let low = f < vec4<f32>(0.70710678);
  return mat2x4<f32>(select(f, f + f, low), select(e, e - 1.0, low));
}
fn nan_where4(v: vec4<f32>, on: vec4<bool>) -> vec4<f32> {
  return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(v), vec4<u32>(0x7fc00000u), on));
}
