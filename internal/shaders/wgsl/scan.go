// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSource bounds a source so that positions fit 32 bits with room to spare.
const maxSource = 16 << 20

// Kind tells tokens apart.
type Kind uint8

// The kinds.
const (
	Word   Kind = 1 + iota // identifiers and keywords
	Number                 // begins with a digit
	Punct                  // a single character
)

// Token is a piece of a text. Operators of several characters are several tokens: nothing here needs them whole.
type Token struct {
	Kind     Kind
	Pos, End int32
}

// Scan is a text cut into tokens.
type Scan struct {
	Text   string
	Tokens []Token
	Match  []int32 // of a bracket, the index of its partner
	Starts []int32 // where lines begin
}

// Tokenize cuts WGSL into tokens and pairs its brackets. Errors name the line.
func Tokenize(text string) (*Scan, error) {
	if len(text) > maxSource {
		return nil, errors.New("a source of more than 16 MiB")
	}
	s := &Scan{Text: text, Starts: []int32{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.Starts = append(s.Starts, int32(i+1))
		}
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, errors.New("a source that is not UTF-8, or with a zero byte")
	}
	if open := s.cut(); open >= 0 {
		return nil, at(s.LineAt(open), "a comment that does not end")
	}
	return s, s.pair()
}

// cut makes the tokens. It returns the position of a comment that does not end, or -1.
func (s *Scan) cut() int {
	text := s.Text
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
			i = s.add(Number, i, numberEnd(text, i))
		case wordByte(c):
			i = s.add(Word, i, WordEnd(text, i))
		default:
			i = s.add(Punct, i, i+1)
		}
	}
	return -1
}

func (s *Scan) add(k Kind, pos, end int) int {
	s.Tokens = append(s.Tokens, Token{k, int32(pos), int32(end)})
	return end
}

// pair finds the partner of each bracket. Angle brackets are no brackets here: only a compiler's grammar can tell them
// from comparisons.
func (s *Scan) pair() error {
	s.Match = make([]int32, len(s.Tokens))
	var open []int32
	for i := range s.Tokens {
		switch c := s.Char(i); c {
		case '(', '[', '{':
			open = append(open, int32(i))
		case ')', ']', '}':
			if len(open) == 0 || s.Char(int(open[len(open)-1])) != partner(c) {
				return at(s.Line(i), "a "+strconv.Quote(string(c))+" without its partner")
			}
			last := open[len(open)-1]
			open = open[:len(open)-1]
			s.Match[i], s.Match[last] = last, int32(i)
		}
	}
	if len(open) > 0 {
		i := int(open[len(open)-1])
		return at(s.Line(i), "a "+strconv.Quote(s.At(i))+" without its partner")
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

// At returns the text of a token, or "" beyond the last one.
func (s *Scan) At(i int) string {
	if i < 0 || i >= len(s.Tokens) {
		return ""
	}
	return s.Text[s.Tokens[i].Pos:s.Tokens[i].End]
}

// Char returns the character of a token that is one, or 0.
func (s *Scan) Char(i int) byte {
	if i < 0 || i >= len(s.Tokens) || s.Tokens[i].Kind != Punct {
		return 0
	}
	return s.Text[s.Tokens[i].Pos]
}

// IsWord reports whether a token is an identifier or a keyword.
func (s *Scan) IsWord(i int) bool { return i >= 0 && i < len(s.Tokens) && s.Tokens[i].Kind == Word }

// Pos returns where a token begins, or the end of the text.
func (s *Scan) Pos(i int) int {
	if i >= len(s.Tokens) {
		return len(s.Text)
	}
	return int(s.Tokens[i].Pos)
}

// Line returns the line of a token, from 1 on.
func (s *Scan) Line(i int) int { return s.LineAt(s.Pos(i)) }

// LineAt returns the line of a position, from 1 on.
func (s *Scan) LineAt(pos int) int {
	i, found := slices.BinarySearch(s.Starts, int32(pos))
	if found {
		i++
	}
	return i
}

// LineText returns a line without its end.
func (s *Scan) LineText(line int) string {
	if line < 1 || line > len(s.Starts) {
		return ""
	}
	end := len(s.Text)
	if line < len(s.Starts) {
		end = int(s.Starts[line]) - 1
	}
	return strings.TrimSuffix(s.Text[s.Starts[line-1]:end], "\r")
}

// Join writes tokens without anything between them: the normal form of types.
func (s *Scan) Join(from, to int) string {
	if to-from == 1 {
		return s.At(from)
	}
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(s.At(i))
	}
	return b.String()
}

// Split cuts tokens at commas that stand in no brackets, angle brackets of types included. A last part that is empty is
// left out.
func (s *Scan) Split(from, to int) (parts [][2]int) {
	depth, start := 0, from
	for i := from; i < to; i++ {
		switch s.Char(i) {
		case '(', '[', '{':
			i = int(s.Match[i])
		case '<':
			depth++
		case '>':
			depth--
		case ',':
			if depth <= 0 {
				parts = append(parts, [2]int{start, i})
				start = i + 1
			}
		}
	}
	if start < to {
		parts = append(parts, [2]int{start, to})
	}
	return parts
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

// WordEnd returns where a word begun at i ends.
func WordEnd(text string, i int) int {
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

// at is an error about a line.
func at(line int, what string) error { return errors.New("line " + strconv.Itoa(line) + ": " + what) }
