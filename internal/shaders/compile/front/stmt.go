// SPDX-License-Identifier: Apache-2.0

package front

import (
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// flow says how statements can end.
type flow uint8

const (
	flowNext flow = 1 << iota // what follows is reached
	flowBreak
	flowContinue
	flowReturn
)

// loop says what the statements around allow.
type loop struct {
	breaks, continues, continuing bool
}

// block reads statements in braces, in a scope of their own, and returns them.
func (p *parser) block() (list []ir.Stmt, end flow) {
	p.enter()
	p.push()
	p.attributes(blockAttributes)
	last := p.matching("{")
	p.expect("{")
	list, end = p.collect(func() flow { return p.statements(last) })
	p.expect("}")
	p.pop()
	p.leave()
	return list, end
}

// matching returns the partner of the bracket that comes next.
func (p *parser) matching(open string) int {
	if !p.is(open) {
		p.unexpected("expected " + open)
	}
	return int(p.Match[p.i])
}

// collect returns what is emitted meanwhile.
func (p *parser) collect(read func() flow) (list []ir.Stmt, end flow) {
	outer := p.out
	p.out = &list
	end = read()
	p.out = outer
	return list, end
}

// statements reads up to a token. What cannot be reached is checked and dropped.
func (p *parser) statements(last int) flow {
	all, outer := flowNext, p.out
	var dropped []ir.Stmt
	for p.i < last {
		end := p.statement()
		if all&flowNext != 0 {
			all = all&^flowNext | end
		}
		if dropped = nil; all&flowNext == 0 && p.out == outer {
			p.out = &dropped
			p.unreached++
		}
	}
	if p.out != outer {
		p.unreached--
	}
	p.out = outer
	return all
}

// ordered reports whether loads and calls become lets up to the end of the statement, or the block in it: a barrier may come between
// them and their use, or a function that gets a pointer to an element may be one of several.
func (p *parser) ordered() bool {
	calls, pointer, element := 0, false, false
	for i := p.i; i < p.fn.decl.end && p.Char(i) != '{'; i++ {
		switch c := p.Char(i); {
		case c == '&':
			pointer = pointer || p.Char(i-1) == '(' || p.Char(i-1) == ','
		case c == '[':
			element = element || pointer
		case c == ';' && !p.is("for"):
			return false
		case p.isCall(i):
			if d := p.module[p.At(i)]; d == nil && isBarrier(p.At(i)) || d != nil && d.sym.fn != nil && d.sym.fn.ir.Barrier {
				return true
			} else if d != nil && d.sym.fn != nil {
				calls++
			}
		}
		if element && calls > 1 {
			return true
		}
	}
	return false
}

// statement reads a statement.
func (p *parser) statement() flow {
	at := p.i
	if p.is("@") {
		p.attributes(blockAttributes)
	}
	p.careful = p.ordered()
	switch p.At(p.i) {
	case ";":
		p.i++
		return flowNext
	case "{":
		list, end := p.block()
		p.emit(&ir.Block{Body: list})
		return end
	case "if":
		p.i++
		return p.ifStatement()
	case "switch":
		p.i++
		return p.switchStatement()
	case "loop":
		p.i++
		return p.loopStatement(at)
	case "while":
		p.i++
		return p.whileStatement()
	case "for":
		p.i++
		return p.forStatement()
	}
	end := flowNext
	switch p.At(p.i) {
	case "break", "continue", "return":
		end = p.jump()
	case "const_assert":
		p.constAssert()
	default:
		p.simple()
	}
	p.expect(";")
	return end
}

// jump reads a statement that goes elsewhere.
func (p *parser) jump() flow {
	at := p.i
	p.i++
	switch p.At(at) {
	case "break":
		if !p.loop.breaks {
			p.fail(at, "break stands outside of a loop and of a switch, or in a continuing")
		}
		p.emit(&ir.Break{})
		return flowBreak
	case "continue":
		if !p.loop.continues {
			p.fail(at, "continue stands outside of a loop, or in a continuing")
		}
		p.emit(&ir.Continue{})
		return flowContinue
	}
	if p.loop.continuing {
		p.fail(at, "return stands in a continuing")
	}
	var x ir.Expr
	switch want := p.fn.ir.Result; {
	case p.is(";") && want != nil:
		p.fail(at, p.fn.ir.Name, " returns ", typeName(want))
	case !p.is(";"):
		o := p.expression()
		if want == nil {
			p.fail(o.at, p.fn.ir.Name, " returns nothing")
		}
		x = p.lower(p.convert(o, want))
	}
	p.emit(&ir.Return{X: x})
	return flowReturn
}

// simple reads a declaration, an assignment or a call without the semicolon: what a for statement can begin with, too.
func (p *parser) simple() {
	switch p.At(p.i) {
	case "const":
		p.i++
		at := p.i
		word := p.declared()
		o := p.constant(word)
		p.define(at, word, &symbol{operand: o})
	case "let":
		p.i++
		p.letStatement()
	case "var":
		p.i++
		p.varStatement()
	default:
		p.assign()
	}
}

// letStatement reads what follows let.
func (p *parser) letStatement() {
	at := p.i
	word := p.declared()
	var want *typ
	if p.accept(":") {
		t := p.typ()
		want = &t
	}
	p.expect("=")
	o := p.expression()
	if o.ptr {
		if got := (typ{o.t, true, writable(o.ref), o.ref.Var.Space}); want != nil && got != *want {
			p.fail(o.at, "a value of type ", got.String(), " where ", want.String(), " is needed")
		}
		p.define(at, word, &symbol{operand: &operand{t: o.t, ref: p.pin(o.ref), ptr: true}})
		return
	}
	if o = p.value(o); want != nil {
		if want.ptr {
			p.fail(o.at, "a value of type ", typeName(o.t), " where ", want.String(), " is needed")
		}
		o = p.convert(o, want.t)
	}
	x := p.lower(o)
	if _, ok := x.(*ir.Const); !ok || isComposite(x.Type()) { // a small constant needs no let
		x = p.let(word, x)
	}
	p.define(at, word, &symbol{operand: &operand{t: x.Type(), x: x}})
}

// varStatement reads what follows var.
func (p *parser) varStatement() {
	if p.accept("<") {
		if p.space() != ir.Function {
			p.fail(p.i-1, "a variable of a function is in the address space function")
		}
		p.accept(",")
		p.expect(">")
	}
	at := p.i
	v := &ir.Var{Name: p.declared()}
	typeAt := p.i + 1
	if p.accept(":") {
		v.Type = p.valueType()
	}
	switch {
	case p.accept("="):
		o := p.value(p.expression())
		if v.Type != nil {
			o = p.convert(o, v.Type)
		}
		v.Type, typeAt = p.concrete(o).t, o.at
		init := p.lower(o)
		p.emit(&ir.Declare{Var: v, Init: init})
	case v.Type != nil:
		p.emit(&ir.Declare{Var: v})
	default:
		p.unexpected("expected a type or a value")
	}
	p.checkStored(typeAt, ir.Function, v.Type, true)
	p.checkSize(typeAt, v.Type)
	p.define(at, v.Name, &symbol{operand: &operand{t: v.Type, ref: &ir.Ref{Var: v, T: v.Type}}})
}

// assign reads an assignment or a call.
func (p *parser) assign() {
	at := p.i
	if p.accept("_") {
		p.expect("=")
		if o := p.expression(); o.ref != nil {
			if !o.ptr && !p.traitsOf(o.t).constructible {
				p.value(o)
			}
			p.pin(o.ref)
		} else if o = p.value(o); o.c == nil {
			p.emit(&ir.Eval{X: o.x})
		}
		return
	}
	o := p.unary()
	op := p.assignment()
	if op == "" {
		p.ignore(at, o)
		return
	}
	if o.ref == nil || o.ptr {
		p.fail(at, "an assignment to what is no variable")
	}
	if !writable(o.ref) {
		p.fail(at, o.ref.Var.Name, " is read-only")
	}
	if p.traitsOf(o.t).atomic || !p.traitsOf(o.t).fixed {
		p.fail(at, "an assignment to ", typeName(o.t))
	}
	p.i += len(op)
	switch op {
	case "=":
		if o.lanes == nil {
			p.emit(&ir.Store{Ref: o.ref, X: p.lower(p.convert(p.expression(), o.t))})
			return
		}
		p.storeLanes(at, o)
	case "++", "--":
		if o.lanes != nil || o.t.Kind != ir.I32 && o.t.Kind != ir.U32 {
			p.fail(at, op, " behind ", typeName(o.t))
		}
		one := &operand{at: at, t: o.t, c: []uint64{1}}
		o.ref = p.pin(o.ref)
		x := p.binary(at, map[string]ir.Op{"++": ir.Add, "--": ir.Sub}[op], p.value(o), one)
		p.emit(&ir.Store{Ref: o.ref, X: p.lower(x)})
	default:
		p.compound(at, o, op[:len(op)-1])
	}
}

// storeLanes reads the value that is assigned to several components of a vector.
func (p *parser) storeLanes(at int, o *operand) {
	ref := p.pin(o.ref)
	seen := 0
	for _, lane := range o.lanes {
		if seen |= 1 << (lane + 8); seen&(1<<lane) != 0 {
			p.fail(at, "an assignment to one component twice")
		}
		seen |= 1 << lane
	}
	x := p.let("", p.lower(p.convert(p.expression(), p.types.Vector(len(o.lanes), o.t.Elem.Kind))))
	for k, lane := range o.lanes {
		to := extended(ref, ir.Step{Index: p.index32(lane)}, o.t.Elem)
		p.emit(&ir.Store{Ref: to, X: &ir.Swizzle{X: x, Lanes: []uint8{uint8(k)}, T: o.t.Elem}})
	}
}

// compound reads the right side of an assignment that applies an operator.
func (p *parser) compound(at int, o *operand, text string) {
	if o.lanes != nil {
		p.fail(at, "a compound assignment to several components")
	}
	o.ref = p.pin(o.ref)
	old := p.value(o)
	for _, op := range operators {
		if op.text == text {
			x := p.binary(at, op.op, old, p.value(p.expression()))
			p.emit(&ir.Store{Ref: o.ref, X: p.lower(p.convert(x, o.t))})
			return
		}
	}
}

// ignore makes a statement of a call.
func (p *parser) ignore(at int, o *operand) {
	switch o.call {
	case noCall:
		p.unexpected("expected an assignment or a call")
	case mustUse:
		p.fail(at, "the result of ", p.At(at), " must be used")
	}
	if o.x == nil { // a barrier
		return
	}
	if _, ok := o.x.(*ir.Use); !ok {
		p.emit(&ir.Eval{X: o.x})
	}
}
