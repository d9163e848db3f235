// The functions of remainders and of whole numbers that texts of operations call.

// WGSL's own conversion of floats to integers saturates, but not every compiler's. The bounds are the outermost floats that the
// type has; NaN becomes 0.
fn whole_i32(x: vec4<f32>) -> vec4<i32> {
  let c = vec4<i32>(clamp(x, vec4<f32>(-2147483648.0), vec4<f32>(2147483520.0)));
  let s = select(c, vec4<i32>(2147483647), x >= vec4<f32>(2147483648.0));
  return select(s, vec4<i32>(), nan4(x));
}

// The same for unsigned integers.
fn whole_u32(x: vec4<f32>) -> vec4<u32> {
  let c = vec4<u32>(clamp(x, vec4<f32>(0.0), vec4<f32>(4294967040.0)));
  let s = select(c, vec4<u32>(4294967295u), x >= vec4<f32>(4294967296.0));
  return select(s, vec4<u32>(), nan4(x));
}

// WGSL's own conversion of integers to floats is rounded as the adapter likes, SwiftShader's is cut off. Each half is exact, and their sum
// is rounded to nearest.
fn float_i32(x: vec4<i32>) -> vec4<f32> {
  return vec4<f32>(x >> vec4<u32>(16u)) * 65536.0 + vec4<f32>(x & vec4<i32>(0xffff));
}

// The same for unsigned integers.
fn float_u32(x: vec4<u32>) -> vec4<f32> {
  return vec4<f32>(x >> vec4<u32>(16u)) * 65536.0 + vec4<f32>(x & vec4<u32>(0xffffu));
}

// Truncated division leaves the remainder that C has. Floats: long division of the fractions, eight bits of the quotient at a time.
fn fmod4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let m = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
  let n = bitcast<vec4<u32>>(y) & vec4<u32>(0x7fffffffu);
  let d = (n & vec4<u32>(0x7fffffu)) | vec4<u32>(0x800000u);
  var left = max(m >> vec4<u32>(23u), n >> vec4<u32>(23u)) - (n >> vec4<u32>(23u));
  var r = ((m & vec4<u32>(0x7fffffu)) | vec4<u32>(0x800000u)) % d;
  while (any(left > vec4<u32>())) {
    let step = min(left, vec4<u32>(8u));
    r = (r << step) % d;
    left -= step;
  }
  let v = (vec4<f32>(r) * 1.1920928955078125e-7) * bitcast<vec4<f32>>(n & vec4<u32>(0x7f800000u));
  let small = select(v, abs(x), m < n);
  let bad = nan4(x) | nan4(y) | infinite4(x) | (n < vec4<u32>(0x800000u));
  return nan_where4(select(small, -small, negative4(x)), bad);
}

// The same with the sign of the divisor.
fn floor_mod4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let r = fmod4(x, y);
  return select(r, r + y, (r != vec4<f32>()) & (negative4(r) != negative4(y)));
}

// Rounded down: what is left of x is a multiple of y but for the rounding.
fn floor_divide4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let r = fmod4(x, y);
  let q = round((x - r) / y);
  let down = select(q, q - 1.0, (r != vec4<f32>()) & (negative4(r) != negative4(y)));
  // A zero has the sign of the quotient.
  let zero = bitcast<vec4<f32>>((bitcast<vec4<u32>>(x) ^ bitcast<vec4<u32>>(y)) & vec4<u32>(0x80000000u));
  return select(select(down, zero, down == vec4<f32>()), x / y, y == vec4<f32>());
}

// The remainders of integers; by zero they are zero.
fn floor_rest4(x: vec4<i32>, y: vec4<i32>) -> vec4<i32> {
  let r = rest4(x, y);
  return select(r, r + y, (r != vec4<i32>()) & ((r < vec4<i32>()) != (y < vec4<i32>())));
}

// -2147483648 % -1 ends the process on llvmpipe; by 1 it is the same.
fn rest4(x: vec4<i32>, y: vec4<i32>) -> vec4<i32> {
  return x % select(y, vec4<i32>(1), y == vec4<i32>());
}

// Powers of signed integers. Negative exponents leave what 1/x rounds to towards zero.
fn signed_power4(x: vec4<i32>, y: vec4<i32>) -> vec4<i32> {
  let v = bitcast<vec4<i32>>(whole_power4(bitcast<vec4<u32>>(x), bitcast<vec4<u32>>(y)));
  let unit = select(vec4<i32>(1), x, (y & vec4<i32>(1)) == vec4<i32>(1));
  return select(v, select(vec4<i32>(), unit, abs(x) == vec4<i32>(1)), y < vec4<i32>());
}

// Powers by squaring.
fn whole_power4(x: vec4<u32>, y: vec4<u32>) -> vec4<u32> {
  var r = vec4<u32>(1u);
  var b = x;
  for (var e = y; any(e != vec4<u32>()); e = e >> vec4<u32>(1u)) {
    r = select(r, r * b, (e & vec4<u32>(1u)) == vec4<u32>(1u));
    b = b * b;
  }
  return r;
}

fn negative4(x: vec4<f32>) -> vec4<bool> {
  return bitcast<vec4<i32>>(x) < vec4<i32>();
}

fn infinite4(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u);
}

// Infinity and NaN are made of bits: compilers refuse such constants.
fn inf_where4(v: vec4<f32>, on: vec4<bool>) -> vec4<f32> {
  return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(v), vec4<u32>(0x7f800000u), on));
}

fn pack_bytes(v: vec4<u32>) -> u32 {
  let b = (v & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return b.x | b.y | b.z | b.w;
}

fn pack_halves(v: vec4<u32>) -> vec2<u32> {
  return (v.xz & vec2<u32>(65535u)) | (v.yw << vec2<u32>(16u));
}
