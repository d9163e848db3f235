// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// interpreter runs one invocation of a program, so that tests see what its text became. Values and variables are scalars in order.
type interpreter struct {
	memory map[*ir.Var][]uint32
	values map[*ir.Value][]uint32
	refs   map[*ir.Var]place // of pointers
	turns  int
}

// place is a part of a variable.
type place struct {
	mem  []uint32
	t    *ir.Type
	from int
}

// jump is how statements end: by 0, *ir.Break, *ir.Continue or *ir.Return.
type jump struct {
	stmt  ir.Stmt
	value []uint32
}

// run returns the words of the storage variable y, which has n of them, after a run.
func run(prog *ir.Program, n int) []uint32 {
	in := &interpreter{memory: map[*ir.Var][]uint32{}, values: map[*ir.Value][]uint32{}, refs: map[*ir.Var]place{}}
	var y []uint32
	for _, v := range prog.Vars {
		words := max(v.Type.Words(), n)
		in.memory[v] = make([]uint32, words)
		if v.Init != nil {
			in.memory[v] = in.eval(v.Init)
		}
		if v.Name == "y" {
			y = in.memory[v]
		}
	}
	for _, q := range prog.Entry.Params {
		in.values[q.Value] = make([]uint32, q.Value.Type.Words())
	}
	in.block(prog.Entry.Body)
	return y
}

func (in *interpreter) block(list []ir.Stmt) jump {
	for _, s := range list {
		if j := in.stmt(s); j.stmt != nil {
			return j
		}
	}
	return jump{}
}

func (in *interpreter) stmt(s ir.Stmt) jump {
	switch s := s.(type) {
	case *ir.Declare:
		mem := make([]uint32, s.Var.Type.Words())
		if s.Init != nil {
			copy(mem, in.eval(s.Init))
		}
		in.memory[s.Var] = mem
	case *ir.Let:
		in.values[s.Value] = in.eval(s.X)
	case *ir.Store:
		to := in.place(s.Ref)
		copy(to.mem[to.from:], in.eval(s.X))
	case *ir.Eval:
		in.eval(s.X)
	case *ir.If:
		if in.eval(s.Cond)[0] != 0 {
			return in.block(s.Then)
		}
		return in.block(s.Else)
	case *ir.Loop:
		return in.loop(s)
	case *ir.Switch:
		return in.choose(s)
	case *ir.Block:
		return in.block(s.Body)
	case *ir.Break, *ir.Continue:
		return jump{stmt: s}
	case *ir.Return:
		if s.X == nil {
			return jump{stmt: s}
		}
		return jump{s, in.eval(s.X)}
	}
	return jump{}
}

func (in *interpreter) loop(s *ir.Loop) jump {
	for {
		j := in.block(s.Body)
		switch j.stmt.(type) {
		case *ir.Break:
			return jump{}
		case *ir.Return:
			return j
		}
		in.block(s.Continuing)
		if in.turns++; s.BreakIf != nil && in.eval(s.BreakIf)[0] != 0 || in.turns > 1000 {
			return jump{}
		}
	}
}

func (in *interpreter) choose(s *ir.Switch) jump {
	x := in.eval(s.X)[0]
	var body []ir.Stmt
	for _, c := range s.Cases {
		if c.Default {
			body = c.Body
		}
	}
	for _, c := range s.Cases {
		for _, v := range c.Values {
			if v == x {
				body = c.Body
			}
		}
	}
	j := in.block(body)
	if _, ok := j.stmt.(*ir.Break); ok {
		return jump{}
	}
	return j
}

// place finds what a reference refers to.
func (in *interpreter) place(r *ir.Ref) place {
	p, ok := in.refs[r.Var]
	if !ok {
		p = place{in.memory[r.Var], r.Var.Type, 0}
	}
	for _, s := range r.Path {
		p = in.step(p, s)
	}
	return p
}

func (in *interpreter) step(p place, s ir.Step) place {
	if s.Index == nil {
		for _, f := range p.t.Fields[:s.Field] {
			p.from += f.Type.Words()
		}
		p.t = p.t.Fields[s.Field].Type
		return p
	}
	n := p.t.Len
	if n == 0 {
		n = (len(p.mem) - p.from) / p.t.Elem.Words()
	}
	p.from += int(min(in.eval(s.Index)[0], uint32(n-1))) * p.t.Elem.Words()
	p.t = p.t.Elem
	return p
}

func (in *interpreter) all(list []ir.Expr) (values [][]uint32) {
	for _, x := range list {
		values = append(values, in.eval(x))
	}
	return values
}

