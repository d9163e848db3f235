// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

// parser reads the one Python literal that a header is: a dictionary of a string, a boolean and a tuple of integers.
type parser struct{ stream.Scanner }

// space is what Python passes over between tokens.
const space = " \t\r\n\f"

func (p *parser) header() (h Header, err error) {
	var seen []string
	shapeAt := 0
	p.Expect("{")
	for p.Err == nil && !p.Accept("}") {
		key := p.str()
		if slices.Contains(seen, key) {
			p.Stop(file.ErrFormat, "the key "+stream.Quote(key)+" appears twice")
		}
		seen = append(seen, key)
		p.Expect(":")
		switch key {
		case "descr":
			h.Type, h.BigEndian = p.descr()
		case "fortran_order":
			if h.Fortran = p.Accept("True"); !h.Fortran {
				p.Expect("False")
			}
		case "shape":
			shapeAt = p.Pos
			h.Shape = p.tuple()
		default:
			p.Stop(file.ErrFormat, "unknown key "+stream.Quote(key))
		}
		if !p.Accept(",") {
			p.Expect("}")
			break
		}
	}
	if len(seen) != 3 || !p.Ended() {
		p.Stop(file.ErrFormat, "a header has the keys descr, fortran_order and shape and nothing after them")
	}
	if _, _, ok := h.Type.Bytes(h.Shape); !ok && p.Err == nil {
		p.Pos = shapeAt
		p.Stop(file.ErrFormat, "impossible shape "+stream.Quote(shapeText(h.Shape)))
	}
	if p.Err != nil {
		return Header{}, p.Err
	}
	return h, nil
}

// str reads a text without escapes.
func (p *parser) str() string {
	for _, quote := range []string{"'", `"`} {
		if !p.Accept(quote) {
			continue
		}
		s, _, ok := bytes.Cut(p.Text[p.Pos:], []byte(quote))
		if !ok || bytes.ContainsAny(s, "\\\n") {
			p.Stop(file.ErrFormat, "unfinished or escaped text "+p.Rest())
			return ""
		}
		p.Pos += len(s) + 1
		return string(s)
	}
	p.Stop(file.ErrFormat, "expected text before "+p.Rest())
	return ""
}

func (p *parser) tuple() []int64 {
	shape := []int64{}
	p.Expect("(")
	for p.Err == nil && !p.Accept(")") {
		if len(shape) == stream.MaxDims {
			p.Stop(file.ErrTooLarge, "more than "+stream.Decimal(stream.MaxDims)+" dimensions")
		}
		shape = append(shape, p.Number())
		p.Accept("L") // as Python 2 wrote it
		if !p.Accept(",") {
			if len(shape) == 1 {
				p.Stop(file.ErrFormat, "a shape of one dimension ends with a comma")
			}
			p.Expect(")")
			break
		}
	}
	return shape
}

// descr reads NumPy's name of a type, usually such as '<f4'.
func (p *parser) descr() (t dtype.Type, big bool) {
	if p.Accept("[") {
		p.Pos--
		p.Stop(file.ErrType, "a structure of several fields: "+p.Rest())
		return dtype.Type{}, false
	}
	s := p.str()
	name := s
	if s != "" && strings.IndexByte("<|=>", s[0]) >= 0 { // = and | were written on, and for, little-endian machines
		big = s[0] == '>'
		name = s[1:]
	}
	t, ok := typeOf(name)
	if !ok && name == s { // NumPy wants no byte order before a name
		t, ok = typeNamed(name)
	}
	switch {
	case ok:
		return t, big && t.Size() > 1
	case name == "V2":
		p.Stop(file.ErrType, stream.Quote(s)+", untyped, is how NumPy writes bfloat16")
	default:
		p.Stop(file.ErrType, stream.Quote(s)+"; read are bool, int8 to int64, uint8 to uint64, float16 to float64, complex64 and 128")
	}
	return dtype.Type{}, false
}
