// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSource bounds a source so that positions fit 32 bits with room to spare.
const maxSource = 16 << 20

// kind tells tokens apart.
type kind uint8

const (
	word   kind = 1 + iota // identifiers and keywords
	number                 // begins with a digit
	punct                  // a single character
)

// token is a piece of a source. Operators of several characters are several tokens: nothing here needs them whole.
type token struct {
	kind     kind
	pos, end int32
}

// scan is a source cut into tokens.
type scan struct {
	text   string
	tokens []token
	match  []int32 // of a bracket, the index of its partner
	starts []int32 // where lines begin
}

// scanText cuts WGSL into tokens and pairs its brackets.
func scanText(text string) (*scan, error) {
	const op = "Parse"
	if len(text) > maxSource {
		return nil, fail(op, "a source of more than 16 MiB")
	}
	s := &scan{text: text, starts: []int32{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.starts = append(s.starts, int32(i+1))
		}
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, fail(op, "a source that is not UTF-8, or with a zero byte")
	}
	if open := s.cut(); open >= 0 {
		return nil, fail(op, at(s.lineAt(open)), "a comment that does not end")
	}
	return s, s.pair(op)
}

// cut makes the tokens. It returns the position of a comment that does not end, or -1.
func (s *scan) cut() int {
	text := s.text
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case blankLen(text[i:]) > 0:
			i += blankLen(text[i:])
		case c == '/' && strings.HasPrefix(text[i+1:], "/"):
			i = lineCommentEnd(text, i)
		case c == '/' && strings.HasPrefix(text[i+1:], "*"):
			end := blockCommentEnd(text, i)
			if end < 0 {
				return i
			}
			i = end
		case '0' <= c && c <= '9':
			i = s.add(number, i, numberEnd(text, i))
		case wordByte(c):
			i = s.add(word, i, wordEnd(text, i))
		default:
			i = s.add(punct, i, i+1)
		}
	}
	return -1
}

func (s *scan) add(k kind, pos, end int) int {
	s.tokens = append(s.tokens, token{k, int32(pos), int32(end)})
	return end
}

// pair finds the partner of each bracket. Angle brackets are no brackets here: only a compiler's grammar can tell them
// from comparisons.
func (s *scan) pair(op string) error {
	s.match = make([]int32, len(s.tokens))
	var open []int32
	for i := range s.tokens {
		switch c := s.char(i); c {
		case '(', '[', '{':
			open = append(open, int32(i))
		case ')', ']', '}':
			if len(open) == 0 || s.char(int(open[len(open)-1])) != partner(c) {
				return fail(op, at(s.line(i)), "a ", quote(string(c)), " without its partner")
			}
			last := open[len(open)-1]
			open = open[:len(open)-1]
			s.match[i], s.match[last] = last, int32(i)
		}
	}
	if len(open) > 0 {
		i := int(open[len(open)-1])
		return fail(op, at(s.line(i)), "a ", quote(s.at(i)), " without its partner")
	}
	return nil
}

func partner(closing byte) byte {
	switch closing {
	case ')':
		return '('
	case ']':
		return '['
	}
	return '{'
}

// at returns the text of a token, or "" beyond the last one.
func (s *scan) at(i int) string {
	if i < 0 || i >= len(s.tokens) {
		return ""
	}
	return s.text[s.tokens[i].pos:s.tokens[i].end]
}

// char returns the character of a token that is one, or 0.
func (s *scan) char(i int) byte {
	if i < 0 || i >= len(s.tokens) || s.tokens[i].kind != punct {
		return 0
	}
	return s.text[s.tokens[i].pos]
}

func (s *scan) isWord(i int) bool { return i >= 0 && i < len(s.tokens) && s.tokens[i].kind == word }

// pos returns where a token begins, or the end of the text.
func (s *scan) pos(i int) int {
	if i >= len(s.tokens) {
		return len(s.text)
	}
	return int(s.tokens[i].pos)
}

// line returns the line of a token, from 1 on.
func (s *scan) line(i int) int { return s.lineAt(s.pos(i)) }

func (s *scan) lineAt(pos int) int {
	i, found := slices.BinarySearch(s.starts, int32(pos))
	if found {
		i++
	}
	return i
}

// lineText returns a line without its end.
func (s *scan) lineText(line int) string {
	if line < 1 || line > len(s.starts) {
		return ""
	}
	end := len(s.text)
	if line < len(s.starts) {
		end = int(s.starts[line]) - 1
	}
	return strings.TrimSuffix(s.text[s.starts[line-1]:end], "\r")
}

// join writes tokens without anything between them: the normal form of types.
func (s *scan) join(from, to int) string {
	if to-from == 1 {
		return s.at(from)
	}
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(s.at(i))
	}
	return b.String()
}

// blankLen returns the length of the blank character that text begins with, or 0. WGSL has eleven.
func blankLen(text string) int {
	switch c := text[0]; {
	case c == ' ' || '\t' <= c && c <= '\r':
		return 1
	case strings.HasPrefix(text, "\u0085"):
		return 2
	case strings.HasPrefix(text, "\u200e"), strings.HasPrefix(text, "\u200f"),
		strings.HasPrefix(text, "\u2028"), strings.HasPrefix(text, "\u2029"):
		return 3
	}
	return 0
}

// lineCommentEnd returns where a comment begun at i ends: before any of the characters that end a line.
func lineCommentEnd(text string, i int) int {
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case '\n' <= c && c <= '\r', strings.HasPrefix(text[i:], "\u0085"),
			strings.HasPrefix(text[i:], "\u2028"), strings.HasPrefix(text[i:], "\u2029"):
			return i
		}
	}
	return i
}

// blockCommentEnd returns where a comment begun at i ends, or -1. Such comments nest.
func blockCommentEnd(text string, i int) int {
	for depth := 0; i+1 < len(text); {
		switch text[i : i+2] {
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
	return -1
}

// wordByte reports whether c may stand in an identifier. All of what is not ASCII counts; compilers are stricter.
func wordByte(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func wordEnd(text string, i int) int {
	for i < len(text) && wordByte(text[i]) && (text[i] < 0x80 || blankLen(text[i:]) == 0) {
		i++
	}
	return i
}

// numberEnd returns where a number begun at i ends. The sign of an exponent belongs to it.
func numberEnd(text string, i int) int {
	exponent := byte('e')
	if strings.HasPrefix(text[i:], "0x") || strings.HasPrefix(text[i:], "0X") {
		exponent = 'p'
	}
	for ; i < len(text); i++ {
		c := text[i]
		signed := (c == '+' || c == '-') && text[i-1]|0x20 == exponent
		if c != '.' && !signed && (c >= 0x80 || !wordByte(c)) {
			break
		}
	}
	return i
}
