// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// In kernels with barriers the code between two barriers is a region: a loop over the invocations of the workgroup. What an
// invocation has to remember from one region to the next is in slots of its frame in memory. Control flow around barriers is uniform;
// what invocation 0 finds decides.

// group is the state of such a kernel.
type group struct {
	in      *inputs
	pending []func() // what the next region does
	slots   []int    // the cells that outlive regions; slot i is that of number i
	memory  []*variable
	size    uint32 // of the variables of a frame that are in memory
	frame   *node  // of the invocation
	regions int
	result  int  // the first cell of what the present function returns
	gone    *int // the cell that is 1 for invocations that have returned from it before others; nil if none can
	left    *int // the same of the present arm of a switch
	bound   []alias
}

// alias is a parameter and what it points to, which each region finds anew.
type alias struct {
	param *ir.Var
	ref   *ir.Ref
}

// layout gives a place to the slots that are read, behind the variables, and returns where the frames begin and how long they are.
func (s *group) layout(m *generator, places map[uint32]uint32, read map[uint32]bool) [2]uint32 {
	size := s.size
	for i := range s.slots {
		if read[uint32(i)] {
			places[uint32(i)] = size
			size += 16
		}
	}
	n := m.prog.Size
	return [2]uint32{m.reserve(int(size) * m.across() * n[1] * n[2]), size}
}

// together writes a workgroup whose invocations wait for each other.
func (g *function) together(in *inputs) {
	g.shared = &group{in: in}
	g.kept = map[*ir.Value]int{}
	end := g.begin()
	g.to = targets{ret: end}
	for _, v := range g.gen.prog.Vars {
		if v.Space == ir.Private {
			g.keepVar(&ir.Declare{Var: v, Init: v.Init})
		}
	}
	g.body(g.gen.prog.Entry.Body)
	g.end(end)
}

// body writes the body of a function with barriers. Behind its last barrier invocations may return while others stay: they skip the
// regions that follow.
func (g *function) body(list []ir.Stmt) {
	var gone *int
	if slices.ContainsFunc(list, func(s ir.Stmt) bool { return hasBarrier(s) && returns(s) }) { // there may be such regions
		gone = new(g.keep(new(ir.Types).Scalar(ir.U32)))
		g.later(func() { g.assign(*gone, g.i32(0)) })
	}
	g.flush()
	outer := g.shared.gone
	g.shared.gone = gone
	g.uniform(list, false, false)
	g.flush()
	g.shared.gone = outer
}

// frameOf returns the address of the frame of an invocation.
func (g *function) frameOf(number *node) *node {
	first := g.add(g.scratch(), g.make(&node{op: opFrames, typ: wasm.I32}))
	return g.add(first, g.op2(wasm.I32Mul, number, g.make(&node{op: opFrame, typ: wasm.I32})))
}

// keep makes cells that outlive regions.
func (g *function) keep(t *ir.Type) int {
	cells := g.gen.cells(t)
	first := g.newCells(len(cells))
	for i, c := range cells {
		g.cur[first+i] = g.zero(valType(c.t))
		g.shared.slots = append(g.shared.slots, first+i)
	}
	return first
}

// keepVar declares a variable that outlives regions.
func (g *function) keepVar(s *ir.Declare) {
	va := &variable{v: s.Var, cell: -1}
	if g.gen.memory[s.Var] {
		va.class = g.newClass()
		va.offset = g.shared.size
		g.shared.size += uint32(s.Var.Type.Size+15) &^ 15
		if g.shared.size > maxScratch {
			panic(errTooLarge)
		}
		g.shared.memory = append(g.shared.memory, va)
	} else {
		va.cell = g.keep(s.Var.Type)
	}
	g.places[s.Var] = va.whole()
	g.later(func() { g.initialise(va, s.Init) })
}

func (g *function) later(f func()) { g.shared.pending = append(g.shared.pending, f) }

// keepValue has each invocation compute a value that outlives the region.
func (g *function) keepValue(v *ir.Value, x ir.Expr) {
	cell := g.keep(v.Type)
	g.later(func() {
		for i, n := range g.expr(x) {
			g.assign(cell+i, n)
		}
	})
	g.kept[v] = cell
}

// decide has all invocations compute a value and returns that of invocation 0.
func (g *function) decide(x ir.Expr) *node {
	v := &ir.Value{Type: x.Type()}
	g.keepValue(v, x)
	g.flush()
	cell := g.kept[v]
	return g.slot(cell, g.frameOf(g.i32(0)))
}

// slot reads a cell of a frame.
func (g *function) slot(cell int, frame *node) *node {
	i, _ := slices.BinarySearch(g.shared.slots, cell)
	n := &node{op: opSlot, typ: g.cur[cell].typ, args: [3]*node{frame}, imm: uint32(i), class: slotClass, epoch: g.shared.regions}
	return g.intern(n, true)
}

