// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
)

// metadataKey is the one key of a header that is no tensor's name.
const metadataKey = "__metadata__"

// parser walks over a header. It takes the JSON of the format and nothing else, so that it stops at the first byte that is
// wrong, and sees keys that occur twice. A decoder for all of JSON takes memory for each token.
type parser struct {
	scanner
	tensors  []file.Header
	metadata map[string]string
}

// parse reads a header. Offsets of the tensors count from the end of the header.
func parse(text []byte) (*parser, error) {
	p := &parser{scanner: scanner{text: text}}
	switch {
	case len(text) == 0 || text[0] != '{':
		p.stop(file.ErrFormat, "the header does not begin with {")
	case !utf8.Valid(text):
		for r, n := utf8.DecodeRune(text); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(text[p.pos:]) {
			p.pos += n
		}
		p.stop(file.ErrFormat, "the header is not UTF-8")
	}
	seen := map[string]bool{}
	p.object(func(key string) {
		switch {
		case seen[key]:
			p.stop(file.ErrDuplicate, stream.Quote(key))
		case key == metadataKey:
			p.texts()
		default:
			p.tensor(key)
		}
		seen[key] = true
	})
	if !p.ended() {
		p.stop(file.ErrFormat, "the header goes on after its }")
	}
	return p, p.err
}

// str reads a text.
func (p *parser) str() string {
	if !p.expect(`"`) {
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
			p.stop(file.ErrFormat, "a control character within a text")
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
	p.stop(file.ErrFormat, "the header's JSON ends early")
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
		p.stop(file.ErrFormat, "an escape that stands for no character")
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
	if !p.expect("{") || p.accept("}") {
		return
	}
	for p.err == nil {
		key := p.str()
		if p.expect(":") {
			field(key)
		}
		if !p.accept(",") {
			p.expect("}")
			return
		}
	}
}

// texts reads the metadata.
func (p *parser) texts() {
	p.metadata = map[string]string{}
	p.object(func(key string) {
		if _, ok := p.metadata[key]; ok {
			p.stop(file.ErrDuplicate, metadataKey+", "+stream.Quote(key))
		}
		p.metadata[key] = p.str()
	})
}

// tensor reads what the header says of one tensor.
func (p *parser) tensor(name string) {
	h := file.Header{Name: name}
	var offsets []int64
	seen := make([]string, 0, 3)
	stop := func(err error, detail ...any) { p.stop(err, stream.Quote(name), stream.Text(detail...)) }
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
	if p.err != nil {
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
		stop(file.ErrFormat, ": ", size, " bytes from ", offsets[0], " to ", offsets[1])
	}
	h.Offset, h.Size = offsets[0], size
	p.tensors = append(p.tensors, h)
}

// numbers reads an array of whole numbers.
func (p *parser) numbers(most int) []int64 {
	v := []int64{}
	if !p.expect("[") || p.accept("]") {
		return v
	}
	for p.err == nil {
		if len(v) == most {
			p.stop(file.ErrTooLarge, "more than ", most, " numbers")
			return v
		}
		v = append(v, p.number())
		if !p.accept(",") {
			p.expect("]")
			break
		}
	}
	return v
}
