// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// module describes an entry point of a complete module. Its text stays as it is.
func (b *builder) module(arrays []Decl, scalars []Scalar) error {
	p := b.p
	p.Entry, p.WGSL = b.f.name, b.source.scan.Text
	for _, name := range b.globals() {
		d := b.source.decls[name]
		slot, err := b.slot(d)
		if err != nil {
			return err
		}
		for len(p.Bindings) <= slot {
			p.Bindings = append(p.Bindings, driver.AccessNone)
		}
		if p.Bindings[slot] != driver.AccessNone {
			return b.failAt(d.name, quote(name), " has the binding of another variable")
		}
		switch d.variable.space {
		case "uniform":
			p.Bindings[slot] = driver.AccessParams
			err = b.block(d, scalars)
		case "storage":
			p.Bindings[slot], err = b.storage(d, slot, arrays)
		default:
			err = b.failAt(d.name, quote(name), " is no buffer, and there is nothing else to bind")
		}
		if err != nil {
			return err
		}
	}
	sort.Slice(p.Arrays, func(i, j int) bool { return p.Arrays[i].Binding < p.Arrays[j].Binding })
	for i := range p.Arrays {
		p.entries[p.Arrays[i].Name] = i
		if name := nameOffset + p.Arrays[i].Name; p.Arrays[i].Window && !p.has(name) {
			return b.fail("the entry point ", p.Name, " does not take ", name, ", without which there is no window")
		}
	}
	return nil
}

// globals lists the bindings that the entry point uses, in the order of the source.
func (b *builder) globals() []string {
	var names []string
	for name := range b.uses {
		d := b.source.decls[name]
		if d != nil && d.variable != nil && d.variable.space != "private" && d.variable.space != "workgroup" {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool { return b.source.decls[names[i]].name < b.source.decls[names[j]].name })
	return names
}

// slot reads the attributes of a binding.
func (b *builder) slot(d *decl) (int, error) {
	group, binding := int64(-1), int64(-1)
	for _, a := range d.attrs {
		n, ok := b.source.constant(a.from, a.to)
		switch {
		case a.name == "group" && ok:
			group = n
		case a.name == "binding" && ok:
			binding = n
		}
	}
	if group != 0 || binding < 0 || binding >= driver.MaxBindings {
		return 0, b.failAt(d.name, "a binding that is not one of the first ", strconv.Itoa(driver.MaxBindings), " of @group(0)")
	}
	return int(binding), nil
}

// storage finds the declaration of an array that the module binds.
func (b *builder) storage(d *decl, slot int, arrays []Decl) (driver.Access, error) {
	name := b.source.scan.At(d.name)
	i := slices.IndexFunc(arrays, func(a Decl) bool { return a.Name == name })
	if i < 0 {
		return 0, b.failAt(d.name, "no array is called ", quote(name))
	}
	access := driver.AccessRead
	switch d.variable.access {
	case "", "read":
	case "read_write":
		access = driver.AccessReadWrite
	default:
		return 0, b.failAt(d.name, "access to ", quote(name), " is neither read nor read_write")
	}
	if access == driver.AccessReadWrite && arrays[i].ReadOnly {
		return 0, b.failAt(d.name, quote(name), " is read-only, and the module may write to it")
	}
	b.p.Arrays = append(b.p.Arrays, Array{Decl: arrays[i], Binding: slot, Unit: b.unitAt(d)})
	return access, nil
}

// unitAt returns the size of the elements of a binding that is an array, 4 for another one.
func (b *builder) unitAt(d *decl) int {
	s, from, to := b.source.scan, d.variable.from, d.variable.to
	for range maxDepth {
		alias := b.source.decls[s.At(from)]
		if to-from != 1 || alias == nil || alias.sort != anAlias {
			break
		}
		from, to = alias.from, alias.to
	}
	if s.At(from) == "array" && s.Char(from+1) == '<' {
		if args := s.Split(from+2, to-1); len(args) > 0 {
			if t, ok := b.source.layouts().layoutAt(args[0][0], args[0][1], 0); ok {
				return roundUp(t.size, t.align)
			}
		}
	}
	return 4
}

// block finds what the module's parameter block wants to know.
func (b *builder) block(d *decl, scalars []Scalar) error {
	p, s := b.p, b.source.scan
	if p.ParamBytes > 0 {
		return b.failAt(d.name, "a second uniform variable, the parameters are one block")
	}
	t, ok := b.source.layouts().layoutAt(d.variable.from, d.variable.to, 0)
	if !ok {
		return b.failAt(d.name, "the type of ", quote(s.At(d.name)), " is not understood")
	}
	if p.ParamBytes = roundUp(t.size, 16); p.ParamBytes > driver.MaxParams {
		return b.failAt(d.name, "parameters of ", strconv.Itoa(t.size), " bytes, the most are ", strconv.Itoa(driver.MaxParams))
	}
	members := t.members
	if members == nil {
		members = []member{{s.At(d.name), d.name, 0, t.elem}}
	}
	for _, m := range members {
		if err := b.parameter(m, scalars); err != nil {
			return err
		}
	}
	return nil
}

// parameter finds what a member of the block stands for. Others than ours and the scalars stay zero if their names begin
// with pad.
func (b *builder) parameter(m member, scalars []Scalar) error {
	if strings.HasPrefix(m.name, prefix) {
		lanes := 1
		switch m.name {
		case nameBase, nameCount, nameTotal:
			lanes = 3
		}
		if m.elem < u32 || m.elem > u32x4 || m.elem.lanes() > lanes || !told(m.name) {
			return b.failAt(m.token, "the library has no ", quote(m.name), " of this type")
		}
		b.p.fields[m.name] = field{m.offset, m.elem}
		return nil
	}
	i := slices.IndexFunc(scalars, func(s Scalar) bool { return s.Name == m.name })
	switch {
	case i >= 0 && scalars[i].elem == m.elem:
		b.p.fields[m.name] = field{m.offset, m.elem}
		b.p.Scalars = append(b.p.Scalars, scalars[i])
	case i >= 0:
		return b.failAt(m.token, "the scalar ", quote(m.name), " is a ", scalars[i].elem.name())
	case !strings.HasPrefix(m.name, "pad"):
		return b.failAt(m.token, "no scalar is called ", quote(m.name))
	}
	return nil
}

// told reports whether the library tells entry points something of this name.
func told(name string) bool {
	switch name {
	case nameBase, nameCount, nameTotal, nameGroups:
		return true
	}
	return strings.HasPrefix(name, nameOffset) || strings.HasPrefix(name, nameLength)
}
