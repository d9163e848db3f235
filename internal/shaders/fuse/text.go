// SPDX-License-Identifier: Apache-2.0

package fuse

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders"
)

// text collects WGSL.
type text struct{ strings.Builder }

// put writes a pattern with its arguments; see [shaders.Fill].
func (w *text) put(pattern string, args ...string) { w.WriteString(shaders.Fill(pattern, args...)) }

func num[N int | int64 | uint8](n N) string { return strconv.FormatInt(int64(n), 10) }

// Text returns the region: the parameter struct, the storage bindings numbered from base on, the functions apply, store
// and, if block is set, apply4, then more, the kernel's own part, and the helpers that are called.
//
//	fn fixed() -> Fixed                                 the places and scalars, to be asked for once
//	fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V     the value at row i, columns j..j+3; j is a multiple of 4
//	fn apply4(f: Fixed, i: u32, j: u32) -> Block        rows i..i+3 of it
//	fn store(f: Fixed, i: u32, j: u32, n: u32, v: V)    writes the first n of the four
//
// V is the vector of four of the computed type, T its scalar. The kernel declares struct Shape and reads p.shape. Software
// adapters read the parameter block anew wherever the text does, in every turn of a loop, and check the bounds each time.
func (f *Func) Text(base int, block bool, more string) string {
	w := &text{}
	w.put("alias T = $0;\nalias V = vec4<$0>;\n", f.Type.WGSL())
	f.fixed(w)
	for i, s := range f.Slots {
		mode := "read"
		if i == 0 {
			mode = "read_write"
		}
		w.WriteString(s.Text("s"+num(i), base+i, mode))
	}
	if block {
		f.blocks(w)
	}
	for i, v := range f.Loads {
		f.loader(w, i, v)
		if block && v.Class != Indexed {
			f.loader4(w, i, v)
		}
	}
	f.function(w)
	f.apply(w)
	if block {
		f.apply4(w)
	}
	f.store(w)
	w.WriteString(more)
	return w.String() + Helpers(w.String())
}

// repeat writes a pattern for the numbers from 0 to n-1.
func repeat(n int, pattern string) string {
	w := &text{}
	for i := range n {
		w.put(pattern, num(i))
	}
	return w.String()
}

// each writes a pattern for the operands that are indexed, or for the others: $0 is the number, $1 the vector type and $2 the suffix
// of what has a variant for each type.
func (f *Func) each(indexed bool, pattern string) string {
	w := &text{}
	for i, v := range f.Loads {
		if t := v.Type.Compute(); (v.Class == Indexed) == indexed {
			w.put(pattern, num(i), f.vector(t), f.suffix(t))
		}
	}
	return w.String()
}

// vector names the vector type of a type that is computed in.
func (f *Func) vector(t Type) string {
	if t == f.Type {
		return "V"
	}
	return "vec4<" + t.WGSL() + ">"
}

// suffix ends the names of what there is beside that of the function's own type.
func (f *Func) suffix(t Type) string {
	if t == f.Type {
		return ""
	}
	return "_" + t.WGSL()
}

// blocks declares Block for the types of operands that are not the function's; the kernel itself declares the other.
func (f *Func) blocks(w *text) {
	for _, t := range []Type{F32, I32, U32} {
		if t != f.Type && slices.ContainsFunc(f.Loads, func(v View) bool { return v.Type.Compute() == t && v.Class != Indexed }) {
			w.put("struct Block$1 { a: $0, b: $0, c: $0, d: $0 }\n", f.vector(t), f.suffix(t))
		}
	}
}

