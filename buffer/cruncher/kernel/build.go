// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Build makes a program of one kernel. Of the arrays and scalars only those that it uses, itself or in functions that it
// calls, are bound; of the source's functions only those are compiled.
//
// local is the size of a workgroup, 0 standing for 1; an entry point has its own, which local repeats or leaves open with
// zeros. It is [ErrKernel] if there is no such kernel, if declarations are wrong, contradict the source or are twice there, if
// the parameter block would be larger than 1024 bytes, or if the kernel uses a windowed array in other ways than [Decl] says.
func (s *Source) Build(kernel string, arrays []Decl, scalars []Scalar, local [3]int) (*Program, error) {
	f, err := s.kernel("Build", kernel)
	if err != nil {
		return nil, err
	}
	b := &builder{source: s, f: f, lengths: map[string]bool{}, p: &Program{
		Name: f.name, Dims: f.dims, source: s, fields: map[string]field{}, entries: map[string]int{},
	}}
	b.inReach, b.reach = s.reach(f)
	b.uses = uses(b.reach)
	arrays, scalars = slices.Clone(arrays), slices.Clone(scalars) // with what check finds
	if err := b.check(arrays, scalars); err != nil {
		return nil, err
	}
	if err := b.local(local); err != nil {
		return nil, err
	}
	if s.complete {
		err = b.module(arrays, scalars)
	} else {
		err = b.wrap(arrays, scalars)
	}
	if err != nil {
		return nil, err
	}
	b.findWrites()
	return b.p, nil
}

// builder makes one program.
type builder struct {
	source *Source
	f      *function
	p      *Program

	inReach map[*function]bool // what the kernel uses
	reach   []*function
	uses    map[string]int // the first use of each name that those take from outside
	// Lengths that the text asks for, by the names of their fields.
	lengths map[string]bool
	// Which conversions of binary16 the text needs.
	float, half bool

	out  strings.Builder // what follows the user's text
	size int             // of the parameter block so far
}

func (b *builder) fail(detail ...string) error { return fail("Build", detail...) }

// failAt blames a token of the source.
func (b *builder) failAt(token int, detail ...string) error {
	return fail("Build", append([]string{at(b.source.scan.Line(token))}, detail...)...)
}

// check looks at the declarations as such.
func (b *builder) check(arrays []Decl, scalars []Scalar) error {
	seen := map[string]bool{}
	name := func(name string) error {
		if what := validName(name); what != "" {
			return b.fail(quote(name), " ", what)
		}
		if d := b.source.decls[name]; d != nil && !b.source.complete {
			return b.failAt(d.name, quote(name), " is declared here, and as an array or a scalar, too")
		}
		if seen[name] {
			return b.fail(quote(name), " is declared twice")
		}
		seen[name] = true
		return nil
	}
	for i := range arrays {
		if err := name(arrays[i].Name); err != nil {
			return err
		}
		if what := b.wrong(&arrays[i]); what != "" {
			return b.fail(quote(arrays[i].Name), ": ", what)
		}
	}
	for i := range scalars {
		s := &scalars[i]
		if err := name(s.Name); err != nil {
			return err
		}
		var ok bool
		if s.elem, ok = elemOf(s.Type); !ok || !s.elem.scalar() {
			return b.fail(quote(s.Name), ": a scalar cannot be of type ", s.Type.String())
		}
	}
	return nil
}

// wrong says what is wrong with a declaration, whose element type it completes.
func (b *builder) wrong(d *Decl) string {
	e, ok := elemOf(d.Type)
	if d.Mode == Words && e == u8 {
		e = rawBytes
	}
	d.elem = e
	switch {
	case !ok || d.Mode > Words:
		return "an unknown type or mode"
	case d.Mode == Words && e != rawBytes:
		return "only memory of uint8 can be words"
	case d.Struct != "" && e != rawBytes:
		return "only words can be structs"
	case d.Struct != "" && (b.source.decls[d.Struct] == nil || b.source.decls[d.Struct].sort != aStruct):
		return "the source has no struct " + quote(d.Struct)
	case d.Mode == Packed && e.scalar():
		return "only types of 8 and 16 bits can be packed"
	case d.Mode == Atomic && e.scalar() && e != i32 && e != u32:
		return e.name() + " cannot be atomic"
	case d.Mode == Atomic && d.ReadOnly:
		return "what is atomic cannot be read-only"
	}
	return ""
}

// local sets the workgroup size.
func (b *builder) local(local [3]int) error {
	if b.source.complete {
		b.p.Local = b.f.local
		if local != [3]int{} && local != b.f.local {
			return b.failAt(b.f.token, "the entry point has another workgroup size: ", sizes(b.f.local))
		}
		return nil
	}
	for d, n := range local {
		if n == 0 {
			local[d] = 1
		}
	}
	n := 1
	for d := range local {
		if local[d] < 1 || local[d] > maxLocal || d >= b.f.dims && local[d] != 1 {
			return b.fail("a workgroup of ", sizes(local), " for a kernel of ", strconv.Itoa(b.f.dims), " dimensions")
		}
		if n *= local[d]; n > maxLocal {
			return b.fail("a workgroup of ", sizes(local))
		}
	}
	b.p.Local = local
	return nil
}

func sizes(v [3]int) string {
	return strconv.Itoa(v[0]) + "x" + strconv.Itoa(v[1]) + "x" + strconv.Itoa(v[2])
}

