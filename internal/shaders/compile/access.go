// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// array is an array in memory of which four invocations access a scalar each.
type array struct {
	place         // of the scalar in the first element
	last   *node  // the index of the last element
	stride uint32 // bytes from an element to the next
}

// maxStride is the largest distance in elements, between the indices of neighbours, for which one test covers all four indices.
const maxStride = 1 << 12

// access loads or stores a scalar for each of four invocations. If all four indices are in range and, for a store, no invocation is
// masked, the four scalars are accessed without further tests: as one vector if they are next to each other. Otherwise each index is
// clamped by itself.
func (g *function) access(e *ir.Lanes) []*node {
	p := g.ref(&ir.Ref{Var: e.Ref.Var, Path: e.Ref.Path[:e.At]})
	a := array{place: p, last: p.va.last, stride: uint32(p.t.Stride)}
	if p.t.Len > 0 {
		a.last = g.i32(uint32(p.t.Len - 1))
	}
	a.t = p.t.Elem
	for _, s := range e.Ref.Path[e.At+1:] {
		a.place = g.step(a.place, s)
	}
	i := g.one(e.Ref.Path[e.At].Index)
	var x, mask *node
	if e.X != nil {
		x = g.one(e.X)
		if a.t.Kind == ir.Bool {
			x = g.op2(wasm.V128And, x, g.ints(x, 1))
		}
	}
	if e.Mask != nil {
		mask = g.one(e.Mask)
	}
	cell := g.newCells(1)
	g.cur[cell] = g.zero(wasm.V128)
	each := func() { g.assign(cell, g.clamped(a, g.spread(i, e.Stride), x, mask)) }
	if span := 3 * e.Stride; i.typ == wasm.V128 || e.Stride > maxStride {
		each()
	} else {
		last := g.op2(wasm.I32Sub, a.last, g.i32(span))
		enough := g.choose(g.add(last, g.i32(1)), g.i32(0), g.op2(wasm.I32GeU, a.last, g.i32(span)))
		inside := g.op2(wasm.I32LtU, i, enough)
		if mask != nil {
			inside = g.and(inside, g.opTo(wasm.I32x4AllTrue, wasm.I32, mask))
		}
		g.branch(inside, func() { g.assign(cell, g.inRange(a, i, e.Stride, x)) }, func() {
			g.region.rare = !inside.isInt()
			each()
		})
	}
	if x != nil {
		g.epochs[p.va.class]++
		return nil
	}
	v := g.cur[cell]
	if a.t.Kind == ir.Bool {
		v = g.op1(wasm.I32x4Neg, v)
	}
	return []*node{v}
}

// spread returns the indices of all four invocations.
func (g *function) spread(i *node, stride uint32) *node {
	if i.typ == wasm.V128 {
		return i
	}
	return g.op2(wasm.I32x4Add, g.splat(i), g.words([4]uint32{0, stride, 2 * stride, 3 * stride}))
}

// inRange accesses elements that are in range. It returns the vector that is loaded or, for a store, x.
func (g *function) inRange(a array, i *node, stride uint32, x *node) *node {
	p := a.place
	p.addr = g.add(p.addr, g.op2(wasm.I32Mul, i, g.i32(a.stride)))
	if stride*a.stride == 4 {
		return g.word1(p, wasm.V128, 0, x)
	}
	return g.eachLane(x, func(l int, s *node) *node {
		p := p
		p.offset += uint32(l) * stride * a.stride
		return g.word1(p, valType(a.t), l, s)
	})
}

// clamped accesses elements one by one, each at its index or at the last element if that is out of range.
func (g *function) clamped(a array, i, x, mask *node) *node {
	i = g.op2(wasm.I32x4MinU, i, g.splat(a.last))
	if by := uint32(bits.TrailingZeros32(a.stride)); a.stride == 1<<by {
		i = g.int(ir.ShiftLeft, i, g.ints(i, by))
	} else {
		i = g.op2(wasm.I32x4Mul, i, g.ints(i, a.stride))
	}
	return g.eachLane(x, func(l int, s *node) (v *node) {
		p := a.place
		p.addr = g.add(p.addr, g.lane(i, l, ir.U32))
		one := func() { v = g.word1(p, valType(a.t), l, s) }
		if mask == nil {
			one()
		} else {
			g.branch(g.lane(mask, l, ir.Bool), one, nil)
		}
		return v
	})
}

// eachLane accesses the four scalars one by one. It begins with the last one, because wazero then checks only the bounds of that address.
func (g *function) eachLane(x *node, each func(l int, x *node) *node) *node {
	var list [4]source
	for l := 3; l >= 0; l-- {
		list[l] = source{each(l, x), -1}
	}
	if x != nil {
		return x
	}
	return g.gather(list[:])
}

// word1 loads a scalar or a vector of type t; unless x is nil it stores component l of x instead, or all of x where t is V128.
func (g *function) word1(p place, t wasm.ValType, l int, x *node) *node {
	op := loadOp(t)
	if x == nil {
		n := &node{op: op, typ: t, imm: p.offset, args: [3]*node{p.addr}, class: p.va.class, epoch: g.epochs[p.va.class]}
		return g.intern(n, n.class != 0)
	}
	i := item{kind: itemStore, op: wasm.V128Store, addr: p.addr, node: x, offset: p.offset, class: p.va.class}
	if t != wasm.V128 {
		i.op, i.lane = wasm.V128Store32Lane, uint32(l)
	}
	g.emit(i)
	return x
}
