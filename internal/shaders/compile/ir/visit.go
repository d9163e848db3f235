// SPDX-License-Identifier: Apache-2.0

package ir

// Visitor walks over the statements, expressions and references of a function. It calls one of its functions, each of which may be nil,
// for each of them, before the parts of that one. It does not follow calls.
type Visitor struct {
	Stmt func(Stmt)
	Expr func(Expr)
	Ref  func(*Ref)
}

// List walks over statements.
func (v *Visitor) List(list []Stmt) {
	for _, s := range list {
		if v.Stmt != nil {
			v.Stmt(s)
		}
		switch s := s.(type) {
		case *Declare:
			v.See(s.Init)
		case *Let:
			v.See(s.X)
		case *Store:
			v.SeeRef(s.Ref)
			v.See(s.X)
		case *Eval:
			v.See(s.X)
		case *If:
			v.See(s.Cond)
			v.List(s.Then)
			v.List(s.Else)
		case *Loop:
			v.List(s.Body)
			v.List(s.Continuing)
			v.See(s.BreakIf)
		case *Switch:
			v.See(s.X)
			for _, c := range s.Cases {
				v.List(c.Body)
			}
		case *Block:
			v.List(s.Body)
		case *Return:
			v.See(s.X)
		}
	}
}

// SeeRef walks over a reference, which may be nil.
func (v *Visitor) SeeRef(r *Ref) {
	if r == nil {
		return
	}
	if v.Ref != nil {
		v.Ref(r)
	}
	for _, s := range r.Path {
		v.See(s.Index)
	}
}

// See walks over an expression, which may be nil.
func (v *Visitor) See(e Expr) {
	if e == nil {
		return
	}
	if v.Expr != nil {
		v.Expr(e)
	}
	var args []Expr
	switch e := e.(type) {
	case *Load:
		v.SeeRef(e.Ref)
	case *Part:
		args = []Expr{e.X, e.Step.Index}
	case *Swizzle:
		args = []Expr{e.X}
	case *Unary:
		args = []Expr{e.X}
	case *Binary:
		args = []Expr{e.X, e.Y}
	case *Construct:
		args = e.Args
	case *Convert:
		args = []Expr{e.X}
	case *Bitcast:
		args = []Expr{e.X}
	case *Call:
		args = e.Args
		for _, r := range e.Refs {
			v.SeeRef(r)
		}
	case *Builtin:
		args = e.Args
		v.SeeRef(e.Ref)
	case *Lanes:
		args = []Expr{e.X, e.Mask}
		v.SeeRef(e.Ref)
	}
	for _, a := range args {
		v.See(a)
	}
}
