// SPDX-License-Identifier: Apache-2.0

package lanes

import "github.com/sublet-gpu/sublet/internal/shaders/compile/ir"

// path is the translated path of a reference.
type path struct {
	steps   []ir.Step // with the indices of the first invocation
	indices []part    // by step
	kinds   []ir.Kind // of the indices
	differ  int       // the number of steps whose index is not the same for all invocations
	at      int       // the last such step
}

func (p *path) uniform() bool { return p.differ == 0 }

// of returns the steps of invocation l.
func (p *path) of(l int) []ir.Step {
	if p.uniform() {
		return p.steps
	}
	list := append([]ir.Step(nil), p.steps...)
	for i, s := range p.steps {
		if s.Index != nil {
			list[i].Index = laneOf(p.indices[i], p.kinds[i], l)
		}
	}
	return list
}

// to extends steps to a scalar of the type t that they lead to.
func to(steps []ir.Step, t *ir.Type, scalar int) []ir.Step {
	list := append([]ir.Step(nil), steps...)
	for !t.IsScalar() {
		var s ir.Step
		s, t, scalar = stepTo(t, scalar)
		list = append(list, s)
	}
	return list
}

// path evaluates the indices of a reference.
func (f *function) path(r *ir.Ref) *path {
	p := &path{}
	for i, s := range r.Path {
		var index part
		k := ir.U32
		if s.Index != nil {
			index, k = f.one(s.Index), s.Index.Type().Kind
			if l, ok := index.x.(*ir.Load); !ok || l.Ref.Var.Space != ir.Function {
				index.x = f.temp(index.x)
			}
			s.Index = index.x
			if !index.uniform() {
				p.differ++
				p.at = i
			}
		}
		p.steps, p.indices, p.kinds = append(p.steps, s), append(p.indices, index), append(p.kinds, k)
	}
	return p
}

// variable returns what replaces a variable. One that the function does not declare belongs to the module.
func (f *function) variable(v *ir.Var) *variable {
	if f.vars[v] == nil {
		known := &variable{arms: -1}
		if known.held = f.p.private[v]; known.held == nil {
			known.memory = v
		}
		f.vars[v] = known
	}
	return f.vars[v]
}

// declaration translates the declaration of a variable: it makes a variable for each scalar, or one of wide type if there are computed
// indices or pointers. A variable that is never written becomes its value.
func (f *function) declaration(s *ir.Declare) {
	v := s.Var
	made := &variable{arms: f.arms, scopes: len(f.scopes)}
	init := value{t: v.Type, whole: &ir.Construct{T: v.Type}}
	if s.Init != nil {
		init = f.expr(s.Init)
	}
	switch {
	case !f.notes.stored[v]:
		if s.Init != nil || v.Type.Words() <= maxParts {
			init = f.bind(init)
		}
		made.value = &init
	case f.notes.held[v] || v.Type.Words() > maxParts:
		made.held = &ir.Var{Name: v.Name, Type: f.p.wide(v.Type)}
		d := &ir.Declare{Var: made.held}
		if s.Init != nil {
			d.Init = f.held(init)
		}
		f.emit(d)
	default:
		if s.Init == nil {
			init.whole = zero(v.Type)
		}
		parts := f.parts(init)
		for i, k := range kinds(v.Type) {
			shape := f.learn(key{v, i}, parts[i].shape, false)
			one := &ir.Var{Name: v.Name, Type: f.p.typeOf(shape, k)}
			f.emit(&ir.Declare{Var: one, Init: f.as(shape, parts[i], k)})
			made.parts = append(made.parts, one)
		}
	}
	f.vars[v] = made
}

func zero(t *ir.Type) *ir.Const { return &ir.Const{T: t, Words: make([]uint32, t.Words())} }

// held returns a value as an expression of wide type.
func (f *function) held(v value) ir.Expr {
	if c, ok := v.whole.(*ir.Const); ok {
		return f.p.wideConst(c)
	}
	var x []ir.Expr
	parts := f.parts(v)
	for i, k := range kinds(v.t) {
		x = append(x, f.widen(parts[i], k))
	}
	return f.wideAssemble(v.t, x)
}

