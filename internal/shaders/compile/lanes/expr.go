// SPDX-License-Identifier: Apache-2.0

package lanes

import "github.com/sublet-gpu/sublet/internal/shaders/compile/ir"

// expr translates an expression.
func (f *function) expr(e ir.Expr) value {
	f.p.spend()
	switch e := e.(type) {
	case *ir.Use:
		return f.values[e.Value]
	case *ir.Load:
		return f.load(e.Ref)
	case *ir.Part:
		return f.part(f.expr(e.X), e.Step, e.T)
	case *ir.Swizzle:
		return f.swizzle(e)
	case *ir.Unary:
		return f.each(e.Type(), []value{f.expr(e.X)}, func(_ *ir.Type, x []ir.Expr) ir.Expr { return &ir.Unary{Op: e.Op, X: x[0]} })
	case *ir.Binary:
		return f.binary(e)
	case *ir.Construct:
		return f.construct(e)
	case *ir.Convert:
		return f.convert(e.T, f.expr(e.X), func(t *ir.Type, x ir.Expr) ir.Expr { return &ir.Convert{T: t, X: x} })
	case *ir.Bitcast:
		return f.convert(e.T, f.expr(e.X), func(t *ir.Type, x ir.Expr) ir.Expr { return &ir.Bitcast{T: t, X: x} })
	case *ir.Call:
		return f.call(e)
	case *ir.Builtin:
		return f.builtin(e)
	}
	return value{t: e.Type(), whole: e}
}

// one translates an expression of one scalar.
func (f *function) one(e ir.Expr) part { return f.parts(f.expr(e))[0] }

// parts returns the scalars of a value.
func (f *function) parts(v value) []part {
	switch {
	case v.whole == nil:
		return v.parts
	case v.t.IsScalar():
		return []part{{x: v.whole}}
	}
	x := f.temp(v.whole)
	list := make([]part, len(kinds(v.t)))
	for i := range list {
		list[i].x = scalarAt(x, v.t, i)
	}
	return list
}

// widen returns the vector of a scalar's values for the four invocations.
func (f *function) widen(p part, k ir.Kind) ir.Expr {
	if p.wide {
		return p.x
	}
	t := f.p.vector(k)
	steps := &ir.Const{T: t, Words: []uint32{0, p.stride, 2 * p.stride, 3 * p.stride}}
	if c, ok := p.x.(*ir.Const); ok {
		for i := range steps.Words {
			steps.Words[i] += c.Words[0]
		}
		return steps
	}
	x := ir.Expr(&ir.Construct{T: t, Args: []ir.Expr{p.x}})
	if p.stride != 0 {
		x = &ir.Binary{Op: ir.Add, X: x, Y: steps, T: t}
	}
	return f.temp(x)
}

// logic applies an operator to vectors whose result is a mask.
func (f *function) logic(op ir.Op, x, y ir.Expr) ir.Expr {
	return f.temp(&ir.Binary{Op: op, X: x, Y: y, T: f.p.vector(ir.Bool)})
}

// lane returns the value that a scalar has in the l-th of the four invocations.
func (f *function) lane(v value, l int) ir.Expr {
	if v.whole != nil {
		return v.whole
	}
	x := make([]ir.Expr, len(v.parts))
	for i, k := range kinds(v.t) {
		x[i] = laneOf(v.parts[i], k, l)
	}
	return assemble(v.t, x)
}

// laneOf returns the value of a scalar for invocation l.
func laneOf(p part, k ir.Kind, l int) ir.Expr {
	switch {
	case p.wide:
		return &ir.Swizzle{X: p.x, Lanes: []uint8{uint8(l)}, T: scalars[k]}
	case p.stride == 0 || l == 0:
		return p.x
	}
	t := scalars[k]
	return &ir.Binary{Op: ir.Add, X: p.x, Y: &ir.Const{T: t, Words: []uint32{p.stride * uint32(l)}}, T: t}
}

// apart computes a value of type t for one invocation after another: build returns that of invocation l.
func (f *function) apart(t *ir.Type, build func(l int) ir.Expr) value {
	var x [width]ir.Expr
	for l := range x {
		x[l] = f.temp(build(l))
	}
	v := value{t: t}
	for i, k := range kinds(t) {
		c := &ir.Construct{T: f.p.vector(k)}
		for l := range x {
			c.Args = append(c.Args, scalarAt(x[l], t, i))
		}
		v.parts = append(v.parts, f.wided(c))
	}
	return v
}

// wided returns a vector as a part.
func (f *function) wided(x ir.Expr) part { return part{shape: shape{wide: true}, x: f.temp(x)} }

