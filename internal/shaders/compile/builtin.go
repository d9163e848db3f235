// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// pair is an instruction on scalars and the same on vectors.
type pair struct{ scalar, vector wasm.Op }

var (
	absolute = pair{wasm.F32Abs, wasm.F32x4Abs}
	ceil     = pair{wasm.F32Ceil, wasm.F32x4Ceil}
	floor    = pair{wasm.F32Floor, wasm.F32x4Floor}
	nearest  = pair{wasm.F32Nearest, wasm.F32x4Nearest}
	trunc    = pair{wasm.F32Trunc, wasm.F32x4Trunc}
	root     = pair{wasm.F32Sqrt, wasm.F32x4Sqrt}
)

// float applies an instruction to a float or a vector of floats.
func (g *function) float(p pair, x *node) *node {
	if x.typ == wasm.V128 {
		return g.op1(p.vector, x)
	}
	return g.op1(p.scalar, x)
}

var floatFns = [ir.Functions]pair{
	ir.FnAbs: absolute, ir.FnCeil: ceil, ir.FnFloor: floor, ir.FnTrunc: trunc, ir.FnSqrt: root,
}

// builtin evaluates a built-in function.
func (g *function) builtin(e *ir.Builtin) []*node {
	switch {
	case e.Fn == ir.FnArrayLength:
		return []*node{g.ref(e.Ref).va.length}
	case e.Fn >= ir.FnAtomicLoad:
		return g.atomic(e)
	}
	x := make([]*node, 0, 4)
	for _, a := range e.Args {
		x = append(x, g.expr(a)...)
	}
	t := e.Args[0].Type()
	k, n := t.Scalar().Kind, 1
	if t.Kind == ir.Vector {
		n = t.Len
	}
	if h, _ := g.gen.helper(e.Fn); h != nil {
		return []*node{g.helped(h, x)}
	}
	switch e.Fn {
	case ir.FnTranspose:
		return g.transpose(x, t.Elem.Len)
	case ir.FnDeterminant:
		return []*node{g.determinant(x)}
	case ir.FnFrexp:
		return g.frexp(x[0])
	case ir.FnModf:
		whole := g.float(trunc, x[0])
		return []*node{g.sub(x[0], whole), whole}
	}
	if p := floatFns[e.Fn]; p.scalar != 0 && k == ir.F32 {
		return []*node{g.float(p, x[0])}
	}
	for _, family := range []func(fn ir.Fn, k ir.Kind, x []*node, n int) *node{g.common, g.geometric, g.bits, g.packed} {
		if v := family(e.Fn, k, x, n); v != nil {
			return []*node{v}
		}
	}
	panic(errInternal)
}

// widen puts scalars beside vectors into all lanes.
func (g *function) widen(x []*node) {
	for i, v := range x {
		if x[0].typ == wasm.V128 && v.typ != wasm.V128 {
			x[i] = g.splat(v)
		}
	}
}

// common are the functions on numbers by component.
func (g *function) common(fn ir.Fn, k ir.Kind, x []*node, n int) *node {
	is := func(op ir.Op, a, b *node) *node { return g.compare(op, k, a, b) }
	switch fn {
	case ir.FnSelect:
		return g.choose(x[1], x[0], x[2])
	case ir.FnAll, ir.FnAny:
		return g.truths(fn, x[0], n)
	case ir.FnRound:
		return g.rounded(x[0])
	case ir.FnAbs:
		return g.magnitude(k, x[0])
	case ir.FnMin:
		return g.lesser(k, x[0], x[1])
	case ir.FnMax:
		return g.greater(k, x[0], x[1])
	case ir.FnClamp: // in this order it is never NaN unless the limits are
		return g.lesser(k, x[2], g.greater(k, x[1], x[0]))
	case ir.FnSaturate:
		return g.saturate(x[0])
	case ir.FnSign:
		return g.sign(k, x[0])
	case ir.FnFract:
		return g.sub(x[0], g.float(floor, x[0]))
	case ir.FnInverseSqrt:
		return g.div(g.floats(x[0], 1), g.float(root, x[0]))
	case ir.FnDegrees:
		return g.mul(x[0], g.floats(x[0], 180/math.Pi))
	case ir.FnRadians:
		return g.mul(x[0], g.floats(x[0], math.Pi/180))
	case ir.FnFma:
		return g.fma(x[0], x[1], x[2])
	case ir.FnMix:
		g.widen(x)
		return g.plus(g.mul(x[0], g.sub(g.floats(x[0], 1), x[2])), g.mul(x[1], x[2]))
	case ir.FnStep:
		return g.choose(g.floats(x[0], 1), g.floats(x[0], 0), is(ir.Le, x[0], x[1]))
	case ir.FnSmoothstep:
		u := g.saturate(g.div(g.sub(x[2], x[0]), g.sub(x[1], x[0])))
		return g.mul(g.mul(u, u), g.sub(g.floats(u, 3), g.mul(g.floats(u, 2), u)))
	case ir.FnLdexp:
		return g.ldexp(x[0], x[1])
	case ir.FnQuantizeToF16:
		if x[0].typ == wasm.V128 {
			return g.fromHalf(g.toHalf(x[0]))
		}
		return g.lane(g.fromHalf(g.toHalf(g.splat(x[0]))), 0, ir.F32)
	}
	return nil
}

