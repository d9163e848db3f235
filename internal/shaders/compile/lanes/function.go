// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// function is a function translated for arguments of certain forms. A pass assumes the shapes of variables, and which loops invocations
// leave at different times, as far as the passes before have found out; there is another pass until one finds nothing new. Shapes only
// change from scalar to wide and marks of leaving are only added, so that this ends.
type function struct {
	p       *program
	src     *ir.Func
	notes   *notes
	made    *ir.Func
	shapes  map[key]shape   // of the scalars of variables and of the result
	leaves  map[any]leaving // by *ir.Loop, *ir.Switch and *ir.Func
	changed bool            // the present pass has found something new

	// The state of a pass:
	out      *[]ir.Stmt // where statements are appended
	values   map[*ir.Value]value
	vars     map[*ir.Var]*variable
	scopes   []*scope  // loops and switches around the present code, the innermost last
	arms     int       // how many arms around the present code have a mask of their own
	mask     *ir.Var   // which invocations run the present code, nil for all
	narrowed bool      // after the last statement the mask may be empty
	jumped   bool      // some invocations of the mask have left for the end of a scope or function around
	returned bool      // some invocations have returned from the function before others
	gone     *ir.Var   // the mask of the invocations that have returned, nil if all return at once
	results  []*ir.Var // the results of those, one vector for each scalar
	keep     bool      // values of temp are used after the statement that follows
}

// key names scalar i of a variable or, with v nil, of the function's result.
type key struct {
	v *ir.Var
	i int
}

// leaving is a set of the ways in which some invocations leave a loop, a switch or a function while others stay.
type leaving uint8

const (
	byBreak leaving = 1 << iota
	byContinue
	byReturn
	through // out of a switch by continue or return
)

// variable says what replaces a variable of the source. One of the first four fields is set.
type variable struct {
	value  *value    // the initial value of a variable that is never written
	parts  []*ir.Var // one variable for each scalar
	held   *ir.Var   // one variable of wide type, for indices that are computed and for pointers
	memory *ir.Var   // the variable itself, which the invocations share
	arms   int       // function.arms and
	scopes int       // the number of function.scopes where it is declared
}

// scope is a loop or a switch around the present code.
type scope struct {
	loop       *ir.Loop
	choice     *ir.Switch // where loop is nil
	arms       int        // function.arms where it begins
	rejoin     *ir.Var    // the mask of the invocations that wait for the continuing part of the loop, or for the end of the switch
	waiting    bool       // of a loop: there may be such invocations
	continuing bool       // the present code is in the continuing part
}

// key returns the key of function.leaves.
func (s *scope) key() any {
	if s.loop != nil {
		return s.loop
	}
	return s.choice
}

// specialise returns the translation of a function for arguments of such forms. It takes a mask as its last argument if masked is set.
func (p *program) specialise(src *ir.Func, args []value, masked bool) *function {
	var id strings.Builder
	id.WriteString(src.Name + strconv.FormatBool(masked))
	for _, a := range args {
		id.WriteString(a.form())
	}
	k := id.String()
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

// pass translates the function once, with what is known so far.
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

// params makes the parameters of a function that is not the entry point: one for each scalar of an argument that differs.
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

// pointer makes a parameter that is a pointer to v.
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

// start returns the mask that the function begins with: a parameter, or in the entry point the invocations that the workgroup has, as its
// size along x may be no multiple of four.
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

// typeOf returns the type of a scalar of a shape.
func (p *program) typeOf(s shape, k ir.Kind) *ir.Type {
	if s.wide {
		return p.vector(k)
	}
	return scalars[k]
}

// result makes the type that the function returns, a struct of the result's scalars, and where some invocations return before others
// the variables that keep their results.
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

// giveBack returns from the function for all invocations, with the scalars x or, if some have returned before, with the variables that
// keep the results.
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

// collect calls body and returns the statements that it makes.
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

// declare makes a variable that holds a mask.
func (f *function) declare(x ir.Expr) *ir.Var {
	v := &ir.Var{Type: f.p.vector(ir.Bool)}
	f.emit(&ir.Declare{Var: v, Init: x})
	return v
}

// truths returns the mask of all invocations, or of none.
func (f *function) truths(b bool) ir.Expr {
	c := &ir.Const{T: f.p.vector(ir.Bool), Words: make([]uint32, width)}
	for i := range c.Words {
		if b {
			c.Words[i] = 1
		}
	}
	return c
}

// temp has an expression computed here, so that its value can be used more than once.
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

// learn widens the shape of a variable's or result's scalar, if need be, to hold one of shape s that is stored there, and returns it. A
// store that is not for all invocations is forced: it needs a vector.
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
