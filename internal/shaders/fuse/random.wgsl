// Random numbers by Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a function of
// a counter and a key, so that every device computes the same bits. Reference: philox in random.go.

// upper_product is the upper half of the product of numbers of 32 bits.
fn upper_product(a: u32, b: vec4<u32>) -> vec4<u32> {
  let low = vec4<u32>(a & 0xffffu) * (b & vec4<u32>(0xffffu));
  let first = vec4<u32>(a >> 16u) * (b & vec4<u32>(0xffffu)) + (low >> vec4<u32>(16u));
  let second = vec4<u32>(a & 0xffffu) * (b >> vec4<u32>(16u)) + (first & vec4<u32>(0xffffu));
  return vec4<u32>(a >> 16u) * (b >> vec4<u32>(16u)) + (first >> vec4<u32>(16u)) + (second >> vec4<u32>(16u));
}

// philox is word n of the random bits of a counter with a key, for each of four counters.
fn philox(first: vec4<u32>, second: vec4<u32>, stream: vec2<u32>, seed: vec2<u32>, n: vec4<u32>) -> vec4<u32> {
  var a = first;
  var b = second;
  var c = vec4<u32>(stream.x);
  var d = vec4<u32>(stream.y);
  var key = seed;
  for (var round = 0u; round < 10u; round++) {
    let x = upper_product(0xd2511f53u, a);
    let y = upper_product(0xcd9e8d57u, c);
    let third = x ^ d ^ vec4<u32>(key.y);
    d = vec4<u32>(0xd2511f53u) * a;
    a = y ^ b ^ vec4<u32>(key.x);
    b = vec4<u32>(0xcd9e8d57u) * c;
    c = third;
    key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
  }
  return select(select(a, b, n == vec4<u32>(1u)), select(c, d, n == vec4<u32>(3u)), n > vec4<u32>(1u));
}

// random4 is the random bits of the elements in these rows and columns, whose numbers row by row are counted by fours.
fn random4(row: vec4<i32>, col: vec4<i32>, cols: u32, seed: vec2<u32>, stream: vec2<u32>) -> vec4<u32> {
  let before = vec4<u32>(cols) * bitcast<vec4<u32>>(row);
  let low = before + bitcast<vec4<u32>>(col);
  let high = upper_product(cols, bitcast<vec4<u32>>(row)) + select(vec4<u32>(), vec4<u32>(1u), low < before);
  return philox((low >> vec4<u32>(2u)) | (high << vec4<u32>(30u)), high >> vec4<u32>(2u), stream, seed, low & vec4<u32>(3u));
}
