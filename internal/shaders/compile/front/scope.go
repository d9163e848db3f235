// SPDX-License-Identifier: Apache-2.0

package front

import (
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// symbolKind tells what a name stands for.
type symbolKind uint8

const (
	valueSymbol symbolKind = iota // constants, lets, variables and parameters
	typeSymbol
	funcSymbol
	otherSymbol // shaders that are not for computing
)

// symbol is what a name stands for.
type symbol struct {
	kind symbolKind
	*operand
	typ typ
	fn  *function
}

// scope has the names of a block.
type scope struct {
	outer *scope
	names map[string]*symbol
}

// push begins a scope; pop ends it.
func (p *parser) push() { p.scope = &scope{outer: p.scope} }

func (p *parser) pop() { p.scope = p.scope.outer }

// define gives a name of the scope a meaning.
func (p *parser) define(at int, name string, s *symbol) {
	if p.scope.names[name] != nil {
		p.fail(at, name, " is declared twice")
	}
	if p.scope.names == nil {
		p.scope.names = map[string]*symbol{}
	}
	p.scope.names[name] = s
}

// lookup returns what a name of the text's means, or nil.
func (p *parser) lookup(name string) *symbol {
	for s := p.scope; s != nil; s = s.outer {
		if sym := s.names[name]; sym != nil {
			return sym
		}
	}
	if d := p.module[name]; d != nil {
		p.resolve(d)
		return d.sym
	}
	return nil
}

// decl is a declaration of the module.
type decl struct {
	keyword string
	start   int // of its attributes
	at      int // the keyword
	name    int
	end     int
	active  bool // it is being resolved
	sym     *symbol
	group   int
}

// skim finds the declarations of the module.
func (p *parser) skim() {
	p.inputs = map[*ir.Type][]ir.Input{}
	p.directives()
	for p.i < len(p.Tokens) {
		d := &decl{start: p.i}
		for p.is("@") {
			if p.i += 2; p.is("(") {
				p.i = int(p.Match[p.i]) + 1
			}
		}
		d.at, d.keyword, d.name = p.i, p.At(p.i), p.i+1
		if stage := p.At(d.start + 1); d.keyword == "fn" && (stage == "vertex" || stage == "fragment") {
			d.keyword = stage
		}
		p.i++
		switch d.keyword {
		case ";":
			continue
		case "const_assert":
			p.i--
		case "var":
			if p.is("<") {
				for p.i < len(p.Tokens) && !p.is(">") {
					p.i++
				}
				p.expect(">")
			}
			d.name = p.i
		case "const", "override", "alias", "struct", "fn", "vertex", "fragment":
		case "enable", "requires", "diagnostic":
			p.fail(d.at, d.keyword, " must stand before all declarations")
		case "let":
			p.fail(d.at, "let must be in a function: use const")
		default:
			p.i = d.at
			p.unexpected("expected a declaration")
		}
		p.skip(d)
	}
}

// skip steps over the rest of a declaration, and notes its name.
func (p *parser) skip(d *decl) {
	if d.keyword != "const_assert" {
		name := p.declared()
		if p.module[name] != nil {
			p.fail(d.name, name, " is declared twice")
		}
		p.module[name] = d
	}
	last := ";"
	if d.keyword == "struct" || p.At(d.at) == "fn" {
		last = "{"
	}
	for !p.is(last) {
		switch p.Char(p.i) {
		case '(', '[':
			p.i = int(p.Match[p.i])
		case '@': // of a result
			if last == "{" {
				break
			}
			fallthrough
		case ';', '{', '}':
			p.unexpected("expected " + last)
		}
		if p.i++; p.i >= len(p.Tokens) {
			p.unexpected("expected " + last)
		}
	}
	d.end = p.i
	if last == "{" {
		d.end = int(p.Match[p.i])
	}
	p.i = d.end + 1
	p.decls = append(p.decls, d)
}

// directives reads what stands before all declarations.
func (p *parser) directives() {
	for {
		switch word := p.At(p.i); word {
		case ";":
			p.i++
		case "diagnostic":
			p.i++
			p.diagnostic()
			p.expect(";")
		case "enable", "requires":
			p.i++
			for {
				if name := p.ident(); word == "enable" || !extensions[name] {
					p.fail(p.i-1, name, " is not available")
				}
				if !p.accept(",") || p.is(";") {
					break
				}
			}
			p.expect(";")
		default:
			return
		}
	}
}

// extensions are the parts of the language that texts may require.
var extensions = map[string]bool{
	"packed_4x8_integer_dot_product":  true,
	"unrestricted_pointer_parameters": true,
	"pointer_composite_access":        true,
	"uniform_buffer_standard_layout":  true,
}

// diagnostic reads (severity, rule), which mean nothing here.
func (p *parser) diagnostic() {
	p.expect("(")
	switch s := p.ident(); s {
	case "off", "info", "warning", "error":
	default:
		p.fail(p.i-1, "no severity ", s)
	}
	p.expect(",")
	if p.ident(); p.accept(".") {
		p.ident()
	}
	p.accept(",")
	p.expect(")")
}

// resolve reads a declaration of the module, if it is not read yet.
func (p *parser) resolve(d *decl) {
	if d.sym != nil {
		return
	}
	if d.active {
		p.fail(d.name, p.At(d.name), " depends on itself")
	}
	d.active = true
	saved := p.state
	p.state = state{i: d.start, depth: saved.depth + 3}
	p.enter()
	d.sym = p.declaration(d)
	p.state = saved
}

func (p *parser) declaration(d *decl) *symbol {
	name := p.At(d.name)
	switch d.keyword {
	case "fn":
		return p.function(d, name)
	case "vertex", "fragment":
		return &symbol{kind: otherSymbol}
	case "var":
		return p.moduleVar(d, name)
	}
	a := p.attributes(overrideAttributes)
	if d.keyword != "override" && len(a.has) > 0 {
		p.fail(d.start, "attributes have no place here")
	}
	var s *symbol
	switch p.i = d.name + 1; d.keyword {
	case "const":
		s = &symbol{operand: p.constant(name)}
	case "override":
		s = &symbol{operand: p.override(d, name)}
	case "alias":
		p.expect("=")
		s = &symbol{kind: typeSymbol, typ: p.typ()}
	case "struct":
		return &symbol{kind: typeSymbol, typ: typ{t: p.structType(name)}}
	case "const_assert":
		p.i = d.at
		p.constAssert()
		s = &symbol{}
	}
	p.expect(";")
	return s
}

// constant reads a constant behind its name.
func (p *parser) constant(name string) *operand {
	var want *ir.Type
	if p.accept(":") {
		want = p.valueType()
	}
	p.expect("=")
	o := p.value(p.expression())
	if want != nil {
		o = p.convert(o, want)
	}
	if o.c == nil {
		p.fail(o.at, "the value of ", name, " is no constant")
	}
	return &operand{at: o.at, t: o.t, c: o.c}
}

// override reads a constant of a pipeline, which has its default value.
func (p *parser) override(d *decl, name string) *operand {
	if !slices.ContainsFunc(p.Tokens[d.name:d.end], func(t wgsl.Token) bool { return p.Text[t.Pos:t.End] == "=" }) {
		p.fail(d.name, "the override ", name, " has no value")
	}
	o := p.concrete(p.constant(name))
	if !isScalar(o.t) {
		p.fail(o.at, "an override cannot be ", typeName(o.t))
	}
	return o
}

// constAssert reads an assertion.
func (p *parser) constAssert() {
	at := p.i
	p.expect("const_assert")
	o := p.convert(p.value(p.expression()), p.types.Scalar(ir.Bool))
	if o.c == nil {
		p.fail(o.at, "the condition of const_assert is no constant")
	}
	if o.c[0] == 0 {
		p.fail(at, "const_assert fails")
	}
}

// moduleVar reads a variable of the module.
func (p *parser) moduleVar(d *decl, name string) *symbol {
	a := p.attributes(varAttributes)
	p.expect("var")
	if !p.is("<") && p.At(d.name+1) == ":" {
		p.i = d.name + 2
		p.typ() // one that needs no address space is not available
	}
	if !p.accept("<") {
		p.fail(d.at, name, " needs an address space")
	}
	v := &ir.Var{Name: name, Space: p.space(), Binding: a.binding}
	if v.Space == ir.Function {
		p.fail(d.at, "a variable of a module cannot be in the address space function")
	}
	if p.accept(",") && !p.is(">") {
		v.Write = p.access(v.Space)
		p.accept(",")
	}
	p.expect(">")
	p.i = d.name + 1
	typeAt := p.i + 1
	if p.accept(":") {
		v.Type = p.valueType()
	}
	if p.is("=") {
		if v.Space != ir.Private {
			p.fail(p.i, "only private variables have a value to begin with")
		}
		p.i++
		o := p.value(p.expression())
		if v.Type != nil {
			o = p.convert(o, v.Type)
		}
		if o = p.concrete(o); o.c == nil {
			p.fail(o.at, "the value of ", name, " is no constant")
		}
		v.Type, v.Init = o.t, p.lower(o)
	}
	if v.Type == nil {
		p.unexpected("expected : and a type")
	}
	p.expect(";")
	p.checkStored(typeAt, v.Space, v.Type, v.Write)
	bound := v.Space == ir.Uniform || v.Space == ir.Storage
	if has := a.has["group"] && a.has["binding"]; has != bound || len(a.has) > 0 && !bound {
		p.fail(d.name, name, " needs @group and @binding exactly if it is in uniform or storage")
	}
	if !bound && p.traitsOf(v.Type).words > maxWork {
		p.fail(d.name, name, " is too large: it has ", strconv.Itoa(p.traitsOf(v.Type).words), " words")
	}
	d.group = a.group
	return &symbol{operand: &operand{t: v.Type, ref: &ir.Ref{Var: v, T: v.Type}}}
}
