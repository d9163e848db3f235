// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
)

// parser reads the one Python literal that a header is: a dictionary of a string, a boolean and a tuple of integers.
type parser struct {
	text, rest   string
	littleEndian bool // nothing else will do
	shapeAt      int
	// report makes the error at a byte of the text.
	report func(at int, err error, detail string) error
	err    error
}

func (p *parser) header() (h Header, err error) {
	seen := map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.str()
		if seen[key] {
			p.fail(file.ErrFormat, "the key "+stream.Quote(key)+" appears twice")
		}
		seen[key] = true
		p.expect(":")
		switch key {
		case "descr":
			h.Type, h.BigEndian = p.descr()
		case "fortran_order":
			h.Fortran = p.boolean()
		case "shape":
			p.shapeAt = p.at()
			h.Shape = p.tuple()
		default:
			p.fail(file.ErrFormat, "unknown key "+stream.Quote(key))
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if len(seen) != 3 || strings.Trim(p.rest, space) != "" {
		p.fail(file.ErrFormat, "a header has the keys descr, fortran_order and shape and nothing after them")
	}
	if _, _, ok := h.Type.Bytes(h.Shape); !ok && p.err == nil {
		p.err = p.report(p.shapeAt, file.ErrFormat, "impossible shape "+stream.Quote(shapeText(h.Shape)))
	}
	if p.err != nil {
		return Header{}, p.err
	}
	return h, nil
}

func (p *parser) at() int { return len(p.text) - len(p.rest) }

// fail keeps the first error.
func (p *parser) fail(err error, why string) {
	if p.err == nil {
		p.err = p.report(p.at(), err, why)
	}
}

// space is what Python passes over between tokens.
const space = " \t\r\n\f"

// accept takes the token if it is next.
func (p *parser) accept(token string) bool {
	p.rest = strings.TrimLeft(p.rest, space)
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) expect(token string) {
	if p.err == nil && !p.accept(token) {
		p.fail(file.ErrFormat, "expected "+token+" before "+stream.Quote(p.rest))
	}
}

func (p *parser) str() string {
	for _, quote := range []string{"'", `"`} {
		if p.accept(quote) {
			s, rest, ok := strings.Cut(p.rest, quote)
			if !ok || strings.ContainsAny(s, "\\\n") {
				p.fail(file.ErrFormat, "unfinished or escaped text "+stream.Quote(p.rest))
				return ""
			}
			p.rest = rest
			return s
		}
	}
	p.fail(file.ErrFormat, "expected text before "+stream.Quote(p.rest))
	return ""
}

func (p *parser) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

func (p *parser) tuple() []int64 {
	shape := []int64{}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		if len(shape) == stream.MaxDims {
			p.fail(file.ErrTooLarge, "more than "+strconv.Itoa(stream.MaxDims)+" dimensions")
		}
		shape = append(shape, p.number())
		if !p.accept(",") {
			if len(shape) == 1 {
				p.fail(file.ErrFormat, "a shape of one dimension ends with a comma")
			}
			p.expect(")")
			break
		}
	}
	return shape
}

func (p *parser) number() int64 {
	p.accept("") // skip space
	n := 0
	for n < len(p.rest) && (p.rest[n] >= '0' && p.rest[n] <= '9' || n == 0 && p.rest[n] == '-') {
		n++
	}
	v, err := strconv.ParseInt(p.rest[:n], 10, 64)
	if err != nil || v < 0 || v > 0 && p.rest[0] == '0' { // Python 2 took 010 for 8, Python 3 takes it for nothing
		p.fail(file.ErrFormat, "no dimension: "+stream.Quote(p.rest))
		return 0
	}
	p.rest = strings.TrimPrefix(p.rest[n:], "L") // as Python 2 wrote it
	return v
}

// descr reads what names a type to NumPy, usually such as '<f4'.
func (p *parser) descr() (t dtype.Type, big bool) {
	if p.accept("[") {
		p.fail(file.ErrType, "a structure of several fields: "+stream.Quote("["+p.rest))
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
	case ok && big && t.Size() > 1 && p.littleEndian:
		p.fail(file.ErrType, stream.Quote(s)+" is big-endian")
	case ok:
		return t, big && t.Size() > 1
	case name == "V2":
		p.fail(file.ErrType, stream.Quote(s)+", untyped, is how NumPy writes bfloat16")
	default:
		p.fail(file.ErrType, stream.Quote(s)+"; read are bool, int8 to int64, uint8 to uint64, float16 to float64, complex64 and 128")
	}
	return dtype.Type{}, false
}
