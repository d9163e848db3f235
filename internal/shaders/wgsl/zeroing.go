// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
)

// maxZeroing bounds the bytes that are read and written to zero variables.
const maxZeroing = 4 << 20

// Zeroed returns the text of a compute shader whose entry point begins by writing zeros to the workgroup variables that it uses, as WGSL
// says they are: wgpu-native v29 leaves in them what the last workgroup left. A text without such variables, or that is not understood,
// is returned as it is. What is added stands in lines that are there.
//
// A function behind the entry point does it, in which no parameter hides a variable. The invocations share the work: an array is zeroed
// element by element, what is no array by the first invocation.
func (s *Scan) Zeroed(entry string) string {
	z := zeroing{Types: s.Types(), atomics: map[string]bool{}}
	used := map[string]bool{}
	z.reach(entry, used)
	f := z.decls[entry]
	if f == nil || f.keyword != "fn" || s.Char(f.name+1) != '(' {
		return s.Text
	}
	for z.name = "sublet_zero"; strings.Contains(s.Text, z.name); z.name += "_" {
	}
	s.declared(func(keyword string, i int) {
		if keyword == "var" && s.At(i-2) == "workgroup" && s.Char(i-1) == '>' && s.Char(i+1) == ':' && used[s.At(i)] {
			z.zero(s.At(i), i+2, 0)
		}
	})
	open, end := z.body(f)
	for open < end && s.Char(open) != '{' {
		open++
	}
	if z.out.Len() == 0 || z.cost > maxZeroing || open >= end {
		return s.Text
	}
	index, parameter := z.builtin(f), ""
	if index == "" {
		index, parameter = z.name+"_index", "@builtin(local_invocation_index) "+z.name+"_index: u32, "
	}
	code := z.name + "(" + z.name + "_index: u32) { let " + z.name + "_size = " + z.size(f) + ";" + z.out.String() + " }"
	paren, brace, after := s.Pos(f.name+1)+1, s.Pos(open)+1, s.Pos(end)+1
	return s.Text[:paren] + parameter + s.Text[paren:brace] + " " + z.name + "(" + index + "); workgroupBarrier();" + s.Text[brace:after] +
		" fn " + code + s.Text[after:]
}

// zeroing writes what zeroes the variables. In it, name_index is that of the invocation, and name_size how many there are.
type zeroing struct {
	*Types
	name    string // that the text does not have
	out     strings.Builder
	loops   int
	cost    int             // bytes read and written
	atomics map[string]bool // structs, and whether they have atomic parts
}

// zero writes zeros to a variable, or a part of one, of the type that begins at a token.
func (z *zeroing) zero(what string, i, depth int) {
	d := z.decls[z.At(i)]
	z.cost += 64 + len(what)
	switch {
	case depth > maxNested || z.cost > maxZeroing:
	case d != nil && d.keyword == "alias":
		z.zero(what, d.name+2, depth+1)
	case z.At(i) == "array" && z.Char(i+1) == '<' && (z.loops == 0 || z.atomic(i, 0)):
		z.elements(what, i, depth)
	case d != nil && d.keyword == "struct" && z.Char(d.name+1) == '{' && z.atomic(i, 0):
		z.cost += z.Pos(int(z.Match[d.name+1])) - z.Pos(d.name)
		for _, m := range z.Split(d.name+2, int(z.Match[d.name+1])) {
			if colon := z.colon(m); colon < m[1] {
				z.zero(what+"."+z.At(colon-1), colon+1, depth+1)
			}
		}
	case z.atomic(i, 0):
		z.once("atomicStore(&" + what + ", " + z.At(i+2) + "(0));")
	default:
		if end := z.typeEnd(i); end > i {
			z.once(what + " = " + z.oneLine(i, end) + "();")
		}
	}
}

// once writes a statement that is for one invocation, unless it stands in a loop that divides its turns among them.
func (z *zeroing) once(statement string) {
	if z.loops == 0 {
		statement = "if (" + z.name + "_index == 0u) { " + statement + " }"
	}
	z.out.WriteString(" " + statement)
}

