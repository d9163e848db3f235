// SPDX-License-Identifier: Apache-2.0

package front

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// function is a function of the text.
type function struct {
	decl    *decl
	ir      *ir.Func
	params  []param
	mustUse bool
	entry   bool
	size    [3]int      // of a workgroup
	start   int         // the { of its body
	calls   []*function // in the text
	order   int         // see parser.order
	// What the program has of it: functions that it calls and variables of the module that it uses, beside the bindings that the
	// text mentions.
	callees  map[*function]bool
	uses     map[*ir.Var]bool
	mentions map[*ir.Var]bool
	waits    bool // it has a barrier
}

// param is a parameter.
type param struct {
	at    int
	name  string
	typ   typ
	input ir.Input
}

// attributes are what stands before a declaration.
type attributes struct {
	has            map[string]bool
	size, align    int
	group, binding int
	input          ir.Input
	workgroup      [3]int
}

// Where attributes may stand.
const (
	memberAttributes   = " size align builtin location interpolate invariant blend_src "
	paramAttributes    = " builtin "
	varAttributes      = " group binding "
	overrideAttributes = " id "
	functionAttributes = " compute workgroup_size must_use diagnostic "
	blockAttributes    = " diagnostic "
)

var inputs = map[string]ir.Input{
	"local_invocation_id": ir.LocalInvocationID, "local_invocation_index": ir.LocalInvocationIndex,
	"global_invocation_id": ir.GlobalInvocationID, "workgroup_id": ir.WorkgroupID, "num_workgroups": ir.NumWorkgroups,
}

// attributes reads those that may stand here.
func (p *parser) attributes(allowed string) (a attributes) {
	a.has = map[string]bool{}
	for p.accept("@") {
		at := p.i
		name := p.ident()
		if !strings.Contains(allowed, " "+name+" ") {
			p.fail(at, "the attribute ", name, " has no place here")
		}
		if a.has[name] && name != "diagnostic" {
			p.fail(at, "the attribute ", name, " stands here twice")
		}
		a.has[name] = true
		switch name {
		case "compute", "must_use", "invariant":
		case "interpolate", "location", "blend_src": // of other shaders
			p.i = p.matching("(") + 1
		case "diagnostic":
			p.diagnostic()
		case "builtin":
			p.expect("(")
			if a.input = inputs[p.ident()]; a.input == ir.NoInput && allowed != memberAttributes {
				p.fail(p.i-1, "no built-in value ", p.At(p.i-1), " of compute shaders")
			}
			p.accept(",")
			p.expect(")")
		default:
			p.numbers(at, name, &a)
		}
	}
	return a
}

// numbers reads the arguments of an attribute that has some.
func (p *parser) numbers(at int, name string, a *attributes) {
	args := p.arguments()
	if len(args) == 0 || len(args) > 1 && name != "workgroup_size" || len(args) > 3 {
		p.fail(at, "the attribute ", name, " has a wrong number of arguments")
	}
	var n [3]int
	for i, o := range args {
		v := p.integer(o, "the argument of "+name)
		least := int64(0)
		if name == "size" || name == "align" || name == "workgroup_size" {
			least = 1
		}
		if v < least || v > maxBytes || name == "align" && v&(v-1) != 0 {
			p.fail(o.at, "the argument of ", name, " cannot be ", strconv.FormatInt(v, 10))
		}
		n[i] = int(v)
	}
	switch name {
	case "size":
		a.size = n[0]
	case "align":
		a.align = n[0]
	case "group":
		a.group = n[0]
	case "binding":
		a.binding = n[0]
	case "workgroup_size":
		a.workgroup = [3]int{n[0], max(n[1], 1), max(n[2], 1)}
	}
}