func (g *function) fma(x, y, z *node) *node {
	if g.gen.o.Relaxed && x.typ == wasm.V128 {
		return g.make(&node{op: wasm.F32x4RelaxedMadd, typ: wasm.V128, args: [3]*node{x, y, z}})
	}
	return g.plus(g.mul(x, y), z)
}

// truths is all or any. Lanes that are no components must not count.
func (g *function) truths(fn ir.Fn, x *node, n int) *node {
	if x.typ != wasm.V128 {
		return x
	}
	var w [4]uint32
	for i := range w {
		if (i < n) == (fn == ir.FnAny) {
			w[i] = math.MaxUint32
		}
	}
	switch {
	case fn == ir.FnAny && n == 4:
		return g.opTo(wasm.V128AnyTrue, wasm.I32, x)
	case fn == ir.FnAny:
		return g.opTo(wasm.V128AnyTrue, wasm.I32, g.op2(wasm.V128And, x, g.words(w)))
	case n < 4:
		x = g.op2(wasm.V128Or, x, g.words(w))
	}
	return g.opTo(wasm.I32x4AllTrue, wasm.I32, x)
}

func (g *function) magnitude(k ir.Kind, x *node) *node {
	switch {
	case k == ir.F32:
		return g.float(absolute, x)
	case k == ir.U32:
		return x
	case x.typ == wasm.V128:
		return g.op1(wasm.I32x4Abs, x)
	}
	return g.choose(g.neg(k, x), x, g.op2(wasm.I32LtS, x, g.i32(0)))
}

// lesser and greater of floats may be either of two of which one is NaN.
func (g *function) lesser(k ir.Kind, x, y *node) *node {
	o := ops{f: wasm.F32Min, vf: wasm.F32x4Pmin, vi: wasm.I32x4MinS, vu: wasm.I32x4MinU}
	if op := o.of(k, x.typ == wasm.V128); op != 0 {
		return g.op2(op, x, y)
	}
	return g.choose(x, y, g.compare(ir.Lt, k, x, y))
}

func (g *function) greater(k ir.Kind, x, y *node) *node {
	o := ops{f: wasm.F32Max, vf: wasm.F32x4Pmax, vi: wasm.I32x4MaxS, vu: wasm.I32x4MaxU}
	if op := o.of(k, x.typ == wasm.V128); op != 0 {
		return g.op2(op, x, y)
	}
	return g.choose(x, y, g.compare(ir.Gt, k, x, y))
}

func (g *function) saturate(x *node) *node {
	return g.lesser(ir.F32, g.greater(ir.F32, x, g.floats(x, 0)), g.floats(x, 1))
}

func (g *function) sign(k ir.Kind, x *node) *node {
	zero := g.zero(x.typ)
	if k == ir.F32 {
		zero = g.floats(x, 0)
	}
	up, down := g.compare(ir.Gt, k, x, zero), g.compare(ir.Lt, k, x, zero)
	switch {
	case k == ir.F32 && x.typ == wasm.V128:
		return g.op2(wasm.V128Or, g.op2(wasm.V128And, up, g.floats(x, 1)), g.op2(wasm.V128And, down, g.floats(x, -1)))
	case x.typ == wasm.V128:
		return g.op2(wasm.I32x4Sub, down, up)
	case k == ir.F32:
		return g.opTo(wasm.F32ConvertI32S, wasm.F32, g.op2(wasm.I32Sub, up, down))
	}
	return g.op2(wasm.I32Sub, up, down)
}

// int applies an operator to integers or vectors of them, the second of which may be a constant.
func (g *function) int(op ir.Op, x, y *node) *node { return g.arith(op, ir.U32, x, y, 4) }

// power returns 2 to a power of -126 to 127.
func (g *function) power(n *node, t wasm.ValType) *node {
	return g.bitcast(g.int(ir.ShiftLeft, g.int(ir.Add, n, g.ints(n, 127)), g.ints(n, 23)), t)
}

// ldexp multiplies by half of the power and then by the rest of it, which may each be in range where it is not.
func (g *function) ldexp(x, e *node) *node {
	e = g.lesser(ir.I32, g.greater(ir.I32, e, g.ints(e, uint32(0xffffffff-251))), g.ints(e, 254))
	half := g.arith(ir.ShiftRight, ir.I32, e, g.ints(e, 1), 4)
	return g.mul(g.mul(x, g.power(half, x.typ)), g.power(g.int(ir.Sub, e, half), x.typ))
}

