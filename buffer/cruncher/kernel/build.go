// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	_ "embed"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders"
)

// Build makes a program of one kernel. It binds only the arrays and scalars that the kernel or functions that it calls use, and
// contains only these functions of the source.
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
	b := &builder{parser: parser{Source: s, Scan: s.scan, types: s.scan.Types(), op: op}, p: &Program{
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

// check validates each declaration by itself.
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
		return int(b.structOf(d).Size)
	case small(d.Type):
		return 4
	}
	return stride(int(d.Type.Lanes))
}

// Names of the library's parameters of kernels. Some are followed by the name of an array.
const (
	nameBase   = prefix + "base"
	nameCount  = prefix + "count"
	nameTotal  = prefix + "total"
	nameGroups = prefix + "groups"
	nameTiles  = prefix + "tiles"
	nameOffset = prefix + "off_"
	nameLength = prefix + "len_"
	nameLoad   = prefix + "load_"
	nameStore  = prefix + "store_"
)

//go:embed wrap.wgsl
var wrapSource string

// put writes text to what follows the user's.
func (b *builder) put(text ...string) {
	for _, t := range text {
		b.out.WriteString(t)
	}
}

// declare writes the parameter block, the bindings and the variables.
func (b *builder) declare() {
	p := b.p
	item := dtype.Type{Code: dtype.Uint32.Code, Bits: 32, Lanes: uint16(p.Dims)}
	b.put("struct sublet_Params {\n")
	for _, name := range []string{nameBase, nameCount, nameTotal, nameTiles} {
		b.member(name, item)
	}
	b.member(nameGroups, dtype.Uint32)
	for _, d := range p.Arrays {
		if d.Window {
			b.member(nameOffset+d.Name, dtype.Uint32)
		}
		b.member(nameLength+d.Name, dtype.Uint32)
	}
	for _, d := range p.Scalars {
		b.member(d.Name, d.Type)
	}
	p.ParamBytes = roundUp(p.ParamBytes, 16)
	b.put("}\n@group(0) @binding(0) var<uniform> sublet_p: sublet_Params;\n")
	p.Bindings = []driver.Access{driver.AccessParams}
	for _, d := range p.Arrays {
		access, text := driver.AccessReadWrite, "read_write"
		if d.ReadOnly {
			access, text = driver.AccessRead, "read"
		}
		p.Bindings = append(p.Bindings, access)
		b.put("@group(0) @binding(", strconv.Itoa(d.Binding), ") var<storage, ", text, "> ", d.Name, ": array<", d.element(), ">;\n")
	}
	b.put(b.private.String())
	half := false
	for i := range p.Arrays {
		d := &p.Arrays[i]
		if d.loads() {
			b.access(d)
			half = half || d.Type == dtype.Float16
		}
	}
	if half { // WGSL's own functions leave open how they round, and what becomes of what is too large
		b.put("fn ", prefix, functionOf(convertSource, "float"), "fn ", prefix, functionOf(convertSource, "half"))
	}
}

// member adds a field to the parameter block. Where the kernel's text reads it, it becomes a variable of each invocation, since
// software adapters would read the block anew at each use.
func (b *builder) member(name string, t dtype.Type) {
	lanes := int(t.Lanes)
	offset := roundUp(b.p.ParamBytes, stride(lanes))
	b.p.fields[name] = field{offset, lanes}
	b.p.ParamBytes = offset + 4*lanes
	b.put("  p_", name, ": ", wide(t), ",\n") // the prefix makes it differ from all other names
	if b.uses[name] {
		b.private.WriteString("var<private> " + name + ": " + wide(t) + ";\n")
		b.set.WriteString("  " + name + " = sublet_p.p_" + name + ";\n")
	}
}

