// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// ops are the instructions of an operator: on f32, i32 and u32, and on vectors of them.
type ops struct{ f, i, u, vf, vi, vu wasm.Op }

var arithmetic = [...]ops{
	ir.Add: {wasm.F32Add, wasm.I32Add, wasm.I32Add, wasm.F32x4Add, wasm.I32x4Add, wasm.I32x4Add},
	ir.Sub: {wasm.F32Sub, wasm.I32Sub, wasm.I32Sub, wasm.F32x4Sub, wasm.I32x4Sub, wasm.I32x4Sub},
	ir.Mul: {wasm.F32Mul, wasm.I32Mul, wasm.I32Mul, wasm.F32x4Mul, wasm.I32x4Mul, wasm.I32x4Mul},
	ir.Div: {f: wasm.F32Div, vf: wasm.F32x4Div},
	ir.And: {0, wasm.I32And, wasm.I32And, 0, wasm.V128And, wasm.V128And},
	ir.Or:  {0, wasm.I32Or, wasm.I32Or, 0, wasm.V128Or, wasm.V128Or},
	ir.Xor: {0, wasm.I32Xor, wasm.I32Xor, 0, wasm.V128Xor, wasm.V128Xor},
	ir.Eq:  {wasm.F32Eq, wasm.I32Eq, wasm.I32Eq, wasm.F32x4Eq, wasm.I32x4Eq, wasm.I32x4Eq},
	ir.Ne:  {wasm.F32Ne, wasm.I32Ne, wasm.I32Ne, wasm.F32x4Ne, wasm.I32x4Ne, wasm.I32x4Ne},
	ir.Lt:  {wasm.F32Lt, wasm.I32LtS, wasm.I32LtU, wasm.F32x4Lt, wasm.I32x4LtS, wasm.I32x4LtU},
	ir.Le:  {wasm.F32Le, wasm.I32LeS, wasm.I32LeU, wasm.F32x4Le, wasm.I32x4LeS, wasm.I32x4LeU},
	ir.Gt:  {wasm.F32Gt, wasm.I32GtS, wasm.I32GtU, wasm.F32x4Gt, wasm.I32x4GtS, wasm.I32x4GtU},
	ir.Ge:  {wasm.F32Ge, wasm.I32GeS, wasm.I32GeU, wasm.F32x4Ge, wasm.I32x4GeS, wasm.I32x4GeU},

	ir.ShiftLeft:  {0, wasm.I32Shl, wasm.I32Shl, 0, wasm.I32x4Shl, wasm.I32x4Shl},
	ir.ShiftRight: {0, wasm.I32ShrS, wasm.I32ShrU, 0, wasm.I32x4ShrS, wasm.I32x4ShrU},
}

func (o ops) of(k ir.Kind, vector bool) wasm.Op {
	switch {
	case k == ir.F32 && vector:
		return o.vf
	case k == ir.F32:
		return o.f
	case k == ir.I32 && vector:
		return o.vi
	case k == ir.I32:
		return o.i
	case vector:
		return o.vu
	}
	return o.u
}

func (g *function) binary(e *ir.Binary) []*node {
	if e.Op == ir.AndAlso || e.Op == ir.OrElse {
		return []*node{g.shortCut(e)}
	}
	x, y := g.expr(e.X), g.expr(e.Y)
	tx, ty := e.X.Type(), e.Y.Type()
	if e.Op == ir.Mul && (tx.Kind == ir.Matrix || ty.Kind == ir.Matrix) {
		return g.product(x, y, tx, ty)
	}
	n := 1
	if tx.Kind == ir.Vector {
		n = tx.Len
	}
	for i := range x {
		x[i] = g.arith(e.Op, tx.Scalar().Kind, x[i], y[i], n)
	}
	return x
}

