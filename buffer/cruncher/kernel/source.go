// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// Source is WGSL with kernels in it. It does not change and may be used by several goroutines.
type Source struct {
	scan     *wgsl.Scan
	complete bool
	kernels  []*function
	decls    map[string]*decl // what stands at module scope
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

// decl is a declaration of module scope. Indices are those of tokens.
type decl struct {
	sort     declSort
	name     int
	attrs    []attr
	from, to int // of what follows the name: a struct's members, an alias's type, a constant's value
	fn       *function
	variable *variable
}

// attr is an attribute: the tokens between its brackets, if any.
type attr struct {
	name     string
	from, to int
}

// function is a function of the source. A kernel has dims.
type function struct {
	name       string
	attrs      []attr
	start, end int // tokens of the whole declaration, attributes included
	token      int // the name
	params     []param
	result     bool
	open       int // the bracket of its body
	refs       []ref
	bad        int    // a local name that begins with prefix, or -1
	dims       int    // 1 to 3 for fn name(i: u32) and its like
	compute    bool   // an entry point
	local      [3]int // of an entry point
}

type param struct{ name, from, to int } // a token, and those of the type

// variable is a var of module scope.
type variable struct {
	space    string // address space, "" for a texture or a sampler
	access   string
	from, to int // the type
}

// Info describes a kernel.
type Info struct {
	Name string
	Line int // of its declaration
	// Dims is how many dimensions its ranges have: 1 for fn name(i: u32), 2 and 3 for vectors. It is 0 for an entry point,
	// which says itself what it does with the workgroups.
	Dims int
	// Local is an entry point's workgroup size. It is zero for other kernels, which take any.
	Local [3]int
}

// Parse finds the kernels of a source, which is of one of two kinds.
//
// In a source of functions each function of the form fn name(i: u32), fn name(i: vec2<u32>) or fn name(i: vec3<u32>)
// without a result is a kernel. It names arrays and scalars that it does not declare. In a complete module, one with a
// @compute entry point, the entry points are the kernels and everything is declared.
//
// The error is [ErrKernel] for a source without kernels, with a name declared twice, with brackets that do not match, or
// whose declarations are not of WGSL's form, and in a source of functions for bindings and for names that begin with
// sublet_. Function bodies are for the compiler to check.
func Parse(src string) (*Source, error) {
	scan, err := wgsl.Tokenize(strings.TrimPrefix(src, "\ufeff"))
	if err != nil {
		return nil, fail("Parse", err.Error())
	}
	s := &Source{scan: scan, decls: map[string]*decl{}}
	p := parser{Source: s, Scan: scan}
	if err := p.module(); err != nil {
		return nil, err
	}
	if err := p.findKernels(); err != nil {
		return nil, err
	}
	return s, nil
}

// Kernels lists the kernels in the order of the source.
func (s *Source) Kernels() []string {
	if s == nil {
		return nil
	}
	names := make([]string, len(s.kernels))
	for i, k := range s.kernels {
		names[i] = k.name
	}
	return names
}

// Kernel describes a kernel, or returns [ErrKernel] where there is none of this name.
func (s *Source) Kernel(name string) (Info, error) {
	k, err := s.kernel("Kernel", name)
	if err != nil {
		return Info{}, err
	}
	return Info{Name: k.name, Line: s.scan.Line(k.token), Dims: k.dims, Local: k.local}, nil
}

func (s *Source) kernel(op, name string) (*function, error) {
	if s != nil {
		for _, k := range s.kernels {
			if k.name == name {
				return k, nil
			}
		}
	}
	return nil, fail(op, "no kernel ", quote(name))
}

// findKernels sorts out which functions are kernels.
func (p *parser) findKernels() error {
	for _, f := range p.functions {
		if f.compute {
			p.complete = true
			if err := p.entryPoint(f); err != nil {
				return err
			}
			p.kernels = append(p.kernels, f)
		}
	}
	if p.complete {
		for _, f := range p.functions {
			f.dims = 0
		}
		return nil
	}
	if err := p.onlyOurs(); err != nil {
		return err
	}
	for _, f := range p.functions {
		if f.dims > 0 {
			p.kernels = append(p.kernels, f)
		}
	}
	if len(p.kernels) == 0 {
		return fail("Parse", "no kernels: no function fn name(i: u32) and no @compute entry point")
	}
	return nil
}

// entryPoint evaluates the workgroup size.
func (p *parser) entryPoint(f *function) error {
	f.local = [3]int{1, 1, 1}
	for _, a := range f.attrs {
		if a.name != "workgroup_size" {
			continue
		}
		for i, n := range p.Split(a.from, a.to) {
			v, ok := p.constant(n[0], n[1])
			if i > 2 || !ok || v < 1 || v > maxLocal {
				return p.fail(f.token, "a workgroup size that is not made of one to three numbers or constants")
			}
			f.local[i] = int(v)
		}
		return nil
	}
	return p.fail(f.token, "an entry point without a workgroup size")
}

// onlyOurs refuses what a source of functions may not declare, because the library does.
func (p *parser) onlyOurs() error {
	for _, d := range p.order {
		name := p.At(d.name)
		switch {
		case strings.HasPrefix(name, prefix):
			return p.fail(d.name, "names that begin with ", prefix, " are the library's: ", quote(name))
		case needed[name]:
			return p.fail(d.name, "the library needs the name ", quote(name), " itself")
		case d.variable != nil && d.variable.space != "private" && d.variable.space != "workgroup":
			return p.fail(d.name, "a binding needs a complete module, with a @compute entry point: ", quote(name))
		}
	}
	for _, f := range p.functions {
		if f.bad >= 0 {
			return p.fail(f.bad, "names that begin with ", prefix, " are the library's: ", quote(p.At(f.bad)))
		}
	}
	return nil
}