// access writes the functions for an array's elements that the kernel uses.
func (b *builder) access(d *Decl) {
	n := int(d.Type.Bits)
	bits, per, rest := strconv.Itoa(n)+"u", strconv.Itoa(32/n)+"u", strconv.Itoa(32-n)+"u"
	element, value, raw := d.Name+"[sublet_i / "+per+"]", "sublet_v", "sublet_x"
	if d.Window {
		element = d.Name + "[sublet_i / " + per + " - " + nameOffset + d.Name + "]"
	}
	word := element
	if d.Mode == Atomic {
		word = "atomicLoad(&" + element + ")"
	}
	switch d.Type.Code {
	case dtype.Int32.Code:
		value, raw = "bitcast<i32>(sublet_v << "+rest+") >> "+rest, "bitcast<u32>(sublet_x)"
	case dtype.Float32.Code:
		value, raw = "bitcast<f32>(sublet_float(sublet_v))", "sublet_half(bitcast<u32>(sublet_x))"
	}
	words := []string{
		"NAME", d.Name, "TYPE", wide(d.Type), "PER", per, "BITS", bits, "MASK", "((1u << " + bits + ") - 1u)",
		"WORD", word, "ELEMENT", element, "VALUE", value, "RAW", raw,
	}
	if b.uses[nameLoad+d.Name] {
		b.put("fn ", filled(functionOf(wrapSource, nameLoad+"NAME"), words))
	}
	if b.uses[nameStore+d.Name] {
		b.put("fn ", filled(functionOf(wrapSource, nameStore+"NAME"), words))
	}
}

// filled replaces words of a text, each of which is followed by what stands in its place. It is strings.Replacer in less code.
func filled(text string, words []string) string {
	var b strings.Builder
	for text != "" {
		i := 0
		for i < len(words) && !strings.HasPrefix(text, words[i]) {
			i += 2
		}
		if i == len(words) {
			b.WriteByte(text[0])
			text = text[1:]
		} else {
			b.WriteString(words[i+1])
			text = text[len(words[i]):]
		}
	}
	return b.String()
}

// functionOf takes a function out of a file of WGSL, from its name on.
func functionOf(source, name string) string {
	_, text, _ := strings.Cut(source, "\nfn "+name+"(")
	body, _, _ := strings.Cut(text, "\n}\n")
	return name + "(" + body + "\n}\n"
}

// entry writes the entry point.
func (b *builder) entry() {
	x, y, z := strconv.Itoa(b.p.Local[0]), strconv.Itoa(b.p.Local[1]), strconv.Itoa(b.p.Local[2])
	words := []string{"X", x, "Y", y, "Z", z, "SET", b.set.String(), "KERNEL", b.p.Name}
	b.p.Entry = prefix + "main" + strconv.Itoa(b.p.Dims)
	b.put("@compute @workgroup_size(", x, ", ", y, ", ", z, ")\nfn ", filled(functionOf(wrapSource, b.p.Entry), words))
}

//go:embed convert.wgsl
var convertSource string

// Conversions makes the programs between arrays of 8 or 16 bits as memory has them and [Widened] ones. Both take the arrays
// "packed" and "unpacked", of uint32, and as scalars, of uint32, too, "count", how many elements there are, and where they begin:
// "first" and "first_unpacked".
//
// Each item of unpack is an element. The result is exact. Each item of pack is a packed word with any of the elements, and those
// beside them keep their values, as long as nothing else writes to the word at the time. Whole numbers keep their lowest bits,
// floats are rounded to the nearest, ties to even. It is [ErrKernel] for other types.
func Conversions(t dtype.Type) (unpack, pack *Program, err error) {
	if !known(t) || !small(t) {
		return nil, nil, fail("Conversions", t.String(), " has not 8 or 16 bits")
	}
	text := shaders.Expand(convertSource, "",
		shaders.Param{Name: "BITS", Value: int(t.Bits)},
		shaders.Param{Name: "SIGNED", Value: shaders.Bit(t.Code == dtype.Int32.Code)},
		shaders.Param{Name: "HALF", Value: shaders.Bit(t.Code == dtype.Float32.Code)})
	source, err := Parse(text)
	if err != nil {
		return nil, nil, err
	}
	build := func(name string, unpacks bool) (*Program, error) {
		return source.Build(name, []Decl{
			{Name: "packed", Type: dtype.Uint32, ReadOnly: unpacks},
			{Name: "unpacked", Type: dtype.Uint32, ReadOnly: !unpacks},
			{Name: "first", Type: dtype.Uint32, Scalar: true},
			{Name: "first_unpacked", Type: dtype.Uint32, Scalar: true},
			{Name: "count", Type: dtype.Uint32, Scalar: true},
		}, [3]int{64})
	}
	if unpack, err = build("unpack", true); err != nil {
		return nil, nil, err
	}
	pack, err = build("pack", false)
	return unpack, pack, err
}
