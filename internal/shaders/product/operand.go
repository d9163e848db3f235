// SPDX-License-Identifier: Apache-2.0

package product

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Class tells how the text of a kernel reads an operand.
type Class struct {
	Type   fuse.Type
	AlongK bool // memory runs along k: by the rows of A, by the columns of B
	Vector bool // offset and stride are multiples of four: vectors are loaded
}

// unit is how far apart in the binding neighbouring quads of elements are.
func (c Class) unit() int {
	if c.Vector {
		return 1
	}
	return 4
}

// element is the type of the binding's elements.
func (c Class) element() string {
	word := c.Type.WGSL()
	if c.Type == fuse.F16 {
		word = "u32"
	}
	switch {
	case !c.Vector:
		return word
	case c.Type == fuse.F16:
		return "vec2<u32>"
	}
	return "vec4<" + word + ">"
}

// String is a short name: k or x for how it lies, in capitals if it is loaded in vectors, and the type where it is not f32.
func (c Class) String() string {
	name := "x"
	if c.AlongK {
		name = "k"
	}
	if c.Vector {
		name = strings.ToUpper(name)
	}
	return name + [...]string{"", "i", "u", "h"}[c.Type&3]
}

// text writes the binding of an operand called x and the functions that read it. A line is a row of A or a column of B; l
// counts quads of k.
//
//	x_start(d, i, l)  where the block at line i and quad l begins; d is offset and stride
//	x_deep(d)         from a block to the next along k; d is the stride
//	x_wide(d)         from a block to the next across k
//	x_load(q, d)      the block at q. With lines 1, 2 or 4, so many vectors along k (alias Rows).
//	                  With lines 0, a vector of four lines for each of four k (alias Quad).
//
// Where lines is less than 4, line i need not be a multiple of 4.
func (c Class) text(x string, binding, lines int, compute fuse.Type) string {
	var w strings.Builder
	fn := func(head, result, expr string) {
		w.WriteString("fn " + x + head + " -> " + result + " { return " + expr + "; }\n")
	}
	unit := num(c.unit()) + "u"
	start := "d.x + i * d.y + " + unit + " * l"
	deep, wide := unit, "4u * d"
	if !c.AlongK {
		start = "d.x + " + unit + " * (i >> 2u) + 4u * l * d.y"
		deep, wide = wide, deep
		if !c.Vector {
			start = "d.x + i + 4u * l * d.y"
		}
	}
	w.WriteString("@group(0) @binding(" + num(binding) + ") var<storage, read> " + x + ": array<" + c.element() + ">;\n")
	c.vectors(fn, x, compute)
	fn("_start(d: vec2<u32>, i: u32, l: u32)", "u32", start)
	fn("_deep(d: u32)", "u32", deep)
	fn("_wide(d: u32)", "u32", wide)
	w.WriteString(c.load(x, lines))
	return w.String()
}

// vectors writes x_vec(q), the four elements from q on, and for scalar bindings x_at(q).
func (c Class) vectors(fn func(head, result, expr string), x string, compute fuse.Type) {
	scalar, vector := x+"[q]", x+"[q]"
	if c.Type == fuse.F16 {
		scalar = "unpack2x16float(" + x + "[q >> 1u])[q & 1u]"
		vector = "vec4<f32>(unpack2x16float(" + x + "[q].x), unpack2x16float(" + x + "[q].y))"
	}
	convert := c.Type.Compute() != compute
	if !c.Vector {
		if convert {
			scalar = "T(" + scalar + ")"
		}
		fn("_at(q: u32)", "T", scalar)
		vector, convert = gather(x, "", "1u"), false
	}
	if convert {
		vector = "V(" + vector + ")"
	}
	fn("_vec(q: u32)", "V", vector)
}

// gather is a vector of elements that lie d apart, from q plus an offset on.
func gather(x, offset, d string) string {
	at := x + "_at(q" + offset
	return "V(" + at + "), " + at + " + " + d + "), " + at + " + 2u * " + d + "), " + at + " + 3u * " + d + "))"
}

// load writes x_load. A block whose memory runs the other way is transposed, which costs nothing: on every machine that
// matters the four elements of a vector are four registers.
func (c Class) load(x string, lines int) string {
	result, count := "Rows", lines
	if lines == 0 {
		result, count = "Quad", 4
	}
	head := "fn " + x + "_load(q: u32, d: u32) -> " + result + " {\n"
	vec := func(n int) string { return x + "_vec(q + " + num(n) + "u * d)" }
	var parts []string
	switch {
	case c.AlongK == (lines > 0): // the vectors wanted are those in memory
		for n := range count {
			parts = append(parts, vec(n))
		}
	case count < 4:
		for n := range count {
			parts = append(parts, gather(x, " + "+num(n)+"u", "d"))
		}
	default:
		head += "  let v0 = " + vec(0) + ";\n  let v1 = " + vec(1) + ";\n  let v2 = " + vec(2) + ";\n  let v3 = " + vec(3) + ";\n"
		for _, m := range []string{".x", ".y", ".z", ".w"} {
			parts = append(parts, "V(v0"+m+", v1"+m+", v2"+m+", v3"+m+")")
		}
	}
	return head + "  return " + result + "(" + strings.Join(parts, ", ") + ");\n}\n"
}

func num(n int) string { return strconv.Itoa(n) }
