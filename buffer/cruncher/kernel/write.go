// SPDX-License-Identifier: Apache-2.0

package kernel

import (
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
		b.put(functionOf("float"), functionOf("half"))
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

// Functions that load and store elements of less than a word. A stored element belongs to one invocation, so that clearing its
// bits and setting them need not be one step.
const (
	loadFunction = `fn sublet_load_NAME(sublet_i: u32) -> TYPE {
  let sublet_s = sublet_i % PER * BITS;
  let sublet_v = (WORD >> sublet_s) & MASK;
  return VALUE;
}
`
	storeFunction = `fn sublet_store_NAME(sublet_i: u32, sublet_x: TYPE) {
  let sublet_s = sublet_i % PER * BITS;
  atomicAnd(&ELEMENT, ~(MASK << sublet_s));
  atomicOr(&ELEMENT, (RAW & MASK) << sublet_s);
}
`
)

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
		b.put(fill.Replace(loadFunction))
	}
	if b.uses[nameStore+d.Name] {
		b.put(fill.Replace(storeFunction))
	}
}

// functionOf takes a function out of convert.wgsl and puts our prefix in front of its name.
func functionOf(name string) string {
	_, text, _ := strings.Cut(convertSource, "\nfn "+name+"(")
	body, _, _ := strings.Cut(text, "\n}\n")
	return "fn " + prefix + name + "(" + body + "\n}\n"
}

// Entry points for ranges of one to three dimensions. A workgroup finds its place in a grid of tiles, however the launch had to
// lay the groups out. Items beyond the range do nothing; comparing with what is left of it cannot wrap where a sum could.
const entryHead = `@compute @workgroup_size(X, Y, Z)
fn sublet_main(@builtin(workgroup_id) sublet_wg: vec3<u32>, @builtin(local_invocation_id) sublet_li: vec3<u32>) {
SET  let sublet_b = sublet_p.p_sublet_base;
  let sublet_n = sublet_p.p_sublet_count;
  let sublet_g = sublet_p.p_sublet_tiles;
  let sublet_t = sublet_wg.y * sublet_p.p_sublet_groups + sublet_wg.x;
`

var entryBodies = [...]string{1: `  if (sublet_t >= sublet_g) { return; }
  let sublet_s = sublet_t * Xu;
  if (sublet_li.x >= sublet_n - sublet_s) { return; }
  KERNEL(sublet_b + sublet_s + sublet_li.x);
}
`, 2: `  let sublet_y = sublet_t / sublet_g.x;
  if (sublet_y >= sublet_g.y) { return; }
  let sublet_s = vec2<u32>(sublet_t - sublet_y * sublet_g.x, sublet_y) * vec2<u32>(Xu, Yu);
  let sublet_r = sublet_n - sublet_s;
  if (sublet_li.x >= sublet_r.x || sublet_li.y >= sublet_r.y) { return; }
  KERNEL(sublet_b + sublet_s + sublet_li.xy);
}
`, 3: `  let sublet_y = sublet_t / sublet_g.x;
  let sublet_z = sublet_y / sublet_g.y;
  if (sublet_z >= sublet_g.z) { return; }
  let sublet_s = vec3<u32>(sublet_t - sublet_y * sublet_g.x, sublet_y - sublet_z * sublet_g.y, sublet_z) * vec3<u32>(Xu, Yu, Zu);
  let sublet_r = sublet_n - sublet_s;
  if (sublet_li.x >= sublet_r.x || sublet_li.y >= sublet_r.y || sublet_li.z >= sublet_r.z) { return; }
  KERNEL(sublet_b + sublet_s + sublet_li);
}
`}

// entry writes the entry point.
func (b *builder) entry() {
	local := b.p.Local
	fill := strings.NewReplacer("X", strconv.Itoa(local[0]), "Y", strconv.Itoa(local[1]), "Z", strconv.Itoa(local[2]),
		"SET", b.set.String(), "KERNEL", b.p.Name)
	b.put(fill.Replace(entryHead + entryBodies[b.p.Dims]))
}
