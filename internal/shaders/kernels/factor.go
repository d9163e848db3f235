// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Factor tells how the text of a product's kernel reads a factor.
type Factor struct {
	Type   fuse.Type
	AlongK bool // memory runs along k: by the rows of A, by the columns of B
	Vector bool // offset and stride are multiples of four: vectors are loaded
}

// Unit is how many elements an offset and a stride count by in the parameter block.
func (c Factor) Unit() int {
	if c.Vector {
		return 4
	}
	return 1
}

func (c Factor) key() byte {
	return byte(int(c.Type)<<2 | shaders.Bit(c.AlongK)<<1 | shaders.Bit(c.Vector))
}

// text writes the binding of a factor called x and the functions that read it. A line is a row of A or a column of B; l
// counts quads of k.
//
//	x_start(d, i, l)  where the block at line i and quad l begins; d is offset and stride
//	x_deep(d)         from a block to the next along k; d is the stride
//	x_wide(d)         from a block to the next across k
//	x_load(q, d)      the block at q. With lines 1, 2 or 4, so many vectors along k (alias Rows).
//	                  With lines 0, a vector of four lines for each of four k (alias Quad).
//
// Where lines is less than 4, line i need not be a multiple of 4.
func (c Factor) text(x string, binding, lines int) string {
	start, deep, wide, vec := "d.x + i * d.y + $1 * l", "$1", "4u * d", "V($0_quad(q))"
	unit := "1u" // between neighbouring quads
	if !c.Vector {
		unit, vec = "4u", gather("", "1u")
	}
	if !c.AlongK {
		start, deep, wide = "d.x + $1 * (i >> 2u) + 4u * l * d.y", wide, deep
		if !c.Vector {
			start = "d.x + i + 4u * l * d.y"
		}
	}
	pattern := "fn $0_vec(q: u32) -> V { return " + vec + "; }\n" +
		"fn $0_start(d: vec2<u32>, i: u32, l: u32) -> u32 { return " + start + "; }\n" +
		"fn $0_deep(d: u32) -> u32 { return " + deep + "; }\n" +
		"fn $0_wide(d: u32) -> u32 { return " + wide + "; }\n" + c.load(lines)
	slot := fuse.Slot{Type: c.Type, Vec: c.Vector}
	return slot.Text(x, binding, "read") + shaders.Fill(pattern, x, unit, c.Type.WGSL())
}

// gather is a vector of elements that lie d apart, from q plus an offset on.
func gather(offset, d string) string {
	at := "$0_at(q" + offset
	return "V(vec4<$2>(" + at + "), " + at + " + " + d + "), " + at + " + 2u * " + d + "), " + at + " + 3u * " + d + ")))"
}

// load writes x_load. A block whose memory runs the other way is transposed, which costs nothing: on every machine that
// matters the four elements of a vector are four registers.
func (c Factor) load(lines int) string {
	result, count := "Rows", lines
	if lines == 0 {
		result, count = "Quad", 4
	}
	vectors := "  let v0 = $0_vec(q);\n  let v1 = $0_vec(q + d);\n  let v2 = $0_vec(q + 2u * d);\n  let v3 = $0_vec(q + 3u * d);\n"
	parts := []string{"V(v0.x, v1.x, v2.x, v3.x)", "V(v0.y, v1.y, v2.y, v3.y)", "V(v0.z, v1.z, v2.z, v3.z)", "V(v0.w, v1.w, v2.w, v3.w)"}
	if along := c.AlongK == (lines > 0); along || count < 4 { // the vectors wanted are those in memory, or not all four
		vectors, parts = "", nil
		for n := range count {
			part := "$0_vec(q + " + strconv.Itoa(n) + "u * d)"
			if !along {
				part = gather(" + "+strconv.Itoa(n)+"u", "d")
			}
			parts = append(parts, part)
		}
	}
	return "fn $0_load(q: u32, d: u32) -> " + result + " {\n" + vectors + "  return " + result + "(" + strings.Join(parts, ", ") + ");\n}\n"
}