// function reads the head of a function.
func (p *parser) function(d *decl, name string) *symbol {
	a := p.attributes(functionAttributes)
	f := &function{
		decl: d, ir: &ir.Func{Name: name}, entry: a.has["compute"], size: a.workgroup, mustUse: a.has["must_use"],
		callees: map[*function]bool{}, uses: map[*ir.Var]bool{}, mentions: map[*ir.Var]bool{},
	}
	if f.entry != a.has["workgroup_size"] {
		p.fail(d.name, "an entry point needs @compute and @workgroup_size")
	}
	p.i = d.name + 1
	p.expect("(")
	for !p.is(")") {
		f.params = append(f.params, p.param(f))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	if p.joined(2) == "->" {
		p.i += 2
		at := p.i
		p.attributes("")
		if f.ir.Result = p.valueType(); !p.traitsOf(f.ir.Result).constructible {
			p.fail(at, "a function cannot return ", typeName(f.ir.Result))
		}
		p.checkSize(at, f.ir.Result)
	}
	if f.mustUse && f.ir.Result == nil {
		p.fail(d.name, name, " returns nothing that must be used")
	}
	if f.entry && f.ir.Result != nil {
		p.fail(d.name, "a compute shader returns nothing")
	}
	if f.start = p.i; !p.is("{") {
		p.unexpected("expected {")
	}
	return &symbol{kind: funcSymbol, fn: f}
}

// param reads a parameter.
func (p *parser) param(f *function) param {
	a := p.attributes(paramAttributes)
	q := param{at: p.i, name: p.declared(), input: a.input}
	p.expect(":")
	at := p.i
	q.typ = p.typ()
	t := q.typ.t
	switch {
	case !q.typ.ptr && !p.traitsOf(t).constructible:
		p.fail(at, "a parameter cannot be ", typeName(t))
	case !f.entry && q.input != ir.NoInput:
		p.fail(q.at, "only entry points have built-in values")
	case f.entry && q.typ.ptr:
		p.fail(at, "a pointer has no place here")
	case !f.entry:
		p.checkSize(at, t)
	case t.Kind == ir.Struct && q.input == ir.NoInput:
		for i, g := range t.Fields {
			p.checkInput(q.at, g.Type, p.inputs[t][i])
		}
	default:
		p.checkInput(q.at, t, q.input)
	}
	return q
}

// checkInput checks that a parameter of an entry point is a built-in value, and has its type.
func (p *parser) checkInput(at int, t *ir.Type, in ir.Input) {
	want := p.types.Vector(3, ir.U32)
	switch in {
	case ir.NoInput:
		p.fail(at, "a parameter of an entry point needs @builtin")
	case ir.LocalInvocationIndex:
		want = p.types.Scalar(ir.U32)
	}
	if t != want {
		p.fail(at, "this built-in value is of type ", typeName(want), ", not ", typeName(t))
	}
}

// order returns the functions after those that they call.
func (p *parser) order() (list []*function) {
	type visit struct {
		f    *function
		next int
	}
	for _, d := range p.decls {
		if d.keyword == "fn" {
			p.findCalls(d.sym.fn)
		}
	}
	const active, done = 1, 2
	for _, d := range p.decls {
		if d.keyword != "fn" || d.sym.fn.order == done {
			continue
		}
		for stack := []visit{{f: d.sym.fn}}; len(stack) > 0; {
			v := &stack[len(stack)-1]
			v.f.order = active
			if v.next == len(v.f.calls) {
				for _, g := range v.f.calls {
					v.f.ir.Barrier = v.f.ir.Barrier || g.ir.Barrier
				}
				v.f.order = done
				list, stack = append(list, v.f), stack[:len(stack)-1]
				continue
			}
			g := v.f.calls[v.next]
			v.next++
			switch g.order {
			case active:
				p.fail(v.f.decl.name, "recursion: ", v.f.ir.Name, " calls ", g.ir.Name)
			case 0:
				stack = append(stack, visit{f: g})
			}
		}
	}
	return list
}

// isCall reports whether the name of a function that is called is at a token.
func (p *parser) isCall(i int) bool {
	return p.IsWord(i) && p.Char(i+1) == '(' && p.Char(i-1) != '.' && p.Char(i-1) != '@'
}

// findCalls notes which functions a function calls, and whether it has a barrier of its own.
func (p *parser) findCalls(f *function) {
	seen := map[*function]bool{}
	for i := f.start; i < f.decl.end; i++ {
		if !p.isCall(i) {
			continue
		}
		d := p.module[p.At(i)]
		if d == nil {
			f.ir.Barrier = f.ir.Barrier || isBarrier(p.At(i))
		} else if g := d.sym.fn; g != nil && !seen[g] {
			seen[g] = true
			f.calls = append(f.calls, g)
		}
	}
}

func isBarrier(name string) bool {
	return slices.Contains([]string{"workgroupBarrier", "storageBarrier", "textureBarrier", "workgroupUniformLoad"}, name)
}

// body reads the body of a function.
func (p *parser) body(f *function) {
	p.state = state{i: f.start, fn: f, out: &f.ir.Body}
	p.push()
	for _, q := range f.params {
		p.declareParam(f, q)
	}
	p.expect("{")
	end := p.statements(f.decl.end)
	if end&flowNext != 0 && f.ir.Result != nil {
		p.fail(f.decl.end, f.ir.Name, " ends without a return")
	}
	p.expect("}")
	p.pop()
	f.ir.Barrier = f.waits
}

// declareParam gives the name of a parameter its meaning.
func (p *parser) declareParam(f *function, q param) {
	t := q.typ.t
	switch {
	case q.typ.ptr:
		v := &ir.Var{Name: q.name, Type: t, Space: q.typ.space, Write: q.typ.space == ir.Storage && q.typ.write}
		f.ir.Params = append(f.ir.Params, ir.Param{Var: v})
		p.define(q.at, q.name, &symbol{operand: &operand{t: t, ref: &ir.Ref{Var: v, T: t}, ptr: true}})
		return
	case f.entry && q.input == ir.NoInput: // a struct of built-in values
		x := &ir.Construct{T: t}
		for i, g := range t.Fields {
			v := &ir.Value{Name: g.Name, Type: g.Type}
			f.ir.Params = append(f.ir.Params, ir.Param{Value: v, Input: p.inputs[t][i]})
			x.Args = append(x.Args, &ir.Use{Value: v})
		}
		p.define(q.at, q.name, &symbol{operand: &operand{t: t, x: p.let(q.name, x)}})
		return
	}
	v := &ir.Value{Name: q.name, Type: t}
	f.ir.Params = append(f.ir.Params, ir.Param{Value: v, Input: q.input})
	p.define(q.at, q.name, &symbol{operand: &operand{t: t, x: &ir.Use{Value: v}}})
}

// callOf calls a function of the text.
func (p *parser) callOf(at int, f *function, args []*operand) *operand {
	name := f.ir.Name
	switch {
	case p.fn == nil:
		p.fail(at, name, " is no constant")
	case f.entry:
		p.fail(at, name, " is an entry point, which nothing can call")
	case len(args) != len(f.params):
		p.fail(at, name, " has ", strconv.Itoa(len(f.params)), " parameters, not ", strconv.Itoa(len(args)))
	}
	if !p.dropped() {
		p.fn.callees[f] = true
		p.fn.waits = p.fn.waits || f.waits
	}
	x := &ir.Call{Func: f.ir, Args: make([]ir.Expr, len(args)), Refs: make([]*ir.Ref, len(args))}
	for i, a := range args {
		want := f.params[i].typ
		if !want.ptr {
			x.Args[i] = p.lower(p.convert(a, want.t))
			continue
		}
		if !a.ptr {
			p.fail(a.at, "a value of type ", typeName(a.t), " where ", want.String(), " is needed")
		}
		if got := (typ{a.t, true, writable(a.ref), a.ref.Var.Space}); got != want {
			p.fail(a.at, "a value of type ", got.String(), " where ", want.String(), " is needed")
		}
		x.Refs[i] = a.ref
	}
	o := p.result(at, f.ir.Result, x, args...)
	if o.call = mayIgnore; f.mustUse {
		o.call = mustUse
	}
	if o.t != nil {
		o.x = p.effect(x)
	}
	return o
}

// barrier calls a function that waits for the workgroup.
func (p *parser) barrier(at int, name string, args []*operand) *operand {
	if p.fn == nil {
		p.fail(at, name, " is no constant")
	}
	p.fn.waits = p.fn.waits || !p.dropped()
	if name != "workgroupUniformLoad" {
		if len(args) != 0 {
			p.fail(at, name, " has no parameters")
		}
		p.emit(&ir.Barrier{})
		return &operand{at: at, call: mayIgnore}
	}
	if len(args) != 1 || !args[0].ptr || args[0].ref.Var.Space != ir.Workgroup {
		p.fail(at, name, " needs a pointer to a variable of the workgroup")
	}
	ref := p.pin(args[0].ref)
	p.emit(&ir.Barrier{})
	o := &operand{at: at, t: args[0].t, ref: ref}
	if o.t.Kind == ir.Atomic {
		o.t, o.x = o.t.Elem, p.let("", &ir.Builtin{Fn: ir.FnAtomicLoad, Ref: ref, T: o.t.Elem})
		o.ref = nil
	} else {
		o = p.value(o) // a let: the statement has a barrier
	}
	p.emit(&ir.Barrier{})
	o.call = mustUse
	return o
}
