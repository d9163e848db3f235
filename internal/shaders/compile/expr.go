// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// one evaluates an expression of one cell.
func (g *function) one(e ir.Expr) *node { return g.expr(e)[0] }

// expr evaluates an expression. The cells that it returns belong to the caller.
func (g *function) expr(e ir.Expr) []*node {
	g.gen.spend(1)
	switch e := e.(type) {
	case *ir.Const:
		return g.constant(e)
	case *ir.Use:
		return g.use(e.Value)
	case *ir.Load:
		return g.load(g.ref(e.Ref))
	case *ir.Part:
		return g.part(e)
	case *ir.Swizzle:
		return []*node{g.swizzle(e)}
	case *ir.Unary:
		return g.unary(e)
	case *ir.Binary:
		return g.binary(e)
	case *ir.Construct:
		return g.construct(e)
	case *ir.Convert:
		return []*node{g.convert(g.one(e.X), e.X.Type().Scalar().Kind, e.T.Scalar().Kind)}
	case *ir.Bitcast:
		return []*node{g.bitcast(g.one(e.X), valType(e.T))}
	case *ir.Call:
		return g.call(e)
	case *ir.Builtin:
		return g.builtin(e)
	case *ir.Lanes:
		return g.access(e)
	}
	panic(errInternal)
}

func (g *function) use(v *ir.Value) []*node {
	if cell, ok := g.kept[v]; ok {
		return append([]*node(nil), g.cur[cell:cell+g.gen.count(v.Type)]...)
	}
	return append([]*node(nil), g.values[v]...)
}

// constant makes a vector of truth values a mask.
func (g *function) constant(c *ir.Const) []*node {
	var list []*node
	words := c.Words
	for _, cell := range g.gen.cells(c.T) {
		n := 1
		if cell.t.Kind == ir.Vector {
			n = cell.t.Len
			var w [4]uint32
			copy(w[:], words[:n])
			if cell.t.Elem.Kind == ir.Bool {
				for i := range w {
					w[i] = -w[i]
				}
			}
			if equal := w[0]; n < 4 && w[1] == equal && (n == 2 || w[2] == equal) {
				w = [4]uint32{equal, equal, equal, equal} // what the rest is does not matter
			}
			list = append(list, g.words(w))
		} else {
			list = append(list, g.all(valType(cell.t), cell.t.Kind == ir.F32, words[0]))
		}
		words = words[n:]
	}
	return list
}

func (g *function) part(e *ir.Part) []*node {
	x, t := g.expr(e.X), e.X.Type()
	if t.Kind == ir.Struct {
		from := g.gen.before(t, e.Step.Field)
		return x[from : from+g.gen.count(e.T)]
	}
	i := g.one(e.Step.Index)
	if t.Kind == ir.Vector {
		if i.isInt() {
			i = g.i32(min(i.imm, uint32(t.Len-1)))
		}
		return []*node{g.component(x[0], i, e.T)}
	}
	n := g.gen.count(e.T)
	if i.isInt() {
		from := int(min(i.imm, uint32(t.Len-1))) * n
		return x[from : from+n]
	}
	if t.Len > 4 {
		p := g.spill(e.X, x).whole()
		p.t = t.Elem
		g.index(&p, i, t) // of an index that was evaluated once: it may be a call
		return g.load(p)
	}
	list := append([]*node(nil), x[(t.Len-1)*n:]...)
	for k := t.Len - 2; k >= 0; k-- {
		here := g.op2(wasm.I32Eq, i, g.i32(uint32(k)))
		for c := range list {
			list[c] = g.choose(x[k*n+c], list[c], here)
		}
	}
	return list
}

