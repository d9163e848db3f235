// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/host"
)

// Elem is the constraint of Go's element types, with [dtype.Half] for float16. Other types that Go does not have, such as
// bfloat16, are made with a [dtype.Type] and bytes; [Data] reads their bits as unsigned integers.
type Elem interface {
	dtype.Half | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | bool | complex64 | complex128
}

// typeOf returns the element type of T, which has Go's name but for a Half.
func typeOf[T Elem]() dtype.Type {
	if t, ok := dtype.Parse(reflect.TypeFor[T]().Name()); ok {
		return t
	}
	return dtype.Float16
}

// Placement says where in memory of the caller's an array lies, and whose the memory is. The zero value is the whole of
// it, in C order without gaps.
type Placement struct {
	// Strides are the distances in elements of neighbours along each dimension. They may be negative, and 0 for elements
	// that repeat; an array in which elements share memory can be read only.
	Strides []int
	Offset  int // where the first element begins, in bytes
	// Release is called once, when the last user of wrapped memory is closed.
	Release func()
	// ReadOnly says that wrapped memory must not be written: to try is [gpu.ErrReadOnly].
	ReadOnly bool
}

// make checks the layout, takes the memory from get, which is told how many bytes the layout needs, and makes an array of
// it. After an error nothing is taken over.
func (p Placement) make(op string, dev *gpu.Device, t dtype.Type, shape []int, ours bool, get func(int) (*buffer.Buffer, error)) (*Array, error) {
	if dev == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil device")
	}
	l, err := newLayout(op, t, shape, p.Strides, p.Offset)
	if err != nil {
		return nil, err
	}
	_, need, _ := l.span()
	buf, err := get(need)
	if err != nil {
		return nil, named(op, err)
	}
	if err := l.within(op, buf.Size(), dev.Info().Limits.MaxBufferSize); err != nil {
		return nil, cmp.Or(err, buf.Close())
	}
	if p.Release != nil {
		buf.SetRelease(p.Release)
	}
	return newArray(l, dev, nil, newStorage(buf, ours, false)), nil
}

// Alloc makes an array of zeros in memory of the device. Any code is accepted as type; bits must be a power of two from 8
// on, or a single one for TVM's older bool, and there is at least one lane: [ErrType] otherwise. No dimension means one
// element, and dimensions may be 0.
func Alloc(dev *gpu.Device, t dtype.Type, shape ...int) (*Array, error) {
	return Placement{}.make("Alloc", dev, t, shape, true, func(size int) (*buffer.Buffer, error) {
		return buffer.New(dev, size)
	})
}

// FromSlice makes an array in memory of the device with a copy of data, which holds as many elements as the shape, in C
// order. Without a shape the array has one dimension. The caller may change data afterwards.
func FromSlice[T Elem](dev *gpu.Device, data []T, shape ...int) (*Array, error) {
	if shape == nil {
		shape = []int{len(data)}
	}
	return fromBytes("FromSlice", dev, typeOf[T](), host.BytesOf(data), shape)
}

// FromBytes is [FromSlice] for any element type: data is the elements' bytes.
func FromBytes(dev *gpu.Device, t dtype.Type, data []byte, shape ...int) (*Array, error) {
	return fromBytes("FromBytes", dev, t, data, shape)
}

func fromBytes(op string, dev *gpu.Device, t dtype.Type, data []byte, shape []int) (*Array, error) {
	return Placement{}.make(op, dev, t, shape, true, func(size int) (*buffer.Buffer, error) {
		if len(data) != size {
			return nil, fail(op, ErrLength, len(data), " bytes for ", text(shape), " of ", t.String())
		}
		return buffer.FromHost(dev, gpu.HostBytes(data))
	})
}

// Wrap makes an array of the caller's own slice. Nothing is copied: the device gets the bits when a kernel first needs
// them, and results reach the slice at [Array.Sync]. Say [Array.Touch] after changing it.
func Wrap[T Elem](dev *gpu.Device, data []T, shape []int, p Placement) (*Array, error) {
	const op = "Wrap"
	return p.make(op, dev, typeOf[T](), shape, false, func(int) (*buffer.Buffer, error) {
		if data == nil && !slices.Contains(shape, 0) {
			return nil, fail(op, buffer.ErrNil, "for ", text(shape))
		}
		mem := gpu.HostBytes(host.BytesOf(data))
		mem.ReadOnly = p.ReadOnly
		return buffer.Wrap(dev, mem, nil)
	})
}

// New makes an array of a part of a buffer, of which it takes a share: of any element type in wrapped memory of any kind
// ([buffer.Wrap], [buffer.WrapDevice]). Strides are in elements, nil for C order without gaps; offset is in bytes.
func New(buf *buffer.Buffer, t dtype.Type, shape, strides []int, offset int) (*Array, error) {
	const op = "New"
	if buf == nil {
		return nil, fail(op, buffer.ErrNil, "nil buffer")
	}
	p := Placement{Strides: strides, Offset: offset}
	return p.make(op, buf.Device(), t, shape, false, func(int) (*buffer.Buffer, error) {
		if buf.Shares() == 0 {
			return nil, fail(op, gpu.ErrClosed, "the buffer")
		}
		return buf.Share(), nil
	})
}
