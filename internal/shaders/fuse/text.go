// SPDX-License-Identifier: Apache-2.0

package fuse

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders"
)

// writer collects WGSL.
type writer struct{ strings.Builder }

// put writes its parts, numbers in decimal.
func (w *writer) put(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			w.WriteString(p)
		case int:
			w.WriteString(strconv.Itoa(p))
		}
	}
}

// Access lists the bindings of a kernel: the parameter block, the kernel's own storage, which it reads, and the function's
// slots, of which it writes the first.
func (f *Func) Access(own ...shaders.Access) []shaders.Access {
	a := append([]shaders.Access{shaders.Params}, own...)
	for i := range f.Slots {
		if i == 0 {
			a = append(a, shaders.ReadWrite)
		} else {
			a = append(a, shaders.Read)
		}
	}
	return a
}

// Text returns the region: the parameter struct, the storage bindings numbered from base on, the functions apply, store
// and, if block is set, apply4.
//
//	fn fixed() -> Fixed                                 the places and scalars, to be asked for once
//	fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V     the value at row i, columns j..j+3; j is a multiple of 4
//	fn apply4(f: Fixed, i: u32, j: u32) -> Block        rows i..i+3 of it
//	fn store(f: Fixed, i: u32, j: u32, n: u32, v: V)    writes the first n of the four
//
// V is the vector of four of the computed type, T its scalar. The kernel declares struct Shape and reads p.shape. Software
// adapters read the parameter block anew wherever the text does, in every turn of a loop, and check the bounds each time.
func (f *Func) Text(base int, block bool) string {
	w := &writer{}
	f.head(w, base)
	if t, ok := f.saturated(); ok {
		w.put(saturate(t))
	}
	f.fixed(w)
	for i, s := range f.Slots {
		s.accessors(w, i)
	}
	for i, v := range f.Loads {
		f.loader(w, i, v)
		if block {
			f.loader4(w, i, v)
		}
	}
	f.function(w)
	f.apply(w)
	if block {
		f.apply4(w)
	}
	f.store(w)
	return w.String()
}

func (f *Func) head(w *writer, base int) {
	t := f.Type.WGSL()
	w.put("alias T = ", t, ";\nalias V = vec4<", t, ">;\n")
	w.put("struct Params {\n  shape: Shape,\n  views: array<vec4<u32>, ", len(f.Loads)+1, ">,\n")
	if n := f.scalarVecs(); n > 0 {
		w.put("  scalars: array<vec4<u32>, ", n, ">,\n")
	}
	w.put("}\n@group(0) @binding(0) var<uniform> p: Params;\n")
	for i, s := range f.Slots {
		mode := "read"
		if i == 0 {
			mode = "read_write"
		}
		w.put("@group(0) @binding(", base+i, ") var<storage, ", mode, "> s", i, ": array<", s.element(), ">;\n")
	}
}

// fixed writes the struct Fixed and the function that fills it: the places of the result (o) and of the operands (o0, o1,
// ...), and the scalars.
func (f *Func) fixed(w *writer) {
	names := []string{"o"}
	for i := range f.Loads {
		names = append(names, "o"+strconv.Itoa(i))
	}
	w.put("struct Fixed {\n")
	for _, n := range names {
		w.put("  ", n, ": vec4<u32>,\n")
	}
	for i := range f.Scalars {
		w.put("  c", i, ": ", f.Type.WGSL(), ",\n")
	}
	w.put("}\nfn fixed() -> Fixed {\n  return Fixed(")
	for i := range names {
		w.put("p.views[", i, "], ")
	}
	for i := range f.Scalars {
		w.put(f.scalar(i), ", ")
	}
	w.put(");\n}\n")
}

// base begins the sum that is an element's address.
func (f *Func) base() string {
	if f.Flat {
		return ""
	}
	return "v.x + "
}

// scalar reads a scalar from the parameter block.
func (f *Func) scalar(n int) string {
	word := "p.scalars[" + strconv.Itoa(n/4) + "]." + "xyzw"[n%4:n%4+1]
	if f.Type == U32 {
		return word
	}
	return "bitcast<" + f.Type.WGSL() + ">(" + word + ")"
}

func (s Slot) element() string {
	switch {
	case !s.Vec:
		return s.Type.word()
	case s.Type == F16:
		return "vec2<u32>"
	}
	return "vec4<" + s.Type.word() + ">"
}