func (g *function) swizzle(e *ir.Swizzle) *node {
	x, k := g.one(e.X), e.X.Type().Elem.Kind
	if len(e.Lanes) == 1 {
		return g.lane(x, int(e.Lanes[0]), k)
	}
	lanes := [4]uint8{0, 1, 2, 3}
	copy(lanes[:], e.Lanes)
	same := true
	for _, l := range e.Lanes {
		same = same && l == e.Lanes[0]
	}
	if same {
		lanes = [4]uint8{e.Lanes[0], e.Lanes[0], e.Lanes[0], e.Lanes[0]}
		if k != ir.Bool {
			return g.splat(g.lane(x, int(e.Lanes[0]), k))
		}
	}
	return g.shuffle(x, x, lanes)
}

func (g *function) unary(e *ir.Unary) []*node {
	list, k := g.expr(e.X), e.X.Type().Scalar().Kind
	for i, x := range list {
		vector := x.typ == wasm.V128
		switch {
		case e.Op == ir.Not && vector || e.Op == ir.Complement && vector:
			list[i] = g.op1(wasm.V128Not, x)
		case e.Op == ir.Not:
			list[i] = g.opTo(wasm.I32Eqz, wasm.I32, x)
		case e.Op == ir.Complement:
			list[i] = g.op2(wasm.I32Xor, x, g.i32(math.MaxUint32))
		default:
			list[i] = g.neg(k, x)
		}
	}
	return list
}

func (g *function) neg(k ir.Kind, x *node) *node {
	switch {
	case x.typ == wasm.V128 && k == ir.F32:
		return g.op1(wasm.F32x4Neg, x)
	case x.typ == wasm.V128:
		return g.op1(wasm.I32x4Neg, x)
	case k == ir.F32:
		return g.op1(wasm.F32Neg, x)
	}
	return g.op2(wasm.I32Sub, g.i32(0), x)
}

func (g *function) construct(e *ir.Construct) []*node {
	var all []*node
	for _, a := range e.Args {
		all = append(all, g.expr(a)...)
	}
	switch {
	case len(e.Args) == 0:
		return g.zeros(e.T)
	case e.T.Kind == ir.Vector:
		return []*node{g.vector(e.Args, all, e.T.Elem.Kind)}
	case e.T.Kind == ir.Matrix && e.Args[0].Type().IsScalar():
		rows := e.T.Elem.Len
		var cols []*node
		for c := range e.T.Len {
			parts := make([]source, rows)
			for r := range parts {
				parts[r] = source{all[c*rows+r], -1}
			}
			cols = append(cols, g.gather(parts))
		}
		return cols
	}
	return all
}

func (g *function) vector(args []ir.Expr, values []*node, k ir.Kind) *node {
	mask := func(n *node) *node {
		if k == ir.Bool {
			return g.op2(wasm.I32Sub, g.i32(0), n)
		}
		return n
	}
	if len(args) == 1 {
		if args[0].Type().IsScalar() {
			return g.splat(mask(values[0]))
		}
		return values[0]
	}
	var parts []source
	for i, a := range args {
		if a.Type().IsScalar() {
			parts = append(parts, source{mask(values[i]), -1})
			continue
		}
		for l := range a.Type().Len {
			parts = append(parts, source{values[i], l})
		}
	}
	return g.gather(parts)
}

// zeros returns the zero of a type.
func (g *function) zeros(t *ir.Type) []*node {
	var list []*node
	for _, c := range g.gen.cells(t) {
		list = append(list, g.zero(valType(c.t)))
	}
	return list
}

func (g *function) bitcast(x *node, t wasm.ValType) *node {
	switch {
	case x.typ == t:
		return x
	case t == wasm.F32 && x.op == wasm.I32ReinterpretF || t == wasm.I32 && x.op == wasm.F32ReinterpretI:
		return x.args[0]
	case t == wasm.I32 && x.op == wasm.F32Const:
		return g.i32(x.imm)
	case t == wasm.F32:
		return g.opTo(wasm.F32ReinterpretI, wasm.F32, x)
	case t == wasm.I32:
		return g.opTo(wasm.I32ReinterpretF, wasm.I32, x)
	}
	panic(errInternal)
}

const magic = 12582912

