// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// notes are what is known of a function before it is translated.
type notes struct {
	stored  map[*ir.Var]bool              // variables that are written after their declaration
	held    map[*ir.Var]bool              // variables that pointers or computed indices refer to: they get one variable of wide type
	last    map[*ir.Var]*ir.Loop          // for a variable, the loop that is the last statement beside the declaration to use it
	after   map[*ir.Loop]map[*ir.Var]bool // variables that the continuing part of a loop uses
	effects bool                          // a call does more than compute a result from its arguments and memory
}

// note makes the notes of a function. Those of the functions that it calls must be there.
func (p *program) note(f *ir.Func) {
	n := &notes{
		stored: map[*ir.Var]bool{}, held: map[*ir.Var]bool{}, last: map[*ir.Var]*ir.Loop{}, after: map[*ir.Loop]map[*ir.Var]bool{},
		effects: f.Barrier,
	}
	p.notes[f] = n
	for _, q := range f.Params {
		n.effects = n.effects || q.Var != nil
	}
	write := func(r *ir.Ref) {
		n.stored[r.Var] = true
		if r.Var.Space != ir.Function {
			p.stored[r.Var] = true
			n.effects = true
		}
	}
	v := ir.Visitor{
		Stmt: func(s ir.Stmt) {
			p.spend()
			switch s := s.(type) {
			case *ir.Store:
				write(s.Ref)
			case *ir.Loop:
				n.after[s] = used(turn(s)[len(s.Body):])
			}
		},
		Expr: func(e ir.Expr) {
			p.spend()
			switch e := e.(type) {
			case *ir.Builtin:
				if e.Fn >= ir.FnAtomicLoad {
					write(e.Ref)
				}
			case *ir.Call:
				n.effects = n.effects || p.notes[e.Func].effects
				for _, r := range e.Refs {
					if r != nil {
						write(r)
						n.held[r.Var] = true
					}
				}
			}
		},
		Ref: func(r *ir.Ref) {
			n.effects = n.effects || r.Var.Space == ir.Private
			for _, s := range r.Path {
				if _, constant := s.Index.(*ir.Const); s.Index != nil && !constant {
					n.held[r.Var] = true
				}
			}
		},
	}
	v.List(f.Body)
	n.lasts(f.Body)
}

// turn lists the statements of a loop in the order in which they run, with the condition at its end.
func turn(s *ir.Loop) []ir.Stmt {
	return append(slices.Concat(s.Body, s.Continuing), &ir.Eval{X: s.BreakIf})
}

// used returns the variables that statements read or write.
func used(list []ir.Stmt) map[*ir.Var]bool {
	set := map[*ir.Var]bool{}
	v := ir.Visitor{Ref: func(r *ir.Ref) { set[r.Var] = true }}
	v.List(list)
	return set
}

// lasts finds, for each variable that a list declares, whether the last statement of the list to use it is a loop: invocations that have
// left the loop then need the variable no more.
func (n *notes) lasts(list []ir.Stmt) {
	var declared []*ir.Var
	for _, s := range list {
		switch s := s.(type) {
		case *ir.If:
			n.lasts(s.Then)
			n.lasts(s.Else)
		case *ir.Loop:
			n.lasts(turn(s))
		case *ir.Switch:
			for _, c := range s.Cases {
				n.lasts(c.Body)
			}
		case *ir.Block:
			n.lasts(s.Body)
		}
		if len(declared) > 0 {
			set := used([]ir.Stmt{s})
			loop, _ := s.(*ir.Loop)
			for _, v := range declared {
				if set[v] {
					n.last[v] = loop
				}
			}
		}
		if d, ok := s.(*ir.Declare); ok {
			declared = append(declared, d.Var)
		}
	}
}

// light reports whether code may run with an empty mask: it has no effects beyond variables of the function, and takes no longer than a
// test of the mask and a branch.
func (p *program) light(list []ir.Stmt) bool {
	cost := 0
	v := ir.Visitor{
		Stmt: func(s ir.Stmt) {
			switch s := s.(type) {
			case *ir.Store:
				if s.Ref.Var.Space != ir.Function {
					cost = maxLight
				}
			case *ir.Loop, *ir.Switch, *ir.Eval, *ir.Barrier:
				cost = maxLight
			}
			cost++
		},
		Expr: func(e ir.Expr) {
			switch e := e.(type) {
			case *ir.Call:
				cost = maxLight
			case *ir.Builtin:
				if e.Fn >= ir.FnAtomicLoad || !byComponent(e.Fn) {
					cost = maxLight
				}
				if b := e.Fn; b >= ir.FnAcos && b <= ir.FnAcosh || b >= ir.FnAsin && b <= ir.FnAtanh || b >= ir.FnCos && b <= ir.FnCosh {
					cost = maxLight
				}
				switch e.Fn {
				case ir.FnExp, ir.FnExp2, ir.FnLog, ir.FnLog2, ir.FnPow, ir.FnSin, ir.FnSinh, ir.FnTan, ir.FnTanh:
					cost = maxLight
				}
			case *ir.Binary:
				cost++
			}
		},
		Ref: func(r *ir.Ref) {
			if r.Var.Space != ir.Function && r.Var.Space != ir.Uniform || len(r.Path) > 1 {
				cost = maxLight
			}
		},
	}
	v.List(list)
	return cost < maxLight
}

// maxLight is the cost, in about instructions, from which code is not light.
const maxLight = 12
