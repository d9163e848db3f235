// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// function is a function translated for arguments of a form. It is translated again until nothing new is found: that a variable
// differs, or that invocations leave a loop at different times.
type function struct {
	p       *program
	src     *ir.Func
	notes   *notes
	made    *ir.Func
	shapes  map[key]shape // of variables
	leaves  map[any]leaving
	changed bool

	// Of a pass:
	out      *[]ir.Stmt
	values   map[*ir.Value]value
	vars     map[*ir.Var]*variable
	scopes   []*scope
	arms     int     // how many arms around hold for some of the invocations
	mask     *ir.Var // which invocations run the present code, nil for all
	narrowed bool    // the last statement may have left none of them
	jumped   bool    // some of them left a statement around
	returned bool    // or the function
	gone     *ir.Var // those
	results  []*ir.Var
	keep     bool // what statements compute outlives them
}

// key is a scalar of a variable, or of what the function returns.
type key struct {
	v *ir.Var
	i int
}

// leaving tells how some invocations leave a loop, a switch or a function while others stay.
type leaving uint8

const (
	byBreak leaving = 1 << iota
	byContinue
	byReturn
	through // to somewhere outside of a switch
)

// variable is what holds one.
type variable struct {
	value  *value    // of one that is never written
	parts  []*ir.Var // one for each scalar
	held   *ir.Var   // of wide type
	memory *ir.Var   // of all invocations
	arms   int       // where it is declared
	scopes int
}

// scope is a loop or a switch around the code.
type scope struct {
	loop       *ir.Loop
	choice     *ir.Switch
	arms       int
	rejoin     *ir.Var // who goes on with the continuing part, or behind the switch
	waiting    bool    // there may be some of those
	continuing bool
}

func (s *scope) key() any {
	if s.loop != nil {
		return s.loop
	}
	return s.choice
}

// specialise returns a function for arguments of a form.
func (p *program) specialise(src *ir.Func, args []value, masked bool) *function {
	var form strings.Builder
	form.WriteString(src.Name + strconv.FormatBool(masked))
	for _, a := range args {
		form.WriteString(a.like())
	}
	k := form.String()
	if f := p.made[k]; f != nil {
		return f
	}
	f := &function{p: p, src: src, notes: p.notes[src], shapes: map[key]shape{}, leaves: map[any]leaving{}}
	for pass := 0; ; pass++ {
		f.changed = false
		f.pass(args, masked)
		if !f.changed {
			break
		}
		if pass == maxPasses {
			panic(unfit{})
		}
	}
	p.made[k] = f
	return f
}

// pass translates the function.
func (f *function) pass(args []value, masked bool) {
	f.made = &ir.Func{Name: f.src.Name, Barrier: f.src.Barrier}
	f.values, f.vars = map[*ir.Value]value{}, map[*ir.Var]*variable{}
	f.scopes, f.arms, f.mask, f.returned, f.gone, f.results = nil, 0, nil, false, nil, nil
	f.narrowed, f.jumped, f.keep = false, false, false
	f.out = &f.made.Body
	if f.src == f.p.src.Entry {
		for i, q := range f.src.Params {
			f.made.Params = append(f.made.Params, q)
			f.values[q.Value] = args[i]
		}
	} else {
		f.params(args)
	}
	var all ir.Expr
	if masked {
		all = f.start()
	}
	if leave := f.leaves[f.src]&byReturn != 0; leave || masked {
		if all == nil {
			all = f.truths(true)
		}
		f.mask = f.declare(all)
		if leave {
			f.gone = f.declare(f.truths(false))
		}
	}
	if f.src.Result != nil {
		f.result()
	}
	f.list(f.src.Body)
	if f.src.Result != nil && f.gone != nil {
		f.giveBack()
	}
}

// params makes the parameters of a function that is no entry point.
func (f *function) params(args []value) {
	param := func(t *ir.Type) ir.Expr {
		v := &ir.Value{Type: t}
		f.made.Params = append(f.made.Params, ir.Param{Value: v})
		return &ir.Use{Value: v}
	}
	for i, q := range f.src.Params {
		if q.Var != nil {
			f.pointer(q.Var)
			continue
		}
		v := value{t: q.Value.Type}
		if args[i].whole != nil {
			v.whole = param(v.t)
		} else {
			list := kinds(v.t)
			for c, a := range args[i].parts {
				v.parts = append(v.parts, part{shape: a.shape, x: param(f.p.typeOf(a.shape, list[c]))})
			}
		}
		f.values[q.Value] = v
	}
}

