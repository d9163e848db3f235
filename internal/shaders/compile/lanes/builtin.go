// SPDX-License-Identifier: Apache-2.0

package lanes

import "github.com/sublet-gpu/sublet/internal/shaders/compile/ir"

// byComponent reports whether a function of vectors applies to each of their components by itself.
func byComponent(fn ir.Fn) bool {
	switch fn {
	case ir.FnAll, ir.FnAny, ir.FnArrayLength, ir.FnCross, ir.FnDeterminant, ir.FnDistance, ir.FnDot, ir.FnExtractBits, ir.FnFaceForward,
		ir.FnFrexp, ir.FnInsertBits, ir.FnLength, ir.FnModf, ir.FnNormalize, ir.FnReflect, ir.FnRefract, ir.FnTranspose:
		return false
	}
	return fn <= ir.FnTrunc
}

// builtin translates a call of a built-in function. A function that does not apply to each component by itself is computed for one
// invocation after another, unless geometric knows it.
func (f *function) builtin(e *ir.Builtin) value {
	switch {
	case e.Fn == ir.FnArrayLength:
		return value{t: e.T, whole: e}
	case e.Fn >= ir.FnAtomicLoad:
		return f.atomic(e)
	}
	args := make([]value, len(e.Args))
	whole := true
	for i, a := range e.Args {
		args[i] = f.expr(a)
		whole = whole && args[i].whole != nil
	}
	build := func(t *ir.Type, x []ir.Expr) ir.Expr {
		return &ir.Builtin{Fn: e.Fn, Args: append([]ir.Expr(nil), x...), T: t}
	}
	if whole || byComponent(e.Fn) {
		return f.each(e.T, args, build)
	}
	if v, ok := f.geometric(e, args); ok {
		return v
	}
	return f.apart(e.T, func(l int) ir.Expr {
		x := make([]ir.Expr, len(args))
		for i, a := range args {
			x[i] = f.lane(a, l)
		}
		return build(e.T, x)
	})
}

// geometric computes a frequent function of whole vectors for four invocations at once. It reports whether it knows the function.
func (f *function) geometric(e *ir.Builtin, args []value) (value, bool) {
	x := make([][]part, len(args))
	for i, a := range args {
		x[i] = f.parts(a)
	}
	k := args[0].t.Scalar().Kind
	one := func(p part) (value, bool) { return value{t: e.T, parts: []part{p}}, true }
	op := func(op ir.Op, a, b part) part { return f.arith(op, k, k, a, b) }
	switch e.Fn {
	case ir.FnAll, ir.FnAny:
		all := x[0][0]
		for _, p := range x[0][1:] {
			all = op(map[bool]ir.Op{true: ir.And, false: ir.Or}[e.Fn == ir.FnAll], all, p)
		}
		return one(all)
	case ir.FnDot:
		return one(f.dot(k, x[0], x[1]))
	case ir.FnLength:
		return one(f.length(x[0]))
	case ir.FnDistance:
		apart := make([]part, len(x[0])) // the operands' own parts may be those of a value that is used again
		for i, p := range x[0] {
			apart[i] = op(ir.Sub, p, x[1][i])
		}
		return one(f.length(apart))
	case ir.FnNormalize:
		v, n := value{t: e.T}, f.length(x[0])
		for _, p := range x[0] {
			v.parts = append(v.parts, op(ir.Div, p, n))
		}
		return v, true
	case ir.FnCross:
		v := value{t: e.T}
		for i := range 3 {
			a, b := (i+1)%3, (i+2)%3
			v.parts = append(v.parts, op(ir.Sub, op(ir.Mul, x[0][a], x[1][b]), op(ir.Mul, x[0][b], x[1][a])))
		}
		return v, true
	}
	return value{}, false
}

// length returns the length of a vector, of a single scalar its absolute value.
func (f *function) length(x []part) part {
	fn := ir.FnAbs
	p := x[0]
	if len(x) > 1 {
		fn, p = ir.FnSqrt, f.dot(ir.F32, x, x)
	}
	return part{shape: p.shape, x: f.temp(&ir.Builtin{Fn: fn, Args: []ir.Expr{p.x}, T: f.p.typeOf(p.shape, ir.F32)})}
}