// arith applies an operator to scalars or vectors of n components.
func (g *function) arith(op ir.Op, k ir.Kind, x, y *node, n int) *node {
	vector := x.typ == wasm.V128
	switch op {
	case ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge:
		return g.compare(op, k, x, y)
	case ir.ShiftLeft, ir.ShiftRight:
		if vector {
			return g.shift(op, k, x, y, n)
		}
	case ir.Mod:
		if k == ir.F32 {
			return g.sub(x, g.mul(y, g.float(trunc, g.div(x, y))))
		}
		return g.divide(op, k, x, y, n)
	case ir.Div:
		if k != ir.F32 {
			return g.divide(op, k, x, y, n)
		}
	}
	if g.gen.o.Fuse && !g.apart && vector && k == ir.F32 {
		if v := g.fused(op, x, y); v != nil {
			return v
		}
	}
	return g.op2(arithmetic[op].of(k, vector), x, y)
}

// fused adds to a product or subtracts one in a single instruction. WGSL allows that; rounding once is the better result.
func (g *function) fused(op ir.Op, x, y *node) *node {
	three := func(op wasm.Op, product, z *node) *node {
		return g.make(&node{op: op, typ: wasm.V128, args: [3]*node{product.args[0], product.args[1], z}})
	}
	switch {
	case op == ir.Add && y.op == wasm.F32x4Mul:
		return three(wasm.F32x4RelaxedMadd, y, x)
	case op == ir.Add && x.op == wasm.F32x4Mul:
		return three(wasm.F32x4RelaxedMadd, x, y)
	case op == ir.Sub && y.op == wasm.F32x4Mul:
		return three(wasm.F32x4RelaxedNmadd, y, x)
	case op == ir.Add && x.op == opPhi && y.op == wasm.F32x4RelaxedMadd: // the sum of a loop takes one product after another
		return three(wasm.F32x4RelaxedMadd, y, g.plus(x, y.args[2]))
	}
	return nil
}

// compare yields a truth value, or a mask of vectors.
func (g *function) compare(op ir.Op, k ir.Kind, x, y *node) *node {
	t := wasm.I32
	if x.typ == wasm.V128 {
		t = wasm.V128
	}
	if op == ir.Gt && k == ir.U32 && isAll(y, 0x7f800000) && (x.op == wasm.V128And || x.op == wasm.I32And) && isAll(x.args[1], 0x7fffffff) {
		v := g.bitcast(x.args[0], map[wasm.ValType]wasm.ValType{wasm.I32: wasm.F32, wasm.V128: wasm.V128}[t])
		return g.compare(ir.Ne, ir.F32, v, v) // a test for NaN that compilers for GPUs cannot remove
	}
	return g.opTo(arithmetic[op].of(k, t == wasm.V128), t, x, y)
}

// isAll reports whether a node is a constant, or one in all lanes.
func isAll(n *node, v uint32) bool {
	switch n.op {
	case wasm.I32Const:
		return n.imm == v
	case wasm.V128Const:
		return n.word(0) == v && n.word(1) == v && n.word(2) == v && n.word(3) == v
	}
	return false
}

// shift shifts all components by the same, or each by its own.
func (g *function) shift(op ir.Op, k ir.Kind, x, y *node, n int) *node {
	o := arithmetic[op]
	if s := g.same(y); s != nil {
		if op == ir.ShiftLeft && s.isInt() && x.op == wasm.I32x4Sub && x.args[1].op == wasm.V128Const && isAll(x.args[1], x.args[1].word(0)) &&
			x.args[1].word(0)<<(s.imm&31) == 0 {
			x = x.args[0] // what is subtracted is shifted out
		}
		return g.make(&node{op: o.of(k, true), typ: wasm.V128, args: [3]*node{x, s}})
	}
	if op == ir.ShiftLeft && y.op == wasm.V128Const {
		var w [4]uint32
		for i := range w {
			w[i] = 1 << (y.word(i) & 31)
		}
		return g.op2(wasm.I32x4Mul, x, g.words(w))
	}
	return g.perLane(n, func(i int) *node { return g.op2(o.of(k, false), g.lane(x, i, k), g.lane(y, i, ir.U32)) })
}

