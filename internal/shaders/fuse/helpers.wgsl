// The functions that texts of operations call, each before those that it calls itself.
alias T = f32;
alias V = vec4<T>;

// Integer division by zero yields the dividend in WGSL, and -2147483648 / -1 itself; spelled out so that no driver traps.
fn divide4(x: V, y: V) -> V {
  return x / select(y, V(T(1)), y == V());
}

// The built-in pow is undefined for a negative base, NumPy's is not when the exponent is whole; and drivers make 0 of NaN. A base
// of 1 is 1 whatever the exponent, a negative infinity to a broken one the infinite or 0.
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

// The built-in tanh overflows to NaN on some drivers and loses the low bits of small arguments on others. Cephes' tanhf:
// an odd polynomial near zero, 1 - 2/(exp(2x)+1) elsewhere.
fn tanh4(x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let z = x * x;
  let q = (((vec4<f32>(-5.70498872745e-3) * z + vec4<f32>(2.06390887954e-2)) * z - vec4<f32>(5.37397155531e-2)) * z + vec4<f32>(1.33314422036e-1)) * z - vec4<f32>(3.33332819422e-1);
  let small = q * z * x + x;
  let big = vec4<f32>(1.0) - vec4<f32>(2.0) / (exp4(min(a, vec4<f32>(10.0)) * 2.0) + vec4<f32>(1.0));
  let r = select(big * sign(x), small, a < vec4<f32>(0.625));
  return select(r, x, (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));
}

// WGSL allows sin and cos an absolute error of 2^-11. Cephes' sinf and cosf: the argument is reduced to an eighth of a
// turn in three steps, which is exact up to 8192; a polynomial of the quadrant does the rest. NaN of infinity.
fn sincos4(x: vec4<f32>, cosine: bool) -> vec4<f32> {
  let a = abs(x);
  let up = floor(a * 1.27323954473516);
  let j = up + (up - 2.0 * floor(up * 0.5));
  let k = j - 8.0 * floor(j * 0.125);
  let r = ((a - j * 0.78515625) - j * 2.4187564849853515625e-4) - j * 3.77489497744594108e-8;
  let z = r * r;
  let s = ((z * -1.9515295891e-4 + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
  let c = ((z * 2.443315711809948e-5 - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - z * 0.5 + 1.0;
  let odd = (k == vec4<f32>(2.0)) | (k == vec4<f32>(6.0));
  if (cosine) {
    let v = select(c, s, odd);
    return select(v, -v, (k == vec4<f32>(2.0)) | (k == vec4<f32>(4.0)));
  }
  let v = select(s, c, odd);
  return select(v, -v, (k >= vec4<f32>(4.0)) != (x < vec4<f32>()));
}

// The built-in log has an absolute error, which is large relative to results near 0. Cephes' logf.
fn log4(x: vec4<f32>) -> vec4<f32> {
  let tiny = x < vec4<f32>(1.1754944e-38);
  let b = bitcast<vec4<u32>>(select(x, x * 16777216.0, tiny));
  let e0 = vec4<f32>((b >> vec4<u32>(23u)) & vec4<u32>(0xffu)) - select(vec4<f32>(126.0), vec4<f32>(150.0), tiny);
  let m0 = bitcast<vec4<f32>>((b & vec4<u32>(0x7fffffu)) | vec4<u32>(0x3f000000u));
  let low = m0 < vec4<f32>(0.70710678);
  let e = select(e0, e0 - 1.0, low);
  let m = select(m0, m0 + m0, low) - 1.0;
  let z = m * m;
  let q = ((((((((m * 7.0376836292e-2 - 1.1514610310e-1) * m + 1.1676998740e-1) * m - 1.2420140846e-1) * m + 1.4249322787e-1) * m - 1.6668057665e-1) * m + 2.0000714765e-1) * m - 2.4999993993e-1) * m + 3.3333331174e-1) * m * z;
  let y = m + (q - e * 2.12194440e-4 - z * 0.5) + e * 0.693359375;
  let inf = select(y, x, b >= vec4<u32>(0x7f800000u));
  let zero = select(bitcast<vec4<u32>>(inf), vec4<u32>(0xff800000u), x == vec4<f32>());
  return bitcast<vec4<f32>>(select(zero, vec4<u32>(0x7fc00000u), x < vec4<f32>()));
}

// WGSL allows exp an error of 3 + 2|x| ulp, and drivers use it. Cephes' expf is within 2 of them everywhere: the exponent
// is split off exactly, a polynomial does the rest, and n goes straight into its exponent: y is at least 1 for the smallest n
// and less than 1 for the largest, so that neither end is passed. Results below the smallest normal number are 0.
fn exp4(x: vec4<f32>) -> vec4<f32> {
  let c = clamp(x, vec4<f32>(-87.336), vec4<f32>(88.7228));
  let n = floor(c * 1.44269504 + 0.5);
  let r = (c - n * 0.693359375) + n * 2.12194440e-4;
  let q = ((((r * 1.9875691500e-4 + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r + 1.6666665459e-1) * r + 5.0000001201e-1;
  let y = q * (r * r) + r + 1.0;
  let e = bitcast<vec4<f32>>(bitcast<vec4<i32>>(y) + (vec4<i32>(n) << vec4<u32>(23u)));
  let inside = select(e, vec4<f32>(), x < vec4<f32>(-87.336));
  let outside = bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(inside), vec4<u32>(0x7f800000u), x > vec4<f32>(88.7228)));
  return select(outside, x, (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));
}

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

// A NaN test on the bits: compilers may assume that x != x never holds.
fn nan4(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
