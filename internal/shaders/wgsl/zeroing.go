// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
)

// Zeroed returns the text of a compute shader whose entry point begins by writing zeros to the workgroup variables that it uses, as WGSL
// says they are: wgpu-native v29 leaves in them what the last workgroup left. A text without such variables, or that is not understood,
// is returned as it is. What is added stands in lines that are there.
//
// The invocations share the work: an array is zeroed element by element, what is no array by the first invocation.
func (s *Scan) Zeroed(entry string) string {
	z := zeroing{Types: s.Types()}
	used := map[string]bool{}
	z.reach(entry, used)
	f := z.decls[entry]
	if f == nil || f.keyword != "fn" || z.Char(f.name+1) != '(' {
		return s.Text
	}
	for z.name = "sublet_zero"; strings.Contains(s.Text, z.name); z.name += "_" {
	}
	z.index = z.builtin(f)
	s.declared(func(keyword string, i int) {
		if keyword == "var" && s.At(i-2) == "workgroup" && s.Char(i-1) == '>' && s.Char(i+1) == ':' && used[s.At(i)] {
			z.zero(s.At(i), i+2, 0)
		}
	})
	from, to := z.body(f)
	for open := from; open < to; open++ {
		if s.Char(open) != '{' || z.out.Len() == 0 {
			continue
		}
		parameter := ""
		if z.index == "" {
			z.index, parameter = z.name, "@builtin(local_invocation_index) "+z.name+": u32, "
		}
		paren, brace := s.Pos(f.name+1)+1, s.Pos(open)+1
		code := strings.NewReplacer("\x00", z.index, "\x01", z.size(f)).Replace(z.out.String())
		return s.Text[:paren] + parameter + s.Text[paren:brace] + code + " workgroupBarrier();" + s.Text[brace:]
	}
	return s.Text
}

// zeroing writes what an entry point begins with. In it, \x00 stands for the index of the invocation and \x01 for how many there are.
type zeroing struct {
	*Types
	name  string // that the text does not have
	index string // of the invocation, if the entry point has it
	out   strings.Builder
	loops int
}

// zero writes zeros to a variable, or a part of one, of the type that begins at a token.
func (z *zeroing) zero(what string, i, depth int) {
	d := z.decls[z.At(i)]
	_, end := z.typeAt(i)
	switch {
	case depth > maxNested:
	case d != nil && d.keyword == "alias":
		z.zero(what, d.name+2, depth+1)
	case z.At(i) == "array" && z.Char(i+1) == '<' && (z.loops == 0 || z.atomic(i, 0)):
		z.elements(what, i, depth)
	case d != nil && d.keyword == "struct" && z.Char(d.name+1) == '{' && z.atomic(i, 0):
		for _, m := range z.Split(d.name+2, int(z.Match[d.name+1])) {
			colon := m[0]
			for colon < m[1] && z.Char(colon) != ':' {
				colon++
			}
			if colon < m[1] {
				z.zero(what+"."+z.At(colon-1), colon+1, depth+1)
			}
		}
	case z.atomic(i, 0):
		z.once("atomicStore(&" + what + ", " + z.At(i+2) + "(0));")
	default:
		z.once(what + " = " + z.Text[z.Pos(i):int(z.Tokens[end-1].End)] + "();")
	}
}

// once writes a statement that is for one invocation, unless it stands in a loop that divides its turns among them.
func (z *zeroing) once(statement string) {
	if z.loops == 0 {
		statement = "if (\x00 == 0u) { " + statement + " }"
	}
	z.out.WriteString(" " + statement)
}

// elements writes zeros to an array.
func (z *zeroing) elements(what string, i, depth int) {
	_, end := z.typeAt(i)
	_, comma := z.typeAt(i + 2)
	close := end - 1
	if z.Char(close-1) == ',' {
		close--
	}
	n, v := z.Text[z.Pos(comma+1):z.Pos(close)], z.name+strconv.Itoa(z.loops)
	first, by := "0u", "1u"
	if z.loops == 0 {
		first, by = "\x00", "\x01"
	}
	z.loops++
	z.out.WriteString(" for (var " + v + " = " + first + "; " + v + " < u32(" + n + "); " + v + " = " + v + " + " + by + ") {")
	z.zero(what+"["+v+"]", i+2, depth+1)
	z.out.WriteString(" }")
	z.loops--
}

// atomic reports whether a type has atomic parts, which cannot be assigned.
func (z *zeroing) atomic(i, depth int) bool {
	d := z.decls[z.At(i)]
	switch {
	case depth > maxNested:
	case d != nil && d.keyword == "alias":
		return z.atomic(d.name+2, depth+1)
	case d != nil && d.keyword == "struct" && z.Char(d.name+1) == '{':
		for j := d.name + 2; j < int(z.Match[d.name+1]); j++ {
			if z.Char(j-1) == ':' && z.atomic(j, depth+1) {
				return true
			}
		}
	case z.At(i) == "array" && z.Char(i+1) == '<':
		return z.atomic(i+2, depth+1)
	}
	return z.At(i) == "atomic"
}

// builtin returns what stands for the index of the invocation in an entry point, or "".
func (z *zeroing) builtin(f *decl) string {
	const name = "local_invocation_index"
	for _, p := range z.Split(f.name+2, int(z.Match[f.name+1])) {
		colon := p[0]
		for colon < p[1] && z.Char(colon) != ':' {
			colon++
		}
		if z.mentions(p[0], colon, name) {
			return z.At(colon - 1)
		}
		d := z.decls[z.At(colon+1)]
		for n := 0; d != nil && d.keyword == "alias" && n < maxNested; n++ {
			d = z.decls[z.At(d.name+2)]
		}
		if d == nil || d.keyword != "struct" || z.Char(d.name+1) != '{' {
			continue
		}
		for _, m := range z.Split(d.name+2, int(z.Match[d.name+1])) {
			end := m[0]
			for end < m[1] && z.Char(end) != ':' {
				end++
			}
			if z.mentions(m[0], end, name) {
				return z.At(colon-1) + "." + z.At(end-1)
			}
		}
	}
	return ""
}

func (z *zeroing) mentions(from, to int, name string) bool {
	for i := from; i < to; i++ {
		if z.At(i) == name {
			return true
		}
	}
	return false
}

// size returns how many invocations a workgroup has, as an expression.
func (z *zeroing) size(f *decl) string {
	for i := f.name; i > 0 && z.Char(i) != ';' && z.Char(i) != '}'; i-- {
		if z.At(i) != "workgroup_size" || z.Char(i+1) != '(' {
			continue
		}
		size := "1u"
		for _, n := range z.Split(i+2, int(z.Match[i+1])) {
			size += " * u32(" + z.Text[z.Pos(n[0]):int(z.Tokens[n[1]-1].End)] + ")"
		}
		return size
	}
	return "1u"
}
