// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"encoding/binary"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/host"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Half is an IEEE 754 binary16 number. Matrices of it take half the memory of float32; arithmetic on them is done in float32.
// Scalars are made with [ToHalf]: Scale(ToHalf(2), m). Two are == if their bits are; see [dtype.Half].
type Half = dtype.Half

// ToHalf rounds to the nearest Half, ties to even. Beyond 65504, from 65520 on, that is infinite.
func ToHalf(f float32) Half { return dtype.ToHalf(float64(f)) }

// HalfSlice is a slice of bits as Halfs, for [Wrap] and [FromSlice]: of the same memory, nothing is copied. It takes []uint16
// and slices of types such as Float16 of github.com/x448/float16. The length and the capacity are those of bits; nil stays nil.
func HalfSlice[B ~uint16](bits []B) []Half {
	return unsafe.Slice((*Half)(unsafe.Pointer(unsafe.SliceData(bits))), cap(bits))[:len(bits)]
}

// HalfBits is the inverse of [HalfSlice]: the same memory as integers, as in HalfBits[uint16](h).
func HalfBits[B ~uint16](h []Half) []B {
	return unsafe.Slice((*B)(unsafe.Pointer(unsafe.SliceData(h))), cap(h))[:len(h)]
}

// Any is the element type of matrices whose type is known at run time only, as those of files are: a Dense[Any] has the type
// that its options say, and [As] makes a Dense of a type of Go's of it. A number of type Any holds every number of the other
// types exactly. Where it becomes an element it is converted to the matrix's type: rounded to a float, or cut to a whole number, to
// the nearest one there is. In an expression it has the type that is computed in. An expression of numbers alone is float32.
type Any float64

// Elem is the constraint of element types. Those of less than four bytes are storage: expressions compute with 32 bits, in float32,
// int32 or uint32, and what is assigned to a matrix of int8, uint8, int16 or uint16 wraps as in Go. So sums of products of int8 are
// exact where they are converted to int32 before they are stored: Convert[int32](Mul(a, b)). A bool is 0 or 1 of uint32; what is
// assigned to a matrix of them is true unless it is 0.
//
// A complex64 is two float32, and what is computed of it is computed of those, in float32. Sums, differences, products of both kinds,
// quotients and powers are defined, [Exp], [Log], [Sqrt], [Sin], [Cos], [Tan], [Sinh], [Cosh] and [Tanh], comparisons for equality,
// sums, means, variances, norms, [Solve] and [Inverse], and all that makes, shapes or gathers; other operations are
// [gpu.ErrUnsupported]. Operands of float32 may stand beside complex ones. What is real, such as [Abs] or a norm, becomes complex64 where that
// is T; [Real] has it as float32.
type Elem interface {
	float32 | int32 | uint32 | Half | Any | int8 | uint8 | int16 | uint16 | bool | complex64
}

// DType names an element type at run time. Its String method returns NumPy's name; its Size is the bytes of one element.
type DType = fuse.Type

// The element types.
const (
	Float32 = fuse.F32
	Int32   = fuse.I32
	Uint32  = fuse.U32
	Float16 = fuse.F16
	Int8    = fuse.I8
	Uint8   = fuse.U8
	Int16   = fuse.I16
	Uint16  = fuse.U16
	Bool    = fuse.Bool

	Complex64 = fuse.C64
)

// numberOf returns the element type that T is, [expr.Untyped] for Any, and the number as a float64, which holds it exactly: of a complex
// one the real part.
func numberOf[T Elem](v T) (fuse.Type, float64) {
	switch v := any(v).(type) {
	case float32:
		return fuse.F32, float64(v)
	case int32:
		return fuse.I32, float64(v)
	case uint32:
		return fuse.U32, float64(v)
	case Half:
		return fuse.F16, float64(v.Float32())
	case int8:
		return fuse.I8, float64(v)
	case uint8:
		return fuse.U8, float64(v)
	case int16:
		return fuse.I16, float64(v)
	case uint16:
		return fuse.U16, float64(v)
	case bool:
		return fuse.Bool, float64(shaders.Bit(v))
	case complex64:
		return fuse.C64, float64(real(v))
	}
	return expr.Untyped, float64(any(v).(Any))
}

func typeOf[T Elem]() fuse.Type {
	t, _ := numberOf(*new(T))
	return t
}

// isAny reports whether T is Any.
func isAny[T Elem]() bool { return typeOf[T]() == expr.Untyped }

// Host returns the memory of a slice of elements, and nothing of numbers of type [Any], which are in no matrix's memory.
func Host[T Elem](data []T) gpu.Host {
	if isAny[T]() {
		return gpu.Host{}
	}
	return hostOf(data)
}

func hostOf[T any](data []T) gpu.Host { return gpu.HostBytes(host.BytesOf(data)) }

// packed returns elements as a matrix of type t has them: the memory of data itself, a copy of numbers of type Any.
func packed[T Elem](t fuse.Type, data []T) gpu.Host {
	numbers, ok := any(data).([]Any)
	if !ok || numbers == nil {
		return hostOf(data)
	}
	out := make([]byte, 0, len(numbers)*t.Size())
	for _, v := range numbers {
		var word [8]byte // a complex number's imaginary part is 0
		binary.LittleEndian.PutUint32(word[:], t.Store(float64(v)))
		out = append(out, word[:t.Size()]...)
	}
	return gpu.HostBytes(out)
}

// into has read fill the memory of data with elements of type t, which numbers of type Any are made of.
func into[T Elem](t fuse.Type, data []T, read func(gpu.Host) error) error {
	numbers, ok := any(data).([]Any)
	switch {
	case !ok && t == fuse.Bool: // Go knows no other bools than 0 and 1; memory of somebody else's may hold any bytes
		mem := make([]byte, len(data))
		err := read(gpu.HostBytes(mem))
		for i, b := range mem {
			any(data).([]bool)[i] = b != 0
		}
		return err
	case ok && t == fuse.C64:
		return fail("Read", gpu.ErrUnsupported, "complex64 elements as real numbers; As[complex64] has them")
	case !ok:
		return read(hostOf(data))
	}
	size := t.Size()
	mem := make([]byte, len(numbers)*size)
	if err := read(gpu.HostBytes(mem)); err != nil {
		return err
	}
	for i := range numbers {
		var word [4]byte
		copy(word[:], mem[i*size:][:size])
		numbers[i] = Any(t.Load(binary.LittleEndian.Uint32(word[:])))
	}
	return nil
}