func (in *interpreter) eval(x ir.Expr) []uint32 {
	switch x := x.(type) {
	case *ir.Const:
		return x.Words
	case *ir.Use:
		return in.values[x.Value]
	case *ir.Load:
		p := in.place(x.Ref)
		return append([]uint32(nil), p.mem[p.from:p.from+p.t.Words()]...)
	case *ir.Part:
		p := in.step(place{in.eval(x.X), x.X.Type(), 0}, x.Step)
		return p.mem[p.from : p.from+p.t.Words()]
	case *ir.Swizzle:
		var r []uint32
		v := in.eval(x.X)
		for _, lane := range x.Lanes {
			r = append(r, v[lane])
		}
		return r
	case *ir.Construct:
		var r []uint32
		for _, v := range in.all(x.Args) {
			r = append(r, v...)
		}
		for len(x.Args) == 1 && x.Args[0].Type().IsScalar() && len(r) < x.T.Words() {
			r = append(r, r[0])
		}
		return r
	case *ir.Bitcast:
		return in.eval(x.X)
	case *ir.Call:
		return in.call(x)
	case *ir.Builtin:
		return in.builtin(x)
	}
	return in.byScalar(x)
}

func (in *interpreter) call(x *ir.Call) []uint32 {
	var values [][]uint32
	var places []place
	for i := range x.Args {
		values, places = append(values, nil), append(places, place{})
		if x.Refs[i] != nil {
			places[i] = in.place(x.Refs[i])
		} else {
			values[i] = in.eval(x.Args[i])
		}
	}
	for i, q := range x.Func.Params {
		if q.Var != nil {
			in.refs[q.Var] = places[i]
		} else {
			in.values[q.Value] = values[i]
		}
	}
	return in.block(x.Func.Body).value
}

func (in *interpreter) builtin(x *ir.Builtin) []uint32 {
	var to *uint32
	var old uint32
	if x.Ref != nil {
		p := in.place(x.Ref)
		if x.Fn == ir.FnArrayLength {
			return []uint32{uint32(len(p.mem) / p.t.Elem.Words())}
		}
		to, old = &p.mem[p.from], p.mem[p.from]
	}
	args := in.all(x.Args)
	switch x.Fn {
	case ir.FnAtomicAdd:
		*to += args[0][0]
	case ir.FnAtomicStore, ir.FnAtomicExchange:
		*to = args[0][0]
	case ir.FnAtomicCompareExchangeWeak:
		same := old == args[0][0]
		if same {
			*to = args[1][0]
		}
		return []uint32{old, uint32(truth(same))}
	case ir.FnMin:
		return []uint32{min(args[0][0], args[1][0])}
	case ir.FnSelect:
		if args[2][0] != 0 {
			return args[1]
		}
		return args[0]
	}
	return []uint32{old}
}

// byScalar evaluates operators and conversions of scalars, or of vectors by component.
func (in *interpreter) byScalar(x ir.Expr) (r []uint32) {
	p := &parser{state: state{dead: 1}}
	switch x := x.(type) {
	case *ir.Unary:
		k := x.X.Type().Scalar().Kind
		for _, v := range in.wide(x.X) {
			r = append(r, thin(k, negated(x.Op, k, v)))
		}
	case *ir.Convert:
		from, to := x.X.Type().Scalar().Kind, x.T.Scalar().Kind
		for _, v := range in.wide(x.X) {
			r = append(r, thin(to, p.changedScalar(0, v, from, to)))
		}
	case *ir.Binary:
		a := in.wide(x.X)
		if x.Op == ir.AndAlso && a[0] == 0 || x.Op == ir.OrElse && a[0] != 0 {
			return []uint32{uint32(a[0])}
		}
		b, k := in.wide(x.Y), x.X.Type().Scalar().Kind
		for i := range a {
			switch x.Op {
			case ir.AndAlso, ir.OrElse:
				r = append(r, uint32(b[0]))
			case ir.ShiftLeft, ir.ShiftRight:
				r = append(r, thin(k, p.shifted(0, x.Op, k, int64(a[i]), b[i]&31)))
			default:
				r = append(r, thin(x.T.Scalar().Kind, p.arith(0, x.Op, k, a[i], b[i])))
			}
		}
	}
	return r
}

// wide returns the scalars of a value as constants have them.
func (in *interpreter) wide(x ir.Expr) []uint64 {
	k := x.Type().Scalar().Kind
	r := make([]uint64, 0, 4)
	for _, w := range in.eval(x) {
		v := wrap(k, int64(w))
		if k == ir.F32 {
			v = math.Float64bits(float64(math.Float32frombits(w)))
		}
		r = append(r, v)
	}
	return r
}

// thin returns the bits of a scalar.
func thin(k ir.Kind, v uint64) uint32 {
	if k == ir.F32 {
		return math.Float32bits(float32(math.Float64frombits(v)))
	}
	return uint32(v)
}
