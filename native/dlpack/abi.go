// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"fmt"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// Managed is a DLManagedTensorVersioned in C memory, on its way from a producer to its one consumer. unsafe.Pointer(m) is
// what C takes; a pointer from C becomes a Managed by (*Managed)(pointer).
//
// Addresses are integers here: what a foreign library wrote there must not be looked at by the garbage collector.
type Managed struct {
	version version
	context uintptr
	deleter uintptr
	flags   uint64
	tensor  tensor
}

// Legacy is a DLManagedTensor, which DLPack had before version 1.0 and many libraries still use.
type Legacy struct {
	tensor  tensor
	context uintptr
	deleter uintptr
}

type version struct{ major, minor uint32 }

// tensor is a DLTensor.
type tensor struct {
	data       uintptr
	device     Device
	ndim       int32
	code       uint8
	bits       uint8
	lanes      uint16
	shape      uintptr
	strides    uintptr
	byteOffset uint64
}

// lowest is where memory can begin: the first page of an address space is nobody's.
const lowest = 4096

// at makes a pointer of an address in C memory, or of one that is pinned.
func at(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// dims copies n numbers out of C memory, whatever its alignment.
func dims(address uintptr, n int) []int64 {
	v := make([]int64, n)
	if n > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 8*n), unsafe.Slice((*byte)(at(address)), 8*n))
	}
	return v
}

// read makes a Tensor of what a foreign library wrote.
func (f *tensor) read(op string, flags uint64) (*Tensor, error) {
	n := int(f.ndim)
	if n < 0 || n > maxRank {
		return nil, fail(op, ErrShape, fmt.Sprintf("%d dimensions", n))
	}
	if n > 0 && f.shape < lowest || f.strides != 0 && f.strides < lowest {
		return nil, fail(op, ErrShape, "shape or strides are nowhere")
	}
	t := &Tensor{
		Device:     f.device,
		Type:       dtype.Type{Code: f.code, Bits: f.bits, Lanes: f.lanes},
		Shape:      dims(f.shape, n),
		ByteOffset: f.byteOffset,
		Flags:      flags & known,
	}
	if f.strides != 0 {
		t.Strides = dims(f.strides, n)
	}
	e, err := t.judge(op, f.data)
	switch {
	case err != nil:
		return nil, err
	case !f.device.onHost():
		t.Handle = f.data
	case e.elements > 0:
		t.Data = at(f.data)
	}
	t.Strides = t.strides()
	return t, nil
}

// write fills in the structure but for shape and strides, for which there is memory already.
func (f *tensor) write(t *Tensor, e extent) {
	switch {
	case e.elements == 0:
	case t.Device.onHost():
		f.data = uintptr(t.Data)
	default:
		f.data = t.Handle
	}
	f.device, f.byteOffset = t.Device, t.ByteOffset
	f.code, f.bits, f.lanes = t.Type.Code, t.Type.Bits, t.Type.Lanes
	f.ndim = int32(len(t.Shape))
	if f.ndim == 0 {
		return
	}
	copy(unsafe.Slice((*int64)(at(f.shape)), f.ndim), t.Shape)
	copy(unsafe.Slice((*int64)(at(f.strides)), f.ndim), t.strides())
}
