// widen: turns elements of 8 or 16 bits, which lie packed in words, into elements of 32 bits: u8 and u16 into u32, i8 and i16
// into i32, f16 into f32. One invocation takes a word. Both sides may begin at any element. The result is exact, infinities and
// payloads of NaNs included. Workgroups are folded over x and y.
// Reference: twin in convert.go.

const SIZE: u32 = 64u; // @param
const BITS: u32 = 8u; // @param
const SIGNED: bool = false; // @param
const HALF: bool = false; // @param

struct Params {
  first: u32, // the first packed element
  count: u32,
  to: u32, // where the first one goes
  words: u32, // how many words the packed elements lie in
  groups: u32, // workgroups along x
  pad0: u32,
  pad1: u32,
  pad2: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> packed: array<u32>;
@group(0) @binding(2) var<storage, read_write> wide: array<u32>;

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

fn widened(v: u32) -> u32 {
  if (HALF) { return float(v); }
  if (SIGNED) { return bitcast<u32>(bitcast<i32>(v << (32u - BITS)) >> (32u - BITS)); }
  return v;
}

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let n = (group.y * p.groups + group.x) * SIZE + local;
  if (n >= p.words) { return; }
  let per = 32u / BITS;
  let w = p.first / per + n;
  let bits = packed[w];
  for (var k = 0u; k < per; k++) {
    let e = w * per + k - p.first; // wraps for what is before the first element, and is too large then
    if (e < p.count) { wide[p.to + e] = widened((bits >> (k * BITS)) & ((1u << BITS) - 1u)); }
  }
}
