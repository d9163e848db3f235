// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// layout is how a type lies in a buffer: WGSL, section 14.4, "Memory layout".
type layout struct {
	size, align int
	elem        elemType // elemTypes where it is none of them
	members     []member // of a struct
}

type member struct {
	name   string
	token  int
	offset int
	elem   elemType
}

// maxDepth bounds types within types.
const maxDepth = 32

// maxLayout bounds sizes, so that they do not overflow.
const maxLayout = 1 << 30

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// layouts remembers the layouts of named types, as structs may hold others of their kind several times over.
type layouts struct {
	*Source
	*wgsl.Scan
	known map[string]layout
}

func (s *Source) layouts() *layouts { return &layouts{s, s.scan, map[string]layout{}} }

// layoutAt lays out the type that these tokens are. It fails for what cannot lie in a buffer of a known size.
func (s *layouts) layoutAt(from, to, depth int) (layout, bool) {
	if from >= to || depth > maxDepth || !s.IsWord(from) {
		return layout{}, false
	}
	if to-from == 1 {
		return s.named(s.At(from), depth)
	}
	if s.Char(from+1) != '<' || s.Char(to-1) != '>' {
		return layout{}, false
	}
	args := s.Split(from+2, to-1)
	if len(args) == 0 {
		return layout{}, false
	}
	inner, ok := s.layoutAt(args[0][0], args[0][1], depth+1)
	if !ok {
		return layout{}, false
	}
	switch name := s.At(from); {
	case name == "atomic" && len(args) == 1:
		return layout{size: inner.size, align: inner.align, elem: elemTypes}, true
	case name == "array" && len(args) == 2:
		n, ok := s.constant(args[1][0], args[1][1])
		stride := roundUp(inner.size, inner.align)
		if !ok || n < 1 || int64(stride)*n > maxLayout {
			return layout{}, false
		}
		return layout{size: stride * int(n), align: inner.align, elem: elemTypes}, true
	case len(args) == 1 && inner.members == nil && inner.size <= 4:
		return shaped(name, inner)
	}
	return layout{}, false
}

// shaped lays out a vector or a matrix of components.
func shaped(name string, of layout) (layout, bool) {
	if lanes, ok := strings.CutPrefix(name, "vec"); ok {
		n := count(lanes)
		if n == 0 {
			return layout{}, false
		}
		v := layout{size: n * of.size, align: []int{2, 4, 4}[n-2] * of.size, elem: elemTypes}
		if of.elem < elemTypes {
			v.elem = of.elem + elemType(n-1)
		}
		return v, true
	}
	shape, ok := strings.CutPrefix(name, "mat")
	cols, rows, found := strings.Cut(shape, "x")
	c, r := count(cols), count(rows)
	if !ok || !found || c == 0 || r == 0 {
		return layout{}, false
	}
	align := []int{2, 4, 4}[r-2] * of.size
	return layout{size: c * roundUp(r*of.size, align), align: align, elem: elemTypes}, true
}

// count reads "2" to "4", or returns 0.
func count(s string) int {
	if len(s) == 1 && '2' <= s[0] && s[0] <= '4' {
		return int(s[0] - '0')
	}
	return 0
}

// named lays out a type that is one word.
func (s *layouts) named(name string, depth int) (t layout, ok bool) {
	if depth > maxDepth {
		return layout{}, false
	}
	if t, ok := s.known[name]; ok {
		return t, t.size > 0
	}
	if d := s.decls[name]; d != nil {
		switch d.sort {
		case anAlias:
			t, ok = s.layoutAt(d.from, d.to, depth+1)
		case aStruct:
			t, ok = s.structure(d, depth+1)
		}
		s.known[name] = t
		return t, ok
	}
	return s.predeclared(name)
}

// predeclared lays out a type of WGSL's own that is one word.
func (s *layouts) predeclared(name string) (layout, bool) {
	component := layout{size: 4, align: 4}
	switch name {
	case "f32":
		component.elem = f32
		return component, true
	case "i32":
		component.elem = i32
		return component, true
	case "u32":
		component.elem = u32
		return component, true
	case "f16":
		return layout{size: 2, align: 2, elem: elemTypes}, true
	}
	// vec3f and its like end in the component's letter.
	letter, ok := map[byte]string{'f': "f32", 'i': "i32", 'u': "u32", 'h': "f16"}[name[len(name)-1]]
	if !ok {
		return layout{}, false
	}
	component, _ = s.predeclared(letter)
	return shaped(name[:len(name)-1], component)
}

// structure lays out a struct of the source's.
func (s *layouts) structure(d *decl, depth int) (layout, bool) {
	all := layout{align: 1, elem: elemTypes, members: []member{}}
	p := parser{Source: s.Source, Scan: s.Scan}
	for _, part := range s.Split(d.from, d.to) {
		p.next = part[0]
		attrs := p.attributes()
		name := p.next
		if !s.IsWord(name) || s.Char(name+1) != ':' {
			return layout{}, false
		}
		t, ok := s.layoutAt(name+2, part[1], depth)
		if !ok {
			return layout{}, false
		}
		for _, a := range attrs {
			n, ok := s.constant(a.from, a.to)
			switch {
			case !ok || n < 1 || n > maxLayout:
				return layout{}, false
			case a.name == "align":
				t.align = int(n)
			case a.name == "size":
				t.size = int(n)
			}
		}
		offset := roundUp(all.size, t.align)
		all.members = append(all.members, member{s.At(name), name, offset, t.elem})
		all.size, all.align = offset+t.size, max(all.align, t.align)
		if all.size > maxLayout {
			return layout{}, false
		}
	}
	all.size = roundUp(all.size, all.align)
	return all, len(all.members) > 0
}

// constant evaluates what is a whole number or a constant that stands for one.
func (s *Source) constant(from, to int) (int64, bool) {
	for range maxDepth {
		if to-from != 1 {
			return 0, false
		}
		text := s.scan.At(from)
		if s.scan.Tokens[from].Kind == wgsl.Number {
			n, err := strconv.ParseInt(strings.TrimRight(text, "iu"), 0, 64)
			return n, err == nil && !strings.Contains(text, "_")
		}
		d := s.decls[text]
		if d == nil || d.sort != aConstant {
			return 0, false
		}
		from, to = d.from, d.to
	}
	return 0, false
}
