// SPDX-License-Identifier: Apache-2.0

package wgsl

import (
	"math"
	"strconv"
	"strings"
)

// maxLocal is how many bytes the variables and values of an invocation may have in all functions together: compilers keep them on a
// stack. Arrays and structures count as often as their function is called, and what fits registers but once: its place is used again.
const (
	maxLocal    = 256 << 10
	inRegisters = 64 // bytes of a mat4x4<f32>
)

const (
	maxType   = math.MaxInt32 // bytes of a type: compilers count with 32 bits
	manyBytes = 1 << 40       // what is larger counts as this
	maxNested = 64            // types and constants within each other
	unknown   = -1            // the size of an array whose length is not understood
)

// Excess says what of a compute shader is larger than compilers bear, or than a workgroup's memory, and what they mistake for
// something else: "" for nothing. effort is what compilers may take for it, such as [Effort].
func (s *Scan) Excess(entry string, workgroup uint32, effort int64) string {
	m := s.Types()
	m.effort = effort
	for i := range s.Tokens {
		switch t, end := m.typeAt(i); {
		case t.Size > maxType:
			m.refuse(i, "a type of more than 2 GiB")
		case s.Char(end) == '(' && (t.Size > maxLocal || m.runtimeArray(i, 0)):
			m.refuse(i, "a value that is an array without a length, or of more than "+strconv.Itoa(maxLocal)+" bytes")
		}
	}
	var shared, local int64
	used := map[string]bool{}
	m.reach(entry, used)
	s.declared(func(keyword string, i int) {
		switch space := s.At(i - 2); {
		case keyword != "var" || s.Char(i-1) != '>':
		case space == "workgroup" && used[s.At(i)]:
			if shared = sum(shared, m.variable(i), 1); shared > int64(workgroup) {
				m.refuse(i, "more than the "+strconv.Itoa(int(workgroup))+" bytes that the variables of a workgroup may have")
			}
		case space == "private":
			local = sum(local, m.variable(i), 1)
		}
	})
	s.declared(func(keyword string, i int) {
		f := m.decls[s.At(i)]
		if keyword != "fn" || f.name != i {
			return
		}
		if m.function(f, 0); sum(sum(local, f.Size, 1), f.small, 1) > maxLocal {
			m.refuse(i, "more than "+strconv.Itoa(maxLocal)+" bytes of variables and values of an invocation, with those of the functions it calls")
		}
		if f.effort > effort {
			m.refuse(f.excess, "a compiler would take too long for this function and those it calls, each call counted: statements, loops, "+
				"functions and tables add up to more than "+strconv.FormatInt(effort, 10)+". Divide the kernel")
		}
	})
	return m.why
}

// Types is what a text declares outside of functions. It is not safe for concurrent use.
type Types struct {
	*Scan
	decls  map[string]*decl
	effort int64 // see [Scan.Excess]
	depth  int
	why    string
}

type decl struct {
	keyword string
	name    int
	known   bool
	Layout        // of a struct or an alias; of a function the bytes of arrays and structures that it and what it calls need
	value   int64 // of a constant
	small   int64 // bytes of a function that fit registers, with the most of those it calls
	effort  int64 // of a function, and of those it calls
	excess  int   // the token at which a function's effort is too much
}

// Layout is how a type lies in memory: WGSL, section 14.4, "Memory layout". An array without a length, and what is no such type, has
// the size 0.
type Layout struct {
	Size, Align int64
	Shared      bool     // it has a size, and can be in a buffer
	Scalar      string   // of what it is a number or a vector: "f32"
	Lanes       int      // how many of them
	Each        int64    // bytes of an element of an array, if it can be in a buffer; Scalar and Lanes are then those of the element
	Members     []Member // of a struct
}

// Member is one of a struct.
type Member struct {
	Layout
	Name   int // token
	Offset int64
}

// Types reads the declarations.
func (s *Scan) Types() *Types {
	m := &Types{Scan: s, decls: map[string]*decl{}}
	s.declared(func(keyword string, name int) { m.decls[s.At(name)] = &decl{keyword: keyword, name: name} })
	return m
}

// Layout lays out the type that begins at a token.
func (m *Types) Layout(i int) Layout {
	t, _ := m.typeAt(i)
	return t
}

// Constant evaluates an expression of whole numbers. What is not understood, or negative, is -1.
func (m *Types) Constant(from, to int) int64 {
	if v, end := m.expression(from, 0); end == to && from < to {
		return v
	}
	return unknown
}

// refuse notes the first thing that is wrong.
func (m *Types) refuse(i int, what string) {
	if m.why == "" {
		m.why = "line " + strconv.Itoa(m.Line(i)) + ": " + what
	}
}

// runtimeArray reports whether a type is an array without a length.
func (m *Types) runtimeArray(i, depth int) bool {
	if d := m.decls[m.At(i)]; d != nil && d.keyword == "alias" && depth < maxNested {
		return m.runtimeArray(d.name+2, depth+1)
	}
	t, _ := m.typeAt(i)
	return m.At(i) == "array" && m.Char(i+1) == '<' && t.Size == 0
}

// reach collects the names that a declaration uses.
func (m *Types) reach(name string, used map[string]bool) {
	d := m.decls[name]
	if d == nil || used[name] {
		return
	}
	used[name] = true
	if d.keyword == "fn" {
		for i, to := m.body(d); i < to; i++ {
			if m.Char(i-1) != '.' { // members have names of their own
				m.reach(m.At(i), used)
			}
		}
	}
}

