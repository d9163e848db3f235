// SPDX-License-Identifier: Apache-2.0

package lanes

import "github.com/sublet-gpu/sublet/internal/shaders/compile/ir"

// list translates statements. After a statement that may have emptied the mask, the rest runs only if the mask has an invocation. It
// reports whether no invocation reaches the end.
func (f *function) list(list []ir.Stmt) bool {
	for i, s := range list {
		f.narrowed = false
		if f.stmt(s) {
			return true
		}
		if !f.narrowed || f.mask == nil || i == len(list)-1 || f.leaveEmpty() {
			continue
		}
		rest := f.collect(func() { f.list(list[i+1:]) })
		f.emit(&ir.If{Cond: f.any(load(f.mask)), Then: rest})
		f.narrowed = true
		return false
	}
	return false
}

// any tests whether a mask has an invocation.
func (f *function) any(mask ir.Expr) ir.Expr {
	return &ir.Builtin{Fn: ir.FnAny, Args: []ir.Expr{mask}, T: scalars[ir.Bool]}
}

func (f *function) none(mask ir.Expr) ir.Expr { return &ir.Unary{Op: ir.Not, X: f.any(mask)} }

// leaveEmpty makes code that leaves the innermost loop, or the function, if the mask is empty. It reports whether it has: not in a switch
// or the arm of an if, and not where invocations wait for the continuing part of the loop.
func (f *function) leaveEmpty() bool {
	arms, jump := 0, f.collect(func() { f.giveBack() })
	if n := len(f.scopes); n > 0 {
		sc := f.scopes[n-1]
		if sc.loop == nil || sc.continuing || sc.waiting {
			return false
		}
		arms, jump = sc.arms, []ir.Stmt{&ir.Break{}}
	} else if f.src.Result != nil && f.gone == nil {
		return false
	}
	if f.mask == nil || f.arms != arms {
		return false
	}
	f.emit(&ir.If{Cond: f.none(load(f.mask)), Then: jump})
	return true
}

// stmt translates a statement, and reports whether no invocation reaches what follows it.
func (f *function) stmt(s ir.Stmt) bool {
	f.p.spend()
	switch s := s.(type) {
	case *ir.Declare:
		f.declaration(s)
	case *ir.Let:
		f.values[s.Value] = f.bind(f.expr(s.X))
	case *ir.Store:
		f.store(s)
	case *ir.Eval:
		f.eval(s.X)
	case *ir.If:
		return f.choice(s)
	case *ir.Loop:
		f.loop(s)
	case *ir.Switch:
		f.cases(s)
	case *ir.Block:
		return f.list(s.Body)
	case *ir.Barrier:
		f.meet()
		f.emit(s)
	case *ir.Break:
		return f.leave()
	case *ir.Continue:
		return f.proceed()
	case *ir.Return:
		return f.giveUp(s)
	}
	return false
}

// eval translates an expression that stands for itself.
func (f *function) eval(x ir.Expr) {
	if v := f.expr(x); v.whole != nil {
		f.temp(v.whole)
	}
}

// meet ends the translation of a program in which some invocations may not reach the barrier at this place.
func (f *function) meet() {
	apart := f.arms > 0 || f.returned
	for _, s := range f.scopes {
		apart = apart || f.leaves[s.key()] != 0
	}
	if apart {
		panic(unfit{})
	}
}

// all reports whether a store to a variable may ignore the mask, because no invocation outside of the mask reads the variable again before
// it stores there itself.
func (f *function) all(v *ir.Var, made *variable) bool {
	if f.arms > made.arms {
		return false
	}
	for i, s := range f.scopes {
		d := f.leaves[s.key()]
		switch {
		case s.loop == nil:
		case i < made.scopes:
			if s.waiting && f.notes.after[s.loop][v] {
				return false
			}
		case s.waiting, d&byBreak != 0 && f.notes.last[v] != s.loop:
			return false
		}
	}
	return true
}

// note marks that some invocations leave a loop, a switch or the function, which is k, while others stay.
func (f *function) note(k any, how leaving) {
	if f.leaves[k]&how != how {
		f.leaves[k] |= how
		f.changed = true
	}
}

// kill empties the mask, because its invocations leave. In the first passes there may be no mask yet.
func (f *function) kill() bool {
	if f.mask != nil {
		f.set(f.mask, f.truths(false))
	}
	f.narrowed, f.jumped = true, true
	return true
}

