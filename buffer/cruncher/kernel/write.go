// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Names of what the library tells a kernel. Some are followed by the name of an array.
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
	offset := roundUp(b.p.ParamBytes, vector(layout{size: 4}, lanes).align)
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
	fill := strings.NewReplacer("NAME", d.Name, "TYPE", wide(d.Type), "PER", per, "BITS", bits, "MASK", "((1u << "+bits+") - 1u)",
		"WORD", word, "ELEMENT", element, "VALUE", value, "RAW", raw)
	if b.uses[nameLoad+d.Name] {
		b.put("fn ", fill.Replace(functionOf(wrapSource, nameLoad+"NAME")))
	}
	if b.uses[nameStore+d.Name] {
		b.put("fn ", fill.Replace(functionOf(wrapSource, nameStore+"NAME")))
	}
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
	fill := strings.NewReplacer("X", x, "Y", y, "Z", z, "SET", b.set.String(), "KERNEL", b.p.Name)
	b.p.Entry = prefix + "main" + strconv.Itoa(b.p.Dims)
	b.put("@compute @workgroup_size(", x, ", ", y, ", ", z, ")\nfn ", fill.Replace(functionOf(wrapSource, b.p.Entry)))
}
