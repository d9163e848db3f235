// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
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
	t := b.layoutAt(d.from, d.to, 0)
	if of := t.of; of.Lanes > 0 && array.Struct == "" && of.Code != array.component() {
		return 0, b.failAt(d.name, quote(name), " is of ", wide(of), " here, and its elements are ", array.Type.String())
	}
	array.Binding, array.Unit = slot, cmp.Or(t.each, 4)
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

// layout is how a type lies in a buffer: WGSL, section 14.4, "Memory layout". A type that cannot lie in one has no size.
type layout struct {
	size, align int
	typ         dtype.Type // zero where it is no scalar's
	each        int        // bytes of an element of an array, which has no size if its length is open
	of          dtype.Type // of its elements, zero where they are no numbers or vectors
	members     []member   // of a struct
}

type member struct {
	name   string
	token  int
	offset int
	typ    dtype.Type
}

const (
	maxDepth  = 32      // of types within types
	maxLayout = 1 << 30 // bytes of a type, so that sizes do not overflow
)

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// stride is how many bytes an element of the type takes in an array.
func (t layout) stride() int { return roundUp(t.size, max(t.align, 1)) }

// layoutAt lays out the type that these tokens are.
func (p *parser) layoutAt(from, to, depth int) layout {
	if from >= to || depth > maxDepth || !p.IsWord(from) {
		return layout{}
	}
	name := p.At(from)
	if to-from == 1 {
		return p.named(name, depth)
	}
	if p.Char(from+1) != '<' || p.Char(to-1) != '>' {
		return layout{}
	}
	args := p.Split(from+2, to-1)
	if len(args) == 0 {
		return layout{}
	}
	switch inner := p.layoutAt(args[0][0], args[0][1], depth+1); {
	case inner.size == 0:
	case name == "atomic" && len(args) == 1:
		return layout{size: inner.size, align: inner.align}
	case name == "array":
		t := layout{align: inner.align, each: inner.stride(), of: inner.typ}
		if len(args) == 2 {
			t.size = max(p.constant(args[1][0], args[1][1]), 0) * t.each
		}
		if t.size <= maxLayout {
			return t
		}
	case len(args) == 1 && inner.members == nil && inner.size <= 4:
		return shaped(name, inner)
	}
	return layout{}
}

// shaped lays out a vector or a matrix of components.
func shaped(name string, of layout) layout {
	if lanes, ok := strings.CutPrefix(name, "vec"); ok {
		return vector(of, count(lanes))
	}
	shape, ok := strings.CutPrefix(name, "mat")
	cols, rows, _ := strings.Cut(shape, "x")
	column := vector(of, count(rows))
	if !ok {
		return layout{}
	}
	return layout{size: count(cols) * column.stride(), align: column.align}
}

func vector(of layout, lanes int) layout {
	v := layout{size: lanes * of.size, align: [...]int{1, 1, 2, 4, 4}[lanes] * of.size, typ: of.typ}
	if of.typ.Lanes > 0 {
		v.typ.Lanes = uint16(lanes)
	}
	return v
}

// count reads "2" to "4", or returns 0.
func count(s string) int {
	if len(s) == 1 && '2' <= s[0] && s[0] <= '4' {
		return int(s[0] - '0')
	}
	return 0
}

// components are WGSL's numbers, and the letter by which vec3f and its like end.
var components = []struct {
	name, letter string
	layout
}{
	{"f32", "f", layout{size: 4, align: 4, typ: dtype.Float32}},
	{"i32", "i", layout{size: 4, align: 4, typ: dtype.Int32}},
	{"u32", "u", layout{size: 4, align: 4, typ: dtype.Uint32}},
	{"f16", "h", layout{size: 2, align: 2}},
}

// named lays out a type that is one word.
func (p *parser) named(name string, depth int) layout {
	if d := p.names[name]; d != nil {
		if !d.laid {
			d.laid = true // a type in itself has no layout
			switch d.sort {
			case anAlias:
				d.layout = p.layoutAt(d.from, d.to, depth+1)
			case aStruct:
				d.layout = p.members(d, depth+1)
			}
		}
		return d.layout
	}
	for _, c := range components {
		if name == c.name {
			return c.layout
		}
		if shape, ok := strings.CutSuffix(name, c.letter); ok {
			return shaped(shape, c.layout)
		}
	}
	return layout{}
}

// members lays out a struct of the source's.
func (p *parser) members(d *decl, depth int) layout {
	all := layout{align: 1, members: []member{}}
	for _, part := range p.Split(d.from, d.to) {
		p.next = part[0]
		attrs := p.attributes()
		name := p.next
		t := p.layoutAt(name+2, part[1], depth)
		if !p.IsWord(name) || p.Char(name+1) != ':' || t.size == 0 {
			return layout{}
		}
		for _, a := range attrs {
			n := p.constant(a.from, a.to)
			switch {
			case n < 1 || n > maxLayout:
				return layout{}
			case a.name == "align":
				t.align = n
			case a.name == "size":
				t.size = n
			}
		}
		offset := roundUp(all.size, t.align)
		all.members = append(all.members, member{p.At(name), name, offset, t.typ})
		all.size, all.align = offset+t.size, max(all.align, t.align)
		if all.size > maxLayout {
			return layout{}
		}
	}
	all.size = all.stride()
	return all
}

// constant evaluates what is a whole number or a constant that stands for one, or returns -1.
func (p *parser) constant(from, to int) int {
	for range maxDepth {
		if to-from != 1 {
			break
		}
		text := p.At(from)
		if p.Tokens[from].Kind == wgsl.Number {
			n, err := strconv.ParseInt(strings.TrimRight(text, "iu"), 0, 32)
			if err != nil || strings.Contains(text, "_") {
				break
			}
			return int(n)
		}
		d := p.names[text]
		if d == nil || d.sort != aConstant {
			break
		}
		from, to = d.from, d.to
	}
	return -1
}
