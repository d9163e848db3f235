// The functions that texts of operations call on the usual page. Those of the other files are in the second part of a page's program.

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

// The built-in log has an absolute error, which is large relative to results near 0.
fn log4(x: vec4<f32>) -> vec4<f32> {
  let l = logs4(x);
  return log_ends4((l[0] - l[1] * 2.12194440e-4) + l[1] * 0.693359375, x);
}

// Cephes' logf: the logarithm of the fraction, and the exponent.
fn logs4(x: vec4<f32>) -> mat2x4<f32> {
  let f = fraction4(x);
  let m = f[0] - 1.0;
  let z = m * m;
  let q = ((((((((m * 7.0376836292e-2 - 1.1514610310e-1) * m + 1.1676998740e-1) * m - 1.2420140846e-1) * m + 1.4249322787e-1) * m - 1.6668057665e-1) * m + 2.0000714765e-1) * m - 2.4999993993e-1) * m + 3.3333331174e-1) * m * z;
  return mat2x4<f32>(m + (q - z * 0.5), f[1]);
}

// The fraction of a positive float, between the roots of 1/2 and 2, and the exponent.
fn fraction4(x: vec4<f32>) -> mat2x4<f32> {
  let tiny = x < vec4<f32>(1.1754944e-38);
  let b = bitcast<vec4<u32>>(select(x, x * 16777216.0, tiny));
  let e = vec4<f32>((b >> vec4<u32>(23u)) & vec4<u32>(0xffu)) - select(vec4<f32>(126.0), vec4<f32>(150.0), tiny);
  let f = bitcast<vec4<f32>>((b & vec4<u32>(0x7fffffu)) | vec4<u32>(0x3f000000u));
  let low = f < vec4<f32>(0.70710678);
  return mat2x4<f32>(select(f, f + f, low), select(e, e - 1.0, low));
}

// What a logarithm is of zero, infinity, negative numbers and NaN; l elsewhere.
fn log_ends4(l: vec4<f32>, x: vec4<f32>) -> vec4<f32> {
  let v = select(l, x, bitcast<vec4<u32>>(x) >= vec4<u32>(0x7f800000u));
  let zero = select(bitcast<vec4<u32>>(v), vec4<u32>(0xff800000u), x == vec4<f32>());
  return nan_where4(bitcast<vec4<f32>>(zero), x < vec4<f32>());
}

// WGSL allows exp an error of 3 + 2|x| ulp, and drivers use it; this is within 2 of them. Floats from 512 to 1024 have 14 bits below the
// point: 768 + x / log(2) without them is 768 + n, where n is the whole part, for which software adapters have no fast way. A polynomial
// gives e^(x - n log(2)), about 1 to 2. Where n would be 128 it gives more, so that what is too large is infinite. Results below the
// smallest normal number are 0. NaN passes through the arithmetic. In r the first product is no fma: Mesa adds the factors of n in two
// nested ones, which loses the digits that there are two for.
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

// Below -80 exp(-x) is soon infinite where the result is not 0 yet: it is x * exp(x) there, and exp(x + 16) is no small number.
fn silu4(x: vec4<f32>) -> vec4<f32> {
  let low = x < vec4<f32>(-80.0);
  let e = exp4(select(negated4(x), x + 16.0, low));
  return select(x / (e + 1.0), x * 1.12535175e-7 * e, low);
}

// A NaN test on the bits: compilers may assume that x != x never holds.
fn nan4(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn nan_where4(v: vec4<f32>, on: vec4<bool>) -> vec4<f32> {
  return bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(v), vec4<u32>(0x7fc00000u), on));
}

// -x. To add this is to subtract, but a compiler may take (a + b) - a for b, and a - a for 0, which is NaN of infinity and NaN.
fn negated4(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) ^ vec4<u32>(0x80000000u));
}
