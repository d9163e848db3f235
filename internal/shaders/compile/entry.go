// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// Words of what a kernel is given: see [Module].
const (
	argGroups  = 0
	argParams  = 3
	argStop    = 4
	argTurns   = 5
	argStorage = 8
)

// Results of a run.
const (
	resultDone    = 0
	resultStopped = 1
	resultTurns   = 2
)

// run writes the function that runs workgroups.
func (m *generator) run() wasm.Func {
	params := []wasm.ValType{wasm.I32, wasm.I32, wasm.I32, wasm.I32}
	g := m.newFunction(params...)
	var guard *turns
	if m.o.Guard {
		guard = &turns{}
	}
	if !m.o.Exact {
		for _, b := range m.bindings {
			small := g.op2(wasm.I32LtU, g.argument(m.words[b.v]+1), g.i32(uint32(b.Min)))
			g.branch(small, func() {
				g.emit(item{kind: itemReturn, args: []*node{g.i32(resultDone)}})
				g.dead = true
			}, nil)
		}
	}
	from, to := g.params[2], g.params[3]
	g.count(from, to, func(number *node) { g.workgroup(number) })
	g.emit(item{kind: itemReturn, args: []*node{g.i32(resultDone)}})
	made := m.write(g, guard)
	made.Type = wasm.Type{Params: params, Results: []wasm.ValType{wasm.I32}}
	made.Code = wasm.Unreachable.Append(made.Code)
	made.Export = "run"
	return made
}

// count runs a body for the numbers from one to before another.
func (g *function) count(from, to *node, body func(number *node)) {
	if from.isInt() && to.isInt() && to.imm == from.imm+1 {
		body(from)
		return
	}
	counter := g.newCells(1)
	g.cur[counter] = from
	skip := g.begin()
	g.jumpIf(skip, g.op2(wasm.I32GeU, from, to))
	l := g.repeat([]int{counter})
	number := g.cur[counter]
	if to.isInt() {
		number.imm = to.imm // a bound
		l.loop.turns = to.imm - from.imm
	}
	body(number)
	g.dead = false
	next := g.add(number, g.i32(1))
	g.assign(counter, next)
	g.again(l, []int{counter}, g.op2(wasm.I32LtU, next, to), false)
	g.end(skip)
}

// workgroup writes what a workgroup does.
func (g *function) workgroup(number *node) {
	if size := g.gen.zeroed; size > 0 {
		for _, v := range g.gen.prog.Vars {
			if v.Space == ir.Workgroup {
				g.epochs[g.ref(&ir.Ref{Var: v, T: v.Type}).va.class]++
			}
		}
		g.fill(neverWritten, g.scratch(), 0, size)
	}
	in := &inputs{}
	x, y := g.argument(argGroups), g.argument(argGroups+1)
	div := func(op ir.Op, a, b *node) *node { return g.divide(op, ir.U32, a, b, 1) }
	rest := div(ir.Div, number, x)
	in.group = [3]*node{div(ir.Mod, number, x), div(ir.Mod, rest, y), div(ir.Div, rest, y)}
	in.groups = [3]*node{x, y, g.argument(argGroups + 2)}
	if g.gen.barriers() {
		g.together(in)
		return
	}
	run := func(local [3]*node) {
		in.local = local
		turn := g.begin()
		g.to = targets{ret: turn}
		for _, v := range g.gen.prog.Vars {
			if v.Space == ir.Private {
				g.declare(&ir.Declare{Var: v, Init: v.Init})
			}
		}
		g.give(in)
		g.list(g.gen.prog.Entry.Body, true)
		g.end(turn)
		g.dead = false
	}
	if g.gen.small() {
		g.four(in, run)
	} else {
		g.invocations(g.gen.step(), run)
	}
}

// barriers reports whether invocations have to wait for each other.
func (m *generator) barriers() bool {
	return m.prog.Entry.Barrier && m.prog.Size != [3]int{1, 1, 1}
}

// invocations runs a body for each invocation of a workgroup, or for every step-th along x.
func (g *function) invocations(step int, body func(local [3]*node)) {
	size := g.gen.prog.Size
	g.count(g.i32(0), g.i32(uint32(size[2])), func(z *node) {
		g.count(g.i32(0), g.i32(uint32(size[1])), func(y *node) {
			g.count(g.i32(0), g.i32(uint32((size[0]+step-1)/step)), func(x *node) {
				body([3]*node{g.op2(wasm.I32Mul, x, g.i32(uint32(step))), y, z})
			})
		})
	})
}

// unrolled is how many invocations of a small entry point the code repeats, so that their addresses differ by constants. Tiny entry points are
// repeated more often for wazero, where the code around the invocations takes longer than the invocations themselves.
const (
	unrolled     = 4
	unrolledTiny = 8
)

// small reports whether the entry point is such a function.
func (m *generator) small() bool {
	f := m.facts[m.prog.Entry]
	return !m.prog.Lanes && !f.loops && f.size <= 250 && m.prog.Size[0]%unrolled == 0
}

