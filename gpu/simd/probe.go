// SPDX-License-Identifier: Apache-2.0

package simd

// probe is a module with an instruction for vectors, to find out whether there is a compiler that knows these:
//
//	(func (result v128) i32.const 0 i32x4.splat)
var probe = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x05\x01\x60\x00\x01\x7b" + "\x03\x02\x01\x00" + "\x0a\x08\x01\x06\x00\x41\x00\xfd\x11\x0b")

// leb encodes a number as WebAssembly does.
func leb(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
