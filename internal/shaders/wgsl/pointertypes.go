// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
)

// typeText writes the type that begins at a token, and returns what follows it: in normal form but for aliases, because to naga a
// pointer to an array is none to an alias of it. What is not understood is "".
func (p *pointers) typeText(i, depth int) (text string, end int) {
	name := p.At(i)
	if !p.IsWord(i) || depth > maxNested || p.refs[i] != nil {
		return "", i + 1
	}
	if d := p.decls[name]; d != nil {
		if d.keyword == "alias" {
			text, _ = p.typeText(d.name+2, depth+1)
		}
		if d.keyword == "struct" || text != "" {
			text = name
		}
		return text, i + 1
	}
	if p.Char(i+1) != '<' {
		return plainType(name), i + 1
	}
	of, end := p.typeText(i+2, depth+1)
	length := ""
	if name == "array" && p.Char(end) == ',' && p.Char(end+1) != '>' {
		from := end + 1
		var n int64
		n, end = p.expression(from, 0)
		for j := from; j < end; j++ {
			if p.refs[j] != nil {
				n = unknown
			}
		}
		if n <= 0 {
			return "", end
		}
		length = "," + strconv.FormatInt(n, 10)
	}
	if p.Char(end) == ',' {
		end++
	}
	switch {
	case p.Char(end) != '>' || of == "":
	case name == "array" || name == "atomic" || shaped(name, Layout{Size: 4}).Size > 0:
		return name + "<" + of + length + ">", end + 1
	}
	return "", end + 1
}

// plainType writes a type of one word: vec3f is vec3<f32>.
func plainType(name string) string {
	if scalars[name] > 0 {
		return name
	}
	last := max(len(name)-1, 0)
	if letter := name[last:]; letter != "" && letters[letter[0]] != "" && shaped(name[:last], Layout{Size: 4}).Size > 0 {
		return name[:last] + "<" + letters[letter[0]] + ">"
	}
	return ""
}

// normal writes a type that is understood in the form in which types that are the same read the same.
func (p *pointers) normal(typ string) string {
	typ = p.unaliased(typ)
	of := inside(typ)
	if of == "" {
		return typ
	}
	head, rest, _ := strings.Cut(typ, "<")
	return head + "<" + p.normal(of) + rest[len(of):]
}

// unaliased returns what an alias stands for. Inside of it there may be others.
func (p *pointers) unaliased(typ string) string {
	for d := p.decls[typ]; d != nil && d.keyword == "alias"; d = p.decls[typ] {
		typ, _ = p.typeText(d.name+2, 0)
	}
	return typ
}

// inside returns what stands between the brackets of a type in normal form, up to a comma.
func inside(typ string) string {
	_, list, _ := strings.Cut(strings.TrimSuffix(typ, ">"), "<")
	depth := 0
	for i, c := range list {
		switch c {
		case '<':
			depth++
		case '>':
			depth--
		case ',':
			if depth == 0 {
				return list[:i]
			}
		}
	}
	return list
}

// element is the type of an element of an array or a column of a matrix. A component of a vector has no address.
func (p *pointers) element(typ string) string {
	typ = p.unaliased(typ)
	_, rows, isMatrix := strings.Cut(typ, "x")
	switch {
	case strings.HasPrefix(typ, "array<"):
		return inside(typ)
	case strings.HasPrefix(typ, "mat") && isMatrix && p.decls[typ] == nil:
		return "vec" + rows
	}
	return ""
}

// member is the type of a member of a struct.
func (p *pointers) member(typ, name string) string {
	d := p.decls[p.unaliased(typ)]
	if d == nil || d.keyword != "struct" || p.Char(d.name+1) != '{' {
		return ""
	}
	for _, part := range p.Split(d.name+2, int(p.Match[d.name+1])) {
		for i := part[0]; i < part[1]; i++ {
			if p.At(i) == name && p.Char(i+1) == ':' {
				text, _ := p.typeText(i+2, 0)
				return text
			}
		}
	}
	return ""
}

// declaredType is the type of a variable that is declared there: as it is written, or that of its first value.
func (p *pointers) declaredType(name, end int) string {
	if p.Char(name+1) == ':' {
		text, _ := p.typeText(name+2, 0)
		return text
	}
	from := p.valueOf(name, end)
	if from >= end {
		return ""
	}
	if to := p.reference(from, end, 0); to != nil { // the value of another variable
		return to.typ
	}
	text, open := p.typeText(from, 0)
	if f := p.functions[p.At(from)]; text == "" && f != nil && p.refs[from] == nil {
		text, open = p.result(f), from+1
	}
	if p.Char(open) == '(' && int(p.Match[open]) == end-1 {
		return text
	}
	return ""
}

// result is the type that a function returns.
func (p *pointers) result(f *function) string {
	i := int(p.Match[f.name+1]) + 1
	if p.Char(i) != '-' || p.Char(i+1) != '>' {
		return ""
	}
	for i += 2; p.Char(i) == '@'; {
		if i += 2; p.Char(i) == '(' {
			i = int(p.Match[i]) + 1
		}
	}
	text, _ := p.typeText(i, 0)
	return text
}