// wideAssemble makes an expression of the wide type of t from its vectors.
func (f *function) wideAssemble(t *ir.Type, x []ir.Expr) ir.Expr {
	if t.IsScalar() {
		return x[0]
	}
	c := &ir.Construct{T: f.p.wide(t)}
	for at := 0; at < len(x); {
		_, inner, _ := stepTo(t, at)
		n := inner.Words()
		c.Args = append(c.Args, f.wideAssemble(inner, x[at:at+n]))
		at += n
	}
	return c
}

// as returns a scalar in a shape: its own, or wide.
func (f *function) as(s shape, p part, k ir.Kind) ir.Expr {
	if s.wide {
		return f.widen(p, k)
	}
	return p.x
}

// bind has a value computed here, and kept for as long as it is in scope.
func (f *function) bind(v value) value {
	let := func(x ir.Expr) ir.Expr {
		if _, ok := x.(*ir.Const); ok {
			return x
		}
		made := &ir.Value{Type: x.Type()}
		f.emit(&ir.Let{Value: made, X: x})
		return &ir.Use{Value: made}
	}
	if v.whole != nil {
		v.whole = let(v.whole)
		return v
	}
	v.parts = append([]part(nil), v.parts...)
	for i := range v.parts {
		v.parts[i].x = let(v.parts[i].x)
	}
	return v
}

// scalarsOf returns the number of the first scalar that a reference with constant indices leads to.
func scalarsOf(r *ir.Ref) (at int) {
	t := r.Var.Type
	for _, s := range r.Path {
		if t.Kind == ir.Struct {
			for _, field := range t.Fields[:s.Field] {
				at += field.Type.Words()
			}
			t = t.Fields[s.Field].Type
			continue
		}
		i := s.Index.(*ir.Const).Words[0]
		at, t = at+int(min(i, uint32(t.Len-1)))*t.Elem.Words(), t.Elem
	}
	return at
}

// load reads a variable or a part of it.
func (f *function) load(r *ir.Ref) value {
	v := f.variable(r.Var)
	switch {
	case v.value != nil:
		x, t := *v.value, r.Var.Type
		for _, s := range r.Path {
			if t.Kind == ir.Struct {
				t = t.Fields[s.Field].Type
			} else {
				t = t.Elem
			}
			x = f.part(x, s, t)
		}
		return x
	case v.parts != nil:
		x := value{t: r.T}
		at := scalarsOf(r)
		for i := range r.T.Words() {
			x.parts = append(x.parts, part{shape: f.shapes[key{r.Var, at + i}], x: load(v.parts[at+i])})
		}
		if r.T.IsScalar() && x.parts[0].uniform() {
			x.whole, x.parts = x.parts[0].x, nil
		}
		return x
	case v.held != nil:
		return f.loadHeld(v, r)
	}
	return f.loadMemory(v, r)
}

// loadHeld reads a variable of wide type. Where indices differ, each invocation's scalar is read by itself.
func (f *function) loadHeld(v *variable, r *ir.Ref) value {
	p, x := f.path(r), value{t: r.T}
	for i, k := range kinds(r.T) {
		if p.uniform() {
			x.parts = append(x.parts, f.wided(&ir.Load{Ref: &ir.Ref{Var: v.held, Path: to(p.steps, r.T, i), T: f.p.vector(k)}}))
			continue
		}
		c := &ir.Construct{T: f.p.vector(k)}
		for l := range width {
			c.Args = append(c.Args, &ir.Load{Ref: v.lane(p, r.T, i, l, k)})
		}
		x.parts = append(x.parts, f.wided(c))
	}
	return x
}

// lane refers to the scalar of the l-th of the four invocations in a variable that holds one for each.
func (v *variable) lane(p *path, t *ir.Type, scalar, l int, k ir.Kind) *ir.Ref {
	steps := append(to(p.of(l), t, scalar), ir.Step{Index: number(uint32(l))})
	return &ir.Ref{Var: v.held, Path: steps, T: scalars[k]}
}