// each applies an operation to values, by component where one of them differs between invocations. A scalar among the values takes part
// in each component.
func (f *function) each(t *ir.Type, args []value, build func(t *ir.Type, x []ir.Expr) ir.Expr) value {
	x := make([]ir.Expr, len(args))
	whole := true
	for i, a := range args {
		x[i] = a.whole
		whole = whole && a.whole != nil
	}
	if whole {
		return value{t: t, whole: build(t, x)}
	}
	v := value{t: t}
	parts := make([][]part, len(args))
	for i, a := range args {
		parts[i] = f.parts(a)
	}
	for c, k := range kinds(t) {
		same := true
		for _, p := range parts {
			same = same && p[min(c, len(p)-1)].uniform()
		}
		for i, p := range parts {
			one := p[min(c, len(p)-1)]
			if x[i] = one.x; !same {
				x[i] = f.widen(one, args[i].t.Scalar().Kind)
			}
		}
		v.parts = append(v.parts, part{shape: shape{wide: !same}, x: f.temp(build(f.p.typeOf(shape{wide: !same}, k), x))})
	}
	return v
}

// convert keeps the stride of integers.
func (f *function) convert(t *ir.Type, x value, build func(t *ir.Type, x ir.Expr) ir.Expr) value {
	from, to := x.t.Scalar().Kind, t.Scalar().Kind
	if isInt(from) && isInt(to) && x.whole == nil {
		v := value{t: t}
		for _, p := range x.parts {
			v.parts = append(v.parts, part{shape: p.shape, x: f.temp(build(f.p.typeOf(p.shape, to), p.x))})
		}
		return v
	}
	return f.each(t, []value{x}, func(t *ir.Type, x []ir.Expr) ir.Expr { return build(t, x[0]) })
}

func isInt(k ir.Kind) bool { return k == ir.I32 || k == ir.U32 }

// part returns a component, element or member of a value. An index that differs selects among all elements; as everywhere, the last
// element stands for those out of range.
func (f *function) part(x value, s ir.Step, t *ir.Type) value {
	if s.Index == nil {
		if x.whole != nil {
			return value{t: t, whole: &ir.Part{X: x.whole, Step: s, T: t}}
		}
		at := 0
		for _, field := range x.t.Fields[:s.Field] {
			at += field.Type.Words()
		}
		return value{t: t, parts: x.parts[at : at+t.Words()]}
	}
	i := f.one(s.Index)
	if x.whole != nil {
		if i.uniform() {
			return value{t: t, whole: &ir.Part{X: x.whole, Step: ir.Step{Index: i.x}, T: t}}
		}
		whole, k := f.temp(x.whole), s.Index.Type().Kind
		return f.apart(t, func(l int) ir.Expr { return &ir.Part{X: whole, Step: ir.Step{Index: laneOf(i, k, l)}, T: t} })
	}
	n := t.Words()
	if c, ok := i.x.(*ir.Const); ok && i.uniform() {
		at := int(min(c.Words[0], uint32(x.t.Len-1))) * n
		return value{t: t, parts: x.parts[at : at+n]}
	}
	v := value{t: t, parts: append([]part(nil), x.parts[(x.t.Len-1)*n:]...)}
	at, k := f.widen(i, s.Index.Type().Kind), s.Index.Type().Kind
	list := kinds(t)
	for e := x.t.Len - 2; e >= 0; e-- {
		here := f.logic(ir.Eq, at, f.widen(part{x: number(uint32(e))}, k))
		for c := range v.parts {
			v.parts[c] = f.wided(f.choose(f.widen(v.parts[c], list[c]), f.widen(x.parts[e*n+c], list[c]), here))
		}
	}
	return v
}

// choose returns y where a condition holds.
func (f *function) choose(x, y, cond ir.Expr) ir.Expr {
	return &ir.Builtin{Fn: ir.FnSelect, Args: []ir.Expr{x, y, cond}, T: x.Type()}
}

func (f *function) swizzle(e *ir.Swizzle) value {
	x := f.expr(e.X)
	if x.whole != nil {
		return value{t: e.T, whole: &ir.Swizzle{X: x.whole, Lanes: e.Lanes, T: e.T}}
	}
	v := value{t: e.T}
	for _, l := range e.Lanes {
		v.parts = append(v.parts, x.parts[l])
	}
	return v
}

func (f *function) construct(e *ir.Construct) value {
	args := make([]value, len(e.Args))
	x := make([]ir.Expr, len(e.Args))
	whole := true
	for i, a := range e.Args {
		args[i] = f.expr(a)
		x[i] = args[i].whole
		whole = whole && x[i] != nil
	}
	if whole {
		return value{t: e.T, whole: &ir.Construct{T: e.T, Args: x}}
	}
	v := value{t: e.T}
	for _, a := range args {
		v.parts = append(v.parts, f.parts(a)...)
	}
	for n := e.T.Words(); len(v.parts) < n; {
		v.parts = append(v.parts, v.parts[0])
	}
	kinds(e.T)
	return v
}

// binary applies an operator.
func (f *function) binary(e *ir.Binary) value {
	if (e.Op == ir.AndAlso || e.Op == ir.OrElse) && f.p.acts(e.Y) {
		return f.shortCut(e)
	}
	x, y := f.expr(e.X), f.expr(e.Y)
	if x.whole != nil && y.whole != nil {
		return value{t: e.T, whole: &ir.Binary{Op: e.Op, X: x.whole, Y: y.whole, T: e.T}}
	}
	if e.Op == ir.Mul && (x.t.Kind == ir.Matrix || y.t.Kind == ir.Matrix) {
		return f.product(e.T, x, y)
	}
	v := value{t: e.T}
	px, py := f.parts(x), f.parts(y)
	for i, k := range kinds(e.T) {
		v.parts = append(v.parts, f.arith(e.Op, k, x.t.Scalar().Kind, px[i], py[i]))
	}
	return v
}

