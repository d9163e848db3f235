// SPDX-License-Identifier: Apache-2.0

// Package wgsl reads WGSL of the user's as far as it takes to build it into kernels: its tokens, the names that it declares,
// and what compilers say about it.
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
}

// Tokenize cuts WGSL into tokens and pairs its brackets. Errors name the line.
func Tokenize(text string) (*Scan, error) {
	if len(text) > maxSource {
		return nil, errors.New("a source of more than 16 MiB")
	}
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, errors.New("a source that is not UTF-8, or with a zero byte")
	}
	s := &Scan{Text: text}
	if open := s.cut(); open >= 0 {
		return nil, s.fail(open, "a comment that does not end")
	}
	return s, s.pair()
}

// The characters that end a line, and all that are blank.
const (
	lineEnds = "\n\v\f\r\u0085\u2028\u2029"
	blanks   = " \t\u200e\u200f" + lineEnds
)

// cut makes the tokens. It returns the position of a comment that does not end, or -1.
func (s *Scan) cut() int {
	text := s.Text
	for i := 0; i < len(text); {
		switch r, size := utf8.DecodeRuneInString(text[i:]); {
		case strings.ContainsRune(blanks, r):
			i += size
		case strings.HasPrefix(text[i:], "//"):
			i = past(text, i, strings.IndexAny(text[i:], lineEnds))
		case strings.HasPrefix(text[i:], "/*"):
			end := blockCommentEnd(text, i)
			if end < 0 {
				return i
			}
			i = end
		case '0' <= r && r <= '9':
			i = s.add(Number, i, numberEnd(text, i))
		case isWord(r):
			i = s.add(Word, i, WordEnd(text, i))
		default:
			i = s.add(Punct, i, i+size)
		}
	}
	return -1
}

// past returns the position n behind i, or the end of the text for a negative one.
func past(text string, i, n int) int {
	if n < 0 {
		return len(text)
	}
	return i + n
}

func (s *Scan) add(k Kind, pos, end int) int {
	s.Tokens = append(s.Tokens, Token{k, int32(pos), int32(end)})
	return end
}

// pair finds the partner of each bracket. Angle brackets are no brackets here: only a compiler's grammar can tell them
// from comparisons.
func (s *Scan) pair() error {
	const brackets = "()[]{}"
	s.Match = make([]int32, len(s.Tokens))
	var open []int
	for i := range s.Tokens {
		kind := strings.IndexByte(brackets, s.Char(i))
		switch {
		case kind < 0:
		case kind%2 == 0:
			open = append(open, i)
		case len(open) == 0 || s.Char(open[len(open)-1]) != brackets[kind-1]:
			return s.alone(i)
		default:
			last := open[len(open)-1]
			open = open[:len(open)-1]
			s.Match[i], s.Match[last] = int32(last), int32(i)
		}
	}
	if len(open) > 0 {
		return s.alone(open[len(open)-1])
	}
	return nil
}

func (s *Scan) alone(i int) error {
	return s.fail(s.Pos(i), "a "+strconv.Quote(s.At(i))+" without its partner")
}

// fail is an error about the line of a position.
func (s *Scan) fail(pos int, what string) error {
	return errors.New("line " + strconv.Itoa(s.line(pos)) + ": " + what)
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
func (s *Scan) Line(i int) int { return s.line(s.Pos(i)) }

func (s *Scan) line(pos int) int { return 1 + strings.Count(s.Text[:pos], "\n") }

// Join writes tokens without anything between them: the normal form of types.
func (s *Scan) Join(from, to int) string {
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

// isWord reports whether a character may stand in an identifier. All of what is not ASCII counts, but for blanks; compilers are
// stricter.
func isWord(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z' || r >= 0x80 && !strings.ContainsRune(blanks, r)
}

// WordEnd returns where a word begun at i ends.
func WordEnd(text string, i int) int {
	return past(text, i, strings.IndexFunc(text[i:], func(r rune) bool { return !isWord(r) }))
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
		if c != '.' && !signed && (c >= 0x80 || !isWord(rune(c))) {
			break
		}
	}
	return i
}

// WithoutEnable returns a text with blanks in place of those directives by which it enables nothing but some extensions. A text that
// cannot be read stays as it is.
func WithoutEnable(text string, extensions []string) string {
	if len(extensions) == 0 || !strings.Contains(text, "enable") {
		return text
	}
	s, err := Tokenize(text)
	if err != nil {
		return text
	}
	for i := range s.Tokens {
		if s.At(i) != "enable" || i > 0 && s.Char(i-1) != ';' {
			continue
		}
		end := i + 1
		for slices.Contains(extensions, s.At(end)) && s.Char(end+1) == ',' {
			end += 2
		}
		if from, to := s.Pos(i), s.Pos(end+1)+1; slices.Contains(extensions, s.At(end)) && s.Char(end+1) == ';' {
			text = text[:from] + strings.Repeat(" ", to-from) + text[to:]
		}
	}
	return text
}

// Function returns the name of the first function, how many parameters it has and whether it returns something; "" and 0 for what is
// missing.
func (s *Scan) Function() (name string, params int, returns bool) {
	s.declared(func(keyword string, token int) {
		if keyword != "fn" || name != "" {
			return
		}
		if name = s.At(token); s.Char(token+1) == '(' {
			last := int(s.Match[token+1])
			params, returns = len(s.Split(token+2, last)), s.Char(last+1) != '{'
		}
	})
	return name, params, returns
}

// Qualify returns the text with a suffix behind every name that it declares outside of functions, so that it can stand in one
// module with other texts. What has such a name inside of functions is renamed along with it.
func (s *Scan) Qualify(suffix string) string {
	names, members := map[string]bool{}, map[int]bool{}
	s.declared(func(keyword string, name int) {
		names[s.At(name)] = true
		if keyword != "struct" || s.Char(name+1) != '{' {
			return
		}
		for i := name + 2; i < int(s.Match[name+1]); i++ {
			members[i] = s.Char(i+1) == ':'
		}
	})
	var b strings.Builder
	at := 0
	for i, t := range s.Tokens {
		// Members of structs, swizzles and attributes have names of their own.
		if t.Kind == Word && !members[i] && s.Char(i-1) != '.' && s.Char(i-1) != '@' && names[s.At(i)] {
			b.WriteString(s.Text[at:t.End])
			b.WriteString(suffix)
			at = int(t.End)
		}
	}
	b.WriteString(s.Text[at:])
	return b.String()
}

// declared visits the names that are declared outside of functions, with the keyword before each.
func (s *Scan) declared(visit func(keyword string, name int)) {
	for i := 0; i < len(s.Tokens); i++ {
		switch s.Char(i) {
		case '(', '[', '{':
			i = int(s.Match[i])
			continue
		}
		switch keyword := s.At(i); keyword {
		case "fn", "struct", "alias", "const", "override", "var":
			name := i + 1
			if s.Char(name) == '<' { // var<private>
				for name < len(s.Tokens) && s.Char(name) != '>' {
					name++
				}
				name++
			}
			if s.IsWord(name) {
				visit(keyword, name)
				i = name
			}
		}
	}
}
