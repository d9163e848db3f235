// SPDX-License-Identifier: Apache-2.0

// Package fuse turns element-wise functions into WGSL and into Go.
//
// A kernel file (a product, a reduction, a plain map) has one region between the lines "// @fuse" and "// @end". It
// calls two functions that stand there: apply, which computes a value from the kernel's own value and from operands at
// the same place, and store, which writes it. [Func.Text] generates the region; [NewEval] does the same work in Go for
// the kernel's reference implementation. Both are driven by one [Func], so they cannot drift apart.
//
// Everything is generated for vectors of four neighbours of a row: (i, j) is row i, columns j to j+3, where "row" means
// the result's contiguous dimension runs along j. A matrix stored by columns is handed over transposed.
package fuse

import (
	"hash/fnv"
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/half"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// Type is an element type.
type Type uint8

// The element types. Those of less than four bytes are storage only: they are packed in words and computed in the type of 32 bits.
const (
	F32 Type = iota
	I32
	U32
	F16
	I8
	U8
	I16
	U16
	Bool // a byte, 0 or 1
	C64  // a complex number of two float32: kernels see those

	Types = iota // how many there are
)

// types describes the element types: NumPy's name, the bytes of an element, the type that arithmetic is done in, its name in
// WGSL, and the type in which a storage binding holds elements.
var types = [...]struct {
	name       string
	size       int
	compute    Type
	wgsl, word string
}{
	F32:  {"float32", 4, F32, "f32", "f32"},
	I32:  {"int32", 4, I32, "i32", "i32"},
	U32:  {"uint32", 4, U32, "u32", "u32"},
	F16:  {"float16", 2, F32, "f32", "u32"},
	I8:   {"int8", 1, I32, "i32", "u32"},
	U8:   {"uint8", 1, U32, "u32", "u32"},
	I16:  {"int16", 2, I32, "i32", "u32"},
	U16:  {"uint16", 2, U32, "u32", "u32"},
	Bool: {"bool", 1, U32, "u32", "u32"},
	C64:  {"complex64", 8, C64, "f32", "f32"},
}

// String returns NumPy's name: "float32", "int8", "bool".
func (t Type) String() string { return types[t%Types].name }

// Size returns the bytes of one element.
func (t Type) Size() int { return types[t%Types].size }

// Compute returns the type that arithmetic on t is done in.
func (t Type) Compute() Type { return types[t%Types].compute }

// WGSL returns the scalar type that arithmetic on t is done in: "f32", "i32" or "u32".
func (t Type) WGSL() string { return types[t%Types].wgsl }

// Packed reports whether several elements share a word.
func (t Type) Packed() bool { return t.Size() < 4 }

// shift is how many bits of a word a whole number of the type leaves over.
func (t Type) shift() int { return 32 - 8*t.Size() }

// Load returns the number that an element's bits are: of a complex one its real part.
func (t Type) Load(bits uint32) float64 {
	switch {
	case t == F32 || t == C64:
		return float64(math.Float32frombits(bits))
	case t == F16:
		return float64(half.Float32(uint16(bits)))
	case t.Compute() == I32:
		return float64(int32(bits<<t.shift()) >> t.shift())
	case t == Bool:
		return float64(min(bits&0xff, 1))
	}
	return float64(bits << t.shift() >> t.shift())
}

// Store returns the bits of the element that a number becomes: the nearest float, or the whole number that it is cut to, which
// saturates; NaN becomes 0 then. A bool is 1 for all numbers but 0. Of a complex number they are those of the real part.
func (t Type) Store(v float64) uint32 {
	switch {
	case t == F16:
		return uint32(half.Bits(v))
	case t.Compute() == F32 || t == C64:
		return math.Float32bits(float32(v))
	case t == Bool:
		return uint32(shaders.Bit(v != 0))
	case v != v:
		return 0
	case t.Compute() == I32:
		lo, hi := float64(int32(math.MinInt32)>>t.shift()), float64(int32(math.MaxInt32)>>t.shift())
		return t.Narrow(uint32(int32(min(max(v, lo), hi))))
	}
	return uint32(min(max(v, 0), float64(uint32(math.MaxUint32)>>t.shift())))
}

// Narrow returns the bits of the element that a whole number of 32 bits becomes, which wraps as in Go. A bool is 1 for all but 0.
func (t Type) Narrow(bits uint32) uint32 {
	if t == Bool {
		return min(bits, 1)
	}
	return bits << t.shift() >> t.shift()
}

// Class tells how an operand is read, or the result written, relative to (i, j).
type Class uint8

// The classes. The address of an element is offset + i*row step + j*column step, in elements.
const (
	Vector  Class = iota // column step 1; offset and row step are multiples of 4: one aligned vector
	Gather               // any steps: four loads or stores
	Column               // column step 0: one load for the whole vector
	Crossed              // row step 1; offset and column step are multiples of 4: 4x4 blocks are transposed in registers
	Indexed              // at rows and columns that are computed: by OpAt alone
	Beside               // column step 1: like Gather of neighbours, whose addresses cost less; gpu/simd makes one load or store of them
	Across               // row step 1: like Crossed, whatever the offset and the column step: the blocks are read one by one
)

// View is one operand or the result, as far as the kernel's text depends on it.
type View struct {
	Type  Type
	Class Class
	Slot  uint8 // which of Func.Slots holds it
}

// Slot is one storage binding. Vec binds it in vectors of four elements.
type Slot struct {
	Type Type
	Vec  bool
}

// Instr computes one value from earlier ones; X, Y and Z are their numbers (for OpLoad, OpAt and OpScalar X is the number of
// the operand or scalar, for OpCall X is the function and Y the first of its arguments, which stand in a row).
type Instr struct {
	Op      Op
	X, Y, Z uint8
	Type    Type // of the value: F32, I32 or U32. The operands have it too, but for those of OpConvert, OpAt and OpRandom
}

// Func is an element-wise function. Code computes it: value n is the result of Code[n] and the last one is the result.
type Func struct {
	Type    Type // of the result, and of the kernel's own value: F32, I32 or U32
	Code    []Instr
	Loads   []View
	Store   View // slot 0
	Slots   []Slot
	Scalars int
	Calls   []Call
	Bits    bool // store is given vec4<u32>, the bits of elements of four bytes, and not values of Type
	Flat    bool // every place begins at 0, as whole matrices do: a tenth faster where a shader is software
}

// The limits of one Func. The parameter block has at most 1024 bytes.
const (
	MaxLoads   = 24
	MaxScalars = 96
	MaxSlots   = 7 // storage bindings, the result's included; one more is left for the kernel
)

// Key appends what identifies the function's text to b: everything but offsets, steps, sizes and scalar values.
func (f *Func) Key(b []byte) []byte {
	b = append(b, byte(f.Type), byte(shaders.Bit(f.Flat)|2*shaders.Bit(f.Bits)))
	b = append(b, byte(len(f.Code)), byte(len(f.Loads)), byte(len(f.Slots)), byte(f.Scalars), byte(len(f.Calls)))
	for _, c := range f.Code {
		b = append(b, byte(c.Op), c.X, c.Y, c.Z, byte(c.Type))
	}
	b = append(b, byte(f.Store.Type), byte(f.Store.Class))
	for _, v := range f.Loads {
		b = append(b, byte(v.Type), byte(v.Class), v.Slot)
	}
	for _, s := range f.Slots {
		b = append(b, byte(s.Type), byte(shaders.Bit(s.Vec)))
	}
	for _, c := range f.Calls {
		b = append(b, c.Name+"\x00"+c.WGSL+"\x00"...)
	}
	return b
}

// Place is where a view lies in its buffer: the part of it that is a parameter. Steps and offset are in elements. The size is that
// of operands whose rows and columns are computed.
type Place struct{ Offset, Row, Col, Rows, Cols int }

// Params appends the views and scalars of the parameter block, after the kernel's own Shape: the result's place, the
// operands' places, the sizes of those that are indexed, and the scalars' bits.
func (f *Func) Params(b []byte, store Place, loads []Place, scalars []uint32) []byte {
	b = shaders.Words(b, store.Offset, store.Row, store.Col, 0)
	for _, p := range loads {
		b = shaders.Words(b, p.Offset, p.Row, p.Col, 0)
	}
	for i, p := range loads {
		if f.Loads[i].Class == Indexed {
			b = shaders.Words(b, p.Rows, p.Cols, 0, 0)
		}
	}
	for _, bits := range scalars {
		b = shaders.Words(b, int(bits))
	}
	return append(b, make([]byte, (-len(scalars)&3)*4)...)
}

// Views returns how many vectors of the parameter block precede the scalars: the places, and sizes.
func (f *Func) Views() int {
	n := 1 + len(f.Loads)
	for _, v := range f.Loads {
		n += shaders.Bit(v.Class == Indexed)
	}
	return n
}

// Call is a function of the user's.
type Call struct {
	Name  string // the name after "fn"
	Arity int
	WGSL  string // the whole text, with any functions it needs
}

// What stands before and after a text of the user's in a kernel.
const (
	userBegin = "// The user's, whose names end with "
	userEnd   = "// End of the user's."
)

// NewCall makes a call of a function of a text. Its names get a suffix that depends on the text, so that they are no others'.
func NewCall(scan *wgsl.Scan, name string, arity int) Call {
	h := fnv.New32a()
	_, _ = h.Write([]byte(scan.Text))
	suffix := "_" + strconv.FormatUint(uint64(h.Sum32()), 36)
	text := userBegin + suffix + "\n" + scan.Qualify(suffix) + "\n" + userEnd
	return Call{Name: name + suffix, Arity: arity, WGSL: text}
}

// Blamed words a diagnostic of the text of a kernel as one of the user's text, where that is to blame: it names the line and shows
// it. It returns "" where it is not.
func Blamed(d wgsl.Diagnostic, source string) string {
	shown, at := wgsl.LineOf(source, d.Line)
	begin := strings.LastIndex(source[:max(at, 0)], userBegin)
	if begin < 0 || strings.Contains(source[begin:at]+shown, userEnd) {
		return ""
	}
	suffix, above, _ := strings.Cut(source[begin+len(userBegin):at], "\n")
	d.Line, d.Column = strings.Count(above, "\n")+1, 0 // columns are not those of the user
	return strings.ReplaceAll(d.Show(shown), suffix, "")
}
