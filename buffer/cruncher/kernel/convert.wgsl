// convert: turns elements of 8 or 16 bits, which lie packed in words, into elements of 32 bits, and back: u8 and u16 into u32,
// i8 and i16 into i32, f16 into f32. It is a source of functions, not a module.

const BITS: u32 = 8u; // @param
const SIGNED: bool = false; // @param
const HALF: bool = false; // @param
const PER: u32 = 32u / BITS;
const MASK: u32 = (1u << BITS) - 1u;

// float returns the bits of a binary32 that is as large as a binary16.
fn float(h: u32) -> u32 {
  let sign = (h & 0x8000u) << 16u;
  let exponent = (h >> 10u) & 0x1fu;
  let fraction = h & 0x3ffu;
  if (exponent == 0x1fu) { return sign | 0x7f800000u | (fraction << 13u); }
  if (exponent != 0u) { return sign | ((exponent + 112u) << 23u) | (fraction << 13u); }
  if (fraction == 0u) { return sign; }
  let top = firstLeadingBit(fraction); // fraction * 2^-24
  return sign | ((top + 103u) << 23u) | ((fraction << (23u - top)) & 0x7fffffu);
}

// half returns the bits of the nearest binary16.
fn half(f: u32) -> u32 {
  let sign = (f >> 16u) & 0x8000u;
  let size = f & 0x7fffffffu;
  if (size > 0x7f800000u) { return sign | 0x7e00u | ((size >> 13u) & 0x3ffu); }
  if (size >= 0x47800000u) { return sign | 0x7c00u; } // 65536 and more
  if (size >= 0x38800000u) { // rounding may carry into the exponent, up to infinity
    return sign | ((size - 0x38000000u + 0xfffu + ((size >> 13u) & 1u)) >> 13u);
  }
  let exponent = size >> 23u;
  if (exponent < 102u) { return sign; } // below half of the smallest
  let fraction = (size & 0x7fffffu) | 0x800000u;
  let shift = 126u - exponent; // 14 to 24
  let kept = fraction >> shift;
  let lost = fraction & ((1u << shift) - 1u);
  let tie = 1u << (shift - 1u);
  if (lost > tie || (lost == tie && (kept & 1u) == 1u)) { return sign | (kept + 1u); }
  return sign | kept;
}

// unpack is for an element. The result is exact, infinities and payloads of NaNs included.
fn unpack(i: u32) {
  let e = first + i;
  var v = (packed[e / PER] >> (e % PER * BITS)) & MASK;
  if (HALF) { v = float(v); }
  if (SIGNED) { v = bitcast<u32>(bitcast<i32>(v << (32u - BITS)) >> (32u - BITS)); }
  unpacked[first_unpacked + i] = v;
}

// pack is for a word, and keeps what lies in it before and behind the elements. Whole numbers keep their lowest bits; binary32 is
// rounded to the nearest binary16, ties to even, and beyond its range to infinity.
fn pack(i: u32) {
  let w = first / PER + i;
  var word = packed[w];
  for (var k = 0u; k < PER; k++) {
    let e = w * PER + k - first; // wraps for what is before the first element, and is too large then
    if (e < count) {
      var v = unpacked[first_unpacked + e];
      if (HALF) { v = half(v); }
      word = (word & ~(MASK << (k * BITS))) | ((v & MASK) << (k * BITS));
    }
  }
  packed[w] = word;
}
