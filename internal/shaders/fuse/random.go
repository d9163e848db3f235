// SPDX-License-Identifier: Apache-2.0

package fuse

import "math/bits"

// Philox returns the random bits of a counter with a key, by Philox 4x32-10; see random.wgsl.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	a, b, c, d := counter[0], counter[1], counter[2], counter[3]
	for range 10 {
		high, low := bits.Mul32(0xd2511f53, a)
		upper, lower := bits.Mul32(0xcd9e8d57, c)
		a, b, c, d = upper^b^key[0], lower, high^d^key[1], low
		key[0] += 0x9e3779b9
		key[1] += 0xbb67ae85
	}
	return [4]uint32{a, b, c, d}
}

// Random returns the random bits of the element in a row and a column of a matrix of so many columns.
func Random(row, col, cols uint64, seed, stream uint64) uint32 {
	e := row*cols + col
	words := Philox([4]uint32{uint32(e >> 2), uint32(e >> 34), uint32(stream), uint32(stream >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	return words[e&3]
}