// fixed writes the parameter block, the struct Fixed and the function that fills it: the places of the result (o) and of the
// operands (o0, o1, ...), the sizes of those that are indexed (size0, ...), and the scalars.
func (f *Func) fixed(w *text) {
	w.put("struct Params {\n  shape: Shape,\n  views: array<vec4<u32>, $0>,\n", num(f.Views()))
	if f.Scalars > 0 {
		w.put("  scalars: array<vec4<u32>, $0>,\n", num(shaders.Ceil(f.Scalars, 4)))
	}
	w.WriteString("}\n@group(0) @binding(0) var<uniform> p: Params;\nstruct Fixed {\n  o: vec4<u32>,\n" +
		repeat(len(f.Loads), "  o$0: vec4<u32>,\n") + f.each(true, "  size$0: vec4<u32>,\n"))
	for i, t := range f.scalarTypes() {
		w.put("  c$0: $1,\n", num(i), t.WGSL())
	}
	w.WriteString("}\nfn fixed() -> Fixed {\n  return Fixed(" + repeat(f.Views(), "p.views[$0], "))
	for i, t := range f.scalarTypes() {
		w.put("$0(p.scalars[$1].$2), ", t.FromBits(t.WGSL()), num(i/4), "xyzw"[i%4:][:1])
	}
	w.WriteString(");\n}\n")
}

// scalarTypes returns the types that the scalars are of.
func (f *Func) scalarTypes() []Type {
	types := slices.Repeat([]Type{f.Type}, f.Scalars)
	for _, c := range f.Code {
		if c.Op == OpScalar {
			types[c.X] = c.Type
		}
	}
	return types
}

// FromBits names the function that makes a T or a V of t from u32.
func (t Type) FromBits(result string) string {
	if t == U32 {
		return result
	}
	return "bitcast<" + result + ">"
}

// Text declares a storage binding and its accessors: NAME_at reads an element, NAME_quad an aligned vector of four.
func (s Slot) Text(name string, binding int, mode string) string {
	element, at := types[s.Type].word, "$0[o]"
	quad := "vec4<$1>($0[4u * q], $0[4u * q + 1u], $0[4u * q + 2u], $0[4u * q + 3u])"
	switch {
	case s.Type.Size() == 1:
		at, quad = s.Type.unpacked("$0[o >> 2u]", "8u * (o & 3u)", "$0[q]")
	case s.Type.Size() == 2 && s.Vec:
		element = "vec2<u32>"
		at, quad = s.Type.unpacked("$0[o >> 2u][(o >> 1u) & 1u]", "16u * (o & 1u)", "$0[q]")
	case s.Type.Size() == 2:
		at, quad = s.Type.unpacked("$0[o >> 1u]", "16u * (o & 1u)", "vec2<u32>($0[2u * q], $0[2u * q + 1u])")
	case s.Vec:
		element, at, quad = "vec4<"+element+">", "$0[o >> 2u][o & 3u]", "$0[q]"
	}
	return shaders.Fill("@group(0) @binding($2) var<storage, $3> $0: array<$4>;\n"+
		"fn $0_at(o: u32) -> $1 { return "+at+"; }\n"+
		"fn $0_quad(q: u32) -> vec4<$1> { return "+quad+"; }\n", name, s.Type.WGSL(), num(binding), mode, element)
}

// unpacked reads an element of a packed type: it stands in a word from a bit on. It reads a vector of four too, which words hold,
// one or two.
func (t Type) unpacked(word, bit, words string) (at, quad string) {
	if t == F16 {
		return "unpack2x16float(" + word + ")[o & 1u]", "vec4<f32>(unpack2x16float(" + words + ".x), unpack2x16float(" + words + ".y))"
	}
	left := "vec4<u32>(24u, 16u, 8u, 0u)" // that far from the top of a word each element of the vector is
	if t.Size() == 2 {
		words, left = words+".xxyy", "vec4<u32>(16u, 0u, 16u, 0u)"
	}
	over := num(t.shift()) + "u"
	at = shaders.Fill("($0 << ($1 - $2))", word, over, bit)
	quad = shaders.Fill("(vec4<u32>($0) << $1)", words, left)
	if t.Compute() == I32 {
		at, quad = "bitcast<i32>"+at, "bitcast<vec4<i32>>"+quad
	}
	at, quad = at+" >> "+over, quad+" >> vec4<u32>("+over+")"
	if t == Bool {
		at, quad = "min("+at+", 1u)", "min("+quad+", vec4<u32>(1u))"
	}
	return at, quad
}

