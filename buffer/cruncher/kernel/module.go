// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"math/bits"
	"sort"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
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
	t := b.typeAt(d.from)
	if of := number(t); t.Each > 0 && of.Lanes > 0 && array.Struct == "" && of.Code != array.component() {
		return 0, b.failAt(d.name, quote(name), " is of ", wide(of), " here, and its elements are ", array.Type.String())
	}
	array.Binding, array.Unit = slot, cmp.Or(int(t.Each), 4)
	b.p.Arrays = append(b.p.Arrays, *array)
	return access, nil
}

// block finds what the module's parameter block wants to know.
func (b *builder) block(d *decl) error {
	p, name := b.p, b.At(d.name)
	if p.ParamBytes > 0 {
		return b.failAt(d.name, "a second uniform variable, the parameters are one block")
	}
	t := b.typeAt(d.from)
	if t.Size == 0 {
		return b.failAt(d.name, "the type of ", quote(name), " is not understood")
	}
	if p.ParamBytes = roundUp(int(t.Size), 16); p.ParamBytes > driver.MaxParams {
		return b.failAt(d.name, "parameters of ", strconv.Itoa(int(t.Size)), " bytes, the most are ", strconv.Itoa(driver.MaxParams))
	}
	if t.Members == nil {
		return b.parameter(wgsl.Member{Layout: t, Name: d.name})
	}
	for _, m := range t.Members {
		if err := b.parameter(m); err != nil {
			return err
		}
	}
	return nil
}

// parameter finds what a member of the block stands for. Others than ours and the scalars stay zero if their names begin
// with pad.
func (b *builder) parameter(m wgsl.Member) error {
	name, typ := b.At(m.Name), dtype.Type{}
	if m.Each == 0 {
		typ = number(m.Layout)
	}
	scalar := lookUp(b.decls, name)
	switch {
	case strings.HasPrefix(name, prefix):
		if typ.Code != dtype.Uint32.Code || typ.Lanes == 0 || int(typ.Lanes) > told(name) {
			return b.failAt(m.Name, "the library has no ", quote(name), " of this type")
		}
	case scalar != nil && scalar.Scalar && scalar.Type == typ:
		b.p.Scalars = append(b.p.Scalars, *scalar)
	case scalar != nil && scalar.Scalar:
		return b.failAt(m.Name, "the scalar ", quote(name), " is a ", wide(scalar.Type))
	case strings.HasPrefix(name, "pad"):
		return nil
	default:
		return b.failAt(m.Name, "no scalar is called ", quote(name))
	}
	b.p.fields[name] = field{int(m.Offset), int(typ.Lanes)}
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

const maxLayout = 1 << 30 // bytes of a type that lies in a buffer

// typeAt returns how the type that begins at a token lies in a buffer, and no size if it cannot.
func (p *parser) typeAt(i int) wgsl.Layout { return bufferType(p.types.Layout(i)) }

func bufferType(t wgsl.Layout) wgsl.Layout {
	if !t.Shared || t.Size > maxLayout {
		t.Size, t.Members = 0, nil
	}
	if t.Each > maxLayout {
		t.Each, t.Lanes = 0, 0
	}
	return t
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// stride is how many bytes numbers of 4 bytes take in an array, as one element of so many lanes, which is also their alignment.
func stride(lanes int) int { return 4 << bits.Len(uint(lanes-1)) }

// number returns the type of a number or a vector, zero for what is none of ours.
func number(t wgsl.Layout) dtype.Type {
	for _, known := range []dtype.Type{dtype.Float32, dtype.Int32, dtype.Uint32} {
		if t.Lanes > 0 && wide(known) == t.Scalar {
			known.Lanes = uint16(t.Lanes)
			return known
		}
	}
	return dtype.Type{}
}

// constant evaluates what is a whole number, or returns -1.
func (p *parser) constant(from, to int) int {
	n := p.types.Constant(from, to)
	if n > maxLayout {
		n = -1
	}
	return int(n)
}