// accessors writes at (one element) and quad (an aligned vector) for a slot.
func (s Slot) accessors(w *writer, n int) {
	t := s.Type.WGSL()
	var at, vec string
	switch {
	case s.Type == F16 && s.Vec:
		at = "unpack2x16float(sN[o >> 2u][(o >> 1u) & 1u])[o & 1u]"
		vec = "vec4<f32>(unpack2x16float(sN[q].x), unpack2x16float(sN[q].y))"
	case s.Type == F16:
		at = "unpack2x16float(sN[o >> 1u])[o & 1u]"
		vec = "vec4<f32>(unpack2x16float(sN[2u * q]), unpack2x16float(sN[2u * q + 1u]))"
	case s.Vec:
		at, vec = "sN[o >> 2u][o & 3u]", "sN[q]"
	default:
		at, vec = "sN[o]", "vec4<"+t+">(sN[4u * q], sN[4u * q + 1u], sN[4u * q + 2u], sN[4u * q + 3u])"
	}
	name := "s" + strconv.Itoa(n)
	w.put("fn at", n, "(o: u32) -> ", t, " { return ", strings.ReplaceAll(at, "sN", name), "; }\n")
	w.put("fn quad", n, "(q: u32) -> vec4<", t, "> { return ", strings.ReplaceAll(vec, "sN", name), "; }\n")
}

// convert wraps a vector of type t into the computed type.
func (f *Func) convert(t Type, expr string) string {
	switch {
	case t.Compute() == f.Type:
		return expr
	case t.Compute() == F32:
		return "whole4(" + expr + ")"
	}
	return "V(" + expr + ")"
}

func (f *Func) loader(w *writer, n int, v View) {
	s := int(v.Slot)
	w.put("fn load", n, "(f: Fixed, i: u32, j: u32) -> V {\n  let v = f.o", n, ";\n")
	raw := "vec4<" + v.Type.WGSL() + ">"
	at := "at" + strconv.Itoa(s)
	switch v.Class {
	case Vector:
		w.put("  return ", f.convert(v.Type, "quad"+strconv.Itoa(s)+"(("+f.base()+"i * v.y + j) >> 2u)"), ";\n")
	case Column:
		w.put("  return ", f.convert(v.Type, raw+"("+at+"("+f.base()+"i * v.y))"), ";\n")
	default:
		w.put("  let o = ", f.base(), "i * v.y + j * v.z;\n")
		w.put("  return ", f.convert(v.Type, raw+"("+at+"(o), "+at+"(o + v.z), "+at+"(o + 2u * v.z), "+at+"(o + 3u * v.z))"), ";\n")
	}
	w.put("}\n")
}

// loader4 loads rows i..i+3; a crossed view is read along its own rows and transposed.
func (f *Func) loader4(w *writer, n int, v View) {
	w.put("fn load4_", n, "(f: Fixed, i: u32, j: u32) -> Block {\n")
	if v.Class != Crossed {
		w.put("  return Block(load", n, "(f, i, j), load", n, "(f, i + 1u, j), load", n, "(f, i + 2u, j), load", n, "(f, i + 3u, j));\n}\n")
		return
	}
	w.put("  let v = f.o", n, ";\n  let o = (", f.base(), "i + j * v.z) >> 2u;\n  let d = v.z >> 2u;\n")
	for l := range 4 {
		w.put("  let c", l, " = ", f.convert(v.Type, "quad"+strconv.Itoa(int(v.Slot))+"(o + "+strconv.Itoa(l)+"u * d)"), ";\n")
	}
	w.put("  return Block(")
	for q, c := range "xyzw" {
		if q > 0 {
			w.put(", ")
		}
		m := string(c)
		w.put("V(c0.", m, ", c1.", m, ", c2.", m, ", c3.", m, ")")
	}
	w.put(");\n}\n")
}

// function writes the user's functions, the helpers and the code as one function of the loaded values.
func (f *Func) function(w *writer) {
	for _, c := range f.Calls {
		w.put(c.WGSL, "\n")
	}
	w.put(helpersOf(f.texts(), ""))
	w.put("fn fused(f: Fixed, acc: V")
	for i := range f.Loads {
		w.put(", x", i, ": V")
	}
	w.put(") -> V {\n")
	for n, c := range f.Code {
		w.put("  let v", n, " = ", f.value(c), ";\n")
	}
	w.put("  return v", len(f.Code)-1, ";\n}\n")
}

func (f *Func) value(c Instr) string {
	num := func(x uint8) string { return strconv.Itoa(int(x)) }
	switch c.Op {
	case OpAcc:
		return "acc"
	case OpLoad:
		return "x" + num(c.X)
	case OpScalar:
		return "V(f.c" + num(c.X) + ")"
	case OpCall:
		return f.callText(c)
	}
	arg := func(x uint8) string { return "v" + num(x) }
	return substitute(c.Op.text(f.Type), [3]string{arg(c.X), arg(c.Y), arg(c.Z)})
}

