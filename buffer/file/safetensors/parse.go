// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
)

// metadataKey is the one key of a header that is no tensor's name.
const metadataKey = "__metadata__"

// parser walks over the JSON of a header token by token, so that it sees keys that occur twice. The first error stays.
type parser struct {
	text     []byte
	json     *json.Decoder
	tensors  []file.Header
	metadata map[string]string
	err      error
}

// parse reads a header. Offsets of the tensors count from the end of the header.
func parse(text []byte) (*parser, error) {
	p := &parser{text: text, json: json.NewDecoder(bytes.NewReader(text))}
	p.json.UseNumber()
	switch {
	case len(text) == 0 || text[0] != '{':
		p.stop(file.ErrFormat, "the header does not begin with {")
	case !utf8.Valid(text):
		at := 0
		for r, n := utf8.DecodeRune(text); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(text[at:]) {
			at += n
		}
		p.err = fail(lengthSize+int64(at), file.ErrFormat, "the header is not UTF-8")
	}
	p.object(func(key string) {
		if key != metadataKey {
			p.tensor(key)
			return
		}
		p.metadata = map[string]string{}
		p.object(func(key string) { p.metadata[key] = p.str() })
	})
	if rest := bytes.TrimLeft(text[p.json.InputOffset():], " \t\r\n"); len(rest) > 0 {
		p.stop(file.ErrFormat, "the header goes on after its }")
	}
	return p, p.err
}

// stop keeps an error at the end of the last token, if it is the first one.
func (p *parser) stop(err error, detail ...any) {
	if p.err == nil {
		p.err = fail(lengthSize+p.json.InputOffset(), err, detail...)
	}
}

// next returns the next token.
func (p *parser) next() json.Token {
	if p.err != nil {
		return nil
	}
	token, err := p.json.Token()
	if err != nil {
		p.stop(file.ErrFormat, "the header's JSON: ", err.Error())
	}
	return token
}

// each calls item for each of the items between two brackets.
func (p *parser) each(open, end json.Delim, item func()) {
	if p.next() != open {
		p.stop(file.ErrFormat, "another value than the format has here")
	}
	for p.err == nil && p.json.More() {
		item()
	}
	if p.next() != end {
		p.stop(file.ErrFormat, "another value than the format has here")
	}
}

// object calls field for each key of an object, to read its value.
func (p *parser) object(field func(key string)) {
	seen := map[string]bool{}
	p.each('{', '}', func() {
		key := p.str()
		if seen[key] {
			p.stop(file.ErrDuplicate, stream.Quote(key))
		}
		seen[key] = true
		field(key)
	})
}

// str reads a text. Half of a surrogate pair is no character: were it replaced, as package json does, two names could become
// one.
func (p *parser) str() string {
	from := p.json.InputOffset()
	s, ok := p.next().(string)
	if n := strings.Count(s, "\ufffd"); n > 0 {
		raw := p.text[from:p.json.InputOffset()]
		escapes := bytes.ToLower(bytes.ReplaceAll(raw, []byte(`\\`), nil))
		ok = n == bytes.Count(raw, []byte("\ufffd"))+bytes.Count(escapes, []byte(`\ufffd`))
	}
	if !ok {
		p.stop(file.ErrFormat, "no text, or one with an escape that stands for no character")
	}
	return s
}

// numbers reads an array of whole numbers.
func (p *parser) numbers(most int) []int64 {
	v := []int64{}
	p.each('[', ']', func() {
		text, _ := p.next().(json.Number)
		n, err := strconv.ParseInt(text.String(), 10, 64)
		if err != nil || text[0] == '-' {
			p.stop(file.ErrFormat, "no whole number")
		}
		if len(v) == most {
			p.stop(file.ErrTooLarge, "more than ", most, " numbers")
		}
		v = append(v, n)
	})
	return v
}

// tensor reads what the header says of one tensor.
func (p *parser) tensor(name string) {
	h := file.Header{Name: name}
	var offsets []int64
	keys := 0
	stop := func(err error, detail ...any) { p.stop(err, stream.Quote(name), stream.Text(detail...)) }
	p.object(func(key string) {
		keys++
		switch key {
		case "dtype":
			s := p.str()
			t, ok := typeOf(s)
			if !ok {
				stop(file.ErrType, ": ", stream.Quote(s))
			}
			h.Type = t
		case "shape":
			h.Shape = p.numbers(stream.MaxDims)
		case "data_offsets":
			offsets = p.numbers(2)
		default:
			stop(file.ErrFormat, ": unknown key ", stream.Quote(key))
		}
	})
	if keys != 3 || len(offsets) != 2 {
		stop(file.ErrFormat, ": a tensor has the keys dtype, shape and data_offsets, which are two")
	}
	if p.err != nil {
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
