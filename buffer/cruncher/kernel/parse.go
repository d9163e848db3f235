// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// parser reads the declarations of module scope.
type parser struct {
	*Source
	*wgsl.Scan
	functions []*function
	order     []*decl // as in the source
	next      int     // token
}

// fail reports what is wrong at a token.
func (p *parser) fail(token int, detail ...string) error {
	return fail("Parse", append([]string{at(p.Line(token))}, detail...)...)
}

func (p *parser) module() error {
	for p.next < len(p.Tokens) {
		start := p.next
		attrs := p.attributes()
		var err error
		switch text := p.At(p.next); text {
		case ";":
			p.next++
		case "enable", "requires", "diagnostic", "const_assert":
			_, err = p.semicolon(p.next)
		case "fn":
			err = p.function(start, attrs)
		case "struct":
			err = p.structure()
		case "alias", "type":
			err = p.value(anAlias)
		case "const", "override", "let":
			err = p.value(aConstant)
		case "var":
			err = p.variable(attrs)
		case "":
			err = p.fail(p.next, "an attribute of nothing")
		default:
			err = p.fail(p.next, "no declaration begins with ", quote(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// attributes takes what may stand before a declaration, a parameter or a member.
func (p *parser) attributes() (attrs []attr) {
	for p.Char(p.next) == '@' {
		a := attr{name: p.At(p.next + 1)}
		p.next += 2
		if p.Char(p.next) == '(' {
			a.from, a.to = p.next+1, int(p.Match[p.next])
			p.next = a.to + 1
		}
		attrs = append(attrs, a)
	}
	return attrs
}

// semicolon finds the one that ends what begins at token from, passes it, and returns where it is.
func (p *parser) semicolon(from int) (int, error) {
	for i := from; i < len(p.Tokens); i++ {
		switch p.Char(i) {
		case ';':
			p.next = i + 1
			return i, nil
		case '(', '[', '{':
			i = int(p.Match[i])
		}
		if t := p.At(i); i > from && (t == "fn" || t == "struct" || t == "var") {
			break // rather than to blame the end of the source
		}
	}
	return 0, p.fail(from, "no ; after a declaration")
}

// declare notes a name of module scope.
func (p *parser) declare(d *decl) error {
	name := p.At(d.name)
	if !p.IsWord(d.name) || name == "_" {
		return p.fail(d.name, "a declaration without a name")
	}
	if old := p.decls[name]; old != nil {
		return p.fail(d.name, quote(name), " is declared already, in line ", strconv.Itoa(p.Line(old.name)))
	}
	p.decls[name] = d
	p.order = append(p.order, d)
	return nil
}

// value takes an alias or a constant: a name, perhaps a type, and what it stands for.
func (p *parser) value(s declSort) error {
	d := &decl{sort: s, name: p.next + 1}
	end, err := p.semicolon(p.next)
	if err != nil {
		return err
	}
	d.from, d.to = end, end
	for i := d.name; i < end; i++ {
		if p.Char(i) == '=' {
			d.from = i + 1
			break
		}
	}
	return p.declare(d)
}

// variable takes var<space, access> name: type = value;
func (p *parser) variable(attrs []attr) error {
	v := &variable{}
	start := p.next
	i := start + 1
	if p.Char(i) == '<' {
		v.space, i = p.At(i+1), i+2
		if p.Char(i) == ',' {
			v.access, i = p.At(i+1), i+2
		}
		if p.Char(i) == ',' { // a comma may trail
			i++
		}
		if p.Char(i) != '>' {
			return p.fail(start, "a var whose address space does not end")
		}
		i++
	}
	end, err := p.semicolon(start)
	if err != nil {
		return err
	}
	d := &decl{sort: aVariable, name: i, attrs: attrs, variable: v, from: end, to: end}
	v.from, v.to = end, end
	if p.Char(i+1) == ':' {
		v.from = i + 2
	}
	for j := i + 1; j < end; j++ {
		if p.Char(j) == '=' {
			d.from, v.to = j+1, j
			v.from = min(v.from, j)
			break
		}
	}
	return p.declare(d)
}

func (p *parser) structure() error {
	open := p.next + 2
	if p.Char(open) != '{' {
		return p.fail(p.next, "a struct without members")
	}
	d := &decl{sort: aStruct, name: p.next + 1, from: open + 1, to: int(p.Match[open])}
	p.next = d.to + 1
	return p.declare(d)
}

// function takes fn name(params) -> result { body }.
func (p *parser) function(start int, attrs []attr) error {
	f := &function{name: p.At(p.next + 1), attrs: attrs, start: start, token: p.next + 1}
	for _, a := range attrs {
		f.compute = f.compute || a.name == "compute"
	}
	open := p.next + 2
	if p.Char(open) != '(' {
		return p.fail(p.next, "a function without parameters")
	}
	shut := int(p.Match[open])
	for _, part := range p.Split(open+1, shut) {
		if err := p.param(f, part[0], part[1]); err != nil {
			return err
		}
	}
	p.next = shut + 1
	if p.Char(p.next) == '-' && p.Char(p.next+1) == '>' {
		f.result = true
		p.next += 2
		for p.next < len(p.Tokens) && !strings.ContainsAny(p.At(p.next), "{};") {
			p.next++
		}
	}
	if p.Char(p.next) != '{' {
		return p.fail(f.token, "a function without a body")
	}
	f.open = p.next
	f.end = int(p.Match[f.open]) + 1
	p.next = f.end
	f.dims = p.dims(f)
	p.references(f)
	p.functions = append(p.functions, f)
	return p.declare(&decl{sort: aFunction, name: f.token, fn: f})
}

func (p *parser) param(f *function, from, to int) error {
	resume := p.next
	p.next = from
	p.attributes()
	from, p.next = p.next, resume
	if !p.IsWord(from) || p.Char(from+1) != ':' || from+2 >= to {
		return p.fail(from, "a parameter that is not a name and a type")
	}
	f.params = append(f.params, param{name: from, from: from + 2, to: to})
	return nil
}

// dims says for ranges of how many dimensions a function is a kernel; 0 is none.
func (p *parser) dims(f *function) int {
	if f.result || len(f.params) != 1 || len(f.attrs) > 0 {
		return 0
	}
	switch p.Join(f.params[0].from, f.params[0].to) {
	case "u32":
		return 1
	case "vec2<u32>", "vec2u":
		return 2
	case "vec3<u32>", "vec3u":
		return 3
	}
	return 0
}
