// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/shaders/fuse"
)

// Half is the bits of an IEEE 754 binary16 number. Matrices of it take half the memory of float32; arithmetic on them is
// done in float32.
type Half uint16

// ToHalf rounds to the nearest Half, ties to even.
func ToHalf(f float32) Half { return Half(fuse.FloatToHalf(f)) }

// Float32 returns the number.
func (h Half) Float32() float32 { return fuse.HalfToFloat(uint16(h)) }

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