// packed makes the words of a vector d, whose elements are in range or wrap.
func (t Type) packed(d string) string {
	switch {
	case t == F16:
		return "pack_floats(" + d + ")"
	case t.Size() == 2:
		return "pack_halves(vec4<u32>(" + d + "))"
	case t.Size() == 1:
		return "pack_bytes(vec4<u32>(" + d + "))"
	}
	return d
}

// Inserted is the function that puts element k of a word into it:
//
//	fn inserted(word: u32, k: u32, v: T) -> u32
func (t Type) Inserted(from Type) string {
	bits := "bitcast<u32>((" + t.converted(from, "vec4<"+from.WGSL()+">(v)") + ").x)"
	if t == F16 {
		bits = "pack_floats(vec4<f32>(v)).x"
	}
	return shaders.Fill("fn inserted(word: u32, k: u32, v: $0) -> u32 {\n  let at = $1u * k;\n"+
		"  return (word & ~($2u << at)) | (($3 & $2u) << at);\n}\n", from.WGSL(), num(8*t.Size()), num(1<<(8*t.Size())-1), bits)
}

// base begins the sum that is an element's address.
func (f *Func) base() string {
	if f.Flat {
		return ""
	}
	return "v.x + "
}

// converted is a vector of a type that is computed in as one of elements of type t: floats are rounded to float16, or cut to whole
// numbers that saturate; whole numbers wrap.
func (t Type) converted(from Type, v string) string {
	vector := "vec4<" + t.WGSL() + ">"
	whole := t.Compute() != F32
	limit := func(n int64) string { return vector + "(" + num(n) + t.WGSL()[:1] + ")" } // as in 255u
	switch {
	case t == Bool:
		return shaders.Fill("select(vec4<u32>(1u), vec4<u32>(), $0 == vec4<$1>())", v, from.WGSL())
	case whole && from == F32:
		v = "whole_" + t.WGSL() + "(" + v + ")"
		if !t.Packed() {
			return v
		}
		if t.Compute() == I32 {
			return shaders.Fill("clamp($0, $1, $2)", v, limit(math.MinInt32>>t.shift()), limit(math.MaxInt32>>t.shift()))
		}
		return shaders.Fill("min($0, $1)", v, limit(math.MaxUint32>>t.shift()))
	case whole && t.Packed():
		return shaders.Fill("($0($1) << vec4<u32>($2u)) >> vec4<u32>($2u)", vector, v, num(t.shift()))
	}
	if from == F32 || whole {
		v = vector + "(" + v + ")"
	} else {
		v = "float_" + from.WGSL() + "(" + v + ")"
	}
	if t == F16 {
		return "float16_4(" + v + ")"
	}
	return v
}

// loader writes the function that loads an operand, in the type that is computed in.
func (f *Func) loader(w *text, n int, v View) {
	head := "fn load$0(f: Fixed, i: u32, j: u32) -> $1 {\n  let v = f.o$0;\n"
	read := "  let o = $3i * v.y + j * $4;\n  return $1($2_at(o), $2_at(o + $4), $2_at(o + 2u * $4), $2_at(o + 3u * $4));\n"
	switch v.Class {
	case Vector:
		read = "  return $2_quad(($3i * v.y + j) >> 2u);\n"
	case Column:
		read = "  return $1($2_at($3i * v.y));\n"
	case Indexed:
		head = "fn at$0(f: Fixed, row: vec4<i32>, col: vec4<i32>) -> $1 {\n  let v = f.o$0;\n"
		read = `  let i = bitcast<vec4<u32>>(row);
  let j = bitcast<vec4<u32>>(col);
  let inside = (i < vec4<u32>(f.size$0.x)) & (j < vec4<u32>(f.size$0.y));
  let o = select(vec4<u32>(), $3i * v.y + j * v.z, inside);
  return select($1(), $1($2_at(o.x), $2_at(o.y), $2_at(o.z), $2_at(o.w)), inside);
`
	}
	w.put(head+read+"}\n", num(n), f.vector(v.Type.Compute()), "s"+num(v.Slot), f.base(), v.Class.step())
}

