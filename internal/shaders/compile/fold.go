// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"math"
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// fold returns what an operation on scalar integers amounts to, or nil where it has to be computed.
func (g *function) fold(n *node) *node {
	x, y := n.args[0], n.args[1]
	if n.args[2] != nil {
		return nil
	}
	if y == nil {
		return g.foldOne(n, x)
	}
	if x.isInt() && y.isInt() {
		if v, ok := compute(n.op, x.imm, y.imm); ok {
			return g.i32(v)
		}
		return nil
	}
	if x.isInt() {
		switch n.op {
		case wasm.I32Add, wasm.I32Mul, wasm.I32And, wasm.I32Or, wasm.I32Xor, wasm.I32Eq, wasm.I32Ne:
			n.args[0], n.args[1] = y, x
			return g.foldConst(n, y, x.imm)
		}
		return nil
	}
	if y.isInt() {
		return g.foldConst(n, x, y.imm)
	}
	if n.op == wasm.I32Add { // constants go to the end
		for _, a := range [][2]*node{{x, y}, {y, x}} {
			if sum := a[0]; sum.op == wasm.I32Add && sum.args[1].isInt() {
				return g.add(g.add(sum.args[0], a[1]), sum.args[1])
			}
		}
		if x.id > y.id { // equal sums are one
			n.args[0], n.args[1] = y, x
		}
	}
	return nil
}

// foldMask simplifies operations on masks that hold for all or for none.
func (g *function) foldMask(n *node) *node {
	for i, c := range n.args[:2] {
		if c == nil || c.op != wasm.V128Const || !cheap(c.lanes) {
			continue
		}
		other := n.args[1-i]
		switch all := c.lanes[0] != 0; {
		case n.op == wasm.V128And && all, n.op == wasm.V128Or && !all:
			return other
		case n.op == wasm.V128And, n.op == wasm.V128Or:
			return c
		case n.op == wasm.V128Not && all:
			return g.words([4]uint32{})
		case n.op == wasm.V128Not:
			return g.words([4]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32})
		case n.op == wasm.V128AndNot && i == 1 && !all:
			return other
		}
	}
	return nil
}

func (g *function) foldOne(n, x *node) *node {
	switch {
	case n.op == wasm.I32Eqz && x.isInt():
		return g.i32(truth(x.imm == 0))
	case n.op == wasm.I32Eqz && x.op < wasm.Op(len(inverse)) && inverse[x.op] != 0:
		return g.opTo(inverse[x.op], wasm.I32, x.args[0], x.args[1])
	case n.op == wasm.F32ReinterpretI && x.isInt():
		return g.all(wasm.F32, true, x.imm)
	case n.op == wasm.F32ConvertI32U && x.isInt():
		return g.f32(float32(x.imm))
	case n.op == wasm.F32ConvertI32S && x.isInt():
		return g.f32(float32(int32(x.imm)))
	}
	return nil
}

// inverse has the comparisons of integers by their opposite.
var inverse = [...]wasm.Op{
	wasm.I32Eq: wasm.I32Ne, wasm.I32Ne: wasm.I32Eq, wasm.I32LtS: wasm.I32GeS, wasm.I32GeS: wasm.I32LtS, wasm.I32LtU: wasm.I32GeU,
	wasm.I32GeU: wasm.I32LtU, wasm.I32GtS: wasm.I32LeS, wasm.I32LeS: wasm.I32GtS, wasm.I32GtU: wasm.I32LeU, wasm.I32LeU: wasm.I32GtU,
}

