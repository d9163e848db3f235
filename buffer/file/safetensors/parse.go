// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"slices"
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
	stream.Scanner
	tensors  []file.Header
	metadata map[string]string
}

// parse reads a header. Offsets of the tensors count from the end of the header.
func parse(text []byte) (*parser, error) {
	p := &parser{Scanner: stream.Scanner{Text: text, Space: " \t\r\n", Fail: func(at int64, err error, detail string) error {
		return fail(lengthSize+at, err, detail)
	}}}
	switch {
	case len(text) == 0 || text[0] != '{':
		p.Stop(file.ErrFormat, "the header does not begin with {")
	case !utf8.Valid(text):
		for r, n := utf8.DecodeRune(text); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(text[p.Pos:]) {
			p.Pos += n
		}
		p.Stop(file.ErrFormat, "the header is not UTF-8")
	}
	seen := map[string]bool{}
	p.object(func(key string) {
		switch {
		case seen[key]:
			p.Stop(file.ErrDuplicate, stream.Quote(key))
		case key == metadataKey:
			p.texts()
		default:
			p.tensor(key)
		}
		seen[key] = true
	})
	if !p.Ended() {
		p.Stop(file.ErrFormat, "the header goes on after its }")
	}
	return p, p.Err
}

// str reads a text.
func (p *parser) str() string {
	if !p.Expect(`"`) {
		return ""
	}
	var out []byte
	for from := p.Pos; p.Pos < len(p.Text); {
		switch c := p.Text[p.Pos]; {
		case c == '"':
			last := p.Text[from:p.Pos]
			p.Pos++
			if out == nil {
				return string(last)
			}
			return string(append(out, last...))
		case c < ' ':
			p.Stop(file.ErrFormat, "a control character within a text")
			return ""
		case c == '\\':
			if out = p.escaped(append(out, p.Text[from:p.Pos]...)); p.Err != nil {
				return ""
			}
			from = p.Pos
		default:
			p.Pos++
		}
	}
	p.Stop(file.ErrFormat, "the header's JSON ends early")
	return ""
}

// escaped appends the character that the escape at the next byte stands for. Half of a surrogate pair is none: were it
// replaced, two names could become one.
func (p *parser) escaped(b []byte) []byte {
	const letters, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	rest := p.Text[p.Pos+1:]
	if len(rest) > 0 {
		if i := strings.IndexByte(letters, rest[0]); i >= 0 {
			p.Pos += 2
			return append(b, meant[i])
		}
	}
	r, ok := escape(p.Text[p.Pos:])
	n := 6
	if ok && utf16.IsSurrogate(r) {
		second, _ := escape(p.Text[p.Pos+n:])
		r, n = utf16.DecodeRune(r, second), 12
		ok = r != utf8.RuneError
	}
	if !ok {
		p.Stop(file.ErrFormat, "an escape that stands for no character")
		return nil
	}
	p.Pos += n
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
	if !p.Expect("{") || p.Accept("}") {
		return
	}
	for p.Err == nil {
		key := p.str()
		if p.Expect(":") {
			field(key)
		}
		if !p.Accept(",") {
			p.Expect("}")
			return
		}
	}
}

// texts reads the metadata.
func (p *parser) texts() {
	p.metadata = map[string]string{}
	p.object(func(key string) {
		if _, ok := p.metadata[key]; ok {
			p.Stop(file.ErrDuplicate, metadataKey+", "+stream.Quote(key))
		}
		p.metadata[key] = p.str()
	})
}

// tensor reads what the header says of one tensor.
func (p *parser) tensor(name string) {
	h := file.Header{Name: name}
	var offsets []int64
	seen := make([]string, 0, 3)
	stop := func(err error, detail string) { p.Stop(err, stream.Quote(name)+detail) }
	p.object(func(key string) {
		if slices.Contains(seen, key) {
			stop(file.ErrDuplicate, ", "+stream.Quote(key))
		}
		seen = append(seen, key)
		switch key {
		case "dtype":
			s := p.str()
			t, ok := typeOf(s)
			if !ok {
				stop(file.ErrType, ": "+stream.Quote(s))
			}
			h.Type = t
		case "shape":
			h.Shape = p.numbers(stream.MaxDims)
		case "data_offsets":
			offsets = p.numbers(2)
		default:
			stop(file.ErrFormat, ": unknown key "+stream.Quote(key))
		}
	})
	if p.Err != nil {
		return
	}
	if len(seen) != 3 || len(offsets) != 2 {
		stop(file.ErrFormat, ": a tensor has the keys dtype, shape and data_offsets, which are two")
		return
	}
	_, size, ok := h.Type.Bytes(h.Shape)
	switch {
	case !ok:
		stop(file.ErrFormat, ": impossible shape")
	case offsets[1]-offsets[0] != size:
		stop(file.ErrFormat, ": "+stream.Decimal(size)+" bytes from "+stream.Decimal(offsets[0])+" to "+stream.Decimal(offsets[1]))
	}
	h.Offset, h.Size = offsets[0], size
	p.tensors = append(p.tensors, h)
}

// numbers reads an array of whole numbers.
func (p *parser) numbers(most int) []int64 {
	v := []int64{}
	if !p.Expect("[") || p.Accept("]") {
		return v
	}
	for p.Err == nil {
		if len(v) == most {
			p.Stop(file.ErrTooLarge, "more than "+stream.Decimal(most)+" numbers")
			return v
		}
		v = append(v, p.Number())
		if !p.Accept(",") {
			p.Expect("]")
			break
		}
	}
	return v
}
