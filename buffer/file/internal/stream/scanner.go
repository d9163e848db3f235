// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/file"
)

// Scanner reads the text of a header token by token. It keeps the first error, after which nothing more is accepted.
type Scanner struct {
	Text  []byte
	Pos   int    // of the next byte
	Space string // what may be between tokens
	Comma bool   // there may be a comma after the last of several items
	Fail  Fail   // offsets are those of the text
	Err   error
}

// Stop keeps an error at the next byte, if it is the first one.
func (s *Scanner) Stop(err error, detail ...any) {
	if s.Err == nil {
		s.Err = s.Fail(int64(s.Pos), err, detail...)
	}
}

// Next passes over space and returns the next byte, or 0 at the end.
func (s *Scanner) Next() byte {
	for ; s.Pos < len(s.Text); s.Pos++ {
		if c := s.Text[s.Pos]; strings.IndexByte(s.Space, c) < 0 {
			return c
		}
	}
	return 0
}

// Ended reports whether nothing but space is left.
func (s *Scanner) Ended() bool { return s.Next() == 0 && s.Pos == len(s.Text) }

// Accept passes over a token if it is next.
func (s *Scanner) Accept(token string) bool {
	s.Next()
	if s.Err != nil || !bytes.HasPrefix(s.Text[s.Pos:], []byte(token)) {
		return false
	}
	s.Pos += len(token)
	return true
}

// Expect passes over a token; anything else is an error.
func (s *Scanner) Expect(token string) bool {
	if s.Accept(token) {
		return true
	}
	if s.Pos == len(s.Text) {
		s.Stop(file.ErrFormat, "the header ends early")
	}
	s.Stop(file.ErrFormat, "expected ", token, " before ", s.Rest())
	return false
}

// Rest returns some of what is left, for errors.
func (s *Scanner) Rest() string { return Quote(string(s.Text[s.Pos:][:min(len(s.Text)-s.Pos, 50)])) }

// Items calls item for each of the items between two brackets, which commas part.
func (s *Scanner) Items(brackets string, item func()) {
	end := brackets[1:]
	if !s.Expect(brackets[:1]) || s.Accept(end) {
		return
	}
	for s.Err == nil {
		item()
		if !s.Accept(",") {
			s.Expect(end)
			return
		}
		if s.Comma && s.Accept(end) {
			return
		}
	}
}

// Object calls field for each key of an object, which key reads, to read its value. A key that occurs twice is
// [file.ErrDuplicate].
func (s *Scanner) Object(key func() string, field func(key string)) {
	seen := map[string]bool{}
	s.Items("{}", func() {
		k := key()
		if seen[k] {
			s.Stop(file.ErrDuplicate, Quote(k))
		}
		seen[k] = true
		if s.Expect(":") {
			field(k)
		}
	})
}

// Number reads a whole number that is not negative, without zeros in front. What follows it is not checked.
func (s *Scanner) Number() int64 {
	s.Next()
	digits := s.Text[s.Pos:]
	const most = len("9223372036854775807")
	n := 0
	for n < len(digits) && n <= most && '0' <= digits[n] && digits[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(string(digits[:n]), 10, 64)
	if err != nil || n > 1 && digits[0] == '0' {
		s.Stop(file.ErrFormat, "expected a whole number before ", s.Rest())
		return 0
	}
	s.Pos += n
	return v
}
