// narrow: the way back from widen. Whole numbers keep their lowest 8 or 16 bits; binary32 is rounded to the nearest binary16,
// ties to even, and beyond its range to infinity. One invocation makes a word and keeps what lies in it before and behind the
// elements. Workgroups are folded over x and y.
// Reference: twin in convert.go.

const SIZE: u32 = 64u; // @param
const BITS: u32 = 8u; // @param
const HALF: bool = false; // @param

struct Params {
  first: u32, // the first packed element
  count: u32,
  to: u32, // where the first one comes from
  words: u32, // how many words the packed elements lie in
  groups: u32, // workgroups along x
  pad0: u32,
  pad1: u32,
  pad2: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> packed: array<u32>;
@group(0) @binding(2) var<storage, read> wide: array<u32>;

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

@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let n = (group.y * p.groups + group.x) * SIZE + local;
  if (n >= p.words) { return; }
  let per = 32u / BITS;
  let w = p.first / per + n;
  var bits = packed[w];
  for (var k = 0u; k < per; k++) {
    let e = w * per + k - p.first; // wraps for what is before the first element, and is too large then
    if (e < p.count) {
      var v = wide[p.to + e];
      if (HALF) { v = half(v); }
      let mask = ((1u << BITS) - 1u) << (k * BITS);
      bits = (bits & ~mask) | ((v << (k * BITS)) & mask);
    }
  }
  packed[w] = bits;
}
