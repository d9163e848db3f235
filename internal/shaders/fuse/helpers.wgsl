// The functions that texts of operations call.

// WGSL allows pow an error that grows with the exponent, leaves it undefined for a negative base, and drivers make 0 of NaN. Here it is
// C's: a negative base has whole powers, and 1 is 1 to whatever power.
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

// FreeBSD's powf for a positive base: the logarithm to base 2 as a sum of two floats, of which the upper ones have 12 bits, so that
// their products are exact. They are cut off as integers, since a compiler may take (a + b) - a for b.
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

// The first 12 bits of a float's 24.
fn upper4(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u));
}

// x, or what is nearest to it at a distance of 1e-30 from 0.
fn clipped4(x: vec4<f32>) -> vec4<f32> {
  return select(x, select(vec4<f32>(1e-30), vec4<f32>(-1e-30), x < vec4<f32>()), abs(x) < vec4<f32>(1e-30));
}

// WGSL allows sin and cos an absolute error of 2^-11. Cephes' sinf and cosf: polynomials of what turns4 leaves.
fn sincos4(x: vec4<f32>, cosine: bool) -> vec4<f32> {
  let t = turns4(x);
  let z = t[0] * t[0];
  let s = ((z * -1.9515295891e-4 + 8.3321608736e-3) * z - 1.6666654611e-1) * z * t[0] + t[0];
  let c = ((z * 2.443315711809948e-5 - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - z * 0.5 + 1.0;
  let odd = (t[1] == vec4<f32>(1.0)) | (t[1] == vec4<f32>(3.0));
  if (cosine) {
    let v = select(c, s, odd);
    return select(v, -v, (t[1] == vec4<f32>(1.0)) | (t[1] == vec4<f32>(2.0)));
  }
  let v = select(s, c, odd);
  return select(v, -v, (t[1] >= vec4<f32>(2.0)) != negative4(x));
}

// The quotient of these polynomials.
fn tan4(x: vec4<f32>) -> vec4<f32> {
  let t = turns4(x);
  let z = t[0] * t[0];
  let s = ((z * -1.9515295891e-4 + 8.3321608736e-3) * z - 1.6666654611e-1) * z * t[0] + t[0];
  let c = ((z * 2.443315711809948e-5 - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - z * 0.5 + 1.0;
  let v = select(s / c, -c / s, (t[1] == vec4<f32>(1.0)) | (t[1] == vec4<f32>(3.0)));
  return select(v, -v, negative4(x));
}

// What is left of |x| once the nearest multiple of a quarter turn is taken away, and that multiple modulo 4. Cody and Waite: up to
// 8192 the products by the parts of pi/2 are exact, but for that by the last one, which is small. NaN of infinity.
fn turns4(x: vec4<f32>) -> mat2x4<f32> {
  let a = abs(x);
  let k = floor(a * 0.63661977236758 + 0.5);
  var r = (((a - k * 1.5703125) - k * 4.837512969970703125e-4) - k * 7.5495336204767227173e-8) - k * 2.5633441515945187882e-12;
  var q = k - 4.0 * floor(k * 0.25);
  let far = (a > vec4<f32>(8192.0)) | nan4(a);
  if (any(far)) {
    let n = far_turns4(a);
    r = select(r, n[0], far);
    q = select(q, n[1], far);
  }
  return mat2x4<f32>(r, q);
}

// The same by Payne and Hanek: the number's 24 bits times those 96 bits of 2/pi that matter at its exponent.
fn far_turns4(a: vec4<f32>) -> mat2x4<f32> {
  let bits = bitcast<vec4<u32>>(a);
  let m = (bits & vec4<u32>(0x7fffffu)) | vec4<u32>(0x800000u);
  let at = max(bits >> vec4<u32>(23u), vec4<u32>(120u)) - 120u; // the first bit of 2/pi that does not make whole turns
  let word = at >> vec4<u32>(5u);
  let up = at & vec4<u32>(31u);
  let rest = select(vec4<u32>(), vec4<u32>(0xffffffffu), up > vec4<u32>());
  let down = (32u - up) & vec4<u32>(31u);
  let d1 = two_by_pi4(word + 1u);
  let d2 = two_by_pi4(word + 2u);
  let w0 = (two_by_pi4(word) << up) | ((d1 >> down) & rest);
  let w1 = (d1 << up) | ((d2 >> down) & rest);
  let w2 = (d2 << up) | ((two_by_pi4(word + 3u) >> down) & rest);
  let p1 = m * w1 + high_word4(m, w2);
  let p0 = m * w0 + high_word4(m, w1) + select(vec4<u32>(), vec4<u32>(1u), p1 < m * w1);
  let f = (p0 << vec4<u32>(2u)) | (p1 >> vec4<u32>(30u));
  let g = (p1 << vec4<u32>(2u)) | ((m * w2) >> vec4<u32>(30u));
  let past = f >= vec4<u32>(0x80000000u); // the half: the next multiple is nearer
  let v = vec4<f32>(select(f, ~f, past)) * 2.3283064365386963e-10 + vec4<f32>(select(g, ~g, past)) * 5.421010862427522e-20;
  let q = vec4<f32>(((p0 >> vec4<u32>(30u)) + select(vec4<u32>(), vec4<u32>(1u), past)) & vec4<u32>(3u));
  return mat2x4<f32>(nan_where4(select(v, -v, past) * 1.5707963267949, bits >= vec4<u32>(0x7f800000u)), q);
}

// Words of 2/pi, from the one before the point on.
fn two_by_pi4(i: vec4<u32>) -> vec4<u32> {
  let a = select(vec4<u32>(0xa2f9836eu), vec4<u32>(0x4e441529u), i == vec4<u32>(2u));
  let b = select(vec4<u32>(0xfc2757d1u), vec4<u32>(0xf534ddc0u), i == vec4<u32>(4u));
  let c = select(vec4<u32>(0xdb629599u), vec4<u32>(0x3c439041u), i == vec4<u32>(6u));
  let low = select(select(a, b, i > vec4<u32>(2u)), c, i > vec4<u32>(4u));
  return select(select(low, vec4<u32>(0xfe5163abu), i > vec4<u32>(6u)), vec4<u32>(), i == vec4<u32>());
}

// The upper word of a product.
fn high_word4(x: vec4<u32>, y: vec4<u32>) -> vec4<u32> {
  let half = vec4<u32>(16u);
  let mask = vec4<u32>(0xffffu);
  let low = (x & mask) * (y & mask);
  let mid = (x >> half) * (y & mask) + (low >> half);
  let other = (x & mask) * (y >> half) + (mid & mask);
  return (x >> half) * (y >> half) + (mid >> half) + (other >> half);
}

// As Cephes' asinf: a polynomial up to 1/2, beyond it that of the root of half of what is missing to 1.
fn asin4(x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let far = a > vec4<f32>(0.5);
  let v = small_asin4(select(a, sqrt(0.5 - 0.5 * a), far));
  let r = select(v, 1.57079632679 - 2.0 * v, far);
  return nan_where4(select(r, -r, negative4(x)), (a > vec4<f32>(1.0)) | nan4(x));
}

// As Cephes' acosf.
fn acos4(x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let far = a > vec4<f32>(0.5);
  let v = small_asin4(select(x, sqrt(0.5 - 0.5 * a), far));
  let r = select(1.57079632679 - v, select(2.0 * v, 3.14159265359 - 2.0 * v, x < vec4<f32>()), far);
  return nan_where4(r, (a > vec4<f32>(1.0)) | nan4(x));
}

// asin up to 1/2, within 6e-9 of it before rounding.
fn small_asin4(x: vec4<f32>) -> vec4<f32> {
  let z = x * x;
  return ((((z * 4.22185361e-2 + 2.41476223e-2) * z + 4.54770923e-2) * z + 7.49524161e-2) * z + 1.66667536e-1) * z * x + x;
}

// The angle of the point (x, y). With zeros and infinities it goes by their signs, as in C.
fn angle4(y: vec4<f32>, x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let b = abs(y);
  let top = max(a, b);
  let odd = (top == vec4<f32>()) | infinite4(top);
  let ratio = select(min(a, b), select(vec4<f32>(), vec4<f32>(1.0), (a == b) & infinite4(top)), odd) / select(top, vec4<f32>(1.0), odd);
  let v = atan4(ratio);
  let w = select(v, 1.57079632679 - v, b > a);
  let r = select(w, 3.14159265359 - w, negative4(x));
  return nan_where4(select(r, -r, negative4(y)), nan4(x) | nan4(y));
}

// As Cephes' atanf: a polynomial, within 3e-9, up to the tangent of pi/8. Beyond it pi/4 or pi/2 are added to that of less.
fn atan4(x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let big = a > vec4<f32>(2.41421356);
  let mid = a > vec4<f32>(0.414213562);
  let r = select(select(a, (a - 1.0) / (a + 1.0), mid), vec4<f32>(-1.0) / a, big);
  let base = select(select(vec4<f32>(), vec4<f32>(0.785398163397), mid), vec4<f32>(1.57079632679), big);
  let z = r * r;
  let v = base + (((((z * -6.08345792e-2 + 1.05960034e-1) * z - 1.42438486e-1) * z + 1.99984893e-1) * z - 3.33333164e-1) * z * r + r);
  return select(select(v, -v, negative4(x)), x, nan4(x));
}

// The larger times the root of 1 and the squared ratio, so that nothing overflows before the result does. An infinity wins over NaN.
fn hypot4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let top = max(abs(x), abs(y));
  let ratio = min(abs(x), abs(y)) / select(top, vec4<f32>(1.0), top == vec4<f32>());
  let v = nan_where4(top * sqrt(ratio * ratio + 1.0), nan4(x) | nan4(y));
  return inf_where4(v, infinite4(x) | infinite4(y));
}

// Half of e to the power |x| and what that is with -|x|, of which the sum is cosh; up to 1 sinh is a polynomial, within 7e-9.
fn sinh4(x: vec4<f32>) -> vec4<f32> {
  let h = half_exp4(abs(x));
  let z = x * x;
  let v = select(h - 0.25 / h, -(h - 0.25 / h), x < vec4<f32>());
  return select(v, (((z * 2.81743951e-6 + 1.98360663e-4) * z + 8.33335053e-3) * z + 1.66666672e-1) * z * x + x, abs(x) < vec4<f32>(1.0));
}

fn cosh4(x: vec4<f32>) -> vec4<f32> {
  let h = half_exp4(abs(x));
  return h + 0.25 / h;
}

// The logarithms of what these are the inverse of, written so that nothing cancels. Beyond 1e9 it is that of twice the argument.
fn asinh4(x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let b = min(a, vec4<f32>(1e9));
  let r = select(log1p4(b + b * b / (sqrt(b * b + 1.0) + 1.0)), log4(a) + 0.69314718056, a > b);
  return select(select(r, -r, negative4(x)), x, nan4(x));
}

fn acosh4(x: vec4<f32>) -> vec4<f32> {
  let b = clamp(x, vec4<f32>(1.0), vec4<f32>(1e9)) - 1.0;
  let r = select(log1p4(b + sqrt(b * b + 2.0 * b)), log4(x) + 0.69314718056, x > vec4<f32>(1e9));
  return nan_where4(r, (x < vec4<f32>(1.0)) | nan4(x));
}

fn atanh4(x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let one = a == vec4<f32>(1.0);
  let r = inf_where4(0.5 * log1p4(2.0 * a / select(1.0 - a, vec4<f32>(1.0), one)), one);
  return nan_where4(select(r, -r, negative4(x)), (a > vec4<f32>(1.0)) | nan4(x));
}

// log(exp(x) + exp(y)) without overflow.
fn logaddexp4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let top = max(x, y);
  let v = select(top + log1p4(exp4(-abs(x - y))), top, infinite4(top));
  return nan_where4(v, nan4(x) | nan4(y));
}

// log(1 + exp(x)) without overflow.
fn softplus4(x: vec4<f32>) -> vec4<f32> {
  return select(max(x, vec4<f32>()) + log1p4(exp4(-abs(x))), x, nan4(x));
}

// Between -1/2 and 1 the logarithm is twice the inverse hyperbolic tangent of x / (2 + x), a polynomial within 5e-9; elsewhere adding
// 1 loses little.
fn log1p4(x: vec4<f32>) -> vec4<f32> {
  let s = x / (x + 2.0);
  let z = s * s;
  let v = (((z * 2.80244559e-1 + 2.79991418e-1) * z + 4.00216997e-1) * z + 6.66664124e-1) * z * s + 2.0 * s;
  return select(log4(x + 1.0), v, (x > vec4<f32>(-0.5)) & (x < vec4<f32>(1.0)));
}

// The exponent and the logarithm of the rest, whose sum is exact for powers of two.
fn log2_4(x: vec4<f32>) -> vec4<f32> {
  let l = logs4(x);
  return log_ends4(l[0] * 1.44269504 + l[1], x);
}

fn log10_4(x: vec4<f32>) -> vec4<f32> {
  let l = logs4(x);
  return log_ends4(l[1] * 2.48745664e-4 + l[0] * 0.4342944819 + l[1] * 0.30078125, x);
}

// The error function: up to 1 a polynomial, beyond it what its complement leaves of 1.
fn erf4(x: vec4<f32>) -> vec4<f32> {
  let far = 1.0 - far_erfc4(abs(x));
  return select(select(far, -far, x < vec4<f32>()), near_erf4(x), abs(x) < vec4<f32>(1.0));
}

fn erfc4(x: vec4<f32>) -> vec4<f32> {
  let far = far_erfc4(abs(x));
  return select(select(far, 2.0 - far, x < vec4<f32>()), 1.0 - near_erf4(x), abs(x) < vec4<f32>(0.5));
}

// erf up to 1, within 7e-8 of it before rounding.
fn near_erf4(x: vec4<f32>) -> vec4<f32> {
  let z = x * x;
  let q = (((z * 7.85386583e-5 - 8.01019429e-4) * z + 5.18832775e-3) * z - 2.6853811e-2) * z + 1.12835854e-1;
  return ((q * z - 3.7612627e-1) * z + 1.12837911) * x;
}

// erfc from 0.45 on: exp(-x*x), whose exponent is split so that no bit of it is lost, times a polynomial of (x - 3) / (x + 3), within
// 6e-8.
fn far_erfc4(x: vec4<f32>) -> vec4<f32> {
  let a = min(x, vec4<f32>(12.0));
  let h = upper4(a);
  let e = exp4(-h * h) * exp4((h - a) * (h + a));
  let t = (a - 3.0) / (a + 3.0);
  let p = (((t * -5.43512928e-4 + 7.3624315e-4) * t + 4.25150432e-3) * t - 2.43988633e-2) * t + 7.16684088e-2;
  let q = (((p * t - 1.50115430e-1) * t + 2.45603666e-1) * t - 3.26233566e-1) * t + 1.79001153e-1;
  return select(q * e, x, nan4(x));
}

// The logarithm of gamma: from 2.5 on Stirling's, around 2 a polynomial, within 6e-8, that is 0 there, to which smaller arguments are
// moved; negative ones are reflected.
fn lgamma4(x: vec4<f32>) -> vec4<f32> {
  let less = x < vec4<f32>();
  let a = select(x, 1.0 - x, less);
  let far = a >= vec4<f32>(2.5);
  let low = a < vec4<f32>(1.5);
  let lower = a < vec4<f32>(0.5);
  let l = log4(select(select(select(vec4<f32>(1.0), a, low), a * (a + 1.0), lower), a, far));
  let t = a - select(select(vec4<f32>(2.0), vec4<f32>(1.0), low), vec4<f32>(), lower);
  let p = (((t * -2.50562036e-4 + 5.70251257e-4) * t - 1.18748483e-3) * t + 2.87886872e-3) * t - 7.38592073e-3;
  let near = ((((p * t + 2.05816254e-2) * t - 6.73522949e-2) * t + 3.22467029e-1) * t + 4.22784328e-1) * t - l;
  let w = 1.0 / (a * a);
  let rest = (((w * -4.11505142e-4 + 7.77412031e-4) * w - 2.77728285e-3) * w + 8.33333284e-2) / a;
  let v = select(near, (a - 0.5) * (l - 1.0) + (rest + 0.418938533), far);
  let back = log4(3.14159265 / abs(sincos4((x - floor(x + 0.5)) * 3.14159265, false))) - v;
  return inf_where4(select(select(v, back, less), x, nan4(x)), infinite4(x));
}

// Its derivative: from 2 on the asymptotic series, below that a polynomial that has the root, within 3e-8.
fn digamma4(x: vec4<f32>) -> vec4<f32> {
  let less = x < vec4<f32>();
  let a = select(x, 1.0 - x, less);
  let low = a < vec4<f32>(1.0);
  let t = select(a, a + 1.0, low) - 1.46163213; // what the root has beyond that is 1.24e-8
  let p = (((t * 1.09025883e-2 - 2.05567088e-2) * t + 2.34912075e-2) * t - 3.19818258e-2) * t + 4.8563838e-2;
  let q = ((((p * t - 7.23159537e-2) * t + 1.07845239e-1) * t - 1.63938001e-1) * t + 2.58499146e-1) * t - 4.42763209e-1;
  let near = ((q * t + 9.67672229e-1) * t - 1.20360521e-8) - select(vec4<f32>(), 1.0 / a, low);
  let w = 1.0 / (a * a);
  let rest = ((((w * -2.40510819e-3 + 3.36920284e-3) * w - 3.9071897e-3) * w + 8.33155029e-3) * w - 8.33333209e-2) * w;
  let v = select(near, log4(a) + (rest - 0.5 / a), a >= vec4<f32>(2.0));
  let r = x - floor(x + 0.5);
  let back = nan_where4(v - 3.14159265 / tan4(r * 3.14159265), r == vec4<f32>());
  return select(select(v, back, less), x, nan4(x));
}

// From a third of the exponent on a step by Halley, and one by Newton, which rounds just once.
fn cbrt4(x: vec4<f32>) -> vec4<f32> {
  let tiny = abs(x) < vec4<f32>(1.1754944e-38); // 2^24 times that is not
  let a = abs(x) * select(vec4<f32>(1.0), vec4<f32>(16777216.0), tiny);
  let s = bitcast<vec4<f32>>(bitcast<vec4<u32>>(a) / vec4<u32>(3u) + vec4<u32>(709921077u));
  let r = a / (s * s);
  let h = s * ((s + 2.0 * r) / (2.0 * s + r));
  let t = (h + (a / (h * h) - h) * 0.333333333) * select(vec4<f32>(1.0), vec4<f32>(0.00390625), tiny);
  return select(select(t, -t, negative4(x)), x, (a == vec4<f32>()) | nan4(x) | infinite4(x));
}

// exp(x) - 1 without cancellation: what is subtracted is the power of two alone.
fn expm1_4(x: vec4<f32>) -> vec4<f32> {
  let c = clamp(x, vec4<f32>(-30.0), vec4<f32>(60.0));
  let n = floor(c * 1.44269504 + 0.5);
  let r = (c - n * 0.693359375) + n * 2.12194440e-4;
  let power = times_power4(vec4<f32>(1.0), n);
  return select(power * exp_rest4(r) + (power - 1.0), exp4(x), (x > vec4<f32>(60.0)) | nan4(x));
}

// exp(x) / 2 from 0 on, which overflows later.
fn half_exp4(x: vec4<f32>) -> vec4<f32> {
  let c = clamp(x, vec4<f32>(), vec4<f32>(89.4159));
  let n = floor(c * 1.44269504 + 0.5);
  let r = (c - n * 0.693359375) + n * 2.12194440e-4;
  return exp_ends4(times_power4(exp_rest4(r) + 1.0, n - 1.0), x, -1.0, 89.4159);
}

fn exp2_4(x: vec4<f32>) -> vec4<f32> {
  let c = clamp(x, vec4<f32>(-126.0), vec4<f32>(127.99999));
  let n = floor(c + 0.5);
  return exp_ends4(times_power4(exp_rest4((c - n) * 0.6931471806) + 1.0, n), x, -126.0, 127.99999);
}

fn exp10_4(x: vec4<f32>) -> vec4<f32> {
  let c = clamp(x, vec4<f32>(-37.9297), vec4<f32>(38.5318));
  let n = floor(c * 3.321928095 + 0.5);
  let r = ((c - n * 0.30078125) - n * 2.48745664e-4) * 2.302585093;
  return exp_ends4(times_power4(exp_rest4(r) + 1.0, n), x, -37.9297, 38.5318);
}

// exp(r) - 1 for |r| of at most log(2) / 2.
fn exp_rest4(r: vec4<f32>) -> vec4<f32> {
  let q = ((((r * 1.9875691500e-4 + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r + 1.6666665459e-1) * r + 5.0000001201e-1;
  return q * (r * r) + r;
}

// y times 2 to the power n, into the exponent of y: that is at least 1 for the smallest n and less than 1 for the largest, so that
// neither end is passed.
fn times_power4(y: vec4<f32>, n: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<i32>>(y) + (vec4<i32>(n) << vec4<u32>(23u)));
}

// 0 below lo, infinity above hi, NaN of NaN; v elsewhere.
fn exp_ends4(v: vec4<f32>, x: vec4<f32>, lo: f32, hi: f32) -> vec4<f32> {
  return select(inf_where4(select(v, vec4<f32>(), x < vec4<f32>(lo)), x > vec4<f32>(hi)), x, nan4(x));
}

// Four float16. What pack2x16float makes of numbers beyond float16, a driver may choose: from 65520 on they are infinite.
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

// The nearest float16.
fn float16_4(x: vec4<f32>) -> vec4<f32> {
  let h = pack_floats(x);
  return vec4<f32>(unpack2x16float(h.x), unpack2x16float(h.y));
}
