// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Build makes a program of one kernel. Of the arrays and scalars only those that it uses, itself or in functions that it
// calls, are bound; of the source's functions only those are compiled.
//
// local is the size of a workgroup, 0 standing for 1. An entry point has its own, see [Source.Local]. It is [ErrKernel] if there
// is no such kernel, if declarations are wrong, contradict the source or are twice there, if the parameter block would be larger
// than 1024 bytes, or if the kernel uses a windowed array in other ways than [Decl] says.
func (s *Source) Build(kernel string, decls []Decl, local [3]int) (*Program, error) {
	const op = "Build"
	k, err := s.kernel(op, kernel)
	if err != nil {
		return nil, err
	}
	b := &builder{parser: parser{Source: s, Scan: s.scan, op: op}, p: &Program{
		Name: kernel, Dims: k.dims, Local: k.local, source: s, fields: map[string]field{}, compiled: map[*gpu.Device]compiled{},
	}}
	b.uses, b.refs = b.reach(k)
	if err := b.check(decls); err != nil {
		return nil, err
	}
	if s.complete {
		err = b.module()
	} else {
		err = b.wrap(local)
	}
	if err != nil {
		return nil, err
	}
	b.p.Divisible = b.p.has(nameBase)
	b.findWrites()
	return b.p, nil
}

// builder makes one program.
type builder struct {
	parser
	decls []Decl
	p     *Program

	uses map[string]bool // the names that the kernel uses, and those of the library's variables that its text does
	refs []int           // the tokens that do

	out          strings.Builder // what follows the user's text
	private, set strings.Builder // the variables in it, and what sets them
}

// check looks at the declarations as such.
func (b *builder) check(decls []Decl) error {
	for i := range decls {
		d := decls[i]
		switch what, own := b.wrong(&d), b.names[d.Name]; {
		case what != "":
			return b.fail(quote(d.Name), " ", what)
		case own != nil && !b.complete:
			return b.failAt(own.name, quote(d.Name), " is declared here, and as an array or a scalar, too")
		case lookUp(b.decls, d.Name) != nil:
			return b.fail(quote(d.Name), " is declared twice")
		}
		b.decls = append(b.decls, d)
	}
	return nil
}

// lookUp returns what was declared under a name, or nil.
func lookUp(list []Decl, name string) *Decl {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// wrap makes an entry point for a kernel of a source of functions. What the library adds follows the user's text, so that
// lines keep their numbers.
func (b *builder) wrap(local [3]int) error {
	p := b.p
	if err := b.workgroup(local); err != nil {
		return err
	}
	for _, d := range b.decls {
		switch {
		case !b.uses[d.Name] && !b.uses[nameLoad+d.Name] && !b.uses[nameStore+d.Name]:
		case d.Scalar:
			p.Scalars = append(p.Scalars, d)
		default:
			d.Binding, d.Unit = len(p.Arrays)+1, b.unit(&d)
			p.Arrays = append(p.Arrays, d)
			b.uses[nameOffset+d.Name] = d.Window
		}
	}
	if len(p.Arrays) >= driver.MaxBindings {
		return b.fail("more than ", strconv.Itoa(driver.MaxBindings-1), " arrays")
	}
	if err := b.rewrite(); err != nil {
		return err
	}
	b.declare()
	if p.ParamBytes > driver.MaxParams {
		return b.fail("parameters of ", strconv.Itoa(p.ParamBytes), " bytes, the most are ", strconv.Itoa(driver.MaxParams))
	}
	b.entry()
	p.WGSL = apply(b.Text, p.edits) + "\n" + b.out.String()
	return nil
}

// workgroup sets the size of a workgroup.
func (b *builder) workgroup(local [3]int) error {
	dims, n := b.p.Dims, 1
	for d := range local {
		local[d] = cmp.Or(local[d], 1)
	}
	for d, size := range local {
		if size < 1 || size > maxLocal/n || d >= dims && size != 1 {
			text := strconv.Itoa(local[0]) + "x" + strconv.Itoa(local[1]) + "x" + strconv.Itoa(local[2])
			return b.fail("a workgroup of ", text, " for a kernel of ", strconv.Itoa(dims), " dimensions")
		}
		n *= size
	}
	b.p.Local = local
	return nil
}

// unit returns what an index of the array counts.
func (b *builder) unit(d *Decl) int {
	switch {
	case d.Struct != "":
		return b.names[d.Struct].layout.stride()
	case small(d.Type):
		return 4
	}
	return vector(layout{size: 4}, int(d.Type.Lanes)).stride()
}
