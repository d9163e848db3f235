// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// Mode says how a kernel sees an array.
type Mode uint8

// The modes. Types of 32 bits and their vectors are Widened, which does not change them; int32 and uint32 may also be Atomic.
const (
	// Widened arrays of 8- and 16-bit elements have 32 bits for each element on the device: u32, i32 or f32. [Conversions]
	// makes the kernels that convert. Bits beyond the type are cut off when elements are packed again.
	Widened Mode = iota
	// Packed arrays are array<u32>: a word holds four or two elements, and a kernel computes with words. The library adds
	// sublet_load_NAME(i), which returns element i. Packed uint8 may be an array of structs, see [Decl.Struct].
	Packed
	// Atomic arrays are array<atomic<u32>>, or array<atomic<i32>> of int32. For 8- and 16-bit elements the library adds
	// sublet_load_NAME(i) and sublet_store_NAME(i, value), with which several invocations may store to different elements of
	// one word.
	Atomic
)

// Decl declares an array or a scalar to a kernel. Arrays are of float32, int32, uint32 or a vector of two to four of these, which
// takes 16 bytes if it is of three, or of uint8, int8, uint16, int16 or float16.
type Decl struct {
	Name string
	Type dtype.Type
	// Scalar declares a value of 32 bits or a vector of such, which kernels see as a variable. The following fields apply to arrays
	// only.
	Scalar   bool
	Mode     Mode
	ReadOnly bool // the kernel cannot write it
	// Struct makes a Packed array of uint8 an array of the source's struct of this name. The memory must have WGSL's layout of it.
	Struct string
	// Window says that the binding may begin at any element, namely [Argument.First]. The kernel's text is changed so that indices
	// still count from the array's beginning. The kernel can use such an array only with an index and in arrayLength.
	Window bool

	// Build sets the following fields.

	Binding int
	// Unit is how many bytes the kernel's index counts: 4 for widened, packed and atomic arrays, the element's size
	// otherwise, or the size of a struct with its padding.
	Unit int
	// Written is whether the kernel may change the array, judging by its text: a kernel that takes the array's address may.
	Written bool
}

// small reports whether the type has 8 or 16 bits, which WGSL has no type for.
func small(t dtype.Type) bool { return t.Bits < 32 }

// known reports whether an array can have the type.
func known(t dtype.Type) bool {
	if small(t) {
		return t.Lanes == 1 && t.Code <= dtype.Float32.Code && (t.Bits == 16 || t.Bits == 8 && t.Code != dtype.Float32.Code)
	}
	return t.Bits == 32 && t.Code <= dtype.Float32.Code && t.Lanes >= 1 && t.Lanes <= 4
}

// wide returns WGSL's name of the type, or of the one of 32 bits that stands for a small one.
func wide(t dtype.Type) string {
	name := [...]string{"i32", "u32", "f32"}[min(t.Code, dtype.Float32.Code)]
	if t.Lanes > 1 {
		name = "vec" + strconv.Itoa(int(t.Lanes)) + "<" + name + ">"
	}
	return name
}

// stored returns how many bytes an element of an argument has where the kernel sees it.
func (d *Decl) stored() int {
	if d.Mode == Widened {
		return max(d.Type.Size(), 4)
	}
	return d.Type.Size()
}

// element returns the type of what a binding holds.
func (d *Decl) element() string {
	switch {
	case d.Struct != "":
		return d.Struct
	case d.Mode == Atomic && d.Type == dtype.Int32:
		return "atomic<i32>"
	case d.Mode == Atomic:
		return "atomic<u32>"
	case d.Mode == Packed:
		return "u32"
	}
	return wide(d.Type)
}

// component returns the code of the numbers that kernels see.
func (d *Decl) component() uint8 {
	if d.Mode == Packed || d.Mode == Atomic && d.Type != dtype.Int32 {
		return dtype.Uint32.Code
	}
	return d.Type.Code
}

// loads reports whether the library has functions that load the array's elements.
func (d *Decl) loads() bool { return small(d.Type) && d.Mode != Widened && d.Struct == "" }

// wrong says what is wrong with a declaration, or returns "".
func (b *builder) wrong(d *Decl) string {
	name := d.Name
	switch {
	case name == "" || name == "_" || !utf8.ValidString(name) || len(name) > 1000,
		'0' <= name[0] && name[0] <= '9' || wgsl.WordEnd(name, 0) != len(name):
		return "is no name"
	case strings.HasPrefix(name, "__"):
		return "begins with two underscores"
	case strings.HasPrefix(name, prefix):
		return "begins with " + prefix
	case slices.Contains(needed, name):
		return "is a name that the library needs"
	case d.Scalar && (!known(d.Type) || small(d.Type)):
		return "is a scalar, which cannot be of type " + d.Type.String()
	case d.Scalar:
	case !known(d.Type) || d.Mode > Atomic:
		return "has an unknown type or mode"
	case d.Struct != "" && (d.Mode != Packed || d.Type != dtype.Uint8):
		return "cannot be structs, only packed uint8 can"
	case d.Struct != "" && (b.names[d.Struct] == nil || b.names[d.Struct].sort != aStruct):
		return "is of structs, but the source has no struct " + quote(d.Struct)
	case d.Struct != "" && b.structOf(d).Size == 0:
		return "is of structs " + quote(d.Struct) + ", which cannot lie in a buffer"
	case d.Mode == Packed && !small(d.Type):
		return "cannot be packed, only types of 8 and 16 bits can"
	case d.Mode == Atomic && !small(d.Type) && d.Type != dtype.Int32 && d.Type != dtype.Uint32:
		return "is of " + d.Type.String() + ", which cannot be atomic"
	case d.Mode == Atomic && d.ReadOnly:
		return "is atomic, and cannot be read-only"
	}
	return ""
}

// structOf lays out the elements of an array of structs.
func (b *builder) structOf(d *Decl) wgsl.Layout { return b.typeAt(b.names[d.Struct].name) }

const (
	prefix   = "sublet_" // of the names that are ours
	maxLocal = 1 << 16   // invocations of a workgroup; devices allow fewer
)

// needed are the predeclared names that the library's text uses.
var needed = strings.Fields(`array atomic bitcast f32 i32 u32 vec2 vec3 vec4
	arrayLength atomicAnd atomicLoad atomicOr firstLeadingBit`)