// elements writes zeros to an array.
func (z *zeroing) elements(what string, i, depth int) {
	end, comma := z.typeEnd(i), z.typeEnd(i+2)
	close := end - 1
	if z.Char(close-1) == ',' {
		close--
	}
	if end < 0 || z.Char(comma) != ',' || comma+1 >= close {
		return
	}
	n, v := z.oneLine(comma+1, close), z.name+strconv.Itoa(z.loops)
	first, by := "0u", "1u"
	if z.loops == 0 {
		first, by = z.name+"_index", z.name+"_size"
	}
	z.loops++
	z.out.WriteString(" for (var " + v + " = " + first + "; " + v + " < u32(" + n + "); " + v + " = " + v + " + " + by + ") {")
	z.zero(what+"["+v+"]", i+2, depth+1)
	z.out.WriteString(" }")
	z.loops--
}

// typeEnd returns what follows the type that begins at a token, whatever the length of an array in it; -1 if it does not end.
func (z *zeroing) typeEnd(i int) int {
	if !z.IsWord(i) {
		return -1
	}
	if z.Char(i+1) != '<' {
		return i + 1
	}
	depth := 0
	for j := i + 1; j < len(z.Tokens); j++ {
		switch z.Char(j) {
		case '(', '[':
			j = int(z.Match[j])
		case '<':
			if depth++; z.Char(j+1) == '<' { // shifts to the left
				depth--
				j++
			}
		case '>':
			if depth--; depth == 0 {
				return j + 1
			}
		case ';', '{', '}':
			return -1
		}
	}
	return -1
}

// oneLine writes tokens in one line.
func (z *zeroing) oneLine(from, to int) string {
	z.cost += z.Pos(to) - z.Pos(from)
	var b strings.Builder
	for i := from; i < to; i++ {
		if i > from && z.Tokens[i].Pos > z.Tokens[i-1].End {
			b.WriteByte(' ')
		}
		b.WriteString(z.At(i))
	}
	return b.String()
}

// colon returns the token before the type of a parameter or a member, or the end of that.
func (z *zeroing) colon(part [2]int) int {
	for i := part[0]; i < part[1]; i++ {
		if z.Char(i) == ':' {
			return i
		}
	}
	return part[1]
}

// atomic reports whether a type has atomic parts, which cannot be assigned.
func (z *zeroing) atomic(i, depth int) bool {
	name := z.At(i)
	d := z.decls[name]
	switch {
	case depth > maxNested:
	case d != nil && d.keyword == "alias":
		return z.atomic(d.name+2, depth+1)
	case d != nil && d.keyword == "struct" && z.Char(d.name+1) == '{':
		has, known := z.atomics[name]
		if known {
			return has
		}
		z.atomics[name] = false // a struct in itself
		for j := d.name + 2; j < int(z.Match[d.name+1]) && !has; j++ {
			has = z.Char(j-1) == ':' && z.atomic(j, depth+1)
		}
		z.atomics[name] = has
		return has
	case name == "array" && z.Char(i+1) == '<':
		return z.atomic(i+2, depth+1)
	}
	return name == "atomic"
}

// builtin returns what stands for the index of the invocation in an entry point, or "".
func (z *zeroing) builtin(f *decl) string {
	seen := map[*decl]bool{}
	for _, p := range z.Split(f.name+2, int(z.Match[f.name+1])) {
		colon := z.colon(p)
		if z.isIndex(p[0], colon) {
			return z.At(colon - 1)
		}
		d := z.decls[z.At(colon+1)]
		for n := 0; d != nil && d.keyword == "alias" && n < maxNested; n++ {
			d = z.decls[z.At(d.name+2)]
		}
		if d == nil || seen[d] || d.keyword != "struct" || z.Char(d.name+1) != '{' {
			continue
		}
		seen[d] = true
		for _, m := range z.Split(d.name+2, int(z.Match[d.name+1])) {
			if end := z.colon(m); z.isIndex(m[0], end) {
				return z.At(colon-1) + "." + z.At(end-1)
			}
		}
	}
	return ""
}

// isIndex reports whether attributes are those of the index of the invocation.
func (z *zeroing) isIndex(from, to int) bool {
	for i := from; i < to; i++ {
		if z.At(i) == "local_invocation_index" && z.Char(i-1) == '(' {
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
		var factors []string
		for _, n := range z.Split(i+2, int(z.Match[i+1])) {
			factors = append(factors, "u32("+z.oneLine(n[0], n[1])+")")
		}
		if len(factors) > 0 {
			return strings.Join(factors, " * ")
		}
	}
	return "1u"
}