// rounded returns the nearest whole numbers. It rounds small numbers by adding 1.5 * 2^23 and subtracting it again, which takes less time.
func (g *function) rounded(x *node) *node {
	if !small(x) {
		return g.float(nearest, x)
	}
	sum := g.plus(x, g.floats(x, magic))
	n := g.sub(sum, g.floats(x, magic))
	g.wholes[n] = sum
	return n
}

// small reports whether all elements of a vector of floats are known to be smaller than 2^20.
func small(n *node) bool {
	if n.typ != wasm.V128 {
		return false
	}
	lo, hi := span(n, 0)
	return lo > -1<<20 && hi < 1<<20
}

// lowBits returns a vector of floats with small whole numbers in their low bits, or nil if those of n are not known to be that.
func (g *function) lowBits(n *node) *node {
	switch n.op {
	case wasm.F32x4Floor, wasm.F32x4Ceil, wasm.F32x4Trunc:
		if small(n.args[0]) {
			return g.plus(n, g.floats(n, magic))
		}
	}
	return g.wholes[n]
}

// span returns between which numbers those of a vector are, as far as clamping to constants tells. With NaN nothing is known.
func span(n *node, depth int) (lo, hi float32) {
	lo, hi = float32(math.Inf(-1)), float32(math.Inf(1))
	x, y := n.args[0], n.args[1]
	if y == nil || depth > 8 {
		return lo, hi
	}
	constant := func(n *node) bool { return n.op == wasm.V128Const && isAll(n, n.word(0)) }
	if n.op == wasm.F32x4Pmin && constant(x) { // of the clamped: a number, since those are compared in this order
		if y.op == wasm.F32x4Pmax && constant(y.args[0]) {
			return math.Float32frombits(y.args[0].word(0)), math.Float32frombits(x.word(0))
		}
		return lo, hi
	}
	if !constant(y) {
		return lo, hi
	}
	c := math.Float32frombits(y.word(0))
	lo, hi = span(x, depth+1)
	switch n.op {
	case wasm.F32x4Mul:
		return min(lo*c, hi*c), max(lo*c, hi*c)
	case wasm.F32x4Add:
		return lo + c, hi + c
	case wasm.F32x4Sub:
		return lo - c, hi - c
	}
	return float32(math.Inf(-1)), float32(math.Inf(1))
}

// convert changes numbers and truth values from one kind to another.
func (g *function) convert(x *node, from, to ir.Kind) *node {
	vector := x.typ == wasm.V128
	pick := func(scalar, vec wasm.Op, t wasm.ValType) *node {
		if vector {
			return g.op1(vec, x)
		}
		return g.opTo(scalar, t, x)
	}
	switch {
	case from == to:
		return x
	case to == ir.Bool && from == ir.F32:
		return g.compare(ir.Ne, ir.F32, x, g.zero(x.typ))
	case to == ir.Bool:
		return g.compare(ir.Ne, ir.U32, x, g.zero(x.typ))
	case from == ir.Bool && vector && to == ir.F32:
		return g.op2(wasm.V128And, x, g.floats(x, 1))
	case from == ir.Bool && vector:
		return g.op2(wasm.V128And, x, g.ints(x, 1))
	case to == ir.F32 && from == ir.I32:
		return pick(wasm.F32ConvertI32S, wasm.F32x4ConvertI32S, wasm.F32)
	case to == ir.F32:
		return pick(wasm.F32ConvertI32U, wasm.F32x4ConvertI32U, wasm.F32)
	case from == ir.F32 && to == ir.I32 && vector && g.lowBits(x) != nil:
		// Engines take many more instructions for NaN and what is too large.
		return g.op2(wasm.I32x4Sub, g.lowBits(x), g.ints(x, math.Float32bits(magic)))
	case from == ir.F32 && to == ir.I32:
		return pick(wasm.I32TruncSatF32S, wasm.I32x4TruncSatF32S, wasm.I32)
	case from == ir.F32:
		return pick(wasm.I32TruncSatF32U, wasm.I32x4TruncSatF32U, wasm.I32)
	}
	return x
}