// arith applies an operator to scalars of a kind.
func (f *function) arith(op ir.Op, to, k ir.Kind, x, y part) part {
	switch op {
	case ir.AndAlso:
		op = ir.And
	case ir.OrElse:
		op = ir.Or
	}
	s, ok := strides(op, k, x, y)
	if ok {
		return part{shape: s, x: f.temp(&ir.Binary{Op: op, X: x.x, Y: y.x, T: scalars[to]})}
	}
	ky := k
	if op == ir.ShiftLeft || op == ir.ShiftRight {
		ky = ir.U32
	}
	return f.wided(&ir.Binary{Op: op, X: f.widen(x, k), Y: f.widen(y, ky), T: f.p.vector(to)})
}

// strides returns the shape of the result of an operator, and reports whether it need be computed for the first invocation only, from which
// the values of the others follow by a stride.
func strides(op ir.Op, k ir.Kind, x, y part) (shape, bool) {
	if x.wide || y.wide {
		return shape{}, false
	}
	if x.stride == 0 && y.stride == 0 {
		return shape{}, true
	}
	if !isInt(k) {
		return shape{}, false
	}
	cx, _ := x.x.(*ir.Const)
	cy, _ := y.x.(*ir.Const)
	switch {
	case op == ir.Add:
		return shape{stride: x.stride + y.stride}, true
	case op == ir.Sub:
		return shape{stride: x.stride - y.stride}, true
	case op == ir.Mul && cy != nil && y.stride == 0:
		return shape{stride: x.stride * cy.Words[0]}, true
	case op == ir.Mul && cx != nil && x.stride == 0:
		return shape{stride: y.stride * cx.Words[0]}, true
	case op == ir.ShiftLeft && cy != nil && y.stride == 0:
		return shape{stride: x.stride << (cy.Words[0] & 31)}, true
	}
	return shape{}, false
}

// acts reports whether an expression must not be evaluated by invocations that do not need its value: it may have effects.
func (p *program) acts(e ir.Expr) bool {
	acts := false
	v := ir.Visitor{Expr: func(e ir.Expr) {
		_, call := e.(*ir.Call)
		b, builtin := e.(*ir.Builtin)
		acts = acts || call || builtin && b.Fn > ir.FnAtomicLoad
	}}
	v.See(e)
	return acts
}

// shortCut translates && and || as an if, so that only the invocations that need the right-hand side evaluate it.
func (f *function) shortCut(e *ir.Binary) value {
	v := f.p.synth[e]
	if v == nil {
		v = &ir.Var{Type: e.T}
		f.p.synth[e] = v
	}
	f.notes.stored[v] = true
	read := &ir.Load{Ref: &ir.Ref{Var: v, T: e.T}}
	choice := &ir.If{Cond: read}
	right := []ir.Stmt{&ir.Store{Ref: read.Ref, X: e.Y}}
	if e.Op == ir.AndAlso {
		choice.Then = right
	} else {
		choice.Else = right
	}
	f.stmt(&ir.Declare{Var: v, Init: e.X})
	f.stmt(choice)
	return f.expr(read)
}

// product multiplies two values, at least one of which is a matrix.
func (f *function) product(t *ir.Type, x, y value) value {
	px, py, v := f.parts(x), f.parts(y), value{t: t}
	mul := func(a, b part) part { return f.arith(ir.Mul, ir.F32, ir.F32, a, b) }
	if x.t.IsScalar() || y.t.IsScalar() {
		for i := range t.Words() {
			v.parts = append(v.parts, mul(px[min(i, len(px)-1)], py[min(i, len(py)-1)]))
		}
		return v
	}
	if x.t.Kind == ir.Vector { // a row
		for c := range y.t.Len {
			v.parts = append(v.parts, f.dot(ir.F32, px, py[c*len(px):(c+1)*len(px)]))
		}
		return v
	}
	rows, inner := x.t.Elem.Len, x.t.Len
	for at := 0; at < len(py); at += inner {
		for r := range rows {
			sum := mul(px[r], py[at])
			for k := 1; k < inner; k++ {
				sum = f.arith(ir.Add, ir.F32, ir.F32, sum, mul(px[k*rows+r], py[at+k]))
			}
			v.parts = append(v.parts, sum)
		}
	}
	return v
}

// dot computes a dot product. It sums in the same order as the code generator does for one invocation, so that the results are equal.
func (f *function) dot(k ir.Kind, x, y []part) part {
	p := make([]part, len(x))
	for i := range x {
		p[i] = f.arith(ir.Mul, k, k, x[i], y[i])
	}
	add := func(a, b part) part { return f.arith(ir.Add, k, k, a, b) }
	switch sum := add(p[0], p[1]); len(p) {
	case 3:
		return add(sum, p[2])
	case 4:
		return add(sum, add(p[2], p[3]))
	default:
		return sum
	}
}