// copies returns how many invocations of a small entry point the code repeats.
func (m *generator) copies() uint32 {
	if m.o.Wazero && m.facts[m.prog.Entry].size <= 180 && m.prog.Size[0]%unrolledTiny == 0 {
		return unrolledTiny
	}
	return unrolled
}

// quartet is what is known of the invocations that are run together: the number x that is one more for each of them has room for all.
type quartet struct {
	known map[*node]*node // conditions that hold or do not hold
	x     *node
	lasts []*node // numbers that x has to stay below with all of them
}

// four runs a body for the invocations of a workgroup, some of them at a time, which ask together whether they are in range.
func (g *function) four(in *inputs, body func(local [3]*node)) {
	copies := g.gen.copies()
	g.invocations(int(copies), func(first [3]*node) {
		all := func() {
			for k := copies; k > 0; k-- { // the last first: wazero checks the bounds of the highest address alone
				body([3]*node{g.add(first[0], g.i32(k-1)), first[1], first[2]})
			}
		}
		q := &quartet{known: map[*node]*node{}}
		inside := g.inside(q, in, first)
		if inside == nil {
			all()
			return
		}
		g.fork(func() *node {
			for _, last := range q.lasts {
				inside = g.and(inside, g.op2(wasm.I32LeU, g.add(q.x, g.i32(copies-1)), last))
			}
			return inside
		}, func() {
			g.quartet = q
			all()
			g.quartet = nil
		}, func() {
			g.region.rare = true
			all()
		})
	})
}

// reach goes to an element whose number is that of the quartet or a little more, which is compared with the last one for all of them.
func (g *function) reach(p *place, i, last *node, stride uint32) bool {
	q := g.quartet
	if q == nil || depthOf(last.loop) > 0 || last.isInt() {
		return false
	}
	if i.op == wasm.I32And && i.args[1].isInt() && ^i.args[1].imm*stride == 0 {
		i = i.args[0] // bits that only elements beyond the end of memory have
	}
	k := uint32(0)
	if i.op == wasm.I32Add && i.args[0] == q.x && i.args[1].isInt() {
		i, k = q.x, i.args[1].imm
	}
	if i != q.x || k >= g.gen.copies() {
		return false
	}
	if !slices.Contains(q.lasts, last) {
		q.lasts = append(q.lasts, last)
	}
	p.addr = g.add(p.addr, g.op2(wasm.I32Mul, q.x, g.i32(stride)))
	p.offset += k * stride
	return true
}

// inside looks whether the entry point begins with a comparison of a number, which is one more for the next invocation, with one that
// is the same for all. It returns a condition on which the comparisons of several invocations turn out as the quartet then knows.
func (g *function) inside(q *quartet, in *inputs, first [3]*node) *node {
	body := g.gen.prog.Entry.Body
	lets := 0
	for lets < len(body) {
		if l, ok := body[lets].(*ir.Let); !ok || !g.gen.plain(l.X) {
			break
		}
		lets++
	}
	if lets == len(body) {
		return nil
	}
	test, ok := body[lets].(*ir.If)
	if !ok || !g.gen.plain(test.Cond) {
		return nil
	}
	var n *node
	for k := range g.gen.copies() {
		in.local = [3]*node{g.add(first[0], g.i32(k)), first[1], first[2]}
		g.give(in)
		g.list(body[:lets], false)
		c := g.one(test.Cond)
		if c.op != wasm.I32GeU && c.op != wasm.I32LtU {
			return nil
		}
		if k == 0 {
			q.x, n = c.args[0], c.args[1]
		}
		if c.args[0] != g.add(q.x, g.i32(k)) || c.args[1] != n {
			return nil
		}
		q.known[c] = g.i32(truth(c.op == wasm.I32LtU))
	}
	return g.and(g.op2(wasm.I32LtU, q.x, n), g.op2(wasm.I32GtU, g.op2(wasm.I32Sub, n, q.x), g.i32(g.gen.copies()-1)))
}

// inputs are the built-in values of an invocation.
type inputs struct{ group, groups, local [3]*node }

// number is the place of an invocation in its workgroup.
func (g *function) number(in *inputs) *node {
	size := g.gen.prog.Size
	row := g.add(in.local[1], g.op2(wasm.I32Mul, in.local[2], g.i32(uint32(size[1]))))
	return g.add(in.local[0], g.op2(wasm.I32Mul, row, g.i32(uint32(size[0]))))
}

// step returns how many invocations run at a time.
func (m *generator) step() int {
	if m.prog.Lanes {
		return 4
	}
	return 1
}

// across returns how many such groups of invocations a workgroup has along x.
func (m *generator) across() int { return (m.prog.Size[0] + m.step() - 1) / m.step() }