// flush writes the region of what is pending.
func (g *function) flush() {
	s := g.shared
	if len(s.pending) == 0 || g.dead {
		s.pending = nil
		return
	}
	pending, to := s.pending, g.to
	s.pending = nil
	s.regions++
	for i := range g.epochs {
		g.epochs[i]++
	}
	g.epochs[neverWritten] = 0
	effort := g.gen.effort
	g.invocations(g.gen.step(), func(local [3]*node) {
		mark, outer := len(g.log), g.mark
		g.mark = mark
		s.in.local = local
		s.frame = g.frameOf(g.frameNumber(s.in))
		g.give(s.in)
		for _, va := range s.memory {
			va.addr = s.frame
			g.places[va.v] = va.whole()
		}
		before := make([]*node, len(s.slots))
		for i, c := range s.slots {
			before[i] = g.slot(c, s.frame)
			g.assign(c, before[i])
		}
		for _, b := range s.bound {
			g.places[b.param] = g.ref(b.ref)
		}
		turn := g.begin()
		g.to = targets{ret: turn, exit: turn, result: s.result, gone: s.gone, left: s.left}
		for _, cell := range []*int{s.gone, s.left} {
			if cell != nil {
				g.jumpIf(turn, g.cur[*cell])
			}
		}
		for _, f := range pending {
			if !g.dead {
				f()
			}
		}
		g.end(turn)
		for i, c := range s.slots {
			if n := g.cur[c]; n != before[i] {
				g.emit(item{kind: itemSlot, addr: s.frame, node: n, offset: uint32(i)})
			}
		}
		g.rollback(mark)
		g.mark = outer
	})
	size := g.gen.prog.Size
	g.gen.effort += (g.gen.effort - effort) * int64(g.gen.across()*size[1]*size[2]-1) // all invocations do it
	s.regions++
	g.to = to
}

// uniform writes statements that all invocations reach. If after is set, barriers follow them; if inside is set, barriers follow before the
// end of the loop or the arm of a switch around, so that all invocations break out of it or none.
func (g *function) uniform(list []ir.Stmt, after, inside bool) {
	last := len(list) - 1 // statement with a barrier
	for last >= 0 && !hasBarrier(list[last]) {
		last--
	}
	for i, s := range list {
		if g.dead {
			return
		}
		follow, within := after || i < last, inside || i < last
		switch s := s.(type) {
		case *ir.Declare:
			g.keepVar(s)
		case *ir.Let:
			switch call := barrierCall(s.X); {
			case call != nil:
				g.uniformCall(call, s.Value)
			case s.Value.Temp:
				g.later(func() { g.stmt(s, false) })
			default:
				g.keepValue(s.Value, s.X)
			}
		case *ir.Return:
			g.uniformReturn(s)
		case *ir.Block:
			g.uniform(s.Body, follow, within)
		case *ir.Break:
			g.flush()
			g.jump(g.to.exit)
		default:
			if !hasBarrier(s) && !leaves(s, follow, within) {
				g.later(func() { g.stmt(s, false) })
			} else {
				g.uniformStmt(s, follow, within)
			}
		}
	}
}

// uniformStmt writes a statement that barriers are in, or one that leaves what they are in.
func (g *function) uniformStmt(s ir.Stmt, follow, within bool) {
	switch s := s.(type) {
	case *ir.Barrier:
		g.flush()
	case *ir.Eval:
		g.uniformCall(barrierCall(s.X), nil)
	case *ir.If:
		arm := func(list []ir.Stmt) func() {
			return func() {
				g.uniform(list, follow, within)
				g.flush()
			}
		}
		g.branch(g.decide(s.Cond), arm(s.Then), arm(s.Else))
	case *ir.Loop:
		g.uniformLoop(s)
	case *ir.Switch:
		g.choice(g.decide(s.X), s, func(body []ir.Stmt) { g.uniformArm(body, follow) })
	case *ir.Continue:
		g.flush()
		g.jump(g.to.next)
	}
}

// uniformArm writes an arm of a switch. Behind its last barrier invocations may leave it while others stay.
func (g *function) uniformArm(body []ir.Stmt, follow bool) {
	s := g.shared
	var left *int
	if jumps(body, func(s ir.Stmt) bool { _, ok := s.(*ir.Break); return ok }, false) {
		left = new(g.keep(new(ir.Types).Scalar(ir.U32)))
		g.later(func() { g.assign(*left, g.i32(0)) })
		g.flush()
	}
	outer := s.left
	s.left = left
	g.uniform(body, follow, false)
	g.flush()
	s.left = outer
}