// lanes returns the access by four invocations to a scalar in elements of an array in memory, or nil if the reference is to something
// else.
func (f *function) lanes(v *variable, p *path, r *ir.Ref) *ir.Lanes {
	if p.differ != 1 || !r.T.IsScalar() {
		return nil
	}
	t := r.Var.Type
	for _, s := range p.steps[:p.at] {
		if t.Kind == ir.Struct {
			t = t.Fields[s.Field].Type
		} else {
			t = t.Elem
		}
	}
	if t.Kind != ir.Array {
		return nil
	}
	return &ir.Lanes{Ref: &ir.Ref{Var: v.memory, Path: p.steps, T: r.T}, At: p.at, Stride: p.indices[p.at].stride}
}

// loadMemory reads memory that the invocations share.
func (f *function) loadMemory(v *variable, r *ir.Ref) value {
	p := f.path(r)
	if p.uniform() {
		x := value{t: r.T, whole: &ir.Load{Ref: &ir.Ref{Var: v.memory, Path: p.steps, T: r.T}}}
		if space := v.memory.Space; space == ir.Workgroup || space == ir.Storage && v.memory.Write {
			x.whole = f.temp(x.whole) // before anything else writes there
		}
		return x
	}
	if e := f.lanes(v, p, r); e != nil {
		e.T = f.p.vector(r.T.Kind)
		return value{t: r.T, parts: []part{f.wided(e)}}
	}
	return f.apart(r.T, func(l int) ir.Expr { return &ir.Load{Ref: &ir.Ref{Var: v.memory, Path: p.of(l), T: r.T}} })
}

// store writes a variable or a part of it.
func (f *function) store(s *ir.Store) {
	r, v := s.Ref, f.variable(s.Ref.Var)
	if v.parts != nil {
		f.storeParts(v, r, f.expr(s.X))
		return
	}
	p := f.path(r)
	x := f.expr(s.X)
	if v.held != nil {
		f.storeHeld(v, p, r, x)
		return
	}
	to := func(l int) *ir.Ref { return &ir.Ref{Var: v.memory, Path: p.of(l), T: r.T} }
	if x.whole != nil && p.uniform() {
		f.emit(&ir.Store{Ref: to(0), X: x.whole})
		return
	}
	if e := f.lanes(v, p, r); e != nil {
		e.X = f.widen(f.parts(x)[0], r.T.Kind)
		if f.mask != nil {
			e.Mask = load(f.mask)
		}
		f.emit(&ir.Eval{X: e})
		return
	}
	x.parts, x.whole = f.parts(x), nil
	f.eachLane(func(l int) { f.emit(&ir.Store{Ref: to(l), X: f.lane(x, l)}) })
}

// storeParts writes a variable that has become one for each scalar.
func (f *function) storeParts(v *variable, r *ir.Ref, x value) {
	parts := append([]part(nil), f.parts(x)...)
	if len(parts) > 1 { // which may be parts of what is written
		for i := range parts {
			parts[i].x = f.temp(parts[i].x)
		}
	}
	at, all := scalarsOf(r), f.all(r.Var, v)
	for i, k := range kinds(r.T) {
		shape := f.learn(key{r.Var, at + i}, parts[i].shape, !all)
		f.put(v.parts[at+i], f.as(shape, parts[i], k), all)
	}
}

// put stores for all invocations, or for the invocations of the mask.
func (f *function) put(v *ir.Var, x ir.Expr, all bool) {
	if !all && f.mask != nil && x.Type().Kind == ir.Vector {
		x = f.choose(load(v), x, load(f.mask))
	}
	f.set(v, x)
}

// storeHeld writes a variable of wide type.
func (f *function) storeHeld(v *variable, p *path, r *ir.Ref, x value) {
	parts := append([]part(nil), f.parts(x)...)
	if !p.uniform() {
		x.parts, x.whole = parts, nil
		list := kinds(r.T)
		f.eachLane(func(l int) {
			for i, k := range list {
				f.emit(&ir.Store{Ref: v.lane(p, r.T, i, l, k), X: laneOf(parts[i], k, l)})
			}
		})
		return
	}
	all := f.all(r.Var, v)
	for i, k := range kinds(r.T) {
		to := &ir.Ref{Var: v.held, Path: to(p.steps, r.T, i), T: f.p.vector(k)}
		w := f.widen(parts[i], k)
		if !all && f.mask != nil {
			w = f.choose(&ir.Load{Ref: to}, w, load(f.mask))
		}
		f.emit(&ir.Store{Ref: to, X: w})
	}
}
