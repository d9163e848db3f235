// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// bits are the functions on bits.
func (g *function) bits(fn ir.Fn, k ir.Kind, x []*node, n int) *node {
	each := func(f func(v *node) *node) *node {
		if x[0].typ == wasm.V128 {
			return g.perLane(n, func(i int) *node { return f(g.lane(x[0], i, ir.U32)) })
		}
		return f(x[0])
	}
	one := func(op wasm.Op) func(v *node) *node { return func(v *node) *node { return g.op1(op, v) } }
	switch fn {
	case ir.FnCountLeadingZeros:
		return each(one(wasm.I32Clz))
	case ir.FnCountTrailingZeros:
		return each(one(wasm.I32Ctz))
	case ir.FnCountOneBits:
		return each(one(wasm.I32Popcnt))
	case ir.FnFirstTrailingBit: // -1 of 0
		return each(func(v *node) *node {
			return g.choose(g.i32(math.MaxUint32), g.op1(wasm.I32Ctz, v), g.opTo(wasm.I32Eqz, wasm.I32, v))
		})
	case ir.FnFirstLeadingBit: // -1 of 0; of negative numbers the first bit that is 0
		return each(func(v *node) *node {
			if k == ir.I32 {
				v = g.op2(wasm.I32Xor, v, g.op2(wasm.I32ShrS, v, g.i32(31)))
			}
			return g.op2(wasm.I32Sub, g.i32(31), g.op1(wasm.I32Clz, v))
		})
	case ir.FnReverseBits:
		return g.reverse(x[0])
	case ir.FnExtractBits:
		return g.extractBits(k, x[0], x[1], x[2])
	case ir.FnInsertBits:
		return g.insertBits(x[0], x[1], x[2], x[3])
	}
	return nil
}

// reverse swaps neighbouring bits, then pairs, and so on.
func (g *function) reverse(x *node) *node {
	for i, mask := range []uint32{0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x0000ffff} {
		m, by := g.ints(x, mask), g.ints(x, 1<<i)
		up := g.int(ir.ShiftLeft, g.int(ir.And, x, m), by)
		x = g.int(ir.Or, up, g.int(ir.And, g.int(ir.ShiftRight, x, by), m))
	}
	return x
}

// field limits an offset and a count to the bits that there are.
func (g *function) field(offset, count *node) (o, c *node) {
	o = g.least(offset, g.i32(32))
	return o, g.least(count, g.op2(wasm.I32Sub, g.i32(32), o))
}

// shiftBy shifts by a scalar.
func (g *function) shiftBy(op ir.Op, k ir.Kind, x, s *node) *node {
	if x.typ == wasm.V128 {
		s = g.splat(s)
	}
	return g.arith(op, k, x, s, 4)
}

func (g *function) extractBits(k ir.Kind, x, offset, count *node) *node {
	o, c := g.field(offset, count)
	down := g.op2(wasm.I32Sub, g.i32(32), c)
	v := g.shiftBy(ir.ShiftRight, k, g.shiftBy(ir.ShiftLeft, k, x, g.op2(wasm.I32Sub, down, o)), down)
	return g.choose(v, g.ints(x, 0), g.op2(wasm.I32Ne, c, g.i32(0)))
}

func (g *function) insertBits(x, y, offset, count *node) *node {
	o, c := g.field(offset, count)
	ones := g.op2(wasm.I32Sub, g.op2(wasm.I32Shl, g.i32(1), c), g.i32(1))
	ones = g.choose(g.i32(math.MaxUint32), ones, g.op2(wasm.I32Eq, c, g.i32(32)))
	mask := g.choose(g.i32(0), g.op2(wasm.I32Shl, ones, o), g.op2(wasm.I32Eq, o, g.i32(32)))
	if x.typ == wasm.V128 {
		mask = g.splat(mask)
		return g.choose(g.shiftBy(ir.ShiftLeft, ir.U32, y, o), x, mask)
	}
	rest := g.and(x, g.op2(wasm.I32Xor, mask, g.i32(math.MaxUint32)))
	return g.op2(wasm.I32Or, rest, g.and(g.op2(wasm.I32Shl, y, o), mask))
}

// packed are the functions that pack and unpack.
func (g *function) packed(fn ir.Fn, _ ir.Kind, x []*node, _ int) *node {
	v := x[0]
	switch fn {
	case ir.FnPack4x8Snorm:
		return g.join8(g.norm(v, -1, 127))
	case ir.FnPack4x8Unorm:
		return g.join8(g.norm(v, 0, 255))
	case ir.FnPack2x16Snorm:
		return g.join16(g.norm(v, -1, 32767))
	case ir.FnPack2x16Unorm:
		return g.join16(g.norm(v, 0, 65535))
	case ir.FnPack2x16Float:
		return g.join16(g.toHalf(v))
	case ir.FnPack4xI8, ir.FnPack4xU8:
		return g.join8(v)
	case ir.FnPack4xI8Clamp:
		return g.join8(g.lesser(ir.I32, g.greater(ir.I32, v, g.ints(v, math.MaxUint32-127)), g.ints(v, 127)))
	case ir.FnPack4xU8Clamp:
		return g.join8(g.lesser(ir.U32, v, g.ints(v, 255)))
	case ir.FnUnpack4xU8:
		return g.bytes(v, ir.U32)
	case ir.FnUnpack4xI8:
		return g.bytes(v, ir.I32)
	case ir.FnUnpack4x8Unorm:
		return g.ratio(g.bytes(v, ir.U32), ir.U32, 255)
	case ir.FnUnpack4x8Snorm:
		return g.ratio(g.bytes(v, ir.I32), ir.I32, 127)
	case ir.FnUnpack2x16Unorm:
		return g.ratio(g.halves(v, ir.U32), ir.U32, 65535)
	case ir.FnUnpack2x16Snorm:
		return g.ratio(g.halves(v, ir.I32), ir.I32, 32767)
	case ir.FnUnpack2x16Float:
		return g.fromHalf(g.halves(v, ir.U32))
	case ir.FnDot4U8Packed:
		return g.dot(ir.U32, g.bytes(v, ir.U32), g.bytes(x[1], ir.U32), 4)
	case ir.FnDot4I8Packed:
		return g.dot(ir.I32, g.bytes(v, ir.I32), g.bytes(x[1], ir.I32), 4)
	}
	return nil
}