// sum adds n times a size; what is not known is too much.
func sum(to, size, n int64) int64 {
	if size == unknown || size > 0 && n > manyBytes/size {
		return manyBytes
	}
	return min(to+size*n, manyBytes)
}

// typeAt lays out the type that begins at a token, and returns what follows it.
func (m *Types) typeAt(i int) (t Layout, end int) {
	name := m.At(i)
	if m.depth++; m.depth > maxNested || !m.IsWord(i) {
		m.depth--
		return Layout{}, i + 1
	}
	defer func() { m.depth-- }()
	if m.Char(i+1) != '<' {
		return m.named(name), i + 1
	}
	if name != "array" && name != "atomic" && shaped(name, Layout{Size: 4}).Size == 0 { // a comparison, for all we know
		return m.named(name), i + 1
	}
	of, end := m.typeAt(i + 2)
	switch name {
	case "array":
		if t.Align = of.Align; of.Shared {
			t.Scalar, t.Lanes, t.Each = of.Scalar, of.Lanes, roundUp(of.Size, of.Align)
		}
		if m.Char(end) != ',' || m.Char(end+1) == '>' {
			break
		}
		n, next := m.expression(end+1, 0)
		if v, _ := m.operand(end + 2); n == 0 || m.Char(end+1) == '-' && v >= 0 && m.Char(end+3) == '>' {
			m.refuse(end+1, "a length that is no positive number")
		}
		end = next
		if n <= 0 || of.Size == unknown {
			t.Size = unknown
		} else {
			t.Size = sum(0, roundUp(of.Size, of.Align), n)
			t.Shared = of.Shared
		}
	case "atomic":
		t = Layout{Size: of.Size, Align: of.Align, Shared: of.Shared}
	default:
		t = shaped(name, of)
	}
	for m.Char(end) == ',' || m.Char(end) == '>' {
		if end++; m.Char(end-1) == '>' {
			break
		}
	}
	return t, end
}

func roundUp(n, to int64) int64 {
	if to <= 0 {
		return n
	}
	return (n + to - 1) / to * to
}

// shaped lays out a vector or a matrix, by its name without the letter at its end, of components.
func shaped(name string, of Layout) Layout {
	lanes, isVector := strings.CutPrefix(name, "vec")
	shape, isMatrix := strings.CutPrefix(name, "mat")
	cols, rows, _ := strings.Cut(shape, "x")
	vector := func(n int) Layout {
		return Layout{Size: int64(n) * of.Size, Align: int64(n+n%2) * of.Size, Shared: of.Shared, Scalar: of.Scalar, Lanes: n}
	}
	switch n, c := digit(lanes), digit(rows); {
	case isVector && n > 0:
		return vector(n)
	case isMatrix && c > 0:
		v := vector(c)
		return Layout{Size: int64(digit(cols)) * v.Align, Align: v.Align, Shared: v.Shared && digit(cols) > 0}
	}
	return Layout{}
}

// digit reads "2" to "4", or returns 0.
func digit(s string) int {
	if len(s) == 1 && '2' <= s[0] && s[0] <= '4' {
		return int(s[0] - '0')
	}
	return 0
}

// scalars are the sizes of components, and of those of vec3f and its like by the last letter.
var scalars = map[string]int64{
	"bool": 4, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "f64": 8, "i64": 8, "u64": 8,
}

// letters end the names of vec3f and its like.
var letters = [1 << 8]string{'f': "f32", 'i': "i32", 'u': "u32", 'h': "f16"}

// scalar lays out a number or a bool.
func scalar(name string) Layout {
	size := scalars[name]
	return Layout{Size: size, Align: size, Shared: size > 0 && name != "bool", Scalar: name, Lanes: 1}
}

// named lays out a type that is one word.
func (m *Types) named(name string) Layout {
	switch d := m.decls[name]; {
	case d == nil:
	case d.keyword != "alias" && d.keyword != "struct":
		return Layout{}
	case d.known:
		return d.Layout
	default:
		d.known = true // a type in itself has no layout
		if d.keyword == "alias" {
			d.Layout, _ = m.typeAt(d.name + 2)
		} else {
			d.Layout = m.members(d.name + 1)
		}
		return d.Layout
	}
	if scalars[name] > 0 {
		return scalar(name)
	}
	last := max(len(name)-1, 0)
	if letter := name[last:]; letter != "" && letters[letter[0]] != "" {
		return shaped(name[:last], scalar(letters[letter[0]]))
	}
	return Layout{}
}

// members lays out a struct.
func (m *Types) members(open int) (all Layout) {
	if m.Char(open) != '{' {
		return all
	}
	all.Shared = true
	for _, part := range m.Split(open+1, int(m.Match[open])) {
		size, align, i := int64(0), int64(0), part[0]
		for ; i < part[1] && m.Char(i) != ':'; i++ {
			if n, _ := m.expression(i+2, 0); m.Char(i+1) == '(' && m.At(i) == "size" {
				size = n
			} else if m.Char(i+1) == '(' && m.At(i) == "align" {
				align = min(n, manyBytes)
			}
		}
		t, _ := m.typeAt(i + 1)
		if t.Size == unknown || size == unknown {
			return Layout{Size: unknown, Align: 1}
		}
		align = max(align, t.Align)
		all.Align = max(all.Align, align)
		offset := roundUp(all.Size, align)
		all.Size = sum(offset, max(size, t.Size), 1)
		all.Shared = all.Shared && t.Shared && m.IsWord(i-1)
		all.Members = append(all.Members, Member{t, i - 1, offset})
	}
	all.Size = min(roundUp(all.Size, all.Align), manyBytes)
	return all
}
