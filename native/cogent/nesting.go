// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

import "strings"

// The compiler inside wgpu-native descends into a kernel recursively and runs out of stack, which ends the process, on
// sources of a few kilobytes. The limits here are those of Chrome's compiler where it has any, and a tenth or less of
// what is fatal on a stack of eight megabytes.
const (
	maxNesting      = 127  // brackets within brackets
	maxOperators    = 512  // in a row, without a bracket, comma or semicolon around
	maxMembers      = 512  // likewise, a.b.c
	maxElse         = 256  // branches of one if
	maxDeclarations = 1024 // of const and alias, which may refer to each other
)

// nesting measures a source.
type nesting struct {
	depth        int
	level        [maxNesting + 1]nestingLevel
	declarations int
}

type nestingLevel struct {
	operators, members, branches int
	closed                       bool // the last token was a block's end
}

// tooDeep says what there is too much of in a WGSL source, if anything.
func tooDeep(source string) string {
	var n nesting
	for i := 0; i < len(source); {
		size, what := n.token(source[i:])
		if what != "" {
			return what
		}
		i += size
	}
	return ""
}

// token takes the token that s begins with and returns its length.
func (n *nesting) token(s string) (size int, tooMuch string) {
	l := &n.level[n.depth]
	switch c := s[0]; {
	case c == ' ', c == '\t', c == '\n', c == '\r':
		return 1, ""
	case len(s) > 1 && c == '/' && (s[1] == '/' || s[1] == '*'):
		return commentLen(s), ""
	case wordByte(c):
		return n.word(s)
	case c == '(', c == '[', c == '{':
		l.closed = false
		if n.depth == maxNesting {
			return 0, "brackets are nested too deeply"
		}
		n.depth++
		n.level[n.depth] = nestingLevel{}
	case c == ')', c == ']', c == '}':
		n.depth = max(n.depth-1, 0)
		l = &n.level[n.depth]
		if l.closed = c == '}'; l.closed {
			l.operators, l.members = 0, 0
		}
	case c == ';', c == ',':
		*l = nestingLevel{}
	case c == '.':
		l.closed = false
		if l.members++; l.members > maxMembers {
			return 0, "a chain of members is too long"
		}
	default:
		l.closed = false
		if l.operators++; l.operators > maxOperators {
			return 0, "an expression has too many operators"
		}
	}
	return 1, ""
}

// word takes an identifier, a keyword or the beginning of a number.
func (n *nesting) word(s string) (size int, tooMuch string) {
	for size < len(s) && wordByte(s[size]) {
		size++
	}
	l := &n.level[n.depth]
	switch s[:size] {
	case "else":
		if l.branches++; l.branches > maxElse {
			return 0, "an if has too many branches"
		}
	case "const", "alias":
		if n.declarations++; n.declarations > maxDeclarations {
			return 0, "there are too many declarations of constants and types"
		}
	default:
		if l.closed {
			l.branches = 0
		}
	}
	l.closed = false
	return size, ""
}

func wordByte(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// commentLen returns the length of the comment that s begins with. Comments nest.
func commentLen(s string) int {
	if s[1] == '/' {
		// All of these end a line in WGSL. To go on until '\n' would hide what follows them from the check.
		if i := strings.IndexAny(s, "\n\v\f\r\u0085\u2028\u2029"); i >= 0 {
			return i
		}
		return len(s)
	}
	depth := 0
	for i := 0; i+1 < len(s); {
		switch s[i : i+2] {
		case "/*":
			depth++
			i += 2
		case "*/":
			i += 2
			if depth--; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(s)
}
