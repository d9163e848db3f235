// SPDX-License-Identifier: Apache-2.0

package wgsl

import "strings"

// Effort bounds what a compiler has to do. Compilers put each function into those that call it, and the time that they take, and for some
// statements the memory, grows with the square of what comes together. In these units, 65536 take Mesa's llvmpipe, the slowest of those
// measured, up to 30 seconds of one core and 450 MB, of whatever statements they are: as many declarations, 1000 elements of memory that
// are set to others, 1500 calls, 800 returns, 500 atomic operations, 250 loops, or a table of 1000 elements.
const (
	Effort    = 1 << 16
	Unlimited = manyBytes // of kernels that are known to be compiled
)

const (
	maxDepth        = 1024 // of calls within calls
	callEffort      = 15   // besides that of the bracket
	statementEffort = 8    // of one that is no declaration
	builtinEffort   = 16   // of a function, and of a product that may be one of matrices
	indexEffort     = 8    // of an element's address that a variable tells
	sumEffort       = 24   // of one that has to be computed
	syncEffort      = 128  // of an atomic operation or a barrier
	listShare       = 16   // of the square of the number of elements: a compiler writes each to its place in an array
)

// effortOf is that of a word besides its statement's.
func effortOf(word string) int64 {
	switch word {
	case "if":
		return 8
	case "switch", "case", "default", "return", "break", "continue":
		return 64
	case "for", "while", "loop":
		return 256
	}
	return 0
}

// ownEffort counts what a function's tokens take without the functions that it calls.
func (m *Types) ownEffort(f *decl, from, to int) {
	first, matrices := true, m.matrices() // first of a statement
	for i := from; i < to && f.effort <= m.effort; i++ {
		word := m.At(i)
		switch c := m.Char(i); {
		case c == ';' || c == '{' || c == '}':
			if c == ';' {
				f.effort++
			}
			first = true
			continue
		case c == '[' && int(m.Match[i]) > i+2:
			f.effort += sumEffort
		case c == '[' && m.At(i+1) > ":": // a name, not a number
			f.effort += indexEffort
		case c == '(' || c == '[':
			f.effort += 1 + m.listEffort(i)
		case c == '&' || c == '|': // twice where what follows them is a branch
			f.effort += 4
		case c == '*' && matrices:
			f.effort += builtinEffort
		case strings.IndexByte("+-*/%^~!<>.", c) >= 0 && c != 0:
			f.effort++
		case m.Char(i+1) == '(' && (strings.HasPrefix(word, "atomic") || strings.HasSuffix(word, "Barrier") || word == "workgroupUniformLoad"):
			f.effort += syncEffort
		case word == "return" && m.last(i, to): // costs nothing
		case c == 0:
			f.effort += effortOf(word)
			if m.Char(i+1) == '(' && m.builtin(word) {
				f.effort += builtinEffort
			}
			if d := m.decls[word]; d != nil && (d.keyword == "const" || d.keyword == "var") { // each use of a table makes one
				f.effort += m.tableEffort(d)
			}
		}
		if first && word != "let" && word != "var" && word != "const" && word != "_" && word != "if" {
			f.effort += statementEffort
		}
		first = false
		if f.effort > Effort {
			f.excess = i
		}
	}
}

// matrices reports whether a text has any.
func (m *Types) matrices() bool {
	return strings.Contains(m.Text, "mat2") || strings.Contains(m.Text, "mat3") || strings.Contains(m.Text, "mat4")
}

// builtin reports whether a word is the name of a function of WGSL's, other than a conversion.
func (m *Types) builtin(word string) bool {
	return m.decls[word] == nil && plainType(word) == "" && effortOf(word) == 0 && word != "array" && shaped(word, Layout{Size: 4}).Size == 0
}

// listEffort is that of the list in brackets.
func (m *Types) listEffort(open int) int64 {
	n := int64(0)
	for i := open + 1; i < int(m.Match[open]); i++ {
		switch m.Char(i) {
		case '(', '[', '{':
			i = int(m.Match[i])
		case ',':
			n++
		}
	}
	return n * n / listShare
}

// tableEffort is that of the lists in a constant's or a variable's value.
func (m *Types) tableEffort(d *decl) int64 {
	if d.effort == 0 {
		d.effort = 1
		for i := d.name + 1; i < len(m.Tokens) && m.Char(i) != ';'; i++ {
			if m.Char(i) == '(' {
				d.effort += m.listEffort(i)
			}
		}
	}
	return d.effort
}

// last reports whether a statement is the last one of a function.
func (m *Types) last(i, to int) bool {
	for i < to && m.Char(i) != ';' && m.Char(i) != '}' {
		i++
	}
	return i+1 >= to
}
