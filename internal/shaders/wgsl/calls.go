// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"strconv"
	"strings"
)

// precedence of the operators that lengths of arrays are made of.
var precedence = [1 << 8]int{'<': 1, '+': 2, '-': 2, '*': 3, '/': 3, '%': 3}

// expression evaluates a constant expression of whole numbers as far as operators bind tighter than some, and returns what follows it.
// What is not understood, or negative on the way, is unknown.
func (m *Types) expression(i, above int) (v int64, end int) {
	if m.depth++; m.depth > maxNested {
		m.depth--
		return unknown, i
	}
	defer func() { m.depth-- }()
	v, i = m.operand(i)
	for {
		op := m.Char(i)
		if op == '<' && m.Char(i+1) != '<' || precedence[op] <= above {
			return v, i
		}
		if op == '<' {
			i++
		}
		var w int64
		w, i = m.expression(i+1, precedence[op])
		v = calculate(op, v, w)
	}
}

func calculate(op byte, v, w int64) int64 {
	switch {
	case v < 0 || w < 0 || (op == '/' || op == '%') && w == 0:
	case op == '+':
		return min(v+w, manyBytes)
	case op == '-' && v >= w:
		return v - w
	case op == '*':
		return sum(0, v, w)
	case op == '/':
		return v / w
	case op == '%':
		return v % w
	case op == '<' && w < 32:
		return sum(0, v, 1<<w)
	}
	return unknown
}

// operand evaluates a number, a constant, one in parentheses, or a conversion of one.
func (m *Types) operand(i int) (v int64, end int) {
	switch name := m.At(i); {
	case m.Char(i) == '(':
		v, end = m.expression(i+1, 0)
		if close := int(m.Match[i]); end == close {
			return v, close + 1
		}
		return unknown, int(m.Match[i]) + 1
	case (name == "u32" || name == "i32") && m.Char(i+1) == '(':
		return m.operand(i + 1)
	case i < len(m.Tokens) && m.Tokens[i].Kind == Number:
		n, err := strconv.ParseInt(strings.TrimRight(name, "iu"), 0, 64)
		if err != nil || n > manyBytes || strings.Contains(name, "_") {
			return unknown, i + 1
		}
		return n, i + 1
	case m.decls[name] != nil && m.decls[name].keyword == "const":
		d := m.decls[name]
		if !d.known {
			d.known, d.value = true, unknown // a constant in itself
			from := d.name + 1
			for from < len(m.Tokens) && m.Char(from) != '=' && m.Char(from) != ';' {
				from++
			}
			d.value, end = m.expression(from+1, 0)
			if m.Char(end) != ';' {
				d.value = unknown
			}
		}
		return d.value, i + 1
	}
	return unknown, i + 1
}

// body returns the first and the last token of a function's parameters and block.
func (m *Types) body(f *decl) (from, to int) {
	from = f.name + 1
	for to = from; to < len(m.Tokens) && m.Char(to) != '{'; to++ {
	}
	if to >= len(m.Tokens) {
		return from, from
	}
	return from, int(m.Match[to])
}

// function counts what a function and those it calls need.
func (m *Types) function(f *decl, depth int) {
	if f.known {
		return
	}
	f.known, f.excess = true, f.name
	var under int64 // the most that one call needs
	count := func(size int64) {
		if size >= 0 && size <= inRegisters {
			f.small += size
		} else {
			f.Size = sum(f.Size, size, 1)
		}
	}
	from, to := m.body(f)
	m.ownEffort(f, from, to)
	for i := from; i < to; {
		g := m.decls[m.At(i)]
		switch {
		case m.At(i) == "ptr" && m.Char(i+1) == '<': // points to what is counted elsewhere
			_, end := m.typeAt(i + 4)
			i = end + 1
		case g != nil && g.keyword == "fn" && m.Char(i+1) == '(':
			if depth < maxDepth {
				m.function(g, depth+1)
			} else {
				m.refuse(i, "calls are nested too deeply")
			}
			f.Size, f.effort, under = sum(f.Size, g.Size, 1), min(f.effort+g.effort+callEffort, manyBytes), max(under, g.small)
			i++
		case g != nil && g.keyword == "var" && m.Char(i-1) != '.':
			if n := m.value(g, i+1); n > maxLocal || m.Char(i-1) != '&' {
				count(n)
			}
			i++
		default:
			t, end := m.typeAt(i)
			if m.Char(i-1) == '.' || m.Char(i-1) == '@' {
				t.Size, end = 0, i+1
			}
			count(t.Size)
			i = max(end, i+1)
		}
	}
	f.small += under
}

// value returns the size of what members and indices from a token on name of a variable.
func (m *Types) value(g *decl, i int) int64 {
	t := g.name + 2
	if m.Char(t-1) != ':' {
		return 0
	}
	for n := 0; n < len(m.Tokens); n++ {
		d := m.decls[m.At(t)]
		switch {
		case d != nil && d.keyword == "alias" && n < maxNested:
			t = d.name + 2
		case m.Char(i) == '[' && m.At(t) == "array":
			t, i = t+2, int(m.Match[i])+1
		case m.Char(i) == '.' && d != nil && d.keyword == "struct" && m.Char(d.name+1) == '{':
			end := int(m.Match[d.name+1])
			for t = d.name + 2; t < end && (m.At(t) != m.At(i+1) || m.Char(t+1) != ':'); t++ {
			}
			t, i = t+2, i+2
		case m.Char(i) == '[' || m.Char(i) == '.':
			return 0 // of a vector or a matrix
		default:
			size, _ := m.typeAt(t)
			return size.Size
		}
	}
	return manyBytes
}

// variable returns the size of a variable whose type is written there.
func (m *Types) variable(name int) int64 {
	if m.Char(name+1) != ':' {
		return 0
	}
	t, _ := m.typeAt(name + 2)
	return t.Size
}