// callText calls a scalar function for each of the four components.
func (f *Func) callText(c Instr) string {
	call := f.Calls[c.X]
	w := &writer{}
	w.put("V(")
	for l, component := range "xyzw" {
		if l > 0 {
			w.put(", ")
		}
		w.put(call.Name, "(")
		for a := range call.Arity {
			if a > 0 {
				w.put(", ")
			}
			w.put("v", int(c.Y)+a, ".", string(component))
		}
		w.put(")")
	}
	w.put(")")
	return w.String()
}

func (f *Func) apply(w *writer) {
	w.put("fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V {\n  return fused(f, acc")
	for i := range f.Loads {
		w.put(", load", i, "(f, i, j)")
	}
	w.put(");\n}\n")
}

func (f *Func) apply4(w *writer) {
	w.put("fn apply4(f: Fixed, i: u32, j: u32) -> Block {\n")
	for i := range f.Loads {
		w.put("  let x", i, " = load4_", i, "(f, i, j);\n")
	}
	w.put("  return Block(")
	for q, m := range []string{"a", "b", "c", "d"} {
		if q > 0 {
			w.put(", ")
		}
		w.put("fused(f, V()")
		for i := range f.Loads {
			w.put(", x", i, ".", m)
		}
		w.put(")")
	}
	w.put(");\n}\n")
}

// Helper returns the functions that an operation's text calls, except for those that the function's own text has: for
// kernels that use the operation themselves.
func Helper(op Op, f *Func) string {
	own := f.texts()
	return helpersOf(op.text(f.Type), own+helpersOf(own, ""))
}

// texts returns the texts of the function's operations.
func (f *Func) texts() string {
	var text strings.Builder
	for _, c := range f.Code {
		text.WriteString(c.Op.text(f.Type))
	}
	return text.String()
}

// store writes the function of that name. A partial vector keeps what lies beyond the row's end. Unaligned binary16 has
// none: two rows may share a word there, and the kernel "words" writes whole words by itself.
func (f *Func) store(w *writer) {
	t := f.Store.Type
	if t == F16 && f.Store.Class != Vector {
		return
	}
	w.put("fn store(f: Fixed, i: u32, j: u32, n: u32, r: V) {\n  let v = f.o;\n")
	c := "r"
	switch {
	case t.Compute() == f.Type:
	case f.Type == F32:
		c = "whole4(r)"
	default:
		c = "vec4<" + t.WGSL() + ">(r)"
	}
	w.put("  let c = ", c, ";\n")
	switch {
	case f.Store.Class != Vector:
		w.put("  let o = ", f.base(), "i * v.y + j * v.z;\n  s0[o] = c.x;\n")
		for l, m := range []string{"y", "z", "w"} {
			w.put("  if (n > ", l+1, "u) { s0[o + ", l+1, "u * v.z] = c.", m, "; }\n")
		}
	default:
		w.put("  let o = (", f.base(), "i * v.y + j) >> 2u;\n  var d = c;\n")
		w.put("  if (n < 4u) { d = select(quad0(o), c, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }\n")
		if t == F16 {
			w.put("  s0[o] = vec2<u32>(pack2x16float(d.xy), pack2x16float(d.zw));\n")
		} else {
			w.put("  s0[o] = d;\n")
		}
	}
	w.put("}\n")
}

// saturated returns the integer type that floats are converted to: the computed one of loaded floats, or the stored one of
// computed ones.
func (f *Func) saturated() (Type, bool) {
	if f.Type == F32 {
		return f.Store.Type, f.Store.Type.Compute() != F32
	}
	for _, v := range f.Loads {
		if v.Type.Compute() == F32 {
			return f.Type, true
		}
	}
	return 0, false
}

// saturate writes whole4, the conversion of floats to integers of type t: WGSL's own saturates, but not every compiler's. The
// bounds are the outermost floats that the type has; NaN becomes 0.
func saturate(t Type) string {
	lo, hi, over, most := "-2147483648.0", "2147483520.0", "2147483648.0", "2147483647"
	if t == U32 {
		lo, hi, over, most = "0.0", "4294967040.0", "4294967296.0", "4294967295u"
	}
	v := "vec4<" + t.WGSL() + ">"
	return "fn whole4(x: vec4<f32>) -> " + v + " {\n" +
		"  let c = " + v + "(clamp(x, vec4<f32>(" + lo + "), vec4<f32>(" + hi + ")));\n" +
		"  let s = select(c, " + v + "(" + most + "), x >= vec4<f32>(" + over + "));\n" +
		"  return select(s, " + v + "(), (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));\n}\n"
}

// substitute replaces the letters X, Y and Z.
func substitute(pattern string, by [3]string) string {
	var b strings.Builder
	for i := range len(pattern) {
		if c := pattern[i]; c >= 'X' && c <= 'Z' {
			b.WriteString(by[c-'X'])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
