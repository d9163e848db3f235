// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"sort"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// module describes an entry point of a complete module. Its text stays as it is.
func (b *builder) module() error {
	p := b.p
	p.Entry, p.WGSL = p.Name, b.Text
	for _, d := range b.Source.decls {
		if !d.bound() || !b.uses[b.At(d.name)] {
			continue
		}
		slot, err := b.slot(d)
		if err != nil {
			return err
		}
		switch d.space {
		case "uniform":
			p.Bindings[slot] = driver.AccessParams
			err = b.block(d)
		case "storage":
			p.Bindings[slot], err = b.storage(d, slot)
		default:
			err = b.failAt(d.name, quote(b.At(d.name)), " is no buffer, and there is nothing else to bind")
		}
		if err != nil {
			return err
		}
	}
	sort.Slice(p.Arrays, func(i, j int) bool { return p.Arrays[i].Binding < p.Arrays[j].Binding })
	for _, d := range p.Arrays {
		if name := nameOffset + d.Name; d.Window && !p.has(name) {
			return b.fail("the entry point ", p.Name, " does not take ", name, ", without which there is no window")
		}
	}
	return nil
}

// slot reads the attributes of a variable and makes its binding.
func (b *builder) slot(d *decl) (int, error) {
	group, slot := -1, -1
	for _, a := range d.attrs {
		switch a.name {
		case "group":
			group = b.constant(a.from, a.to)
		case "binding":
			slot = b.constant(a.from, a.to)
		}
	}
	if group != 0 || slot < 0 || slot >= driver.MaxBindings {
		return 0, b.failAt(d.name, "a binding that is not one of the first ", strconv.Itoa(driver.MaxBindings), " of @group(0)")
	}
	for len(b.p.Bindings) <= slot {
		b.p.Bindings = append(b.p.Bindings, driver.AccessNone)
	}
	if b.p.Bindings[slot] != driver.AccessNone {
		return 0, b.failAt(d.name, quote(b.At(d.name)), " has the binding of another variable")
	}
	return slot, nil
}

// storage finds the declaration of an array that the module binds.
func (b *builder) storage(d *decl, slot int) (driver.Access, error) {
	name := b.At(d.name)
	array := lookUp(b.decls, name)
	if array == nil || array.Scalar {
		return 0, b.failAt(d.name, "no array is called ", quote(name))
	}
	access := driver.AccessRead
	switch d.access {
	case "", "read":
	case "read_write":
		access = driver.AccessReadWrite
	default:
		return 0, b.failAt(d.name, "access to ", quote(name), " is neither read nor read_write")
	}
	if access == driver.AccessReadWrite && array.ReadOnly {
		return 0, b.failAt(d.name, quote(name), " is read-only, and the module may write to it")
	}
	array.Binding, array.Unit = slot, cmp.Or(b.layoutAt(d.from, d.to, 0).each, 4)
	b.p.Arrays = append(b.p.Arrays, *array)
	return access, nil
}

// block finds what the module's parameter block wants to know.
func (b *builder) block(d *decl) error {
	p, name := b.p, b.At(d.name)
	if p.ParamBytes > 0 {
		return b.failAt(d.name, "a second uniform variable, the parameters are one block")
	}
	t := b.layoutAt(d.from, d.to, 0)
	if t.size == 0 {
		return b.failAt(d.name, "the type of ", quote(name), " is not understood")
	}
	if p.ParamBytes = roundUp(t.size, 16); p.ParamBytes > driver.MaxParams {
		return b.failAt(d.name, "parameters of ", strconv.Itoa(t.size), " bytes, the most are ", strconv.Itoa(driver.MaxParams))
	}
	if t.members == nil {
		return b.parameter(member{name, d.name, 0, t.typ})
	}
	for _, m := range t.members {
		if err := b.parameter(m); err != nil {
			return err
		}
	}
	return nil
}

// parameter finds what a member of the block stands for. Others than ours and the scalars stay zero if their names begin
// with pad.
func (b *builder) parameter(m member) error {
	scalar := lookUp(b.decls, m.name)
	switch {
	case strings.HasPrefix(m.name, prefix):
		if m.typ.Code != dtype.Uint32.Code || m.typ.Lanes == 0 || int(m.typ.Lanes) > told(m.name) {
			return b.failAt(m.token, "the library has no ", quote(m.name), " of this type")
		}
	case scalar != nil && scalar.Scalar && scalar.Type == m.typ:
		b.p.Scalars = append(b.p.Scalars, *scalar)
	case scalar != nil && scalar.Scalar:
		return b.failAt(m.token, "the scalar ", quote(m.name), " is a ", wide(scalar.Type))
	case strings.HasPrefix(m.name, "pad"):
		return nil
	default:
		return b.failAt(m.token, "no scalar is called ", quote(m.name))
	}
	b.p.fields[m.name] = field{m.offset, int(m.typ.Lanes)}
	return nil
}

// told returns how many numbers of this name the library tells entry points, 0 for no name of its.
func told(name string) int {
	switch {
	case name == nameBase || name == nameCount || name == nameTotal:
		return 3
	case name == nameGroups || strings.HasPrefix(name, nameOffset) || strings.HasPrefix(name, nameLength):
		return 1
	}
	return 0
}
