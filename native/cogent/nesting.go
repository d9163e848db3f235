// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

import "github.com/sublet-gpu/sublet/internal/shaders/wgsl"

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

// unsafeSource says why wgpu-native must not get a WGSL source, or "". A source that only has brackets without partners is
// left to the compiler, whose messages are better.
func unsafeSource(source string) string {
	s, err := wgsl.Tokenize(source)
	if s == nil {
		return err.Error()
	}
	var n nesting
	for i := range s.Tokens {
		tooMuch := ""
		if c := s.Char(i); c != 0 {
			tooMuch = n.character(c)
		} else {
			tooMuch = n.word(s.At(i))
		}
		if tooMuch != "" {
			return tooMuch
		}
	}
	return ""
}

// character counts a token of one character.
func (n *nesting) character(c byte) (tooMuch string) {
	l := &n.level[n.depth]
	l.closed = false
	switch c {
	case '(', '[', '{':
		if n.depth == maxNesting {
			return "brackets are nested too deeply"
		}
		n.depth++
		n.level[n.depth] = nestingLevel{}
	case ')', ']', '}':
		n.depth = max(n.depth-1, 0)
		if l = &n.level[n.depth]; c == '}' {
			l.closed, l.operators, l.members = true, 0, 0
		}
	case ';', ',':
		*l = nestingLevel{}
	case '.':
		if l.members++; l.members > maxMembers {
			return "a chain of members is too long"
		}
	default:
		if l.operators++; l.operators > maxOperators {
			return "an expression has too many operators"
		}
	}
	return ""
}

// word counts an identifier, a keyword or a number.
func (n *nesting) word(word string) (tooMuch string) {
	l := &n.level[n.depth]
	switch word {
	case "else":
		if l.branches++; l.branches > maxElse {
			return "an if has too many branches"
		}
	case "const", "alias":
		if n.declarations++; n.declarations > maxDeclarations {
			return "there are too many declarations of constants and types"
		}
	default:
		if l.closed {
			l.branches = 0
		}
	}
	l.closed = false
	return ""
}