// frexp returns fraction and exponent. Numbers below the normal ones are made larger first.
func (g *function) frexp(x *node) []*node {
	t := wasm.I32
	if x.typ == wasm.V128 {
		t = wasm.V128
	}
	small := g.compare(ir.Lt, ir.F32, g.float(absolute, x), g.floats(x, 0x1p-126))
	scaled := g.choose(g.mul(x, g.floats(x, 0x1p24)), x, small)
	bits := g.bitcast(scaled, t)
	exp := g.int(ir.And, g.int(ir.ShiftRight, bits, g.ints(bits, 23)), g.ints(bits, 255))
	exp = g.int(ir.Sub, exp, g.choose(g.ints(bits, 126+24), g.ints(bits, 126), small))
	fract := g.int(ir.Or, g.int(ir.And, bits, g.ints(bits, 0x807fffff)), g.ints(bits, 0x3f000000))
	none := g.compare(ir.Eq, ir.F32, x, g.floats(x, 0))
	return []*node{g.choose(x, g.bitcast(fract, x.typ), none), g.choose(g.ints(bits, 0), exp, none)}
}

// geometric are the functions on vectors as such.
func (g *function) geometric(fn ir.Fn, k ir.Kind, x []*node, n int) *node {
	dot := func(a, b *node) *node { return g.dot(k, a, b, n) }
	like := func(s *node) *node { return g.splat(s) }
	switch fn {
	case ir.FnDot:
		return dot(x[0], x[1])
	case ir.FnLength:
		return g.length(x[0], n)
	case ir.FnDistance:
		return g.length(g.sub(x[0], x[1]), n)
	case ir.FnNormalize:
		return g.div(x[0], like(g.length(x[0], n)))
	case ir.FnCross:
		yzx := func(v *node) *node { return g.shuffle(v, v, [4]uint8{1, 2, 0, 3}) }
		zxy := func(v *node) *node { return g.shuffle(v, v, [4]uint8{2, 0, 1, 3}) }
		return g.sub(g.mul(yzx(x[0]), zxy(x[1])), g.mul(zxy(x[0]), yzx(x[1])))
	case ir.FnReflect:
		return g.sub(x[0], g.mul(like(g.mul(g.f32(2), dot(x[1], x[0]))), x[1]))
	case ir.FnFaceForward:
		away := g.compare(ir.Lt, ir.F32, dot(x[1], x[2]), g.f32(0))
		return g.choose(x[0], g.neg(ir.F32, x[0]), away)
	case ir.FnRefract:
		d, eta := dot(x[1], x[0]), x[2]
		left := g.sub(g.f32(1), g.mul(g.mul(eta, eta), g.sub(g.f32(1), g.mul(d, d))))
		along := g.plus(g.mul(eta, d), g.float(root, left))
		v := g.sub(g.mul(like(eta), x[0]), g.mul(like(along), x[1]))
		return g.choose(g.floats(v, 0), v, g.compare(ir.Lt, ir.F32, left, g.f32(0)))
	}
	return nil
}

func (g *function) length(x *node, n int) *node {
	if n == 1 {
		return g.float(absolute, x)
	}
	return g.float(root, g.dot(ir.F32, x, x, n))
}

func (g *function) transpose(cols []*node, rows int) []*node {
	list := make([]*node, rows)
	for r := range list {
		parts := make([]source, len(cols))
		for c := range parts {
			parts[c] = source{cols[c], r}
		}
		list[r] = g.gather(parts)
	}
	return list
}

// determinant expands along the first row.
func (g *function) determinant(m []*node) *node {
	at := func(c, r int) *node { return g.lane(m[c], r, ir.F32) }
	two := func(c, d, r, s int) *node { return g.sub(g.mul(at(c, r), at(d, s)), g.mul(at(d, r), at(c, s))) }
	three := func(a, b, c, r int) *node {
		sum := g.sub(g.mul(at(a, r), two(b, c, r+1, r+2)), g.mul(at(b, r), two(a, c, r+1, r+2)))
		return g.plus(sum, g.mul(at(c, r), two(a, b, r+1, r+2)))
	}
	switch len(m) {
	case 2:
		return two(0, 1, 0, 1)
	case 3:
		return three(0, 1, 2, 0)
	}
	sum := g.sub(g.mul(at(0, 0), three(1, 2, 3, 1)), g.mul(at(1, 0), three(0, 2, 3, 1)))
	return g.plus(sum, g.sub(g.mul(at(2, 0), three(0, 1, 3, 1)), g.mul(at(3, 0), three(0, 1, 2, 1))))
}
