// SPDX-License-Identifier: Apache-2.0

package wgsl

import "strconv"

// Compilers descend into a kernel recursively and run out of stack, which ends the process, on sources of a few kilobytes. The limits
// here are those of Chrome's compiler where it has any, and a tenth or less of what is fatal on a stack of eight megabytes.
const (
	maxNesting      = 127     // brackets within brackets
	maxDeclarations = 1024    // which may refer to each other
	maxNamed        = 1 << 16 // functions and variables, which the compiler compares with each other
	maxTypes        = 64      // types within types
)

// What is counted within a pair of brackets.
const (
	operators = iota // in a row, without a bracket, comma or semicolon around
	members          // likewise, a.b.c
	branches         // of one if
	elements         // of a list, or members of a struct
)

var limits = [...]struct {
	most   int
	excess string
}{
	operators: {512, "an expression has too many operators"},
	members:   {512, "a chain of members is too long"},
	branches:  {256, "an if has too many branches"},
	elements:  {1 << 14, "a list is too long"},
}

// nestingLevel is what was counted within a pair of brackets.
type nestingLevel struct {
	count  [len(limits)]int
	closed bool // the last token was a block's end
}

// Unsafe says why a compiler must not get a WGSL source, or "". Brackets need no partners.
func (s *Scan) Unsafe() string {
	var levels [maxNesting + 1]nestingLevel
	depth, declarations, types, named := 0, 0, 0, 0
	for i := range s.Tokens {
		if types = typesWithin(s, i, types); types > maxTypes {
			return s.atLine(i, "types are nested too deeply")
		}
		l, of := &levels[depth], -1
		closed := l.closed
		l.closed = false
		switch text := s.At(i); text {
		case "(", "[", "{":
			if depth++; depth > maxNesting {
				return s.atLine(i, "brackets are nested too deeply")
			}
			levels[depth] = nestingLevel{}
		case ")", "]", "}":
			depth = max(depth-1, 0)
			if l = &levels[depth]; text == "}" {
				l.closed, l.count[operators], l.count[members] = true, 0, 0
			}
		case ";":
			*l = nestingLevel{}
		case ",":
			*l = nestingLevel{count: [len(limits)]int{elements: l.count[elements]}}
			of = elements
		case ".":
			of = members
		case "else":
			of = branches
		case "const", "alias", "struct", "override", "const_assert":
			if declarations++; declarations > maxDeclarations {
				return s.atLine(i, "there are too many declarations of constants and types")
			}
		case "fn", "var":
			if named++; named > maxNamed {
				return s.atLine(i, "there are too many functions and variables")
			}
		default:
			if s.Char(i) != 0 {
				of = operators
			} else if closed {
				l.count[branches] = 0
			}
		}
		if of >= 0 {
			if l.count[of]++; l.count[of] > limits[of].most {
				return s.atLine(i, limits[of].excess)
			}
		}
	}
	return ""
}

func (s *Scan) atLine(token int, what string) string {
	return "line " + strconv.Itoa(s.Line(token)) + ": " + what
}

// typesWithin counts types that begin within each other: names, and < after them. Arguments that are compared look the same.
func typesWithin(s *Scan, i, n int) int {
	switch {
	case s.Char(i) == '<':
		return n + 1
	case s.IsWord(i) || s.Char(i) == ',':
		return n
	}
	return 0
}
