// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

// metadataKey is the one key of a header that is no tensor's name.
const metadataKey = "__metadata__"

// parser walks over a header token by token, since a decoder into maps would not tell of keys that occur twice.
type parser struct {
	text     []byte
	dec      *json.Decoder
	tensors  []file.Header
	metadata map[string]string
	err      error
}

// parse reads a header. Offsets of the tensors count from the end of the header.
func parse(text []byte) (*parser, error) {
	p := &parser{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	switch {
	case len(text) == 0 || text[0] != '{':
		p.failAt(0, file.ErrFormat, "the header does not begin with {")
	case !utf8.Valid(text):
		at := 0
		for r, n := utf8.DecodeRune(text); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(text[at:]) {
			at += n
		}
		p.failAt(int64(at), file.ErrFormat, "the header is not UTF-8")
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
	if p.err != nil {
		return nil, p.err
	}
	end := p.dec.InputOffset()
	if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
		p.failAt(int64(len(text)-len(rest)), file.ErrFormat, "the header goes on after its }")
	}
	return p, p.err
}

// failAt keeps the first error, at a byte of the header.
func (p *parser) failAt(at int64, err error, detail string) {
	if p.err == nil {
		p.err = fail(lengthSize+at, err, detail)
	}
}

func (p *parser) fail(err error, detail string) { p.failAt(p.dec.InputOffset(), err, detail) }

// token returns the next token, or nil after an error.
func (p *parser) token() json.Token {
	if p.err != nil {
		return nil
	}
	from := p.dec.InputOffset()
	t, err := p.dec.Token()
	if err != nil {
		at := p.dec.InputOffset()
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = e.Offset
		}
		why := err.Error()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			at, why = int64(len(p.text)), "the header's JSON ends early"
		}
		p.failAt(min(at, int64(len(p.text))), file.ErrFormat, why)
		return nil
	}
	if s, ok := t.(string); ok && strings.ContainsRune(s, utf8.RuneError) && halves(p.text[from:p.dec.InputOffset()]) {
		p.failAt(from, file.ErrFormat, "half of a surrogate pair")
		return nil
	}
	return t
}

// halves tells whether a JSON text has a \u escape for half of a character without the other half, which encoding/json
// replaces silently: two names would become one.
func halves(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		switch first := escape(text, i-1); {
		case first >= 0xdc00 && first <= 0xdfff:
			return true
		case first >= 0xd800 && first <= 0xdbff:
			if second := escape(text, i+5); second < 0xdc00 || second > 0xdfff {
				return true
			}
			i += 6
		}
	}
	return false
}

// escape returns the number of the \u escape at text[at:], or 0.
func escape(text []byte, at int) uint64 {
	if at+6 > len(text) || text[at] != '\\' || text[at+1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(text[at+2:at+6]), 16, 16)
	return n
}

// object calls field for each key of an object, to read its value.
func (p *parser) object(field func(key string)) {
	if !p.delim('{') {
		return
	}
	for p.err == nil && p.dec.More() {
		if key, ok := p.token().(string); ok {
			field(key)
		}
	}
	p.delim('}')
}

func (p *parser) delim(want json.Delim) bool {
	t := p.token()
	if p.err == nil && t != want {
		p.fail(file.ErrFormat, "expected "+want.String())
	}
	return p.err == nil
}

func (p *parser) str() string {
	s, ok := p.token().(string)
	if !ok {
		p.fail(file.ErrFormat, "expected text")
	}
	return s
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
	h := file.Header{Name: name}
	seen := map[string]bool{}
	var offsets []int64
	p.object(func(key string) {
		if seen[key] {
			p.fail(file.ErrDuplicate, stream.Quote(name)+", "+stream.Quote(key))
		}
		seen[key] = true
		switch key {
		case "dtype":
			s := p.str()
			t, ok := typeOf(s)
			if !ok {
				p.fail(file.ErrType, stream.Quote(name)+": "+stream.Quote(s))
			}
			h.Type = t
		case "shape":
			h.Shape = p.numbers(stream.MaxDims)
		case "data_offsets":
			offsets = p.numbers(2)
		default:
			p.fail(file.ErrFormat, stream.Quote(name)+": unknown key "+stream.Quote(key))
		}
	})
	if p.err != nil {
		return
	}
	if len(seen) != 3 || len(offsets) != 2 {
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

// numbers reads an array of whole numbers.
func (p *parser) numbers(most int) []int64 {
	v := []int64{}
	if !p.delim('[') {
		return nil
	}
	for p.err == nil && p.dec.More() {
		t, _ := p.token().(json.Number)
		n, err := strconv.ParseInt(string(t), 10, 64)
		if err != nil || strings.HasPrefix(string(t), "-") {
			p.fail(file.ErrFormat, "expected a whole number")
		}
		if len(v) == most {
			p.fail(file.ErrTooLarge, "more than "+strconv.Itoa(most)+" numbers")
		}
		v = append(v, n)
	}
	p.delim(']')
	return v
}