func (g *function) uniformLoop(s *ir.Loop) {
	g.flush()
	old := g.to
	exit, before := g.begin(), g.gen.effort
	l := g.repeat(nil)
	g.to.exit, g.to.next = exit, g.begin()
	g.uniform(s.Body, true, true)
	g.flush()
	g.end(g.to.next)
	g.uniform(s.Continuing, true, true)
	g.flush()
	var leave *node
	if s.BreakIf != nil && !g.dead {
		leave = g.decide(s.BreakIf)
	}
	if !g.dead {
		g.turn(g.gen.effort - before)
	}
	g.again(l, nil, leave, leave != nil)
	g.end(exit)
	g.to = old
}

// uniformReturn ends a function for all invocations.
func (g *function) uniformReturn(s *ir.Return) {
	result := g.shared.result
	if s.X != nil {
		g.later(func() {
			for i, n := range g.expr(s.X) {
				g.assign(result+i, n)
			}
		})
	}
	g.flush()
	g.jump(g.to.ret)
}

// uniformCall puts the body of a function with barriers here. Its parameters and its result outlive regions; the indices of
// references are values that do.
func (g *function) uniformCall(e *ir.Call, result *ir.Value) {
	for i, p := range e.Func.Params {
		if p.Var == nil {
			g.keepValue(p.Value, e.Args[i])
			continue
		}
		r := &ir.Ref{Var: e.Refs[i].Var, T: e.Refs[i].T}
		for _, step := range e.Refs[i].Path {
			if _, constant := step.Index.(*ir.Const); step.Index != nil && !constant {
				v := &ir.Value{Type: step.Index.Type()}
				g.keepValue(v, step.Index)
				step.Index = &ir.Use{Value: v}
			}
			r.Path = append(r.Path, step)
		}
		g.shared.bound = append(g.shared.bound, alias{p.Var, r})
	}
	oldTo, oldResult := g.to, g.shared.result
	if e.Func.Result != nil {
		cell := g.keep(e.Func.Result)
		g.shared.result = cell
		if result != nil {
			g.kept[result] = cell
		}
	}
	g.to = targets{ret: g.begin()}
	g.body(e.Func.Body)
	g.end(g.to.ret)
	g.to, g.shared.result = oldTo, oldResult
}

// barrierCall returns the call of a function with barriers that an expression is.
func barrierCall(x ir.Expr) *ir.Call {
	if c, ok := x.(*ir.Call); ok && c.Func.Barrier {
		return c
	}
	return nil
}

// hasBarrier reports whether there is a barrier in a statement.
func hasBarrier(s ir.Stmt) bool {
	found := false
	v := ir.Visitor{
		Stmt: func(s ir.Stmt) {
			_, barrier := s.(*ir.Barrier)
			found = found || barrier
		},
		Expr: func(e ir.Expr) { found = found || barrierCall(e) != nil },
	}
	v.List([]ir.Stmt{s})
	return found
}

// leaves reports whether a statement may jump to where barriers are: to the next turn of a loop around, if barriers are within the loop or the
// arm of a switch around out of that, or, if barriers follow, out of the function.
func leaves(s ir.Stmt, follow, within bool) bool {
	switch s := s.(type) {
	case *ir.Break:
		return within
	case *ir.Continue:
		return true
	case *ir.Return:
		return follow
	case *ir.If:
		return leavesAny(s.Then, follow, within) || leavesAny(s.Else, follow, within)
	case *ir.Block:
		return leavesAny(s.Body, follow, within)
	case *ir.Loop:
		return follow && returns(s)
	case *ir.Switch:
		return follow && returns(s) || continues(s)
	}
	return false
}

func leavesAny(list []ir.Stmt, follow, within bool) bool {
	return slices.ContainsFunc(list, func(s ir.Stmt) bool { return leaves(s, follow, within) })
}

func returns(s ir.Stmt) bool {
	found := false
	v := ir.Visitor{Stmt: func(s ir.Stmt) {
		_, ok := s.(*ir.Return)
		found = found || ok
	}}
	v.List([]ir.Stmt{s})
	return found
}

// continues reports whether a switch goes on with the next turn of a loop around.
func continues(s *ir.Switch) bool {
	next := func(s ir.Stmt) bool { _, ok := s.(*ir.Continue); return ok }
	return slices.ContainsFunc(s.Cases, func(c ir.Case) bool { return jumps(c.Body, next, true) })
}

// jumps reports whether there is such a jump in statements, in loops within them not looked for and in switches if these are asked for.
func jumps(list []ir.Stmt, is func(ir.Stmt) bool, switches bool) bool {
	return slices.ContainsFunc(list, func(s ir.Stmt) bool {
		switch s := s.(type) {
		case *ir.If:
			return jumps(s.Then, is, switches) || jumps(s.Else, is, switches)
		case *ir.Block:
			return jumps(s.Body, is, switches)
		case *ir.Switch:
			return switches && slices.ContainsFunc(s.Cases, func(c ir.Case) bool { return jumps(c.Body, is, switches) })
		}
		return is(s)
	})
}
