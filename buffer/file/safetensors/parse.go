// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

// metadataKey is the one key of a header that is no tensor's name.
const metadataKey = "__metadata__"

// parser walks over a header. It takes the JSON of the format and nothing else, so that it stops at the first byte that is
// wrong, and sees keys that occur twice. A decoder for all of JSON takes memory for each token.
type parser struct {
	text     []byte
	pos      int // of the next byte
	tensors  []file.Header
	metadata map[string]string
	err      error
}

// parse reads a header. Offsets of the tensors count from the end of the header.
func parse(text []byte) (*parser, error) {
	p := &parser{text: text}
	switch {
	case len(text) == 0 || text[0] != '{':
		p.fail(file.ErrFormat, "the header does not begin with {")
	case !utf8.Valid(text):
		for r, n := utf8.DecodeRune(text); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(text[p.pos:]) {
			p.pos += n
		}
		p.fail(file.ErrFormat, "the header is not UTF-8")
	}
	seen := map[string]bool{}
	p.object(func(key string) {
		switch {
		case seen[key]:
			p.fail(file.ErrDuplicate, stream.Quote(key))
		case key == metadataKey:
			p.texts()
		default:
			p.tensor(key)
		}
		seen[key] = true
	})
	if p.next() != 0 || p.pos < len(text) {
		p.fail(file.ErrFormat, "the header goes on after its }")
	}
	return p, p.err
}

// fail keeps the first error, at the next byte.
func (p *parser) fail(err error, detail string) {
	if p.err == nil {
		p.err = fail(lengthSize+int64(p.pos), err, detail)
	}
}

// next returns the next byte that is no space, or 0 at the end.
func (p *parser) next() byte {
	for ; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// accept takes a byte if it is next.
func (p *parser) accept(c byte) bool {
	if p.err != nil || p.next() != c {
		return false
	}
	p.pos++
	return true
}

// expect wants a byte to be next.
func (p *parser) expect(c byte) bool {
	if p.accept(c) {
		return true
	}
	if p.pos == len(p.text) {
		p.fail(file.ErrFormat, "the header's JSON ends early")
	}
	p.fail(file.ErrFormat, "expected "+string(c))
	return false
}

// str reads a text.
func (p *parser) str() string {
	if !p.expect('"') {
		return ""
	}
	var out []byte
	for from := p.pos; p.pos < len(p.text); {
		switch c := p.text[p.pos]; {
		case c == '"':
			last := p.text[from:p.pos]
			p.pos++
			if out == nil {
				return string(last)
			}
			return string(append(out, last...))
		case c < ' ':
			p.fail(file.ErrFormat, "a control character within a text")
			return ""
		case c == '\\':
			if out = p.escaped(append(out, p.text[from:p.pos]...)); p.err != nil {
				return ""
			}
			from = p.pos
		default:
			p.pos++
		}
	}
	p.fail(file.ErrFormat, "the header's JSON ends early")
	return ""
}

// escaped appends the character that the escape at the next byte stands for. Half of a surrogate pair is none: were it
// replaced, two names could become one.
func (p *parser) escaped(b []byte) []byte {
	const letters, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	rest := p.text[p.pos+1:]
	if len(rest) > 0 {
		if i := strings.IndexByte(letters, rest[0]); i >= 0 {
			p.pos += 2
			return append(b, meant[i])
		}
	}
	r, ok := escape(p.text[p.pos:])
	n := 6
	if ok && utf16.IsSurrogate(r) {
		second, _ := escape(p.text[p.pos+n:])
		r, n = utf16.DecodeRune(r, second), 12
		ok = r != utf8.RuneError
	}
	if !ok {
		p.fail(file.ErrFormat, "an escape that stands for no character")
		return nil
	}
	p.pos += n
	return utf8.AppendRune(b, r)
}

// escape returns the number of the \u escape that a text begins with.
func escape(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// object calls field for each key of an object, to read its value.
func (p *parser) object(field func(key string)) {
	if !p.expect('{') || p.accept('}') {
		return
	}
	for p.err == nil {
		key := p.str()
		if p.expect(':') {
			field(key)
		}
		if !p.accept(',') {
			p.expect('}')
			return
		}
	}
}

// texts reads the metadata.
func (p *parser) texts() {
	p.metadata = map[string]string{}
	p.object(func(key string) {
		if _, ok := p.metadata[key]; ok {
			p.fail(file.ErrDuplicate, metadataKey+", "+stream.Quote(key))
		}
		p.metadata[key] = p.str()
	})
}

// tensor reads what the header says of one tensor.
func (p *parser) tensor(name string) {
	const all = 1<<3 - 1 // the keys, one bit each
	h := file.Header{Name: name}
	seen, pair := 0, [2]int64{}
	offsets := pair[:0]
	p.object(func(key string) {
		bit := 0
		switch key {
		case "dtype":
			bit = 1
		case "shape":
			bit = 2
		case "data_offsets":
			bit = 4
		default:
			p.fail(file.ErrFormat, stream.Quote(name)+": unknown key "+stream.Quote(key))
		}
		if seen&bit != 0 {
			p.fail(file.ErrDuplicate, stream.Quote(name)+", "+stream.Quote(key))
		}
		switch seen |= bit; bit {
		case 1:
			s := p.str()
			t, ok := typeOf(s)
			if !ok {
				p.fail(file.ErrType, stream.Quote(name)+": "+stream.Quote(s))
			}
			h.Type = t
		case 2:
			h.Shape = p.numbers([]int64{}, stream.MaxDims)
		case 4:
			offsets = p.numbers(offsets, len(pair))
		}
	})
	if p.err != nil {
		return
	}
	if seen != all || len(offsets) != len(pair) {
		p.fail(file.ErrFormat, stream.Quote(name)+": a tensor has the keys dtype, shape and data_offsets, which are two")
		return
	}
	_, size, ok := h.Type.Bytes(h.Shape)
	switch {
	case !ok:
		p.fail(file.ErrFormat, stream.Quote(name)+": impossible shape")
	case offsets[1]-offsets[0] != size:
		p.fail(file.ErrFormat, stream.Quote(name)+": "+strconv.FormatInt(size, 10)+" bytes from "+
			strconv.FormatInt(offsets[0], 10)+" to "+strconv.FormatInt(offsets[1], 10))
	}
	h.Offset, h.Size = offsets[0], size
	p.tensors = append(p.tensors, h)
}

// numbers appends the whole numbers of an array to v.
func (p *parser) numbers(v []int64, most int) []int64 {
	if !p.expect('[') || p.accept(']') {
		return v
	}
	for p.err == nil {
		if len(v) == most {
			p.fail(file.ErrTooLarge, "more than "+strconv.Itoa(most)+" numbers")
			return v
		}
		v = append(v, p.number())
		if !p.accept(',') {
			p.expect(']')
			break
		}
	}
	return v
}

// number reads a whole number that is not negative. What follows it is for others to refuse.
func (p *parser) number() int64 {
	p.next()
	digits := p.text[p.pos:]
	const most = len("9223372036854775807")
	n := 0
	for n < len(digits) && n <= most && '0' <= digits[n] && digits[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(string(digits[:n]), 10, 64)
	if err != nil || n > 1 && digits[0] == '0' {
		p.fail(file.ErrFormat, "expected a whole number")
	}
	p.pos += n
	return v
}
