// SPDX-License-Identifier: Apache-2.0

package front

import (
	"strconv"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// condition reads a condition.
func (p *parser) condition() *operand {
	return p.convert(p.expression(), p.types.Scalar(ir.Bool))
}

// ifStatement reads what follows if.
func (p *parser) ifStatement() flow {
	p.enter()
	cond := p.condition()
	is, known := settled(cond)
	then, end := p.branch(known && !is, p.block)
	var other []ir.Stmt
	otherEnd := flowNext
	if p.accept("else") {
		other, otherEnd = p.branch(known && is, p.elseBranch)
	}
	switch {
	case !known:
		p.emit(&ir.If{Cond: p.lower(cond), Then: then, Else: other})
	case is && len(then) > 0:
		p.emit(&ir.Block{Body: then})
	case !is && len(other) > 0:
		p.emit(&ir.Block{Body: other})
	}
	p.leave()
	return end | otherEnd
}

// settled returns a condition that is known.
func settled(o *operand) (is, known bool) {
	if c, ok := o.x.(*ir.Const); ok {
		return c.Words[0] != 0, true
	}
	return o.c != nil && o.c[0] != 0, o.c != nil
}

// branch reads a branch, which is dropped if it is never taken.
func (p *parser) branch(dropped bool, read func() ([]ir.Stmt, flow)) ([]ir.Stmt, flow) {
	n := int(truth(dropped))
	p.unreached += n
	list, end := read()
	p.unreached -= n
	return list, end
}

// elseBranch reads what follows else.
func (p *parser) elseBranch() ([]ir.Stmt, flow) {
	if !p.accept("if") {
		return p.block()
	}
	p.careful = p.ordered()
	return p.collect(p.ifStatement)
}

// repeated reads the block that a loop repeats.
func (p *parser) repeated() ([]ir.Stmt, flow) {
	saved := p.loop
	p.loop.breaks, p.loop.continues = true, true
	list, end := p.block()
	p.loop = saved
	return list, end
}

// loopStatement reads what follows loop.
func (p *parser) loopStatement(at int) flow {
	l := &ir.Loop{}
	var end flow
	saved := p.loop
	p.loop = loop{breaks: true, continues: true, continuing: saved.continuing}
	p.enter()
	p.push()
	p.attributes(blockAttributes)
	last := p.matching("{")
	p.expect("{")
	inner := last
	for i := p.i; i < last; i++ {
		if p.At(i) == "continuing" {
			inner = i
			break
		}
		if p.Char(i) == '{' {
			i = int(p.Match[i])
		}
	}
	l.Body, end = p.collect(func() flow { return p.statements(inner) })
	if p.accept("continuing") {
		end |= p.continuing(l)
	}
	p.expect("}")
	p.pop()
	p.leave()
	p.loop = saved
	p.emit(l)
	return p.loopEnd(at, end)
}

// loopEnd is how a loop ends whose turns end in some ways.
func (p *parser) loopEnd(at int, turn flow) flow {
	end := turn & flowReturn
	if turn&flowBreak != 0 {
		end |= flowNext
	}
	if end == 0 {
		p.fail(at, "this loop never ends")
	}
	return end
}

// continuing reads what follows continuing.
func (p *parser) continuing(l *ir.Loop) flow {
	saved := p.loop
	p.loop = loop{continuing: true}
	p.enter()
	p.push()
	p.attributes(blockAttributes)
	last := p.matching("{")
	p.expect("{")
	inner, end := last, flow(0)
	for i := p.i; i < last; i++ {
		if p.At(i) == "break" && p.At(i+1) == "if" {
			inner = i
			break
		}
		if p.Char(i) == '{' {
			i = int(p.Match[i])
		}
	}
	l.Continuing, _ = p.collect(func() flow {
		p.statements(inner)
		if p.accept("break") {
			p.careful = p.ordered()
			p.expect("if")
			l.BreakIf = p.lower(p.condition())
			p.expect(";")
			end = flowBreak
		}
		return 0
	})
	p.expect("}")
	p.pop()
	p.leave()
	p.loop = saved
	return end
}

// exit reads the condition under which a loop goes on, and leaves the loop where it does not hold.
func (p *parser) exit() {
	cond := p.condition()
	if cond.c != nil && cond.c[0] != 0 {
		return
	}
	p.emit(&ir.If{Cond: &ir.Unary{Op: ir.Not, X: p.lower(cond)}, Then: []ir.Stmt{&ir.Break{}}})
}

// whileStatement reads what follows while.
func (p *parser) whileStatement() flow {
	l := &ir.Loop{}
	l.Body, _ = p.collect(func() flow { p.exit(); return 0 })
	body, end := p.repeated()
	l.Body = append(l.Body, body...)
	p.emit(l)
	return flowNext | end&flowReturn
}

// forStatement reads what follows for.
func (p *parser) forStatement() flow {
	at := p.i - 1
	p.push()
	p.expect("(")
	l := &ir.Loop{}
	end := flow(0)
	list, _ := p.collect(func() flow {
		if !p.is(";") {
			p.simple()
		}
		p.expect(";")
		if !p.is(";") {
			end = flowBreak
			l.Body, _ = p.collect(func() flow { p.exit(); return 0 })
		}
		p.expect(";")
		if !p.is(")") {
			l.Continuing, _ = p.collect(func() flow { p.assign(); return 0 })
		}
		p.expect(")")
		body, bodyEnd := p.repeated()
		l.Body = append(l.Body, body...)
		end |= bodyEnd
		p.emit(l)
		return 0
	})
	p.pop()
	p.emit(&ir.Block{Body: list})
	return p.loopEnd(at, end)
}

// switchStatement reads what follows switch.
func (p *parser) switchStatement() flow {
	at := p.i
	o := p.value(p.expression())
	if o = p.concrete(o); o.t.Kind != ir.I32 && o.t.Kind != ir.U32 {
		p.fail(o.at, "a switch of ", typeName(o.t))
	}
	s := &ir.Switch{X: p.lower(o)}
	p.attributes(blockAttributes)
	p.expect("{")
	saved := p.loop
	p.loop.breaks = true
	seen := map[uint32]bool{}
	end, hasDefault := flow(0), false
	for !p.is("}") {
		c := p.selectors(o.t, seen)
		if hasDefault && c.Default {
			p.fail(p.i, "a switch with two defaults")
		}
		hasDefault = hasDefault || c.Default
		p.accept(":")
		var caseEnd flow
		c.Body, caseEnd = p.block()
		end |= caseEnd
		s.Cases = append(s.Cases, c)
	}
	p.expect("}")
	p.loop = saved
	if !hasDefault {
		p.fail(at, "a switch without a default")
	}
	p.emit(s)
	if end&flowBreak != 0 {
		end = end&^flowBreak | flowNext
	}
	return end
}

// selectors reads the values of a case.
func (p *parser) selectors(t *ir.Type, seen map[uint32]bool) (c ir.Case) {
	if p.accept("default") {
		c.Default = true
		return c
	}
	p.expect("case")
	for {
		if p.accept("default") {
			if c.Default {
				p.fail(p.i-1, "a switch with two defaults")
			}
			c.Default = true
		} else {
			o := p.convert(p.expression(), t)
			if o.c == nil {
				p.fail(o.at, "the value of a case must be constant")
			}
			v := uint32(o.c[0])
			if seen[v] {
				p.fail(o.at, "two cases of the value ", strconv.FormatInt(int64(o.c[0]), 10))
			}
			seen[v] = true
			c.Values = append(c.Values, v)
		}
		if !p.accept(",") || p.is(":") || p.is("{") {
			return c
		}
	}
}
