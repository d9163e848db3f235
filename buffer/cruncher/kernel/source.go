// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// ErrKernel is a source, a name or a declaration that no program can be made of. The message names the line of the
// source where one is to blame. What only a compiler finds is gpu.ErrCompile, from the device.
var ErrKernel = fault.New("ErrKernel", "not a usable kernel")

func fail(op string, detail ...string) error {
	return fault.Fail("kernel: "+op, ErrKernel, detail...)
}

// quote shortens what a hostile source may have made long.
func quote(s string) string { return strconv.Quote(fault.Short(s)) }

// Source is WGSL with kernels in it. It does not change and may be used by several goroutines.
type Source struct {
	scan     *wgsl.Scan
	complete bool
	decls    []*decl          // the declarations of module scope in the order of the source
	names    map[string]*decl // the same by name
}

// declSort tells declarations of module scope apart.
type declSort uint8

const (
	aFunction declSort = iota
	aStruct
	anAlias
	aConstant // or an override
	aVariable
)

// decl is a declaration of module scope. Its places are numbers of tokens.
type decl struct {
	sort  declSort
	name  int
	attrs []attr
	// from and to enclose a struct's members, an alias's or a variable's type, a constant's value, or a function from its
	// parameters to its end. A function's attributes begin at start.
	start, from, to int

	space, access string // of a variable; no space for a texture or a sampler

	refs   []int // the tokens that name something outside of the function
	kernel bool
	dims   int    // 1 to 3 for fn name(i: u32) and its like
	entry  bool   // an entry point, with a workgroup size
	local  [3]int // the workgroup size
}

// attr is an attribute: the tokens between its brackets, if any.
type attr struct {
	name     string
	from, to int
}

// bound reports whether a declaration is a variable that a launch must bind.
func (d *decl) bound() bool {
	return d.sort == aVariable && d.space != "private" && d.space != "workgroup"
}

// Parse finds the kernels of a source of functions or of a complete module, as the package's documentation tells them apart.
//
// The error is [ErrKernel] for a source without kernels, with a name declared twice, with brackets that do not match, or
// whose declarations are not of WGSL's form, and in a source of functions for bindings and for names that begin with
// sublet_. Function bodies are for the compiler to check.
func Parse(src string) (*Source, error) {
	const op = "Parse"
	scan, err := wgsl.Tokenize(strings.TrimPrefix(src, "\ufeff"))
	if err != nil {
		return nil, fail(op, err.Error())
	}
	p := &parser{Source: &Source{scan: scan, names: map[string]*decl{}}, Scan: scan, types: scan.Types(), op: op}
	if err := p.declarations(); err != nil {
		return nil, err
	}
	p.complete = slices.ContainsFunc(p.decls, func(d *decl) bool { return d.entry })
	for _, d := range p.decls {
		if err := p.examine(d); err != nil {
			return nil, err
		}
	}
	if len(p.Kernels()) == 0 {
		return nil, p.fail("no kernels: no function fn name(i: u32) and no @compute entry point")
	}
	return p.Source, nil
}

// Kernels lists the kernels in the order of the source.
func (s *Source) Kernels() []string {
	if s == nil {
		return nil
	}
	var names []string
	for _, d := range s.decls {
		if d.kernel {
			names = append(names, s.scan.At(d.name))
		}
	}
	return names
}

// Local returns the workgroup size of an entry point. It is zero for other kernels, which take any. The error is [ErrKernel]
// if there is no kernel of this name.
func (s *Source) Local(kernel string) ([3]int, error) {
	k, err := s.kernel("Local", kernel)
	if err != nil {
		return [3]int{}, err
	}
	return k.local, nil
}

func (s *Source) kernel(op, name string) (*decl, error) {
	if s != nil && s.names[name] != nil && s.names[name].kernel {
		return s.names[name], nil
	}
	return nil, fail(op, "no kernel ", quote(name), "; there are: ", quote(strings.Join(s.Kernels(), ", ")))
}

// examine completes a declaration once it is known what kind of source it is in.
func (p *parser) examine(d *decl) error {
	var err error
	switch {
	case d.entry:
		err = p.entryPoint(d)
	case !p.complete:
		err = p.onlyOurs(d)
	}
	if err != nil {
		return err
	}
	if d.sort != aFunction {
		return nil
	}
	d.kernel = d.entry || !p.complete && d.dims > 0
	return p.references(d)
}

// entryPoint evaluates the workgroup size.
func (p *parser) entryPoint(d *decl) error {
	d.local = [3]int{1, 1, 1}
	for _, a := range d.attrs {
		if a.name != "workgroup_size" {
			continue
		}
		for i, n := range p.Split(a.from, a.to) {
			v := p.constant(n[0], n[1])
			if i > 2 || v < 1 || v > maxLocal {
				return p.failAt(d.name, "a workgroup size that is not made of one to three numbers or constants")
			}
			d.local[i] = v
		}
		return nil
	}
	return p.failAt(d.name, "an entry point without a workgroup size")
}

