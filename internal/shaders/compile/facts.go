// SPDX-License-Identifier: Apache-2.0

package compile

import (
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

// visitor looks at the parts of a function. Each of its functions may be nil.
type visitor struct {
	stmt func(ir.Stmt)
	expr func(ir.Expr)
	ref  func(*ir.Ref)
}

func (v *visitor) list(list []ir.Stmt) {
	for _, s := range list {
		if v.stmt != nil {
			v.stmt(s)
		}
		switch s := s.(type) {
		case *ir.Declare:
			v.see(s.Init)
		case *ir.Let:
			v.see(s.X)
		case *ir.Store:
			v.seeRef(s.Ref)
			v.see(s.X)
		case *ir.Eval:
			v.see(s.X)
		case *ir.If:
			v.see(s.Cond)
			v.list(s.Then)
			v.list(s.Else)
		case *ir.Loop:
			v.list(s.Body)
			v.list(s.Continuing)
			v.see(s.BreakIf)
		case *ir.Switch:
			v.see(s.X)
			for _, c := range s.Cases {
				v.list(c.Body)
			}
		case *ir.Block:
			v.list(s.Body)
		case *ir.Return:
			v.see(s.X)
		}
	}
}

func (v *visitor) seeRef(r *ir.Ref) {
	if r == nil {
		return
	}
	if v.ref != nil {
		v.ref(r)
	}
	for _, s := range r.Path {
		v.see(s.Index)
	}
}

func (v *visitor) see(e ir.Expr) {
	if e == nil {
		return
	}
	if v.expr != nil {
		v.expr(e)
	}
	var args []ir.Expr
	switch e := e.(type) {
	case *ir.Load:
		v.seeRef(e.Ref)
	case *ir.Part:
		args = []ir.Expr{e.X, e.Step.Index}
	case *ir.Swizzle:
		args = []ir.Expr{e.X}
	case *ir.Unary:
		args = []ir.Expr{e.X}
	case *ir.Binary:
		args = []ir.Expr{e.X, e.Y}
	case *ir.Construct:
		args = e.Args
	case *ir.Convert:
		args = []ir.Expr{e.X}
	case *ir.Bitcast:
		args = []ir.Expr{e.X}
	case *ir.Call:
		args = e.Args
		for _, r := range e.Refs {
			v.seeRef(r)
		}
	case *ir.Builtin:
		args = e.Args
		v.seeRef(e.Ref)
	}
	for _, a := range args {
		v.see(a)
	}
}

// plain reports whether an expression does nothing but compute from values in locals.
func (m *generator) plain(e ir.Expr) bool {
	plain := true
	v := visitor{expr: func(e ir.Expr) {
		switch e := e.(type) {
		case *ir.Call:
			plain = false
		case *ir.Builtin:
			plain = plain && (e.Fn == ir.FnArrayLength || e.Fn == ir.FnMin || e.Fn == ir.FnMax)
		case *ir.Load:
			plain = plain && (e.Ref.Var.Space == ir.Function || e.Ref.Var.Space == ir.Uniform && len(e.Ref.Path) < 3)
		}
	}}
	v.see(e)
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
		v := visitor{
			stmt: func(s ir.Stmt) {
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
			expr: func(e ir.Expr) {
				fact.size++
				switch e := e.(type) {
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
			ref: func(r *ir.Ref) {
				fact.private = fact.private || r.Var.Space == ir.Private
				if moving(r) {
					m.memory[r.Var] = true
				}
			},
		}
		v.list(f.Body)
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
		if v.Space != ir.Function {
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
