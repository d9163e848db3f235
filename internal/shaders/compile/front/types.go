// SPDX-License-Identifier: Apache-2.0

package front

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// The kinds of numbers without a type, which only constants have.
const (
	abstractInt ir.Kind = 64 + iota
	abstractFloat
)

func isAbstract(k ir.Kind) bool { return k >= abstractInt }
func isInt(k ir.Kind) bool      { return k == ir.I32 || k == ir.U32 || k == abstractInt }
func isFloat(k ir.Kind) bool    { return k == ir.F32 || k == abstractFloat }
func isNumber(k ir.Kind) bool   { return isInt(k) || isFloat(k) }
func isScalar(t *ir.Type) bool  { return t.Kind <= ir.F32 || isAbstract(t.Kind) }

// leaf returns what a value of scalars of one type consists of; a struct stands for itself.
func leaf(t *ir.Type) *ir.Type {
	for t.Elem != nil {
		t = t.Elem
	}
	return t
}

// matrix is one of f32 or of abstract numbers.
func (p *parser) matrix(cols, rows int, k ir.Kind) *ir.Type {
	if k != abstractFloat {
		return p.types.Matrix(cols, rows)
	}
	t := &p.abstract[cols-2][rows-2]
	if *t == nil {
		c := p.types.Vector(rows, k)
		*t = &ir.Type{Kind: ir.Matrix, Elem: c, Len: cols, Size: cols * c.Align, Align: c.Align, Stride: c.Align}
	}
	return *t
}

// withKind is a type with scalars of another kind.
func (p *parser) withKind(t *ir.Type, k ir.Kind) *ir.Type {
	switch t.Kind {
	case ir.Vector:
		return p.types.Vector(t.Len, k)
	case ir.Matrix:
		return p.matrix(t.Len, t.Elem.Len, k)
	case ir.Array:
		return p.types.Array(p.withKind(t.Elem, k), t.Len)
	}
	return p.types.Scalar(k)
}

// common returns the kind to which numbers of two kinds convert.
func common(a, b ir.Kind) (ir.Kind, bool) {
	if a > b {
		a, b = b, a
	}
	switch {
	case a == b, b == abstractInt && isNumber(a), b == abstractFloat && a == ir.F32:
		return a, true
	case a == abstractInt && b == abstractFloat:
		return b, true
	}
	return 0, false
}

// convertible reports whether constants of a type become those of another by themselves.
func convertible(from, to *ir.Type) bool {
	for from != to {
		if isScalar(from) || from.Kind != to.Kind || from.Len != to.Len || from.Kind == ir.Struct {
			k, ok := common(from.Kind, to.Kind)
			return ok && isScalar(from) && isScalar(to) && k == to.Kind
		}
		from, to = from.Elem, to.Elem
	}
	return true
}

// traits are what a type may be used for.
type traits struct {
	known         bool
	constructible bool // it has values
	fixed         bool // it has a size
	shareable     bool // it may be in a buffer
	atomic        bool // there is an atomic in it
	parts, words  int
	depth         int // of types within each other
}

func (p *parser) traitsOf(t *ir.Type) traits {
	r := p.traits[t]
	if r.known {
		return r
	}
	r = traits{known: true, constructible: true, fixed: true, shareable: t.Kind != ir.Bool && !isAbstract(t.Kind), parts: 1, words: 1}
	switch t.Kind {
	case ir.Vector, ir.Matrix, ir.Array:
		r = p.traitsOf(t.Elem)
		r.words *= max(t.Len, 1)
		r.parts++
		r.depth++
		if t.Len == 0 {
			r.constructible, r.fixed = false, false
		}
	case ir.Atomic:
		r.constructible, r.atomic = false, true
	case ir.Struct:
		r.words = 0
		for _, f := range t.Fields {
			e := p.traitsOf(f.Type)
			r.constructible = r.constructible && e.constructible
			r.fixed = r.fixed && e.fixed
			r.shareable = r.shareable && e.shareable
			r.atomic = r.atomic || e.atomic
			r.parts += e.parts
			r.words += e.words
			r.depth = max(r.depth, e.depth+1)
		}
	}
	p.traits[t] = r
	return r
}

// typeName writes a type.
func typeName(t *ir.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind {
	case ir.Bool:
		return "bool"
	case ir.I32:
		return "i32"
	case ir.U32:
		return "u32"
	case ir.F32:
		return "f32"
	case abstractInt:
		return "abstract-int"
	case abstractFloat:
		return "abstract-float"
	case ir.Vector:
		return "vec" + strconv.Itoa(t.Len) + "<" + typeName(t.Elem) + ">"
	case ir.Matrix:
		return "mat" + strconv.Itoa(t.Len) + "x" + strconv.Itoa(t.Elem.Len) + "<" + typeName(t.Elem.Elem) + ">"
	case ir.Atomic:
		return "atomic<" + typeName(t.Elem) + ">"
	case ir.Array:
		if t.Len == 0 {
			return "array<" + typeName(t.Elem) + ">"
		}
		return "array<" + typeName(t.Elem) + ", " + strconv.Itoa(t.Len) + ">"
	}
	return t.Name
}

