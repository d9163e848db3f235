// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

var atomics = [...]wasm.Op{
	ir.FnAtomicStore: wasm.AtomicStore, ir.FnAtomicAdd: wasm.AtomicAdd, ir.FnAtomicSub: wasm.AtomicSub, ir.FnAtomicAnd: wasm.AtomicAnd,
	ir.FnAtomicOr: wasm.AtomicOr, ir.FnAtomicXor: wasm.AtomicXor, ir.FnAtomicExchange: wasm.AtomicXchg,
	ir.FnAtomicCompareExchangeWeak: wasm.AtomicCmpxchg,
}

// atomic evaluates a function on an atomic. That of a workgroup is the thread's own.
func (g *function) atomic(e *ir.Builtin) []*node {
	p, k := g.ref(e.Ref), e.Ref.T.Scalar().Kind
	var x []*node
	for _, a := range e.Args {
		x = append(x, g.one(a))
	}
	if g.gen.o.Threads && p.va.v.Space == ir.Storage {
		return g.shareAtomic(e.Fn, k, p, x)
	}
	old := g.loadCell(p, cell{e.Ref.T.Scalar(), 0})
	if e.Fn == ir.FnAtomicLoad {
		return []*node{old}
	}
	result := []*node{old}
	var v *node
	switch e.Fn {
	case ir.FnAtomicStore, ir.FnAtomicExchange:
		v = x[0]
	case ir.FnAtomicCompareExchangeWeak:
		equal := g.op2(wasm.I32Eq, old, x[0])
		result = append(result, equal)
		v = g.choose(x[1], old, equal)
	default:
		v = g.combine(e.Fn, k, old, x[0])
	}
	g.storeCell(p, cell{e.Ref.T.Scalar(), 0}, v)
	g.epochs[p.va.class]++
	return result
}

// combine is what a function makes of an atomic's value.
func (g *function) combine(fn ir.Fn, k ir.Kind, x, y *node) *node {
	switch fn {
	case ir.FnAtomicMin:
		return g.lesser(k, x, y)
	case ir.FnAtomicMax:
		return g.greater(k, x, y)
	}
	op := map[ir.Fn]ir.Op{
		ir.FnAtomicAdd: ir.Add, ir.FnAtomicSub: ir.Sub, ir.FnAtomicAnd: ir.And, ir.FnAtomicOr: ir.Or, ir.FnAtomicXor: ir.Xor,
	}[fn]
	return g.int(op, x, y)
}

// shareAtomic evaluates it beside other threads.
func (g *function) shareAtomic(fn ir.Fn, k ir.Kind, p place, x []*node) []*node {
	load := func() *node {
		g.epochs[p.va.class]++ // no other load is as good
		n := &node{op: wasm.AtomicLoad, typ: wasm.I32, args: [3]*node{p.addr}, imm: p.offset, class: p.va.class, epoch: g.epochs[p.va.class]}
		return g.intern(n, true)
	}
	access := func(op wasm.Op, x ...*node) *node {
		i := item{kind: itemStore, op: op, addr: p.addr, node: x[0], args: x[1:], offset: p.offset, class: p.va.class}
		if op != wasm.AtomicStore {
			i.results = []*node{{op: opResult, typ: wasm.I32, loop: g.loop, region: g.region}}
		}
		g.emit(i)
		g.epochs[p.va.class]++
		if i.results == nil {
			return nil
		}
		return i.results[0]
	}
	switch fn {
	case ir.FnAtomicLoad:
		return []*node{load()}
	case ir.FnAtomicStore:
		access(wasm.AtomicStore, x[0])
		return nil
	case ir.FnAtomicCompareExchangeWeak:
		old := access(wasm.AtomicCmpxchg, x[0], x[1])
		return []*node{old, g.op2(wasm.I32Eq, old, x[0])}
	case ir.FnAtomicMin, ir.FnAtomicMax: // for which there is no instruction
		cells := []int{g.newCells(1)}
		g.cur[cells[0]] = load()
		l := g.repeat(cells)
		seen := g.cur[cells[0]]
		old := access(wasm.AtomicCmpxchg, seen, g.combine(fn, k, seen, x[0]))
		g.assign(cells[0], old)
		g.again(l, cells, g.op2(wasm.I32Ne, old, seen), false)
		return []*node{old}
	}
	return []*node{access(atomics[fn], x[0])}
}
