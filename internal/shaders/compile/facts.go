// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// facts are what the generator knows of a function before it writes it.
type facts struct {
	size    int              // of its code with what is inlined into it, in nodes of package ir
	calls   int              // how many places call it
	loops   bool             // it or a function that it calls has one
	private bool             // or uses variables of an invocation
	stores  map[*ir.Var]bool // variables of the module, and parameters, that it or a function that it calls writes
}

// plain reports whether an expression does nothing but compute from values in locals.
func (m *generator) plain(e ir.Expr) bool {
	plain := true
	v := ir.Visitor{Expr: func(e ir.Expr) {
		switch e := e.(type) {
		case *ir.Call:
			plain = false
		case *ir.Builtin:
			plain = plain && (e.Fn == ir.FnArrayLength || e.Fn == ir.FnMin || e.Fn == ir.FnMax)
		case *ir.Load:
			plain = plain && (e.Ref.Var.Space == ir.Function || e.Ref.Var.Space == ir.Uniform && len(e.Ref.Path) < 3)
		}
	}}
	v.See(e)
	return plain
}

// stores reports whether a built-in function writes what it is given.
func stores(fn ir.Fn) bool { return fn > ir.FnAtomicLoad }

// analyse collects the facts of functions that stand after those that they call.
func (m *generator) analyse(funcs []*ir.Func) error {
	for _, f := range funcs {
		if m.facts[f] != nil {
			continue
		}
		fact := &facts{stores: map[*ir.Var]bool{}}
		m.facts[f] = fact
		var failed error
		v := ir.Visitor{
			Stmt: func(s ir.Stmt) {
				fact.size++
				switch s := s.(type) {
				case *ir.Loop:
					fact.loops = true
				case *ir.Store:
					fact.stores[s.Ref.Var] = true
				case *ir.Declare:
					if m.count(s.Var.Type) > maxPromoted {
						m.memory[s.Var] = true
					}
				}
			},
			Expr: func(e ir.Expr) {
				fact.size++
				switch e := e.(type) {
				case *ir.Lanes:
					fact.stores[e.Ref.Var] = fact.stores[e.Ref.Var] || e.X != nil
				case *ir.Call:
					m.callFacts(fact, e.Func, e.Refs)
				case *ir.Builtin:
					if stores(e.Fn) {
						fact.stores[e.Ref.Var] = true
					}
					h, err := m.helper(e.Fn)
					if err != nil {
						failed = err
					} else if h != nil {
						m.callFacts(fact, h, nil)
					}
				}
			},
			Ref: func(r *ir.Ref) {
				fact.private = fact.private || r.Var.Space == ir.Private
				if moving(r) {
					m.memory[r.Var] = true
				}
			},
		}
		v.List(f.Body)
		if failed != nil {
			return failed
		}
		if fact.size > maxWork {
			return errTooLarge
		}
	}
	return nil
}

// callFacts adds those of a function that is called.
func (m *generator) callFacts(fact *facts, f *ir.Func, refs []*ir.Ref) {
	callee := m.facts[f]
	callee.calls++
	fact.size = min(fact.size+callee.size, 2*maxWork)
	fact.loops = fact.loops || callee.loops
	fact.private = fact.private || callee.private
	for v := range callee.stores {
		if v.Space != ir.Function && !points(f, v) {
			fact.stores[v] = true
		}
	}
	for i, p := range f.Params {
		if p.Var != nil {
			fact.stores[refs[i].Var] = fact.stores[refs[i].Var] || callee.stores[p.Var]
			m.memory[refs[i].Var] = m.memory[refs[i].Var] || m.memory[p.Var]
		}
	}
	if !m.mustInline(f) && callee.size > maxInline {
		fact.size -= callee.size // it becomes a function, unless this is its only call
	}
}

// points reports whether a variable is what a parameter of a function points to, which may be of any address space.
func points(f *ir.Func, v *ir.Var) bool {
	return slices.ContainsFunc(f.Params, func(p ir.Param) bool { return p.Var == v })
}

// moving reports whether a reference goes to an element that is not always the same. Components of vectors are none.
func moving(r *ir.Ref) bool {
	t := r.Var.Type
	for _, s := range r.Path {
		if t.Kind == ir.Struct {
			t = t.Fields[s.Field].Type
			continue
		}
		if _, constant := s.Index.(*ir.Const); !constant && t.Kind != ir.Vector {
			return true
		}
		t = t.Elem
	}
	return false
}

// mustInline reports whether a function cannot be one of the module.
func (m *generator) mustInline(f *ir.Func) bool {
	fact := m.facts[f]
	cells := 0
	for _, p := range f.Params {
		if p.Var != nil {
			return true
		}
		cells += m.count(p.Value.Type)
	}
	if f.Result != nil {
		cells += m.count(f.Result)
	}
	return f.Barrier || fact.private || cells > 64 || fact.loops && m.o.Guard
}

// inlined reports whether calls of a function are replaced by its body.
func (m *generator) inlined(f *ir.Func) bool {
	fact := m.facts[f]
	return fact.size <= maxInline || fact.calls == 1 || m.mustInline(f)
}
