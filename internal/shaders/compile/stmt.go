// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// targets are where break, continue and return go.
type targets struct {
	exit, next *label
	ret        *label // nil of functions of the module
	result     int    // the first cell of what is returned
	gone       *int   // the cell that a return sets to 1, nil if there is none
	left       *int   // the same of a break
}

// list writes statements. In tail position a return leaves out the jump.
func (g *function) list(list []ir.Stmt, tail bool) {
	for i, s := range list {
		if g.dead {
			return
		}
		g.stmt(s, tail && i == len(list)-1)
	}
}

func (g *function) stmt(s ir.Stmt, tail bool) {
	g.gen.spend(1)
	switch s := s.(type) {
	case *ir.Declare:
		g.declare(s)
	case *ir.Let:
		g.values[s.Value] = g.expr(s.X)
	case *ir.Store:
		g.storeTo(g.ref(s.Ref), s.X)
	case *ir.Eval:
		g.expr(s.X)
	case *ir.If:
		g.branch(g.one(s.Cond), func() { g.list(s.Then, tail) }, func() { g.list(s.Else, tail) })
	case *ir.Loop:
		g.whole(s)
	case *ir.Switch:
		g.choice(g.one(s.X), s, func(body []ir.Stmt) { g.list(body, false) })
	case *ir.Block:
		g.list(s.Body, tail)
	case *ir.Break:
		if g.to.left != nil {
			g.assign(*g.to.left, g.i32(1))
		}
		g.jump(g.to.exit)
	case *ir.Continue:
		g.jump(g.to.next)
	case *ir.Return:
		g.giveBack(s.X, tail)
	}
}

// giveBack returns from a function: one that is inlined keeps the result in cells.
func (g *function) giveBack(x ir.Expr, tail bool) {
	var values []*node
	if x != nil {
		values = g.expr(x)
	}
	if g.to.ret == nil {
		g.emit(item{kind: itemReturn, args: values})
		g.dead = true
		return
	}
	for i, v := range values {
		g.assign(g.to.result+i, v)
	}
	if g.to.gone != nil {
		g.assign(*g.to.gone, g.i32(1))
	}
	if !tail {
		g.jump(g.to.ret)
	}
}

func (g *function) declare(s *ir.Declare) {
	va := g.variable(s.Var)
	g.places[s.Var] = va.whole()
	g.initialise(va, s.Init)
}

// variable makes a variable of a function or of an invocation.
func (g *function) variable(v *ir.Var) *variable {
	va := &variable{v: v, cell: -1}
	if !g.gen.memory[v] {
		va.cell = g.newCells(g.gen.count(v.Type))
		return va
	}
	va.class = g.newClass()
	va.addr, va.offset = g.scratch(), g.gen.reserve(v.Type.Size)
	return va
}

func (g *function) initialise(va *variable, init ir.Expr) {
	switch {
	case init != nil:
		g.storeTo(va.whole(), init)
	case va.cell >= 0 || g.gen.count(va.v.Type) <= 8:
		g.store(va.whole(), g.zeros(va.v.Type))
	default:
		g.fill(va.class, va.addr, va.offset, va.v.Type.Size)
	}
}

// fill writes zeros.
func (g *function) fill(class int, addr *node, offset uint32, size int) {
	g.emit(item{
		kind: itemStore, op: wasm.MemoryFill, addr: g.add(addr, g.i32(offset)), node: g.i32(0), args: []*node{g.i32(uint32(size))}, class: class,
	})
	g.gen.effort += int64(size)
	if class != neverWritten {
		g.epochs[class]++
	}
}

// storeTo stores a value. What is long and lies in memory is copied there.
func (g *function) storeTo(p place, x ir.Expr) {
	if l, ok := x.(*ir.Load); ok && !p.inCells() && g.gen.count(p.t) > 16 {
		if from := g.ref(l.Ref); !from.inCells() {
			size := p.t.Size
			g.emit(item{
				kind: itemStore, op: wasm.MemoryCopy, addr: g.add(p.addr, g.i32(p.offset)), node: g.add(from.addr, g.i32(from.offset)),
				args: []*node{g.i32(uint32(size))}, class: p.va.class,
			})
			g.gen.effort += int64(size)
			g.epochs[p.va.class]++
			return
		}
	}
	g.store(p, g.expr(x))
}

// assigned lists the cells that a loop assigns, and makes what it writes to memory new.
func (g *function) assigned(loop *ir.Loop) []int {
	set := map[int]bool{}
	touch := func(r *ir.Ref) {
		p, ok := g.places[r.Var]
		if !ok {
			if r.Var.Space == ir.Function {
				return // a variable of the loop
			}
			p = g.ref(&ir.Ref{Var: r.Var, T: r.Var.Type})
		}
		if !p.inCells() {
			g.epochs[p.va.class]++
			return
		}
		cell, t := p.cell, p.t
		for _, s := range r.Path {
			if t.Kind == ir.Vector {
				break
			}
			if t.Kind == ir.Struct {
				cell, t = cell+g.gen.before(t, s.Field), t.Fields[s.Field].Type
				continue
			}
			i := s.Index.(*ir.Const).Words[0]
			cell, t = cell+int(min(i, uint32(t.Len-1)))*g.gen.count(t.Elem), t.Elem
		}
		for i := range g.gen.count(t) {
			if g.cur[cell+i] != nil {
				set[cell+i] = true
			}
		}
	}
	g.gen.writes([]ir.Stmt{loop}, touch)
	cells := make([]int, 0, len(set))
	for c := range set {
		cells = append(cells, c)
	}
	slices.Sort(cells)
	g.gen.spend(len(cells))
	return cells
}