// typ is a type as a text has it: one of values, or of pointers to such.
type typ struct {
	t          *ir.Type
	ptr, write bool
	space      ir.Space
}

func (t typ) String() string {
	if !t.ptr {
		return typeName(t.t)
	}
	s := "ptr<" + spaces[t.space] + ", " + typeName(t.t)
	if t.space == ir.Storage && t.write {
		s += ", read_write"
	}
	return s + ">"
}

var spaces = [...]string{"function", "private", "workgroup", "uniform", "storage"}

// family is what the name of a type of WGSL means: a type, or one that takes arguments.
type family struct {
	kind       ir.Kind
	cols, rows int // of a matrix; of a vector, rows
	elem       ir.Kind
	whole      bool // with its elements
	ptr        bool
}

// known returns what a name of WGSL means as a type.
func (p *parser) known(name string) (f family, ok bool) {
	switch name {
	case "bool":
		return family{kind: ir.Bool, whole: true}, true
	case "i32":
		return family{kind: ir.I32, whole: true}, true
	case "u32":
		return family{kind: ir.U32, whole: true}, true
	case "f32":
		return family{kind: ir.F32, whole: true}, true
	case "array":
		return family{kind: ir.Array}, true
	case "atomic":
		return family{kind: ir.Atomic}, true
	case "ptr":
		return family{ptr: true}, true
	}
	shape, isVector := strings.CutPrefix(name, "vec")
	if !isVector {
		var isMatrix bool
		if shape, isMatrix = strings.CutPrefix(name, "mat"); !isMatrix || len(shape) < 3 || shape[1] != 'x' {
			return f, false
		}
		f.kind, f.cols, shape = ir.Matrix, int(shape[0])-'0', shape[2:]
	} else {
		f.kind, f.cols = ir.Vector, 2
	}
	if len(shape) == 0 || len(shape) > 2 {
		return f, false
	}
	f.rows = int(shape[0]) - '0'
	if f.rows < 2 || f.rows > 4 || f.cols < 2 || f.cols > 4 {
		return f, false
	}
	if len(shape) == 2 {
		f.whole = true
		switch {
		case shape[1] == 'f':
			f.elem = ir.F32
		case shape[1] == 'i' && isVector:
			f.elem = ir.I32
		case shape[1] == 'u' && isVector:
			f.elem = ir.U32
		case shape[1] == 'h':
			p.fail(p.i, "f16 is not available")
		default:
			return f, false
		}
	}
	return f, true
}

// of makes the type of a vector, matrix or scalar.
func (p *parser) of(f family, elem ir.Kind) *ir.Type {
	switch f.kind {
	case ir.Vector:
		return p.types.Vector(f.rows, elem)
	case ir.Matrix:
		return p.matrix(f.cols, f.rows, elem)
	}
	return p.types.Scalar(f.kind)
}

// valueType reads a type that is no pointer.
func (p *parser) valueType() *ir.Type {
	at := p.i
	t := p.typ()
	if t.ptr {
		p.fail(at, "a pointer has no place here")
	}
	return t.t
}

// typ reads a type.
func (p *parser) typ() typ {
	at := p.i
	name := p.At(at)
	if s := p.lookup(name); s != nil {
		p.i++
		if s.kind != typeSymbol {
			p.fail(at, name, " is no type")
		}
		return s.typ
	}
	f, ok := p.known(name)
	switch {
	case !ok && (name == "f16" || name == "sampler" || strings.HasPrefix(name, "texture_")):
		p.fail(at, name, " is not available")
	case !ok && p.IsWord(at):
		p.fail(at, "no type ", name)
	case !ok:
		p.unexpected("expected a type")
	}
	p.i++
	if f.whole {
		return typ{t: p.of(f, f.elem)}
	}
	if !p.is("<") {
		p.fail(at, name, " needs a type between < and >")
	}
	p.enter()
	t := p.template(at, f)
	p.leave()
	return t
}

// template reads the arguments of a type that takes some.
func (p *parser) template(at int, f family) typ {
	p.expect("<")
	if f.ptr {
		return p.pointerType()
	}
	elemAt := p.i
	elem := p.valueType()
	var t *ir.Type
	switch f.kind {
	case ir.Array:
		n := 0
		if p.accept(",") && !p.is(">") {
			n = p.length()
			p.accept(",")
		}
		t = p.array(elemAt, elem, n)
	case ir.Atomic:
		if elem.Kind != ir.I32 && elem.Kind != ir.U32 {
			p.fail(elemAt, "an atomic is of i32 or u32, not of ", typeName(elem))
		}
		t = p.types.Atomic(elem.Kind)
		p.accept(",")
	default:
		if !isScalar(elem) || f.kind == ir.Matrix && elem.Kind != ir.F32 {
			p.fail(elemAt, p.At(at), " cannot be of ", typeName(elem))
		}
		t = p.of(f, elem.Kind)
		p.accept(",")
	}
	p.expect(">")
	return typ{t: t}
}

