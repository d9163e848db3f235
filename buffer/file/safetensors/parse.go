// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// metadataKey is the one key of a header that is no tensor's name.
const metadataKey = "__metadata__"

// parser walks over a header token by token, so that it stops at the first one that is wrong, and sees keys that occur twice.
// After an error nothing more is read.
type parser struct {
	in       *jsontext.Decoder
	tensors  []file.Header
	metadata map[string]string
	err      error
}

// parse reads a header. Offsets of the tensors count from the end of the header.
func parse(text []byte) (*parser, error) {
	p := &parser{in: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))}
	if len(text) == 0 || text[0] != '{' {
		p.stop(file.ErrFormat, "the header does not begin with {")
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
	if rest := text[p.in.InputOffset():]; len(bytes.Trim(rest, " \t\r\n")) > 0 {
		p.stop(file.ErrFormat, "the header goes on after its }")
	}
	return p, p.err
}

// stop keeps an error after the last token, if it is the first one.
func (p *parser) stop(err error, detail ...any) {
	if p.err == nil {
		p.err = fail(lengthSize+p.in.InputOffset(), err, detail...)
	}
}

// next reads a token of a kind and returns its text.
func (p *parser) next(kind jsontext.Kind) string {
	if p.err != nil {
		return ""
	}
	t, err := p.in.ReadToken()
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		p.err = fail(lengthSize+wrong.ByteOffset, file.ErrFormat, wrong.Err.Error())
	}
	if err != nil || t.Kind() != kind {
		p.stop(file.ErrFormat, "expected a ", kind.String())
		return ""
	}
	return t.String()
}

// object calls field for each key of an object, to read its value.
func (p *parser) object(field func(key string)) {
	p.next('{')
	for p.err == nil && p.in.PeekKind() != '}' {
		if key := p.next('"'); p.err == nil {
			field(key)
		}
	}
	p.next('}')
}

// texts reads the metadata.
func (p *parser) texts() {
	p.metadata = map[string]string{}
	p.object(func(key string) {
		if _, ok := p.metadata[key]; ok {
			p.stop(file.ErrDuplicate, metadataKey+", "+stream.Quote(key))
		}
		p.metadata[key] = p.next('"')
	})
}

// tensor reads what the header says of one tensor.
func (p *parser) tensor(name string) {
	h := file.Header{Name: name}
	var offsets []int64
	seen := make([]string, 0, 3)
	stop := func(err error, detail ...any) { p.stop(err, stream.Quote(name), fault.Text(detail...)) }
	p.object(func(key string) {
		if slices.Contains(seen, key) {
			stop(file.ErrDuplicate, ", "+stream.Quote(key))
		}
		seen = append(seen, key)
		switch key {
		case "dtype":
			s := p.next('"')
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
	_, size, ok := h.Type.Bytes(h.Shape)
	switch {
	case len(seen) != 3 || len(offsets) != 2:
		stop(file.ErrFormat, ": a tensor has the keys dtype, shape and data_offsets, which are two")
	case !ok:
		stop(file.ErrFormat, ": impossible shape")
	case offsets[1]-offsets[0] != size:
		stop(file.ErrFormat, ": ", size, " bytes from ", offsets[0], " to ", offsets[1])
	default:
		h.Offset, h.Size = offsets[0], size
		p.tensors = append(p.tensors, h)
	}
}

// numbers reads an array of whole numbers that are not negative.
func (p *parser) numbers(most int) []int64 {
	v := []int64{}
	p.next('[')
	for p.err == nil && p.in.PeekKind() != ']' {
		s := p.next('0')
		n, err := strconv.ParseUint(s, 10, 63)
		switch {
		case err != nil:
			p.stop(file.ErrFormat, "no whole number: ", stream.Quote(s))
		case len(v) == most:
			p.stop(file.ErrTooLarge, "more than ", most, " numbers")
		}
		v = append(v, int64(n))
	}
	p.next(']')
	return v
}
