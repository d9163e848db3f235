// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Half is an IEEE 754 binary16 number. Matrices of it take half the memory of float32; arithmetic on them is done in float32.
// Scalars are made with [ToHalf]: Scale(ToHalf(2), m). Two are == if their bits are; see [dtype.Half].
type Half = dtype.Half

// ToHalf rounds to the nearest Half, ties to even. Beyond 65504, from 65520 on, that is infinite.
func ToHalf(f float32) Half { return dtype.ToHalf(float64(f)) }

// HalfFromBits returns the Half of these bits.
func HalfFromBits(bits uint16) Half { return dtype.HalfFromBits(bits) }

// HalfSlice is a slice of bits as Halfs, for [Wrap] and [FromSlice]: of the same memory, nothing is copied. It takes []uint16
// and slices of types such as Float16 of github.com/x448/float16.
func HalfSlice[B ~uint16](bits []B) []Half { return dtype.HalfSlice(bits) }

// HalfBits is the inverse of [HalfSlice]: the same memory as integers, as in HalfBits[uint16](h).
func HalfBits[B ~uint16](h []Half) []B { return dtype.HalfBits[B](h) }

// Elem is the constraint of element types.
type Elem interface {
	float32 | int32 | uint32 | Half
}

// DType names an element type at run time.
type DType uint8

// The element types.
const (
	Float32 = DType(fuse.F32)
	Int32   = DType(fuse.I32)
	Uint32  = DType(fuse.U32)
	Float16 = DType(fuse.F16)
)

// String returns NumPy's name: "float32", "int32", "uint32" or "float16".
func (t DType) String() string { return [...]string{"float32", "int32", "uint32", "float16"}[t&3] }

// Size returns the bytes of one element.
func (t DType) Size() int { return fuse.Type(t).Size() }

func typeOf[T Elem]() fuse.Type {
	var z T
	switch any(z).(type) {
	case int32:
		return fuse.I32
	case uint32:
		return fuse.U32
	case Half:
		return fuse.F16
	}
	return fuse.F32
}

func dtypeOf[T Elem]() DType { return DType(typeOf[T]()) }

// bytesOf views a slice as its bytes.
func bytesOf[T Elem](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

func hostOf[T Elem](s []T) gpu.Host {
	b := bytesOf(s)
	if b == nil && s != nil {
		b = []byte{}
	}
	return gpu.HostBytes(b)
}