// divide divides integers. What would trap is divided by 1: x / 0 is x, and so is the smallest number by -1.
func (g *function) divide(op ir.Op, k ir.Kind, x, y *node, n int) *node {
	if x.typ == wasm.V128 {
		if c := y.word(0); k == ir.U32 && y.op == wasm.V128Const && isAll(y, c) && bits.OnesCount32(c) == 1 {
			if op == ir.Mod {
				return g.int(ir.And, x, g.ints(x, c-1))
			}
			return g.int(ir.ShiftRight, x, g.ints(x, uint32(bits.TrailingZeros32(c))))
		}
		return g.perLane(n, func(i int) *node { return g.divide(op, k, g.lane(x, i, k), g.lane(y, i, k), 1) })
	}
	o := wasm.I32DivU
	switch {
	case op == ir.Div && k == ir.I32:
		o = wasm.I32DivS
	case op == ir.Mod && k == ir.I32:
		o = wasm.I32RemS
	case op == ir.Mod:
		o = wasm.I32RemU
	}
	if !y.isInt() || y.imm == 0 {
		y = g.op2(wasm.I32Or, y, g.opTo(wasm.I32Eqz, wasm.I32, y))
	}
	if k == ir.I32 && (!y.isInt() || y.imm == ^uint32(0)) {
		lowest := g.op2(wasm.I32Eq, x, g.i32(1<<31))
		y = g.choose(g.i32(1), y, g.and(lowest, g.op2(wasm.I32Eq, y, g.i32(^uint32(0)))))
	}
	return g.op2(o, x, y)
}

// shortCut evaluates the right-hand side only where the left-hand side does not decide, unless that costs more than it saves.
func (g *function) shortCut(e *ir.Binary) *node {
	x, op := g.one(e.X), wasm.I32And
	if e.Op == ir.OrElse {
		op = wasm.I32Or
	}
	if x.isInt() {
		if (x.imm != 0) == (e.Op == ir.OrElse) {
			return x
		}
		return g.one(e.Y)
	}
	if g.gen.plain(e.Y) {
		return g.op2(op, x, g.one(e.Y))
	}
	cell := g.newCells(1)
	g.cur[cell] = x
	cond := x
	if e.Op == ir.OrElse {
		cond = g.opTo(wasm.I32Eqz, wasm.I32, x)
	}
	g.branch(cond, func() { g.assign(cell, g.one(e.Y)) }, nil)
	return g.cur[cell]
}

// product multiplies where a factor is a matrix.
func (g *function) product(x, y []*node, tx, ty *ir.Type) []*node {
	switch {
	case tx.Kind == ir.F32:
		return g.scaled(y, x[0])
	case ty.Kind == ir.F32:
		return g.scaled(x, y[0])
	case tx.Kind == ir.Vector: // a row
		parts := make([]source, ty.Len)
		for c := range parts {
			parts[c] = source{g.dot(ir.F32, x[0], y[c], tx.Len), -1}
		}
		return []*node{g.gather(parts)}
	}
	list := make([]*node, len(y))
	for c, v := range y {
		for r := range tx.Len {
			term := g.mul(x[r], g.splat(g.lane(v, r, ir.F32)))
			if r == 0 {
				list[c] = term
			} else {
				list[c] = g.plus(list[c], term)
			}
		}
	}
	return list
}

func (g *function) scaled(m []*node, s *node) []*node {
	s = g.splat(s)
	for i := range m {
		m[i] = g.mul(m[i], s)
	}
	return m
}

// plus, sub, mul and div are of floats or vectors of them.
func (g *function) plus(x, y *node) *node { return g.arith(ir.Add, ir.F32, x, y, 4) }
func (g *function) sub(x, y *node) *node  { return g.arith(ir.Sub, ir.F32, x, y, 4) }
func (g *function) mul(x, y *node) *node  { return g.arith(ir.Mul, ir.F32, x, y, 4) }
func (g *function) div(x, y *node) *node  { return g.arith(ir.Div, ir.F32, x, y, 4) }

// dot sums the products of n components.
func (g *function) dot(k ir.Kind, x, y *node, n int) *node {
	p := g.arith(ir.Mul, k, x, y, n)
	part := func(i int) *node { return g.lane(p, i, k) }
	sum := g.arith(ir.Add, k, part(0), part(1), 1)
	switch n {
	case 3:
		sum = g.arith(ir.Add, k, sum, part(2), 1)
	case 4:
		sum = g.arith(ir.Add, k, sum, g.arith(ir.Add, k, part(2), part(3), 1), 1)
	}
	return sum
}