// step is that from an element of a vector to the next.
func (c Class) step() string {
	if c == Beside {
		return "1u"
	}
	return "v.z"
}

// loader4 loads rows i..i+3; a view that lies the other way round is read along its own rows and transposed.
func (f *Func) loader4(w *text, n int, v View) {
	read := "  return Block$4(load$0(f, i, j), load$0(f, i + 1u, j), load$0(f, i + 2u, j), load$0(f, i + 3u, j));\n"
	if v.Class == Crossed || v.Class == Across {
		read = `  let v = f.o$0;
  let o = ($3i + j * v.z)$6;
  let d = v.z$6;
  let a = $5(o);
  let b = $5(o + d);
  let c = $5(o + 2u * d);
  let e = $5(o + 3u * d);
  return Block$4($1(a.x, b.x, c.x, e.x), $1(a.y, b.y, c.y, e.y), $1(a.z, b.z, c.z, e.z), $1(a.w, b.w, c.w, e.w));
`
	}
	slot, vector := "s"+num(v.Slot), f.vector(v.Type.Compute())
	quad, shift := slot+"_quad", " >> 2u"
	if v.Class == Across {
		quad, shift = "four"+num(n), ""
		read += "}\nfn $5(o: u32) -> $1 {\n  return $1($2_at(o), $2_at(o + 1u), $2_at(o + 2u), $2_at(o + 3u));\n"
	}
	w.put("fn load4_$0(f: Fixed, i: u32, j: u32) -> Block$4 {\n"+read+"}\n", num(n), vector, slot, f.base(), f.suffix(v.Type.Compute()), quad, shift)
}

// Function is the WGSL function of a Func's operations.
const Function = "fused"

// function writes the user's functions, and the code as one function of the loaded values.
func (f *Func) function(w *text) {
	for _, c := range f.Calls {
		w.WriteString(c.WGSL + "\n")
	}
	w.WriteString("fn " + Function + "(f: Fixed, i: u32, j: u32, acc: V" + f.each(false, ", x$0: $1") + ") -> V {\n")
	for n, c := range f.Code {
		w.put("  let v$0 = $1;\n", num(n), f.value(c))
	}
	w.put("  return v$0;\n}\n", num(len(f.Code)-1))
}

func (f *Func) value(c Instr) string {
	switch c.Op {
	case OpAcc:
		return "acc"
	case OpLoad:
		return "x" + num(c.X)
	case OpScalar:
		return f.vector(c.Type) + "(f.c" + num(c.X) + ")"
	case OpCall:
		return f.callText(c)
	case OpRow:
		return "vec4<i32>(i32(i))"
	case OpCol:
		return "vec4<i32>(i32(j)) + vec4<i32>(0, 1, 2, 3)"
	case OpAt:
		return shaders.Fill("at$0(f, v$1, v$2)", num(c.X), num(c.Y), num(c.Z))
	case OpRandom:
		v := func(k uint8) string { return "v" + num(c.X+k) }
		return shaders.Fill("random4($0, $1, $2.x, vec2<u32>($3.x, $4.x), vec2<u32>($5.x, $6.x))", v(0), v(1), v(2), v(3), v(4), v(5), v(6))
	case OpConvert:
		return Type(c.Y).converted(f.Code[c.X].Type, "v"+num(c.X))
	}
	text := c.Op.Text(c.Type, "v"+num(c.X), "v"+num(c.Y), "v"+num(c.Z))
	if c.Type != f.Type { // the aliases are those of the function's own type
		text = strings.ReplaceAll(strings.ReplaceAll(text, "V(", f.vector(c.Type)+"("), "T(", c.Type.WGSL()+"(")
	}
	return text
}

// callText calls a scalar function for each of the four components.
func (f *Func) callText(c Instr) string {
	call := f.Calls[c.X]
	var parts []string
	for _, component := range []string{".x", ".y", ".z", ".w"} {
		args := make([]string, call.Arity)
		for a := range args {
			args[a] = "v" + num(int(c.Y)+a) + component
		}
		parts = append(parts, call.Name+"("+strings.Join(args, ", ")+")")
	}
	return f.vector(c.Type) + "(" + strings.Join(parts, ", ") + ")"
}