// wrap makes an entry point for a kernel of a source of functions. What the library adds follows the user's text, so that
// lines keep their numbers.
func (b *builder) wrap(arrays []Decl, scalars []Scalar) error {
	p := b.p
	p.Entry = prefix + "main"
	used := map[string]bool{}
	for i := range arrays {
		if d := &arrays[i]; b.usesArray(d) {
			used[d.Name] = true
			a := Array{Decl: *d, Unit: b.unit(d)}
			if a.Unit == 0 {
				return b.fail(quote(d.Name), ": the struct ", quote(d.Struct), " cannot lie in a buffer")
			}
			p.entries[d.Name] = len(p.Arrays)
			p.Arrays = append(p.Arrays, a)
		}
	}
	for _, s := range scalars {
		if _, ok := b.uses[s.Name]; ok {
			p.Scalars = append(p.Scalars, s)
		}
	}
	if len(p.Arrays) >= driver.MaxBindings {
		return b.fail("more than ", strconv.Itoa(driver.MaxBindings-1), " arrays")
	}
	if err := b.onlyKnown(); err != nil {
		return err
	}
	if err := b.rewrite(); err != nil {
		return err
	}
	b.declare()
	if p.ParamBytes > driver.MaxParams {
		return b.fail("parameters of ", strconv.Itoa(p.ParamBytes), " bytes, the most are ", strconv.Itoa(driver.MaxParams))
	}
	b.entry()
	p.WGSL = apply(b.source.scan.Text, p.edits) + "\n" + b.out.String()
	return nil
}

func (b *builder) usesArray(d *Decl) bool {
	for _, name := range []string{d.Name, nameLoad + d.Name, nameStore + d.Name} {
		if _, ok := b.uses[name]; ok {
			return true
		}
	}
	return false
}

// unit returns what an index of the array counts, or 0 for a struct that cannot lie in a buffer.
func (b *builder) unit(d *Decl) int {
	switch {
	case d.Struct != "":
		t, ok := b.source.layouts().named(d.Struct, 0)
		if !ok {
			return 0
		}
		return roundUp(t.size, t.align)
	case d.elem.scalar():
		return d.elem.size()
	}
	return 4
}

// onlyKnown refuses names of the library's that do not exist, so that its inner ones stay inner.
func (b *builder) onlyKnown() error {
	for _, f := range b.reach {
		for _, r := range f.refs {
			if strings.HasPrefix(r.name, prefix) && !b.provides(r.name) {
				return b.failAt(r.token, "the library has no ", quote(r.name), " here")
			}
		}
	}
	return nil
}

func (b *builder) provides(name string) bool {
	if name == nameBase || name == nameCount || name == nameTotal {
		return true
	}
	array, load := strings.CutPrefix(name, nameLoad)
	if !load {
		var store bool
		if array, store = strings.CutPrefix(name, nameStore); !store {
			return false
		}
	}
	i, ok := b.p.entries[array]
	if !ok {
		return false
	}
	d := &b.p.Arrays[i].Decl
	return d.elem.narrow() && (d.Mode == Atomic || load && d.Mode == Packed)
}

// put writes text to what follows the user's.
func (b *builder) put(text ...string) {
	for _, t := range text {
		b.out.WriteString(t)
	}
}

// member adds a field to the parameter block, which the kernel's text knows as kernelName.
func (b *builder) member(kernelName string, t elemType) {
	lanes := t.lanes()
	b.size = roundUp(b.size, []int{4, 8, 16, 16}[lanes-1])
	b.p.fields[kernelName] = field{b.size, t}
	b.size += 4 * lanes
	b.put("  ", memberName(kernelName), ": ", t.name(), ",\n")
}

// memberName makes the name of a field differ from all other names.
func memberName(kernelName string) string { return "p_" + kernelName }

// inBlock is the expression for a field.
func inBlock(kernelName string) string { return prefix + "p." + memberName(kernelName) }

// declare writes the parameter block, the bindings and the variables.
func (b *builder) declare() {
	p := b.p
	item := []elemType{u32, u32x2, u32x3}[p.Dims-1]
	b.put("struct ", prefix, "Params {\n")
	for _, name := range []string{nameBase, nameCount, nameTotal, nameTiles} {
		b.member(name, item)
	}
	b.member(nameGroups, u32)
	for i := range p.Arrays {
		if p.Arrays[i].Window {
			b.member(nameOffset+p.Arrays[i].Name, u32)
		}
		b.member(nameLength+p.Arrays[i].Name, u32)
	}
	for _, s := range p.Scalars {
		b.member(s.Name, s.elem)
	}
	p.ParamBytes = roundUp(b.size, 16)
	b.put("}\n@group(0) @binding(0) var<uniform> ", prefix, "p: ", prefix, "Params;\n")
	p.Bindings = []driver.Access{driver.AccessParams}
	for i := range p.Arrays {
		a := &p.Arrays[i]
		a.Binding = len(p.Bindings)
		access, text := driver.AccessReadWrite, "read_write"
		if a.ReadOnly {
			access, text = driver.AccessRead, "read"
		}
		p.Bindings = append(p.Bindings, access)
		b.put("@group(0) @binding(", strconv.Itoa(a.Binding), ") var<storage, ", text, "> ", a.Name, ": array<", a.element(), ">;\n")
	}
	for _, name := range b.variables() {
		b.put("var<private> ", name, ": ", p.fields[name].typ.name(), ";\n")
	}
	for i := range p.Arrays {
		b.access(&p.Arrays[i])
	}
	b.halves()
}

// element returns the type of what a binding holds.
func (d *Decl) element() string {
	switch {
	case d.Struct != "":
		return d.Struct
	case d.Mode == Atomic && d.elem == i32:
		return "atomic<i32>"
	case d.Mode == Atomic:
		return "atomic<u32>"
	case d.Mode == Packed || d.elem == rawBytes:
		return "u32"
	}
	return d.elem.wide().name()
}