// atomic translates a call of an atomic function: one invocation after another accesses the variable.
func (f *function) atomic(e *ir.Builtin) value {
	path := f.path(e.Ref)
	args := make([]value, len(e.Args))
	for i, a := range e.Args {
		args[i] = f.expr(a)
		args[i].parts, args[i].whole = f.parts(args[i]), nil
	}
	call := func(l int) *ir.Builtin {
		c := &ir.Builtin{Fn: e.Fn, Ref: &ir.Ref{Var: e.Ref.Var, Path: path.of(l), T: e.Ref.T}, T: e.T}
		for _, a := range args {
			c.Args = append(c.Args, f.lane(a, l))
		}
		return c
	}
	if e.Fn == ir.FnAtomicLoad && path.uniform() {
		return value{t: e.T, whole: f.temp(call(0))}
	}
	v := value{t: e.T}
	var results []*ir.Var
	if e.T != nil {
		for _, k := range kinds(e.T) {
			r := &ir.Var{Type: f.p.vector(k)}
			f.emit(&ir.Declare{Var: r})
			results = append(results, r)
		}
	}
	f.eachLane(func(l int) {
		if e.T == nil {
			f.emit(&ir.Eval{X: call(l)})
			return
		}
		x := f.temp(call(l))
		for i, r := range results {
			s := scalarAt(x, e.T, i)
			f.emit(&ir.Store{Ref: &ir.Ref{Var: r, Path: []ir.Step{{Index: number(uint32(l))}}, T: s.Type()}, X: s})
		}
	})
	for _, r := range results {
		v.parts = append(v.parts, f.wided(load(r)))
	}
	return v
}

// eachLane makes code for each invocation by itself, which runs if the invocation is in the mask.
func (f *function) eachLane(body func(l int)) {
	for l := range width {
		if f.mask == nil {
			body(l)
			continue
		}
		live := &ir.Swizzle{X: load(f.mask), Lanes: []uint8{uint8(l)}, T: scalars[ir.Bool]}
		f.emit(&ir.If{Cond: live, Then: f.collect(func() { body(l) })})
	}
}

// call translates a call of a function of the program. One without effects whose arguments are the same for all is called once, as it is.
func (f *function) call(e *ir.Call) value {
	args := make([]value, len(e.Args))
	simple := !f.p.notes[e.Func].effects
	made := &ir.Call{}
	for i, a := range e.Args {
		if a == nil {
			made.Args, made.Refs = append(made.Args, nil), append(made.Refs, f.pointee(e.Refs[i]))
			continue
		}
		args[i] = f.expr(a)
		if args[i].whole != nil {
			made.Args = append(made.Args, args[i].whole)
		}
		for _, p := range args[i].parts {
			made.Args = append(made.Args, p.x)
		}
		for len(made.Refs) < len(made.Args) {
			made.Refs = append(made.Refs, nil)
		}
		simple = simple && args[i].whole != nil
	}
	if simple {
		made.Func = e.Func
		return value{t: e.Func.Result, whole: f.temp(made)}
	}
	if e.Func.Barrier {
		f.meet()
	}
	callee := f.p.specialise(e.Func, args, f.mask != nil)
	made.Func = callee.made
	if f.mask != nil {
		made.Args, made.Refs = append(made.Args, load(f.mask)), append(made.Refs, nil)
	}
	if e.Func.Result == nil {
		f.emit(&ir.Eval{X: made})
		return value{}
	}
	result := &ir.Value{Type: made.Func.Result}
	f.emit(&ir.Let{Value: result, X: made})
	v := value{t: e.Func.Result}
	for i, field := range result.Type.Fields {
		s := callee.shapes[key{nil, i}]
		v.parts = append(v.parts, part{shape: s, x: &ir.Part{X: &ir.Use{Value: result}, Step: ir.Step{Field: i}, T: field.Type}})
	}
	return v
}

// pointee translates the reference that is passed as a pointer.
func (f *function) pointee(r *ir.Ref) *ir.Ref {
	path := f.path(r)
	v := f.variable(r.Var)
	if !path.uniform() || v.held == nil && v.memory == nil {
		panic(unfit{})
	}
	if v.held != nil {
		return &ir.Ref{Var: v.held, Path: path.of(0), T: f.p.wide(r.T)}
	}
	return &ir.Ref{Var: v.memory, Path: path.of(0), T: r.T}
}