// norm makes integers of floats from low to 1, which stands for top.
func (g *function) norm(v *node, low, top float32) *node {
	v = g.lesser(ir.F32, g.greater(ir.F32, v, g.floats(v, low)), g.floats(v, 1))
	v = g.float(floor, g.plus(g.mul(v, g.floats(v, top)), g.floats(v, 0.5)))
	return g.op1(wasm.I32x4TruncSatF32S, v)
}

// ratio is the opposite.
func (g *function) ratio(v *node, k ir.Kind, top float32) *node {
	v = g.div(g.convert(v, k, ir.F32), g.floats(v, top))
	if k == ir.I32 {
		v = g.greater(ir.F32, v, g.floats(v, -1))
	}
	return v
}

// rearrange moves bytes of a vector; 0xff is a byte of zeros.
func (g *function) rearrange(v *node, bytes [16]byte) *node {
	n := &node{op: wasm.I8x16Shuffle, typ: wasm.V128, args: [3]*node{v, g.words([4]uint32{})}}
	for i, b := range bytes {
		n.lanes[i] = min(b, 16)
	}
	return g.make(n)
}

const z = 0xff

// join8 makes a word of the low bytes of four components.
func (g *function) join8(v *node) *node {
	return g.lane(g.rearrange(v, [16]byte{0, 4, 8, 12, z, z, z, z, z, z, z, z, z, z, z, z}), 0, ir.U32)
}

// join16 makes a word of the low halves of two components.
func (g *function) join16(v *node) *node {
	return g.lane(g.rearrange(v, [16]byte{0, 1, 4, 5, z, z, z, z, z, z, z, z, z, z, z, z}), 0, ir.U32)
}

// bytes makes components of the bytes of a word.
func (g *function) bytes(word *node, k ir.Kind) *node {
	if k == ir.U32 {
		return g.rearrange(g.splat(word), [16]byte{0, z, z, z, 1, z, z, z, 2, z, z, z, 3, z, z, z})
	}
	v := g.rearrange(g.splat(word), [16]byte{z, z, z, 0, z, z, z, 1, z, z, z, 2, z, z, z, 3})
	return g.arith(ir.ShiftRight, k, v, g.ints(v, 24), 4)
}

// halves makes two components of the halves of a word.
func (g *function) halves(word *node, k ir.Kind) *node {
	if k == ir.U32 {
		return g.rearrange(g.splat(word), [16]byte{0, 1, z, z, 2, 3, z, z, z, z, z, z, z, z, z, z})
	}
	v := g.rearrange(g.splat(word), [16]byte{z, z, 0, 1, z, z, 2, 3, z, z, z, z, z, z, z, z})
	return g.arith(ir.ShiftRight, k, v, g.ints(v, 16), 4)
}

// toHalf rounds floats to float16, in the low half of integers, as https://gist.github.com/rygorous/2156668 does.
func (g *function) toHalf(v *node) *node {
	c := func(w uint32) *node { return g.ints(v, w) }
	sign := g.int(ir.And, v, c(1<<31))
	f := g.int(ir.Xor, v, sign)
	const magic = (127 - 15 + 23 - 10 + 1) << 23
	beyond := g.choose(c(0x7e00), c(0x7c00), g.compare(ir.Gt, ir.U32, f, c(0xff<<23)))
	below := g.int(ir.Sub, g.plus(f, c(magic)), c(magic))
	odd := g.int(ir.And, g.int(ir.ShiftRight, f, c(13)), c(1))
	const bias = 0xc8000fff // 15 - 127 for the exponent, and almost half of what is cut off
	normal := g.int(ir.ShiftRight, g.int(ir.Add, g.int(ir.Add, f, c(bias)), odd), c(13))
	h := g.choose(below, normal, g.compare(ir.Lt, ir.U32, f, c(113<<23)))
	h = g.choose(beyond, h, g.compare(ir.Ge, ir.U32, f, c((127+16)<<23)))
	return g.int(ir.Or, h, g.int(ir.ShiftRight, sign, c(16)))
}

// fromHalf is the opposite.
func (g *function) fromHalf(v *node) *node {
	c := func(w uint32) *node { return g.ints(v, w) }
	o := g.int(ir.ShiftLeft, g.int(ir.And, v, c(0x7fff)), c(13))
	exp := g.int(ir.And, o, c(0x7c00<<13))
	o = g.int(ir.Add, o, c((127-15)<<23))
	infinite := g.int(ir.Add, o, c((128-16)<<23))
	below := g.sub(g.int(ir.Add, o, c(1<<23)), c(113<<23))
	f := g.choose(below, o, g.compare(ir.Eq, ir.U32, exp, c(0)))
	f = g.choose(infinite, f, g.compare(ir.Eq, ir.U32, exp, c(0x7c00<<13)))
	return g.int(ir.Or, f, g.int(ir.ShiftLeft, g.int(ir.And, v, c(0x8000)), c(16)))
}