// join adds the invocations of the mask to another mask, which may be nil in the first passes.
func (f *function) join(set *ir.Var) {
	if set != nil && f.mask != nil {
		f.set(set, f.logic(ir.Or, load(set), load(f.mask)))
	}
}

// choice translates an if, and reports whether no invocation reaches what follows it.
func (f *function) choice(s *ir.If) bool {
	c := f.one(s.Cond)
	if c.uniform() {
		var ended [2]bool
		narrowed := false
		made := &ir.If{Cond: c.x}
		made.Then = f.collect(func() { ended[0] = f.list(s.Then); narrowed = f.narrowed })
		f.narrowed = false
		made.Else = f.collect(func() { ended[1] = f.list(s.Else) })
		f.narrowed = f.narrowed || narrowed
		f.emit(made)
		return ended[0] && ended[1]
	}
	outer, jumped := f.mask, f.jumped
	f.jumped = false
	then := f.declare(f.also(c.x))
	otherwise := f.declare(f.also(f.temp(&ir.Unary{Op: ir.Not, X: c.x})))
	f.arm(then, s.Then)
	f.arm(otherwise, s.Else)
	f.narrowed = false
	if f.jumped {
		f.restore(outer, f.logic(ir.Or, load(then), load(otherwise)))
	}
	f.mask, f.jumped = outer, f.jumped || jumped
	return false
}

// also returns the mask of the present invocations for which a condition holds.
func (f *function) also(c ir.Expr) ir.Expr {
	if f.mask == nil {
		return c
	}
	return f.logic(ir.And, load(f.mask), c)
}

// arm translates the statements that the invocations of a mask run.
func (f *function) arm(mask *ir.Var, list []ir.Stmt) {
	if len(list) == 0 {
		return
	}
	f.arms++
	f.mask = mask
	if f.p.light(list) {
		f.list(list)
	} else {
		body := f.collect(func() { f.list(list) })
		f.emit(&ir.If{Cond: f.any(load(mask)), Then: body})
	}
	f.arms--
}

// restore sets a mask, which may be nil in the first passes, to the invocations that are left.
func (f *function) restore(mask *ir.Var, left ir.Expr) {
	if mask != nil {
		f.set(mask, left)
	}
	f.narrowed = true
}

// loop translates a loop.
func (f *function) loop(s *ir.Loop) {
	outer, jumped, d := f.mask, f.jumped, f.leaves[s]
	sc := &scope{loop: s, arms: f.arms}
	if d != 0 {
		f.branchOff()
	}
	if d&byContinue != 0 {
		sc.rejoin = f.declare(f.truths(false))
	}
	f.scopes = append(f.scopes, sc)
	f.jumped = false
	made := &ir.Loop{}
	made.Body = f.collect(func() {
		if sc.rejoin != nil {
			f.set(sc.rejoin, f.truths(false))
		}
		f.list(s.Body)
		if f.jumped && f.mask != nil {
			left := load(f.mask)
			if sc.rejoin != nil {
				left = f.logic(ir.Or, left, load(sc.rejoin))
			}
			f.emit(&ir.If{Cond: f.none(left), Then: []ir.Stmt{&ir.Break{}}})
		}
	})
	made.Continuing = f.collect(func() {
		sc.continuing, sc.waiting = true, false
		if sc.rejoin != nil {
			f.set(f.mask, f.logic(ir.Or, load(f.mask), load(sc.rejoin)))
		}
		f.list(s.Continuing)
		if s.BreakIf != nil {
			made.BreakIf = f.breakIf(s)
		}
	})
	f.emit(made)
	f.scopes = f.scopes[:len(f.scopes)-1]
	f.mask, f.jumped, f.narrowed = outer, jumped, false
	if f.leaves[s]&byReturn != 0 {
		f.jumped = true
		if outer != nil && f.gone != nil {
			left := f.logic(ir.And, load(outer), f.temp(&ir.Unary{Op: ir.Not, X: load(f.gone)}))
			f.restore(outer, left)
		}
	}
}

// branchOff gives a loop a mask of its own, from which invocations are taken as they leave.
func (f *function) branchOff() {
	if f.mask == nil {
		f.mask = f.declare(f.truths(true))
	} else {
		f.mask = f.declare(load(f.mask))
	}
}

// breakIf translates the condition at the end of a loop's continuing part.
func (f *function) breakIf(s *ir.Loop) ir.Expr {
	f.keep = f.src.Barrier
	c := f.one(s.BreakIf)
	f.keep = false
	if c.uniform() {
		return c.x
	}
	f.note(s, byBreak)
	if f.mask != nil {
		f.set(f.mask, f.logic(ir.And, load(f.mask), f.temp(&ir.Unary{Op: ir.Not, X: c.x})))
		return f.none(load(f.mask))
	}
	return nil
}

