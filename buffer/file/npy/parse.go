// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"bytes"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

// parser reads the one Python literal that a header is: a dictionary of a string, a boolean and a tuple of integers.
type parser struct{ stream.Scanner }

// space is what Python passes over between tokens.
const space = " \t\r\n\f"

func (p *parser) header() (h Header, err error) {
	keys, shapeAt := 0, 0
	p.Object(p.str, func(key string) {
		keys++
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
			p.Stop(file.ErrFormat, "unknown key ", stream.Quote(key))
		}
	})
	if keys != 3 || !p.Ended() {
		p.Stop(file.ErrFormat, "a header has the keys descr, fortran_order and shape and nothing after them")
	}
	if _, _, ok := h.Type.Bytes(h.Shape); !ok && p.Err == nil {
		p.Pos = shapeAt
		p.Stop(file.ErrFormat, "impossible shape ", stream.Quote(shapeText(h.Shape)))
	}
	return h, p.Err
}

// str reads a text without escapes.
func (p *parser) str() string {
	for _, quote := range []string{"'", `"`} {
		if !p.Accept(quote) {
			continue
		}
		s, _, ok := bytes.Cut(p.Text[p.Pos:], []byte(quote))
		if !ok || bytes.ContainsAny(s, "\\\n") {
			p.Stop(file.ErrFormat, "unfinished or escaped text ", p.Rest())
			return ""
		}
		p.Pos += len(s) + 1
		return string(s)
	}
	p.Stop(file.ErrFormat, "expected text before ", p.Rest())
	return ""
}

func (p *parser) tuple() []int64 {
	shape := []int64{}
	p.Items("()", func() {
		if len(shape) == stream.MaxDims {
			p.Stop(file.ErrTooLarge, "more than ", stream.MaxDims, " dimensions")
		}
		shape = append(shape, p.Number())
		p.Accept("L") // as Python 2 wrote it
		if len(shape) == 1 && p.Next() != ',' {
			p.Stop(file.ErrFormat, "a shape of one dimension ends with a comma")
		}
	})
	return shape
}

// descr reads NumPy's name of a type, usually such as '<f4'.
func (p *parser) descr() (t dtype.Type, big bool) {
	if p.Next() == '[' {
		p.Stop(file.ErrType, "a structure of several fields: ", p.Rest())
		return dtype.Type{}, false
	}
	s := p.str()
	t, big, ok := typeOf(s)
	switch {
	case ok:
	case s == "V2" || s == "|V2":
		p.Stop(file.ErrType, stream.Quote(s), ", untyped, is how NumPy writes bfloat16")
	default:
		p.Stop(file.ErrType, stream.Quote(s), "; read are bool, int8 to int64, uint8 to uint64, float16 to float64, complex64 and 128")
	}
	return t, big
}