// length reads the number of elements of an array.
func (p *parser) length() int {
	saved := p.noClose
	p.noClose = true
	o := p.expression()
	p.noClose = saved
	n := p.integer(o, "the length of an array")
	if n < 1 {
		p.fail(o.at, "the length of an array must be a positive number, not ", strconv.FormatInt(n, 10))
	}
	return int(min(n, maxBytes))
}

// array makes the type of an array, with n = 0 one without a length.
func (p *parser) array(at int, elem *ir.Type, n int) *ir.Type {
	if !p.traitsOf(elem).fixed {
		p.fail(at, "elements of an array cannot be ", typeName(elem))
	}
	if p.traitsOf(elem).depth > maxTypes {
		p.fail(at, "types are nested too deeply")
	}
	if n > maxBytes/((elem.Size+elem.Align-1)/elem.Align*elem.Align) {
		p.fail(at, "a type of more than 2 GiB")
	}
	return p.types.Array(elem, n)
}

// pointerType reads what follows ptr<.
func (p *parser) pointerType() typ {
	at := p.i
	t := typ{ptr: true, space: p.space()}
	p.expect(",")
	t.t = p.valueType()
	t.write = t.space != ir.Uniform && t.space != ir.Storage
	if p.accept(",") && !p.is(">") {
		t.write = p.access(t.space)
		p.accept(",")
	}
	p.expect(">")
	p.checkStored(at, t.space, t.t, t.write)
	return t
}

// space reads an address space.
func (p *parser) space() ir.Space {
	word := p.ident()
	for s, name := range spaces {
		if name == word {
			return ir.Space(s)
		}
	}
	p.fail(p.i-1, "no address space ", word)
	return 0
}

// access reads an access mode, and reports whether it is one for writing.
func (p *parser) access(space ir.Space) bool {
	at := p.i
	mode := p.ident()
	switch {
	case space != ir.Storage:
		p.fail(at, "only storage has an access mode")
	case mode != "read" && mode != "read_write":
		p.fail(at, "no access mode ", mode, ": there are read and read_write")
	}
	return mode == "read_write"
}

// checkStored checks that variables of a space can have a type.
func (p *parser) checkStored(at int, space ir.Space, t *ir.Type, write bool) {
	r := p.traitsOf(t)
	ok := r.constructible
	switch space {
	case ir.Storage:
		ok = r.shareable
		if r.atomic && !write {
			p.fail(at, "an atomic must be in storage that is read_write")
		}
	case ir.Uniform:
		ok = ok && r.shareable
	case ir.Workgroup:
		ok = r.fixed
	}
	if !ok {
		p.fail(at, typeName(t), " cannot be in the address space ", spaces[space])
	}
}

// structType reads the members of a struct.
func (p *parser) structType(name string) *ir.Type {
	s := &ir.Type{Kind: ir.Struct, Name: name, Align: 1}
	p.expect("{")
	var inputs []ir.Input
	seen := map[string]bool{}
	parts := 0
	for !p.is("}") {
		a := p.attributes(memberAttributes)
		at := p.i
		f := ir.Field{Name: p.declared()}
		if seen[f.Name] {
			p.fail(at, "two members ", f.Name)
		}
		seen[f.Name] = true
		p.expect(":")
		typeAt := p.i
		f.Type = p.valueType()
		if p.traitsOf(f.Type).depth > maxTypes {
			p.fail(at, "types are nested too deeply")
		}
		if n := len(s.Fields); n > 0 && !p.traitsOf(s.Fields[n-1].Type).fixed {
			p.fail(at, "only the last member can be an array without a length")
		}
		if f.Type.Kind == ir.Struct && !p.traitsOf(f.Type).fixed {
			p.fail(typeAt, "a member cannot be a struct with an array without a length")
		}
		size, align := max(f.Type.Size, a.size), max(f.Type.Align, a.align)
		if a.has["size"] && a.size < f.Type.Size || a.has["align"] && a.align < f.Type.Align {
			p.fail(at, "size and align cannot be less than those of the type")
		}
		f.Offset = (s.Size + align - 1) / align * align
		s.Align = max(s.Align, align)
		s.Size = f.Offset + size
		if s.Fields, parts = append(s.Fields, f), parts+p.traitsOf(f.Type).parts; s.Size > maxBytes || parts > maxParts {
			p.fail(at, "a type of more than 2 GiB, or of too many parts")
		}
		inputs = append(inputs, a.input)
		if !p.accept(",") {
			break
		}
	}
	if len(s.Fields) == 0 {
		p.fail(p.i, "a struct without members")
	}
	p.expect("}")
	if s.Size = (s.Size + s.Align - 1) / s.Align * s.Align; s.Size > maxBytes {
		p.fail(p.i-1, "a type of more than 2 GiB")
	}
	p.inputs[s] = inputs
	return s
}
