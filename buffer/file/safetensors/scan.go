// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
)

// space is what may be between tokens.
const space = " \t\r\n"

// scanner reads the text of a header token by token. It keeps the first error, after which nothing more is accepted.
type scanner struct {
	text []byte
	pos  int // of the next byte
	err  error
}

// stop keeps an error at the next byte, if it is the first one.
func (s *scanner) stop(err error, detail ...any) {
	if s.err == nil {
		s.err = fail(lengthSize+int64(s.pos), err, detail...)
	}
}

// next passes over space and returns the next byte, or 0 at the end.
func (s *scanner) next() byte {
	for ; s.pos < len(s.text); s.pos++ {
		if c := s.text[s.pos]; strings.IndexByte(space, c) < 0 {
			return c
		}
	}
	return 0
}

// ended reports whether nothing but space is left.
func (s *scanner) ended() bool { return s.next() == 0 && s.pos == len(s.text) }

// accept passes over a token if it is next.
func (s *scanner) accept(token string) bool {
	s.next()
	if s.err != nil || !bytes.HasPrefix(s.text[s.pos:], []byte(token)) {
		return false
	}
	s.pos += len(token)
	return true
}

// expect passes over a token; anything else is an error.
func (s *scanner) expect(token string) bool {
	if s.accept(token) {
		return true
	}
	if s.pos == len(s.text) {
		s.stop(file.ErrFormat, "the header ends early")
	}
	s.stop(file.ErrFormat, "expected "+token+" before "+s.rest())
	return false
}

// rest returns some of what is left, for errors.
func (s *scanner) rest() string {
	return stream.Quote(string(s.text[s.pos:][:min(len(s.text)-s.pos, 50)]))
}

// number reads a whole number that is not negative, without zeros in front. What follows it is not checked.
func (s *scanner) number() int64 {
	s.next()
	digits := s.text[s.pos:]
	const most = len("9223372036854775807")
	n := 0
	for n < len(digits) && n <= most && '0' <= digits[n] && digits[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(string(digits[:n]), 10, 64)
	if err != nil || n > 1 && digits[0] == '0' {
		s.stop(file.ErrFormat, "expected a whole number before "+s.rest())
		return 0
	}
	s.pos += n
	return v
}
