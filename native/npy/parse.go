// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"strconv"
	"strings"
)

// parser reads the one Python literal that a header is: a dictionary of a string, a boolean and a tuple of integers.
type parser struct {
	rest string
	err  error
}

func parseHeader(text string) (Header, error) {
	p := &parser{rest: text}
	var h Header
	seen := map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.str()
		if p.err == nil && seen[key] {
			p.fail("the key " + strconv.Quote(key) + " appears twice")
		}
		seen[key] = true
		p.expect(":")
		switch key {
		case "descr":
			h.Type, h.BigEndian = p.descr()
		case "fortran_order":
			h.Fortran = p.boolean()
		case "shape":
			h.Shape = p.tuple()
		default:
			p.fail("unknown key " + strconv.Quote(key))
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.err == nil && (len(seen) != 3 || strings.Trim(p.rest, " \n") != "") {
		p.fail("a header has the keys descr, fortran_order and shape and nothing after them")
	}
	if p.err != nil {
		return Header{}, p.err
	}
	return h, h.check()
}

func (p *parser) fail(why string) {
	if p.err == nil {
		p.err = malformed("%s", why)
	}
}

// accept takes the token if it is next.
func (p *parser) accept(token string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\n")
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) expect(token string) {
	if p.err == nil && !p.accept(token) {
		p.fail("expected " + strconv.Quote(token) + " before " + strconv.Quote(excerpt(p.rest)))
	}
}

func (p *parser) str() string {
	for _, quote := range []string{"'", `"`} {
		if p.accept(quote) {
			s, rest, ok := strings.Cut(p.rest, quote)
			if !ok || strings.ContainsAny(s, "\\\n") {
				p.fail("unfinished or escaped text " + strconv.Quote(excerpt(p.rest)))
				return ""
			}
			p.rest = rest
			return s
		}
	}
	p.fail("expected text before " + strconv.Quote(excerpt(p.rest)))
	return ""
}

func (p *parser) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

func (p *parser) tuple() []int {
	shape := []int{}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		shape = append(shape, p.number())
		if !p.accept(",") {
			if len(shape) == 1 {
				p.fail("a shape of one dimension ends with a comma")
			}
			p.expect(")")
			break
		}
	}
	return shape
}

func (p *parser) number() int {
	p.accept("") // skip space
	n := 0
	for n < len(p.rest) && (p.rest[n] >= '0' && p.rest[n] <= '9' || n == 0 && p.rest[n] == '-') {
		n++
	}
	v, err := strconv.Atoi(p.rest[:n])
	if err != nil {
		p.fail("no dimension: " + strconv.Quote(excerpt(p.rest)))
		return 0
	}
	p.rest = strings.TrimPrefix(p.rest[n:], "L") // as Python 2 wrote it
	return v
}

// descr reads a type such as '<f4'.
func (p *parser) descr() (t Type, big bool) {
	if p.accept("[") {
		if p.err == nil {
			p.err = wrongType("a structure of several fields")
		}
		return Type{}, false
	}
	s := p.str()
	if p.err != nil {
		return Type{}, false
	}
	body := s
	switch {
	case s == "":
	case strings.IndexByte("<|=", s[0]) >= 0: // written on, and for, little-endian machines
		body = s[1:]
	case s[0] == '>':
		body, big = s[1:], true
	}
	if len(body) >= 2 {
		size, err := strconv.Atoi(body[1:])
		t = Type{body[0], size}
		if err == nil && t.valid() {
			return t, big
		}
	}
	p.err = wrongType("%s; read are bool, int8 to int64, uint8 to uint64, float16, float32 and float64", strconv.Quote(excerpt(s)))
	return Type{}, false
}

// excerpt keeps messages short whatever a file holds.
func excerpt(s string) string {
	const most = 20
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
