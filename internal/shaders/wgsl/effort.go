// SPDX-License-Identifier: Apache-2.0

package wgsl

import "strings"

// maxEffort bounds what a compiler has to do. Compilers put each function into those that call it, and the time that they take, and for some
// statements the memory, grows with the square of what comes together. In these units, 65536 take Mesa's llvmpipe, the slowest of those
// measured, some ten seconds of one core and 300 MB, of whatever statements they are: as many declarations, a ninth as many changes of
// memory, 4096 calls, 1024 returns, or 256 loops.
const maxEffort = 1 << 16

const (
	maxDepth        = 1024 // of calls within calls
	callEffort      = 15   // besides that of the bracket
	statementEffort = 8    // of one that is no declaration
	elementEffort   = 64   // of a list, beyond those that are parameters and components
	fewElements     = 64
)

// efforts are those of words besides their statement's.
var efforts = map[string]int64{
	"if": 8, "switch": 64, "case": 64, "default": 64, "return": 64, "break": 64, "continue": 64,
	"for": 256, "while": 256, "loop": 256,
}

// ownEffort counts what a function's tokens take without the functions that it calls.
func (m *Types) ownEffort(f *decl, from, to int) {
	first := true // of a statement
	for i := from; i < to && f.effort <= maxEffort; i++ {
		word := m.At(i)
		switch c := m.Char(i); {
		case c == ';' || c == '{' || c == '}':
			if c == ';' {
				f.effort++
			}
			first = true
			continue
		case c == '(' || c == '[':
			if n := m.elements(i); n > fewElements {
				f.effort += int64(n) * elementEffort
			}
			f.effort++
		case c == '&' || c == '|': // twice where what follows them is a branch
			f.effort += 4
		case strings.IndexByte("+-*/%^~!<>.", c) >= 0 && c != 0:
			f.effort++
		case m.Char(i+1) == '(' && (strings.HasPrefix(word, "atomic") || strings.HasSuffix(word, "Barrier") || word == "workgroupUniformLoad"):
			f.effort += 2 * elementEffort
		case word == "return" && m.last(i, to): // costs nothing
		case c == 0:
			f.effort += efforts[word]
		}
		if first && word != "let" && word != "var" && word != "const" && word != "_" && word != "if" {
			f.effort += statementEffort
		}
		first = false
		if f.effort > maxEffort {
			f.excess = i
		}
	}
}

// elements counts the elements of a list in brackets.
func (m *Types) elements(open int) (n int) {
	for i := open + 1; i < int(m.Match[open]); i++ {
		switch m.Char(i) {
		case '(', '[', '{':
			i = int(m.Match[i])
		case ',':
			n++
		}
	}
	return n
}

// last reports whether a statement is the last one of a function.
func (m *Types) last(i, to int) bool {
	for i < to && m.Char(i) != ';' && m.Char(i) != '}' {
		i++
	}
	return i+1 >= to
}
