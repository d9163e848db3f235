// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

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

	layout layout // of a type, once laid is set
	laid   bool

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
	p := &parser{Source: &Source{scan: scan, names: map[string]*decl{}}, Scan: scan, op: op}
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
	return nil, fail(op, "no kernel ", quote(name))
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
	switch d.sort {
	case aStruct, anAlias:
		p.named(p.At(d.name), 0)
	case aFunction:
		d.kernel = d.entry || !p.complete && d.dims > 0
		return p.references(d)
	}
	return nil
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