// writes calls touch for what statements write.
func (m *generator) writes(list []ir.Stmt, touch func(*ir.Ref)) {
	v := ir.Visitor{
		Stmt: func(s ir.Stmt) {
			m.spend(1)
			if s, ok := s.(*ir.Store); ok {
				touch(s.Ref)
			}
		},
		Expr: func(e ir.Expr) {
			m.spend(1)
			switch e := e.(type) {
			case *ir.Call:
				fact := m.facts[e.Func]
				for i, p := range e.Func.Params {
					if p.Var != nil && fact.stores[p.Var] {
						touch(e.Refs[i])
					}
				}
				for v, stored := range fact.stores {
					if stored && v.Space != ir.Function && !points(e.Func, v) {
						touch(&ir.Ref{Var: v, T: v.Type})
					}
				}
			case *ir.Lanes:
				if e.X != nil {
					touch(e.Ref)
				}
			case *ir.Builtin:
				if stores(e.Fn) {
					touch(e.Ref)
				}
			}
		},
	}
	v.List(list)
}

// whole writes a loop. Where the condition stands first, it is asked before the loop and at the end of each turn.
func (g *function) whole(s *ir.Loop) {
	old := g.to
	exit := g.begin()
	body := s.Body
	cond, then := g.gen.topTest(s)
	if cond != nil {
		body = body[1:]
		g.leave(exit, cond, then)
		if g.dead {
			g.end(exit)
			return
		}
	}
	cells := g.assigned(s)
	before := g.gen.effort
	l := g.repeat(cells)
	g.to.exit, g.to.next, g.to.left = exit, g.begin(), nil
	g.list(body, false)
	g.end(g.to.next)
	if !g.dead {
		g.list(s.Continuing, false)
	}
	if !g.dead {
		g.turn(g.gen.effort - before)
		switch {
		case cond != nil:
			g.again(l, cells, g.one(cond), then)
		case s.BreakIf != nil:
			g.again(l, cells, g.one(s.BreakIf), true)
		default:
			g.again(l, cells, nil, false)
		}
	} else {
		g.again(l, cells, nil, false)
	}
	g.end(exit)
	g.to = old
}

// leave leaves a loop if a condition is as it says.
func (g *function) leave(exit *label, cond ir.Expr, is bool) {
	c := g.one(cond)
	if !is {
		c = g.opTo(wasm.I32Eqz, wasm.I32, c)
	}
	g.jumpIf(exit, c)
}

// topTest returns the condition that a loop begins with, and whether it leaves the loop if that holds or if it does not.
func (m *generator) topTest(s *ir.Loop) (cond ir.Expr, is bool) {
	if len(s.Body) == 0 || s.BreakIf != nil {
		return nil, false
	}
	i, ok := s.Body[0].(*ir.If)
	if !ok {
		return nil, false
	}
	breaks := func(list []ir.Stmt) bool {
		if len(list) != 1 {
			return false
		}
		_, ok := list[0].(*ir.Break)
		return ok
	}
	calls := false
	v := ir.Visitor{Expr: func(e ir.Expr) {
		_, call := e.(*ir.Call)
		b, builtin := e.(*ir.Builtin)
		calls = calls || call || builtin && stores(b.Fn)
	}}
	v.See(i.Cond)
	switch {
	case calls:
		return nil, false
	case breaks(i.Then) && len(i.Else) == 0:
		return i.Cond, true
	case breaks(i.Else) && len(i.Then) == 0:
		return i.Cond, false
	}
	return nil, false
}

// choice writes a switch: one test after another, the default case last.
func (g *function) choice(x *node, s *ir.Switch, run func([]ir.Stmt)) {
	old := g.to
	exit := g.begin()
	g.to.exit, g.to.left = exit, nil
	var last []ir.Stmt
	for _, c := range s.Cases {
		if c.Default {
			last = c.Body
			continue
		}
		if g.dead {
			break
		}
		hit := g.i32(0)
		for _, v := range c.Values {
			hit = g.op2(wasm.I32Or, hit, g.op2(wasm.I32Eq, x, g.i32(v)))
		}
		g.branch(hit, func() {
			run(c.Body)
			if !g.dead {
				g.jump(exit)
			}
		}, nil)
	}
	if !g.dead {
		run(last)
	}
	g.end(exit)
	g.to = old
}