func (f *Func) apply(w *text) {
	w.put("fn apply(f: Fixed, i: u32, j: u32, acc: V) -> V {\n  return "+Function+"(f, i, j, acc$0);\n}\n", f.each(false, ", load$0(f, i, j)"))
}

func (f *Func) apply4(w *text) {
	w.WriteString("fn apply4(f: Fixed, i: u32, j: u32) -> Block {\n" + f.each(false, "  let x$0 = load4_$0(f, i, j);\n"))
	rows := make([]string, 4)
	for i, row := range []string{".a", ".b", ".c", ".d"} {
		rows[i] = Function + "(f, i + " + num(i) + "u, j, V()" + f.each(false, ", x$0"+row) + ")"
	}
	w.put("  return Block($0);\n}\n", strings.Join(rows, ", "))
}

// store writes the function of that name. A partial vector keeps what lies beyond the row's end. Unaligned elements that are packed
// have none: two rows may share a word there, and the kernel "words" writes whole words by itself.
func (f *Func) store(w *text) {
	t := f.Store.Type
	body := ""
	switch {
	case f.Store.Class == Vector:
		body = `  let o = ($0i * v.y + j) >> 2u;
  var d = c;
  if (n < 4u) { d = select(s0_quad(o), c, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n)); }
  s0[o] = $2;
`
	case t.Packed():
		return
	default:
		body = `  let o = $0i * v.y + j * $4;
  s0[o] = c.x;
  if (n > 1u) { s0[o + $4] = c.y; }
  if (n > 2u) { s0[o + 2u * $4] = c.z; }
  if (n > 3u) { s0[o + 3u * $4] = c.w; }
`
	}
	given, converted := "V", t.converted(f.Type, "r")
	if f.Bits {
		given, converted = "vec4<u32>", t.FromBits("vec4<"+t.WGSL()+">")+"(r)"
	}
	w.put("fn store(f: Fixed, i: u32, j: u32, n: u32, r: $3) {\n  let v = f.o;\n  let c = $1;\n"+body+"}\n", f.base(), converted, t.packed("d"), given, f.Store.Class.step())
}

// Assign returns a function that computes a whole vector and stores it:
//
//	fn assign(f: Fixed, i: u32, j: u32)
//
// Where the destination is a vector, the result is computed in the assignment itself, as WGSL evaluates its left side first: SwiftShader takes
// an eighth less time for a function of several operations then.
func (f *Func) Assign() string {
	body, t := "  store(f, i, j, 4u, apply(f, i, j, V()));\n", f.Store.Type
	if f.Store.Class == Vector {
		result := Function + "(f, i, j, V()" + f.each(false, ", x$0") + ")"
		body = "  let v = f.o;\n" + f.each(false, "  let x$0 = load$0(f, i, j);\n") +
			"  s0[(" + f.base() + "i * v.y + j) >> 2u] = " + t.packed(t.converted(f.Type, result)) + ";\n"
	}
	return "fn assign(f: Fixed, i: u32, j: u32) {\n" + body + "}\n"
}

// Assign4 returns a function that computes four whole vectors, one in each of four rows, and stores them:
//
//	fn assign4(f: Fixed, i: u32, j: u32)
//
// The text has to have apply4.
func (f *Func) Assign4() string {
	w := &text{}
	w.WriteString("fn assign4(f: Fixed, i: u32, j: u32) {\n  let r = apply4(f, i, j);\n")
	vector, t := f.Store.Class == Vector, f.Store.Type
	if vector {
		w.put("  let v = f.o;\n  let o = ($0i * v.y + j) >> 2u;\n", f.base())
	}
	for n, row := range []string{"r.a", "r.b", "r.c", "r.d"} {
		if vector {
			w.put("  s0[o + $0u * (v.y >> 2u)] = $1;\n", num(n), t.packed(t.converted(f.Type, row)))
		} else {
			w.put("  store(f, i + $0u, j, 4u, $1);\n", num(n), row)
		}
	}
	w.WriteString("}\n")
	return w.String()
}
