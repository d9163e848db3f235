// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// variables lists which fields the user's text, or what it was changed to, reads. Each becomes a variable of the
// invocation: software adapters would read the block anew at each use.
func (b *builder) variables() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(b.p.fields)) {
		_, used := b.uses[name]
		if used || b.lengths[name] || strings.HasPrefix(name, nameOffset) {
			names = append(names, name)
		}
	}
	return names
}

// packing says how elements lie in words.
type packing struct{ shift, low, bits, mask string }

func (e elemType) packing() packing {
	if e.size() == 1 {
		return packing{"2u", "3u", "8u", "0xffu"}
	}
	return packing{"1u", "1u", "16u", "0xffffu"}
}

// access writes the functions that load and store elements of less than a word.
func (b *builder) access(a *Array) {
	if !a.elem.narrow() || a.Mode == Widened {
		return
	}
	p := a.elem.packing()
	wide := a.elem.wide()
	at := a.Name + "[sublet_i >> " + p.shift + "]"
	if a.Window {
		at = a.Name + "[(sublet_i >> " + p.shift + ") - " + nameOffset + a.Name + "]"
	}
	shift := "  let sublet_s = (sublet_i & " + p.low + ") * " + p.bits + ";\n"
	if _, used := b.uses[nameLoad+a.Name]; used {
		load := at
		if a.Mode == Atomic {
			load = "atomicLoad(&" + at + ")"
		}
		b.float = b.float || a.elem == f16
		b.put("fn ", nameLoad, a.Name, "(sublet_i: u32) -> ", wide.name(), " {\n", shift,
			"  let sublet_v = (", load, " >> sublet_s) & ", p.mask, ";\n  return ", a.elem.fromBits("sublet_v"), ";\n}\n")
	}
	// A stored element belongs to one invocation, so that clearing its bits and setting them need not be one step.
	if _, used := b.uses[nameStore+a.Name]; used {
		b.half = b.half || a.elem == f16
		b.put("fn ", nameStore, a.Name, "(sublet_i: u32, sublet_x: ", wide.name(), ") {\n", shift,
			"  atomicAnd(&", at, ", ~(", p.mask, " << sublet_s));\n",
			"  atomicOr(&", at, ", (", wide.toBits("sublet_x"), " & ", p.mask, ") << sublet_s);\n}\n")
	}
}

// halves writes the functions that convert to and from binary16, where they are needed. WGSL's own leave open how they
// round, and what becomes of what is too large.
func (b *builder) halves() {
	if b.float {
		b.put(functionOf(widenSource, "float", nameFloat))
	}
	if b.half {
		b.put(functionOf(narrowSource, "half", nameHalf))
	}
}

// functionOf takes a function out of a kernel's file, under another name.
func functionOf(source, name, newName string) string {
	_, text, _ := strings.Cut(source, "fn "+name+"(")
	body, _, _ := strings.Cut(text, "\n}\n")
	return "fn " + newName + "(" + body + "\n}\n"
}

// fromBits is the expression for the value of an element of which x has the bits.
func (e elemType) fromBits(x string) string {
	switch e {
	case i8:
		return "bitcast<i32>(" + x + " << 24u) >> 24u"
	case i16:
		return "bitcast<i32>(" + x + " << 16u) >> 16u"
	case f16:
		return "bitcast<f32>(" + nameFloat + "(" + x + "))"
	}
	return x
}

// toBits is the expression for the lowest bits of a value of 32 bits. Floats become binary16.
func (e elemType) toBits(x string) string {
	switch e {
	case i32:
		return "bitcast<u32>(" + x + ")"
	case f32:
		return nameHalf + "(bitcast<u32>(" + x + "))"
	}
	return x
}

// entry writes the entry point. A workgroup finds its place in a grid of tiles, however the launch had to lay the groups
// out. Items beyond the range do nothing; comparing with what is left of it cannot wrap where a sum could.
func (b *builder) entry() {
	p := b.p
	size := [3]string{}
	for d := range size {
		size[d] = strconv.Itoa(p.Local[d])
	}
	b.put("@compute @workgroup_size(", size[0], ", ", size[1], ", ", size[2], ")\nfn ", p.Entry,
		"(@builtin(workgroup_id) sublet_wg: vec3<u32>, @builtin(local_invocation_id) sublet_li: vec3<u32>) {\n")
	for _, name := range b.variables() {
		b.put("  ", name, " = ", inBlock(name), ";\n")
	}
	b.put("  let sublet_b = ", inBlock(nameBase), ";\n  let sublet_n = ", inBlock(nameCount), ";\n  let sublet_g = ", inBlock(nameTiles),
		";\n  let sublet_t = sublet_wg.y * ", inBlock(nameGroups), " + sublet_wg.x;\n")
	switch p.Dims {
	case 1:
		b.put("  if (sublet_t >= sublet_g) { return; }\n",
			"  let sublet_s = sublet_t * ", size[0], "u;\n",
			"  if (sublet_li.x >= sublet_n - sublet_s) { return; }\n",
			"  ", p.Name, "(sublet_b + sublet_s + sublet_li.x);\n}\n")
	case 2:
		b.put("  let sublet_y = sublet_t / sublet_g.x;\n",
			"  if (sublet_y >= sublet_g.y) { return; }\n",
			"  let sublet_s = vec2<u32>(sublet_t - sublet_y * sublet_g.x, sublet_y) * vec2<u32>(", size[0], "u, ", size[1], "u);\n",
			"  let sublet_r = sublet_n - sublet_s;\n",
			"  if (sublet_li.x >= sublet_r.x || sublet_li.y >= sublet_r.y) { return; }\n",
			"  ", p.Name, "(sublet_b + sublet_s + sublet_li.xy);\n}\n")
	case 3:
		b.put("  let sublet_y = sublet_t / sublet_g.x;\n",
			"  let sublet_z = sublet_y / sublet_g.y;\n",
			"  if (sublet_z >= sublet_g.z) { return; }\n",
			"  let sublet_s = vec3<u32>(sublet_t - sublet_y * sublet_g.x, sublet_y - sublet_z * sublet_g.y, sublet_z) * vec3<u32>(",
			size[0], "u, ", size[1], "u, ", size[2], "u);\n",
			"  let sublet_r = sublet_n - sublet_s;\n",
			"  if (sublet_li.x >= sublet_r.x || sublet_li.y >= sublet_r.y || sublet_li.z >= sublet_r.z) { return; }\n",
			"  ", p.Name, "(sublet_b + sublet_s + sublet_li);\n}\n")
	}
}