// onlyOurs refuses what a source of functions may not declare, because the library does.
func (p *parser) onlyOurs(d *decl) error {
	switch name := p.At(d.name); {
	case strings.HasPrefix(name, prefix):
		return p.failAt(d.name, "names that begin with ", prefix, " are the library's: ", quote(name))
	case slices.Contains(needed, name):
		return p.failAt(d.name, "the library needs the name ", quote(name), " itself")
	case d.bound():
		return p.failAt(d.name, "a binding needs a complete module, with a @compute entry point: ", quote(name))
	}
	return nil
}

// parser reads a source.
type parser struct {
	*Source
	*wgsl.Scan
	types *wgsl.Types
	op    string // that it does so for
	next  int    // token
}

func (p *parser) fail(detail ...string) error { return fail(p.op, detail...) }

// failAt blames a token of the source.
func (p *parser) failAt(token int, detail ...string) error {
	return p.fail("line "+strconv.Itoa(p.Line(token))+": ", strings.Join(detail, ""))
}

// declarations reads those of module scope.
func (p *parser) declarations() error {
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
			err = p.failAt(p.next, "an attribute of nothing")
		default:
			err = p.failAt(p.next, "no declaration begins with ", quote(text))
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
	return 0, p.failAt(from, "no ; after a declaration")
}

// find returns the first of the tokens that is the character, or to.
func (p *parser) find(c byte, from, to int) int {
	for from < to && p.Char(from) != c {
		from++
	}
	return from
}

// declare notes a name of module scope.
func (p *parser) declare(d *decl) error {
	name := p.At(d.name)
	if !p.IsWord(d.name) || name == "_" {
		return p.failAt(d.name, "a declaration without a name")
	}
	if old := p.names[name]; old != nil {
		return p.failAt(d.name, quote(name), " is declared already, in line ", strconv.Itoa(p.Line(old.name)))
	}
	p.names[name] = d
	p.decls = append(p.decls, d)
	return nil
}

// value takes an alias or a constant: a name, perhaps a type, and what it stands for.
func (p *parser) value(s declSort) error {
	d := &decl{sort: s, name: p.next + 1}
	end, err := p.semicolon(p.next)
	if err != nil {
		return err
	}
	d.from, d.to = min(p.find('=', d.name, end)+1, end), end
	return p.declare(d)
}

// variable takes var<space, access> name: type = value;
func (p *parser) variable(attrs []attr) error {
	d := &decl{sort: aVariable, name: p.next + 1, attrs: attrs}
	if p.Char(d.name) == '<' {
		words := []*string{&d.space, &d.access}
		end := min(p.find('>', d.name, len(p.Tokens)), d.name+5) // a comma may trail
		if p.Char(end) != '>' {
			return p.failAt(p.next, "a var whose address space does not end")
		}
		for i, part := range p.Split(d.name+1, end) {
			*words[min(i, 1)] = p.At(part[0])
		}
		d.name = end + 1
	}
	end, err := p.semicolon(p.next)
	if err != nil {
		return err
	}
	d.to = p.find('=', d.name, end)
	d.from = min(d.name+2, d.to)
	return p.declare(d)
}

func (p *parser) structure() error {
	open := p.next + 2
	if p.Char(open) != '{' {
		return p.failAt(p.next, "a struct without members")
	}
	d := &decl{sort: aStruct, name: p.next + 1, from: open + 1, to: int(p.Match[open])}
	p.next = d.to + 1
	return p.declare(d)
}

// function takes fn name(params) -> result { body }.
func (p *parser) function(start int, attrs []attr) error {
	d := &decl{sort: aFunction, name: p.next + 1, attrs: attrs, start: start, from: p.next + 2}
	for _, a := range attrs {
		d.entry = d.entry || a.name == "compute"
	}
	if p.Char(d.from) != '(' {
		return p.failAt(p.next, "a function without parameters")
	}
	shut := int(p.Match[d.from])
	params := p.Split(d.from+1, shut)
	for _, param := range params {
		p.next = param[0]
		p.attributes()
		if !p.IsWord(p.next) || p.Char(p.next+1) != ':' || p.next+2 >= param[1] {
			return p.failAt(p.next, "a parameter that is not a name and a type")
		}
	}
	if len(params) == 1 && len(attrs) == 0 {
		d.dims = dimsOf[p.Join(p.next+2, params[0][1])]
	}
	if p.next = shut + 1; p.Char(p.next) == '-' {
		d.dims = 0
		for p.next < len(p.Tokens) && !strings.ContainsAny(p.At(p.next), "{};") {
			p.next++
		}
	}
	if p.Char(p.next) != '{' {
		return p.failAt(d.name, "a function without a body")
	}
	d.to = int(p.Match[p.next]) + 1
	p.next = d.to
	return p.declare(d)
}

// dimsOf says for ranges of how many dimensions a function with a parameter of the type is a kernel.
var dimsOf = map[string]int{"u32": 1, "vec2<u32>": 2, "vec2u": 2, "vec3<u32>": 3, "vec3u": 3}