// leave translates a break, and reports whether no invocation reaches what follows it, as do proceed and giveUp.
func (f *function) leave() bool {
	sc := f.scopes[len(f.scopes)-1]
	switch {
	case sc.loop == nil && sc.rejoin != nil:
		f.join(sc.rejoin)
	case f.arms == sc.arms && !sc.waiting:
		f.emit(&ir.Break{})
		return true
	default:
		f.note(sc.key(), byBreak)
	}
	return f.kill()
}

// proceed translates a continue.
func (f *function) proceed() bool {
	i := len(f.scopes) - 1
	for f.scopes[i].loop == nil {
		i--
	}
	sc := f.scopes[i]
	if f.arms == sc.arms {
		f.emit(&ir.Continue{})
		return true
	}
	f.note(sc.loop, byContinue)
	sc.waiting = true
	for _, s := range f.scopes[i+1:] {
		f.note(s.choice, through)
	}
	f.join(sc.rejoin)
	return f.kill()
}

// giveUp translates a return. If some invocations stay, the results of those that return are kept until all have.
func (f *function) giveUp(s *ir.Return) bool {
	apart := f.arms > 0
	for _, sc := range f.scopes {
		apart = apart || sc.waiting || f.leaves[sc.key()]&byBreak != 0
	}
	if apart {
		f.note(f.src, byReturn)
		for _, sc := range f.scopes {
			f.note(sc.key(), map[bool]leaving{true: byReturn, false: through}[sc.loop != nil])
		}
		f.returned = true
	}
	var x []ir.Expr
	if s.X != nil {
		parts := f.parts(f.expr(s.X))
		for i, k := range kinds(f.src.Result) {
			one := f.as(f.learn(key{nil, i}, parts[i].shape, f.gone != nil), parts[i], k)
			if f.gone != nil {
				f.put(f.results[i], one, false)
			} else {
				x = append(x, one)
			}
		}
	}
	if apart {
		f.join(f.gone)
		return f.kill()
	}
	f.giveBack(x...)
	return true
}

// cases translates a switch.
func (f *function) cases(s *ir.Switch) {
	x := f.one(s.X)
	sc := &scope{choice: s, arms: f.arms}
	jumped := f.jumped
	f.jumped = false
	f.scopes = append(f.scopes, sc)
	if x.uniform() && f.leaves[s] == 0 {
		made, narrowed := &ir.Switch{X: x.x}, false
		for _, c := range s.Cases {
			body := f.collect(func() { f.narrowed = false; f.list(c.Body) })
			narrowed = narrowed || f.narrowed
			made.Cases = append(made.Cases, ir.Case{Values: c.Values, Default: c.Default, Body: body})
		}
		f.emit(made)
		f.narrowed = narrowed
	} else {
		f.masked(s, sc, f.widen(x, s.X.Type().Kind))
	}
	f.scopes = f.scopes[:len(f.scopes)-1]
	f.jumped = jumped || f.leaves[s]&through != 0
}

// masked translates a switch as one arm after another, each under the mask of the invocations that take it.
func (f *function) masked(s *ir.Switch, sc *scope, x ir.Expr) {
	outer, k := f.mask, s.X.Type().Kind
	sc.rejoin = f.declare(f.truths(false))
	hits, other := make([]ir.Expr, len(s.Cases)), f.truths(false)
	for i, c := range s.Cases {
		hits[i] = f.truths(false)
		for _, v := range c.Values {
			hits[i] = f.logic(ir.Or, hits[i], f.logic(ir.Eq, x, f.widen(part{x: number(v)}, k)))
		}
		other = f.logic(ir.Or, other, hits[i])
	}
	masks := make([]*ir.Var, len(s.Cases))
	for i, c := range s.Cases {
		if c.Default {
			hits[i] = f.logic(ir.Or, hits[i], f.temp(&ir.Unary{Op: ir.Not, X: other}))
		}
		masks[i] = f.declare(f.also(hits[i]))
	}
	for i, c := range s.Cases {
		f.arm(masks[i], c.Body)
		f.mask = outer
	}
	f.narrowed = false
	if f.leaves[s]&through != 0 {
		left := load(sc.rejoin)
		for _, m := range masks {
			left = f.logic(ir.Or, left, load(m))
		}
		f.restore(outer, left)
	}
}