// pointer makes a parameter that is a pointer.
func (f *function) pointer(v *ir.Var) {
	made := v
	known := &variable{arms: -1}
	if v.Space == ir.Function || v.Space == ir.Private {
		made = &ir.Var{Name: v.Name, Type: f.p.wide(v.Type), Space: v.Space}
		known.held = made
	} else {
		known.memory = made
	}
	f.vars[v] = known
	f.made.Params = append(f.made.Params, ir.Param{Var: made})
}

// start is the mask that the function begins with: of the entry point the invocations that the workgroup has.
func (f *function) start() ir.Expr {
	if f.src != f.p.src.Entry {
		v := &ir.Value{Type: f.p.vector(ir.Bool)}
		f.made.Params = append(f.made.Params, ir.Param{Value: v})
		return &ir.Use{Value: v}
	}
	id := &ir.Value{Type: f.p.types.Vector(3, ir.U32)}
	f.made.Params = append(f.made.Params, ir.Param{Value: id, Input: ir.LocalInvocationID})
	x := part{x: scalarAt(&ir.Use{Value: id}, id.Type, 0), shape: shape{stride: 1}}
	return f.logic(ir.Lt, f.widen(x, ir.U32), f.widen(part{x: number(uint32(f.p.src.Size[0]))}, ir.U32))
}

func (p *program) typeOf(s shape, k ir.Kind) *ir.Type {
	if s.wide {
		return p.vector(k)
	}
	return scalars[k]
}

// result makes the type of what is returned, a struct of its scalars, and what keeps it of the invocations that have left.
func (f *function) result() {
	f.made.Result = &ir.Type{Kind: ir.Struct, Align: 16}
	for i, k := range kinds(f.src.Result) {
		t := f.p.typeOf(f.shapes[key{nil, i}], k)
		f.made.Result.Fields = append(f.made.Result.Fields, ir.Field{Type: t, Offset: 16 * i})
		f.made.Result.Size += 16
		if f.gone != nil {
			v := &ir.Var{Type: f.p.vector(k)}
			f.emit(&ir.Declare{Var: v})
			f.results = append(f.results, v)
		}
	}
}

// giveBack returns from the function for all invocations.
func (f *function) giveBack(x ...ir.Expr) {
	r := &ir.Return{}
	if f.src.Result != nil {
		for _, v := range f.results {
			x = append(x, load(v))
		}
		r.X = &ir.Construct{T: f.made.Result, Args: x}
	}
	f.emit(r)
}

func (f *function) emit(s ir.Stmt) {
	f.p.spend()
	*f.out = append(*f.out, s)
}

// collect returns the statements that are made meanwhile.
func (f *function) collect(body func()) (list []ir.Stmt) {
	saved := f.out
	f.out = &list
	body()
	f.out = saved
	return list
}

func load(v *ir.Var) ir.Expr { return &ir.Load{Ref: &ir.Ref{Var: v, T: v.Type}} }

func (f *function) set(v *ir.Var, x ir.Expr) {
	f.emit(&ir.Store{Ref: &ir.Ref{Var: v, T: v.Type}, X: x})
}

// declare makes a variable for a mask.
func (f *function) declare(x ir.Expr) *ir.Var {
	v := &ir.Var{Type: f.p.vector(ir.Bool)}
	f.emit(&ir.Declare{Var: v, Init: x})
	return v
}

// truths is a mask of all invocations, or of none.
func (f *function) truths(b bool) ir.Expr {
	c := &ir.Const{T: f.p.vector(ir.Bool), Words: make([]uint32, width)}
	for i := range c.Words {
		if b {
			c.Words[i] = 1
		}
	}
	return c
}

// temp computes something once.
func (f *function) temp(x ir.Expr) ir.Expr {
	switch x.(type) {
	case *ir.Use, *ir.Const:
		return x
	}
	f.p.spend()
	v := &ir.Value{Type: x.Type(), Temp: !f.keep}
	f.emit(&ir.Let{Value: v, X: x})
	return &ir.Use{Value: v}
}

// learn notes a shape of a variable or result, which has to hold what is stored there.
func (f *function) learn(k key, s shape, forced bool) shape {
	old, known := f.shapes[k]
	if !known && !forced {
		f.shapes[k] = s
		f.changed = f.changed || k.v == nil && s != shape{}
		return s
	}
	if !old.wide && (forced || old != s) {
		f.shapes[k] = shape{wide: true}
		f.changed = true
	}
	return f.shapes[k]
}
