// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
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
	p := &parser{Scanner: stream.Scanner{Text: text, Space: " \t\r\n", Fail: func(at int64, err error, detail ...any) error {
		return fail(lengthSize+at, err, detail...)
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
	p.Object(p.str, func(key string) {
		if key != metadataKey {
			p.tensor(key)
			return
		}
		p.metadata = map[string]string{}
		p.Object(p.str, func(key string) { p.metadata[key] = p.str() })
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
	from := p.Pos
	for ; p.Pos < len(p.Text) && p.Text[p.Pos] != '"'; p.Pos++ {
		if p.Text[p.Pos] == '\\' {
			p.Pos++ // what is escaped is no end
		}
	}
	if p.Pos >= len(p.Text) {
		p.Pos = len(p.Text)
		p.Stop(file.ErrFormat, "the header's JSON ends early")
		return ""
	}
	s, ok := unquote(p.Text[from-1 : p.Pos+1])
	if !ok {
		p.Pos = from
		p.Stop(file.ErrFormat, "a control character, or an escape that stands for no character: ", p.Rest())
	}
	p.Pos++
	return s
}

// unquote returns what a JSON text stands for. Half of a surrogate pair is no character: were it replaced, as package json
// does, two names could become one.
func unquote(quoted []byte) (s string, ok bool) {
	text := quoted[1 : len(quoted)-1]
	if !slices.ContainsFunc(text, func(c byte) bool { return c < ' ' || c == '\\' }) {
		return string(text), true
	}
	err := json.Unmarshal(quoted, &s)
	escapes := bytes.ToLower(bytes.ReplaceAll(text, []byte(`\\`), nil))
	given := bytes.Count(text, []byte("\ufffd")) + bytes.Count(escapes, []byte(`\ufffd`))
	return s, err == nil && strings.Count(s, "\ufffd") == given
}

// tensor reads what the header says of one tensor.
func (p *parser) tensor(name string) {
	h := file.Header{Name: name}
	var offsets []int64
	keys := 0
	stop := func(err error, detail ...any) { p.Stop(err, stream.Quote(name), stream.Text(detail...)) }
	p.Object(p.str, func(key string) {
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
	if p.Err != nil {
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
	p.Items("[]", func() {
		if len(v) == most {
			p.Stop(file.ErrTooLarge, "more than ", most, " numbers")
		}
		v = append(v, p.Number())
	})
	return v
}