// frameNumber returns the number of the frame of an invocation, or of the four that run at a time.
func (g *function) frameNumber(in *inputs) *node {
	row := g.add(in.local[1], g.op2(wasm.I32Mul, in.local[2], g.i32(uint32(g.gen.prog.Size[1]))))
	x := g.divide(ir.Div, ir.U32, in.local[0], g.i32(uint32(g.gen.step())), 1)
	return g.add(x, g.op2(wasm.I32Mul, row, g.i32(uint32(g.gen.across()))))
}

// give gives the entry point its parameters.
func (g *function) give(in *inputs) {
	size := g.gen.prog.Size
	vector := func(v [3]*node) *node { return g.gather([]source{{v[0], -1}, {v[1], -1}, {v[2], -1}}) }
	for _, p := range g.gen.prog.Entry.Params {
		var n *node
		switch p.Input {
		case ir.LocalInvocationID:
			n = vector(in.local)
		case ir.LocalInvocationIndex:
			n = g.number(in)
		case ir.WorkgroupID:
			n = vector(in.group)
		case ir.NumWorkgroups:
			n = vector(in.groups)
		case ir.GlobalInvocationID:
			var id [3]*node
			for i := range id {
				id[i] = g.add(in.local[i], g.op2(wasm.I32Mul, in.group[i], g.i32(uint32(size[i]))))
			}
			n = vector(id)
		}
		g.values[p.Value] = []*node{n}
	}
}

// turns are the locals of a guarded run.
type turns struct{ fuel, left int }

const (
	// chunk is how many turns loops take between two looks at the word that stops the kernel.
	chunk = 1024
	// A turn of a long loop counts as several: so many nodes take about as long as a turn of a short one.
	nodesPerTurn = 96
	bytesPerNode = 4 // of code
	maxTurns     = 1 << 28
)

// turn counts one of a loop whose body has so many nodes.
func (g *function) turn(nodes int64) {
	if g.gen.o.Guard {
		g.emit(item{kind: itemTurn, offset: uint32(min(max(nodes/nodesPerTurn, 1), maxTurns))})
	}
}

// startTurns sets how many turns are left: fuel until the next look, left after that. With no limit left stays 0 and word [5] tells.
func (e *emitter) startTurns() {
	e.turns.fuel = e.newLocal(wasm.I32) - 1
	e.turns.left = e.newLocal(wasm.I32) - 1
	e.local(wasm.LocalGet, 0)
	e.memory(wasm.I32Load, 4*argTurns)
	e.local(wasm.LocalSet, e.turns.left)
	e.refuel()
}

// refuel takes the turns up to the next look from those that are left.
func (e *emitter) refuel() {
	e.constant(chunk)
	e.local(wasm.LocalSet, e.turns.fuel)
	e.local(wasm.LocalGet, e.turns.left)
	e.enter(wasm.If, nil)
	e.local(wasm.LocalGet, e.turns.left)
	e.constant(chunk)
	e.local(wasm.LocalGet, e.turns.left)
	e.constant(chunk)
	e.local(wasm.LocalGet, e.turns.left)
	e.op(wasm.I32LtU)
	e.op(wasm.Select)
	e.local(wasm.LocalTee, e.turns.fuel)
	e.op(wasm.I32Sub)
	e.local(wasm.LocalSet, e.turns.left)
	e.leave()
}

func (e *emitter) constant(v int32) {
	e.op(wasm.I32Const)
	e.code = wasm.AppendS32(e.code, v)
}

// turn counts a turn of a loop as so many.
func (e *emitter) turn(weight uint32) {
	if weight > chunk { // what a look does not count
		e.local(wasm.LocalGet, e.turns.left)
		e.local(wasm.LocalGet, e.turns.left)
		e.constant(int32(weight - chunk))
		e.local(wasm.LocalGet, e.turns.left)
		e.constant(int32(weight - chunk))
		e.op(wasm.I32LtU)
		e.op(wasm.Select)
		e.op(wasm.I32Sub)
		e.local(wasm.LocalSet, e.turns.left)
		weight = chunk
	}
	e.local(wasm.LocalGet, e.turns.fuel)
	e.constant(int32(weight))
	e.op(wasm.I32Sub)
	e.local(wasm.LocalTee, e.turns.fuel)
	e.constant(0)
	e.op(wasm.I32LeS)
	e.enter(wasm.If, nil)
	e.local(wasm.LocalGet, 0)
	e.memory(wasm.I32Load, 4*argStop)
	e.memory(wasm.I32Load, 0)
	e.returnIf(resultStopped)
	e.local(wasm.LocalGet, 0)
	e.memory(wasm.I32Load, 4*argTurns)
	e.constant(0)
	e.local(wasm.LocalGet, e.turns.left)
	e.op(wasm.I32Eqz)
	e.op(wasm.Select)
	e.returnIf(resultTurns)
	e.refuel()
	e.leave()
}

// returnIf ends the run if the word on the stack is not 0.
func (e *emitter) returnIf(result int32) {
	e.enter(wasm.If, nil)
	e.constant(result)
	e.op(wasm.Return)
	e.leave()
}