// foldConst simplifies operations with a constant on the right.
func (g *function) foldConst(n, x *node, c uint32) *node {
	power := bits.OnesCount32(c) == 1
	switch n.op {
	case wasm.I32Add, wasm.I32Sub, wasm.I32Or, wasm.I32Xor, wasm.I32ShrS:
		if c == 0 {
			return x
		}
	case wasm.I32Shl:
		if c == 0 {
			return x
		}
		if x.op == wasm.I32And && x.args[1].isInt() && x.args[1].imm<<(c&31) == math.MaxUint32<<(c&31) {
			return g.op2(wasm.I32Shl, x.args[0], g.i32(c)) // the bits that are masked are shifted out
		}
	case wasm.I32ShrU:
		if c == 0 {
			return x
		}
		if x.op == wasm.I32Shl && x.args[1].isInt() && x.args[1].imm&31 == c&31 {
			return g.and(x.args[0], g.i32(math.MaxUint32>>(c&31)))
		}
	case wasm.I32And:
		if c == math.MaxUint32 || c&(c+1) == 0 && bound(x) <= c {
			return x
		}
	case wasm.I32Mul:
		switch {
		case c == 0:
			return g.i32(0)
		case power:
			return g.op2(wasm.I32Shl, x, g.i32(uint32(bits.TrailingZeros32(c))))
		}
	case wasm.I32DivU:
		if power {
			return g.op2(wasm.I32ShrU, x, g.i32(uint32(bits.TrailingZeros32(c))))
		}
	case wasm.I32RemU:
		if power {
			return g.and(x, g.i32(c-1))
		}
	case wasm.I32LtU:
		if c == 0 || bound(x) < c {
			return g.i32(truth(c != 0))
		}
	case wasm.I32GeU:
		if c == 0 || bound(x) < c {
			return g.i32(truth(c == 0))
		}
	}
	return g.foldSum(n, x, c)
}

// foldSum moves the constant of a sum to the end.
func (g *function) foldSum(n, x *node, c uint32) *node {
	if x.op != wasm.I32Add || !x.args[1].isInt() {
		return nil
	}
	switch k := x.args[1].imm; n.op {
	case wasm.I32Add:
		return g.add(x.args[0], g.i32(k+c))
	case wasm.I32Shl:
		return g.add(g.op2(wasm.I32Shl, x.args[0], g.i32(c)), g.i32(k<<(c&31)))
	case wasm.I32Mul:
		return g.add(g.op2(wasm.I32Mul, x.args[0], g.i32(c)), g.i32(k*c))
	}
	return nil
}

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// compute evaluates an operation on constants. Divisions are guarded before they become nodes.
func compute(op wasm.Op, x, y uint32) (uint32, bool) {
	a, b := int32(x), int32(y)
	switch op {
	case wasm.I32Add:
		return x + y, true
	case wasm.I32Sub:
		return x - y, true
	case wasm.I32Mul:
		return x * y, true
	case wasm.I32And:
		return x & y, true
	case wasm.I32Or:
		return x | y, true
	case wasm.I32Xor:
		return x ^ y, true
	case wasm.I32Shl:
		return x << (y & 31), true
	case wasm.I32ShrU:
		return x >> (y & 31), true
	case wasm.I32ShrS:
		return uint32(a >> (y & 31)), true
	case wasm.I32DivU:
		return x / max(y, 1), true
	case wasm.I32RemU:
		return x % max(y, 1), true
	case wasm.I32Eq:
		return truth(x == y), true
	case wasm.I32Ne:
		return truth(x != y), true
	case wasm.I32LtU:
		return truth(x < y), true
	case wasm.I32LeU:
		return truth(x <= y), true
	case wasm.I32GtU:
		return truth(x > y), true
	case wasm.I32GeU:
		return truth(x >= y), true
	case wasm.I32LtS:
		return truth(a < b), true
	case wasm.I32LeS:
		return truth(a <= b), true
	case wasm.I32GtS:
		return truth(a > b), true
	case wasm.I32GeS:
		return truth(a >= b), true
	}
	return 0, false
}

// bound returns the largest that an unsigned integer can be, as far as a look at it tells.
func bound(n *node) uint32 { return boundOf(n, 4) }

func boundOf(n *node, depth int) uint32 {
	const all = math.MaxUint32
	x, y := n.args[0], n.args[1]
	switch {
	case n.isInt():
		return n.imm
	case n.op == opPhi:
		return n.imm - 1 // of a counter of ours; 0 for none
	case depth == 0 || y == nil || !y.isInt():
		return all
	}
	switch n.op {
	case wasm.I32And:
		return y.imm
	case wasm.I32ShrU:
		return all >> (y.imm & 31)
	case wasm.I32RemU:
		return max(y.imm, 1) - 1
	case wasm.I32Add:
		return uint32(min(uint64(boundOf(x, depth-1))+uint64(y.imm), all)) // all is no bound for a sum that wraps, either
	case wasm.I32Shl:
		return uint32(min(uint64(boundOf(x, depth-1))<<(y.imm&31), all))
	}
	return all
}
