// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// elemType is the type of an array's elements, as they lie in memory, or of a scalar.
type elemType uint8

// The element types. f32x3 and its like take 16 bytes in arrays, as WGSL has it. u8 to f16 are for arrays only, as are rawBytes,
// the elements of [Words].
const (
	f32 elemType = iota
	f32x2
	f32x3
	f32x4
	i32
	i32x2
	i32x3
	i32x4
	u32
	u32x2
	u32x3
	u32x4
	u8
	i8
	u16
	i16
	f16
	rawBytes
	elemTypes
)

var elemNames = [elemTypes]string{
	"f32", "vec2<f32>", "vec3<f32>", "vec4<f32>", "i32", "vec2<i32>", "vec3<i32>", "vec4<i32>",
	"u32", "vec2<u32>", "vec3<u32>", "vec4<u32>", "u8", "i8", "u16", "i16", "f16", "bytes",
}

// name returns WGSL's name of the type, or one like it.
func (e elemType) name() string {
	if e >= elemTypes {
		return "unknown"
	}
	return elemNames[e]
}

// size returns how many bytes an element takes in an array, 0 for no type.
func (e elemType) size() int {
	switch e {
	case u8, i8, rawBytes:
		return 1
	case u16, i16, f16:
		return 2
	}
	if e >= elemTypes {
		return 0
	}
	if n := e.lanes(); n != 3 {
		return 4 * n
	}
	return 16
}

// narrow reports whether the type has 8 or 16 bits, which WGSL has no type for.
func (e elemType) narrow() bool { return e >= u8 && e <= f16 }

// scalar reports whether WGSL has the type.
func (e elemType) scalar() bool { return e < u8 }

// lanes returns how many components the types have that WGSL has.
func (e elemType) lanes() int { return int(e%4) + 1 }

// wide returns the type that an element of a widened array has.
func (e elemType) wide() elemType {
	switch e {
	case u8, u16:
		return u32
	case i8, i16:
		return i32
	case f16:
		return f32
	}
	return e
}

// elemOf returns the kernel's view of an element type: float32, int32, uint32 and their vectors of up to four lanes, and as
// elements of arrays uint8, int8, uint16, int16 and float16.
func elemOf(t dtype.Type) (elemType, bool) {
	vector := t
	vector.Lanes = 1
	if n := int(t.Lanes); n >= 1 && n <= 4 {
		for i, base := range []dtype.Type{dtype.Float32, dtype.Int32, dtype.Uint32} {
			if vector == base {
				return elemType(4*i + n - 1), true
			}
		}
	}
	for i, small := range []dtype.Type{dtype.Uint8, dtype.Int8, dtype.Uint16, dtype.Int16, dtype.Float16} {
		if t == small {
			return u8 + elemType(i), true
		}
	}
	return elemTypes, false
}

// Mode says how a kernel sees an array.
type Mode uint8

// The modes. Types of 32 bits and their vectors are Widened, which changes nothing about them; int32 and uint32 may be Atomic,
// too.
const (
	// Widened arrays of 8- and 16-bit elements have 32 bits for each element on the device: u32, i32 or f32. [Widen] and
	// [Narrow] convert. What exceeds the type is cut off when it is narrowed.
	Widened Mode = iota
	// Packed arrays are array<u32>: a word holds four or two elements, and a kernel computes with words. The library adds
	// sublet_load_NAME(i), which returns element i.
	Packed
	// Atomic arrays are array<atomic<u32>>, or array<atomic<i32>> of int32. For 8- and 16-bit elements the library adds
	// sublet_load_NAME(i) and sublet_store_NAME(i, value), with which several invocations may store to different elements of
	// one word.
	Atomic
	// Words are memory of uint8 that kernels see as array<u32>, or as an array of the structs that [Decl.Struct] names.
	Words
)

// Decl declares an array to a kernel.
type Decl struct {
	Name     string
	Type     dtype.Type
	Mode     Mode
	ReadOnly bool // the kernel cannot write it
	// Struct names a struct of the source that Words are an array of. The memory must hold what WGSL's layout says.
	Struct string
	// Window says that the binding may begin at any element, which [Argument.First] tells. The kernel's text is changed so that
	// it goes on to count from the array's beginning. Elsewhere than in front of an index and in arrayLength the kernel cannot
	// name such an array.
	Window bool

	elem elemType
}

// Scalar declares a value to a kernel: a float32, int32, uint32 or a vector of these. Kernels see a variable of their own.
type Scalar struct {
	Name string
	Type dtype.Type

	elem elemType
}

const (
	prefix   = "sublet_" // of the names that are ours
	maxLocal = 1 << 16   // invocations of a workgroup; devices allow fewer
)

// words makes a set of words.
func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// needed are the predeclared names that the library's text uses.
var needed = words(`array atomic bitcast f32 i32 u32 vec2 vec3 vec4
	arrayLength atomicAnd atomicLoad atomicOr firstLeadingBit`)

// reserved are the words of WGSL that cannot be names, the reserved ones included.
var reserved = words(`alias break case const const_assert continue continuing default diagnostic discard else enable false
	fn for if let loop override requires return struct switch true var while NULL Self abstract active alignas alignof as asm
	asm_fragment async attribute auto await become cast catch class co_await co_return co_yield coherent column_major common
	compile compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype delete demote
	demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough filter final finally friend from
	fxgroup get goto groupshared highp impl implements import inline instanceof interface layout lowp macro macro_rules match
	mediump meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent
	noperspective null nullptr of operator package packoffset partition pass patch pixelfragment precise precision premerge
	priv protected pub public readonly ref regardless register reinterpret_cast require resource restrict self set shared
	sizeof smooth snorm static static_assert static_cast std subroutine super target template this thread_local throw trait
	try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where
	with writeonly yield`)

// validName says what is wrong with the name of an array or a scalar, or returns "".
func validName(name string) string {
	switch {
	case name == "" || name == "_" || !utf8.ValidString(name) || len(name) > 1000:
		return "is no name"
	case '0' <= name[0] && name[0] <= '9' || wgsl.WordEnd(name, 0) != len(name):
		return "is no name"
	case strings.HasPrefix(name, "__"):
		return "begins with two underscores"
	case strings.HasPrefix(name, prefix):
		return "begins with " + prefix
	case reserved[name]:
		return "is a word of WGSL"
	case needed[name]:
		return "is a name that the library needs"
	}
	return ""
}
