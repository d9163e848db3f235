// SPDX-License-Identifier: Apache-2.0

package front

import (
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// verifier checks that a program is what package ir promises.
type verifier struct {
	fail   func(what string, at any)
	f      *ir.Func
	known  map[*ir.Func]bool
	vars   map[*ir.Var]bool
	values map[*ir.Value]bool
	within bool // the index of a pointer that is passed
}

func verify(t testing.TB, name string, prog *ir.Program) {
	v := &verifier{known: map[*ir.Func]bool{}, vars: map[*ir.Var]bool{}}
	v.fail = func(what string, at any) { t.Errorf("%s: %s: %s: %T %+v", name, v.f.Name, what, at, at) }
	for _, w := range prog.Vars {
		v.vars[w] = true
	}
	for _, f := range prog.Funcs {
		v.f, v.values = f, map[*ir.Value]bool{}
		for _, q := range f.Params {
			if v.values[q.Value] = true; q.Var != nil {
				v.vars[q.Var] = true
			}
		}
		v.block(f.Body, false, false)
		v.known[f] = true
	}
	if len(prog.Funcs) == 0 || prog.Funcs[len(prog.Funcs)-1] != prog.Entry {
		v.fail("the entry point is not the last function", prog)
	}
}

func (v *verifier) block(list []ir.Stmt, breaks, continues bool) {
	for _, s := range list {
		switch s := s.(type) {
		case *ir.Declare:
			if v.vars[s.Var] = true; s.Init != nil {
				v.typed(s.Init, s.Var.Type)
			}
		case *ir.Let:
			v.whole(s.X)
			v.want(s, s.X.Type() == s.Value.Type, "the type of a let")
			v.values[s.Value] = true
		case *ir.Store:
			v.ref(s.Ref)
			v.typed(s.X, s.Ref.T)
			v.want(s, writable(s.Ref), "a store to what is read-only")
		case *ir.Eval:
			v.whole(s.X)
		case *ir.If:
			v.kind(s.Cond, ir.Bool)
			v.block(s.Then, breaks, continues)
			v.block(s.Else, breaks, continues)
		case *ir.Loop:
			v.block(s.Body, true, true)
			v.block(s.Continuing, false, false)
			if s.BreakIf != nil {
				v.kind(s.BreakIf, ir.Bool)
			}
		case *ir.Switch:
			v.expr(s.X)
			defaults := 0
			for _, c := range s.Cases {
				if v.block(c.Body, true, continues); c.Default {
					defaults++
				}
			}
			v.want(s, defaults == 1, "defaults")
		case *ir.Block:
			v.block(s.Body, breaks, continues)
		case *ir.Break:
			v.want(s, breaks, "a break")
		case *ir.Continue:
			v.want(s, continues, "a continue")
		case *ir.Return:
			if v.want(s, (s.X == nil) == (v.f.Result == nil), "a return"); s.X != nil {
				v.typed(s.X, v.f.Result)
			}
		case *ir.Barrier:
			v.want(s, v.f.Barrier, "a barrier in a function that says it has none")
		}
	}
}

func (v *verifier) want(at any, ok bool, what string) {
	if !ok {
		v.fail(what, at)
	}
}

// whole checks an expression that may be a call of a function with a barrier.
func (v *verifier) whole(x ir.Expr) {
	if c, ok := x.(*ir.Call); ok {
		v.call(c)
	} else {
		v.expr(x)
	}
}

func (v *verifier) typed(x ir.Expr, t *ir.Type) {
	v.expr(x)
	v.want(x, x.Type() == t, "the type of a value")
}

func (v *verifier) kind(x ir.Expr, k ir.Kind) {
	v.expr(x)
	v.want(x, x.Type().Kind == k, "the kind of a value")
}

func (v *verifier) ref(r *ir.Ref) {
	v.want(r, v.vars[r.Var], "a variable that is not declared")
	t := r.Var.Type
	for _, s := range r.Path {
		t = v.step(t, s)
	}
	v.want(r, t == r.T, "the type of a reference")
}

func (v *verifier) step(t *ir.Type, s ir.Step) *ir.Type {
	if s.Index == nil {
		return t.Fields[s.Field].Type
	}
	v.expr(s.Index)
	k := s.Index.Type().Kind
	v.want(s, k == ir.I32 || k == ir.U32, "the type of an index")
	return t.Elem
}

func (v *verifier) call(c *ir.Call) {
	v.want(c, v.known[c.Func], "a call of a function that does not stand before")
	v.want(c, !c.Func.Barrier || v.f.Barrier, "a call of a function with a barrier")
	for i, q := range c.Func.Params {
		if q.Var == nil {
			v.typed(c.Args[i], q.Value.Type)
			continue
		}
		v.within = true
		v.ref(c.Refs[i])
		v.within = false
		v.want(c, c.Args[i] == nil && c.Refs[i].T == q.Var.Type && c.Refs[i].Var.Space == q.Var.Space, "a pointer")
	}
}

func (v *verifier) expr(x ir.Expr) {
	if t := x.Type(); t != nil {
		v.want(x, !isAbstract(leaf(t).Kind), "a type of no numbers")
	}
	switch x := x.(type) {
	case *ir.Const:
		v.want(x, len(x.Words) == x.T.Words(), "the length of a constant")
	case *ir.Use:
		v.want(x, v.values[x.Value], "a value that is not computed")
	case *ir.Load:
		v.ref(x.Ref)
		v.want(x, leaf(x.Ref.T).Kind != ir.Atomic, "an atomic that is loaded")
	case *ir.Part:
		v.expr(x.X)
		v.want(x, v.step(x.X.Type(), x.Step) == x.T, "the type of a part")
	case *ir.Swizzle:
		v.kind(x.X, ir.Vector)
		v.want(x, max(x.T.Len, 1) == len(x.Lanes) && x.T.Scalar() == x.X.Type().Elem, "the type of a swizzle")
	case *ir.Unary:
		v.expr(x.X)
	case *ir.Binary:
		v.expr(x.X)
		v.expr(x.Y)
		a, b := x.X.Type(), x.Y.Type()
		shift := (x.Op == ir.ShiftLeft || x.Op == ir.ShiftRight) && b.Scalar().Kind == ir.U32 && a.Len == b.Len
		matrix := x.Op == ir.Mul && (a.Kind == ir.Matrix || b.Kind == ir.Matrix)
		v.want(x, a == b || shift || matrix, "the types of operands")
	case *ir.Construct:
		words := 0
		for _, a := range x.Args {
			v.expr(a)
			words += a.Type().Words()
		}
		splat := x.T.Kind == ir.Vector && len(x.Args) == 1 && x.Args[0].Type() == x.T.Elem
		v.want(x, words == x.T.Words() || splat, "the parts of a composite")
	case *ir.Convert:
		v.expr(x.X)
		v.want(x, x.X.Type().Len == x.T.Len, "the type of a conversion")
	case *ir.Bitcast:
		v.expr(x.X)
		v.want(x, x.X.Type().Words() == x.T.Words(), "the type of a bitcast")
	case *ir.Call:
		v.want(x, !x.Func.Barrier && !v.within, "a call with a barrier in an expression, or a call in a pointer")
		v.call(x)
	case *ir.Builtin:
		if x.Ref != nil {
			v.ref(x.Ref)
		}
		for _, a := range x.Args {
			v.expr(a)
		}
	}
}
