// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"context"
	"errors"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

// FromArray makes a tensor of an array, for [Export] or [ExportLegacy]. Everything that was called on the device before is
// done when it returns. The tensor keeps a share of the memory, so the array may be closed meanwhile; the device may not if
// the memory is the GPU's. Memory that the library must not write is lent [ReadOnly], elements of less than a byte [Padded].
//
// After a consumer has written into host memory say Touch of the array; one that uses a WGPUBuffer submits to the same queue,
// and there is nothing to say. While memory is lent, kernels and the consumer must not write what the other uses.
//
// It fails with [gpu.ErrInvalid] for a nil context or array and an unknown place, with the errors of array and device, and
// with [gpu.ErrUnsupported] for memory that cannot be lent where it is.
func FromArray(ctx context.Context, a *ndarray.Array, place Place) (*Tensor, error) {
	const op = "FromArray"
	if ctx == nil || a == nil || place > AsCopy {
		return nil, fail(op, gpu.ErrInvalid, "nil context or array, or no such place")
	}
	t := &Tensor{
		Device: Device{CPU, 0}, Type: a.DType(), Shape: converted[int64](a.Shape()), Strides: converted[int64](a.Strides()),
		ByteOffset: uint64(a.Offset()),
	}
	if t.Type.Bits%8 != 0 {
		t.Flags |= Padded
	}
	if place != AsCopy {
		err := t.ofBuffer(ctx, a, place)
		if err == nil {
			return t, nil
		}
		if place == InPlace || !errors.Is(err, gpu.ErrUnsupported) {
			return nil, err
		}
	}
	mem, err := a.Bytes(ctx)
	if err != nil {
		return nil, err
	}
	t.Data, t.Strides, t.ByteOffset = unsafe.Pointer(unsafe.SliceData(mem)), nil, 0
	t.Flags |= Copied
	return t, nil
}

// ofBuffer fills in the array's own memory.
func (t *Tensor) ofBuffer(ctx context.Context, a *ndarray.Array, place Place) error {
	b, err := a.Buffer()
	if err != nil {
		return err
	}
	back := func() {}
	if b.HasHost() {
		var mem gpu.Host
		mem, err = b.SyncHost(ctx)
		t.Data = unsafe.Pointer(unsafe.SliceData(mem.Bytes))
		if mem.ReadOnly {
			t.Flags |= ReadOnly
		}
	} else {
		back, err = t.ofDevice(ctx, b, place)
	}
	if err != nil {
		_ = b.Close()
		return err
	}
	t.Release = func() {
		back()
		_ = b.Close() // whoever could be told is a consumer in another language
	}
	return nil
}

// ToArray makes an array of a tensor in the tensor's memory: host memory becomes the host's side of an array of the
// device, which is written back at Sync, and a WGPUBuffer of this very device is used where it is. The tensor is the
// array's from then on: it is given back when the last user of that memory is closed. A WGPUBuffer that comes back to where
// it was lent shares the memory of the array that it was made of, and is given back at once.
//
// It fails with [gpu.ErrInvalid] for a nil device or tensor, [gpu.ErrClosed], [gpu.ErrForeign] for a WGPUBuffer that is
// not known to be the device's (see [Tensor.Trust]), [gpu.ErrReadOnly] for one that must not be written, [gpu.ErrUnsupported]
// for other devices and for elements that share bytes, what [Export] refuses, and the errors of packages buffer and ndarray.
// The tensor is the caller's to close then.
func ToArray(dev *gpu.Device, t *Tensor) (*ndarray.Array, error) {
	const op = "ToArray"
	if dev == nil || t == nil {
		return nil, fail(op, gpu.ErrInvalid, "nil device or tensor")
	}
	e, err := t.check(op)
	if err == nil {
		err = dev.Usable()
	}
	if err != nil {
		return nil, err
	}
	if t.packed() {
		return nil, fail(op, gpu.ErrUnsupported, t.Type.String(), " without a byte for each")
	}
	if !t.gone.CompareAndSwap(false, true) {
		return nil, fail(op, gpu.ErrClosed, "the tensor")
	}
	var a *ndarray.Array
	var b *buffer.Buffer
	first, comesBack := int(t.ByteOffset), false
	if e.elements == 0 || t.Device.onHost() {
		var mem gpu.Host
		mem, first = t.memory(e)
		b, err = buffer.Wrap(dev, mem, nil)
	} else {
		b, comesBack, err = t.onDevice(op, dev)
	}
	if err == nil {
		a, err = ndarray.New(b, t.Type, converted[int](t.Shape), converted[int](t.strides()), first)
	}
	if err == nil && !comesBack {
		b.SetRelease(t.Release)
	}
	_ = b.Close() // the array has a share of its own
	switch {
	case err != nil:
		t.gone.Store(false)
	case comesBack && t.Release != nil:
		t.Release()
	}
	return a, err
}

// converted copies numbers of 64 bits to another type of as many.
func converted[To, From int | int64](v []From) []To {
	w := make([]To, len(v))
	for i, n := range v {
		w[i] = To(n)
	}
	return w
}

// lent is what a handle of ours stands for. It is valid as long as the tensor is.
type lent struct {
	buf    *buffer.Buffer
	handle uintptr
}

// ofDevice fills in what the driver has: a WGPUBuffer, or Go memory.
func (t *Tensor) ofDevice(ctx context.Context, b *buffer.Buffer, place Place) (back func(), err error) {
	mem, err := b.Memory(buffer.Reads)
	if err == nil {
		err = b.Sync(ctx)
	}
	if err != nil {
		return nil, err
	}
	switch h := mem.Handle().(type) {
	case []byte:
		t.Data = unsafe.Pointer(unsafe.SliceData(h))
		return func() {}, nil
	default:
		if place == OnHost {
			break
		}
		ref, back := core.Raw(h)
		if ref == nil {
			break
		}
		t.Device, t.Handle = Device{WebGPU, 0}, uintptr(ref)
		t.origin = lent{b, t.Handle}
		return back, nil
	}
	return nil, fail("FromArray", gpu.ErrUnsupported, "the memory of "+b.Device().Info().Driver)
}

// onDevice returns a share of a WGPUBuffer of the device, and whether that is a buffer that was lent and comes back.
func (t *Tensor) onDevice(op string, dev *gpu.Device) (b *buffer.Buffer, comesBack bool, err error) {
	switch {
	case t.Device.Type != WebGPU:
		return nil, false, fail(op, gpu.ErrUnsupported, t.Device.text())
	case t.Flags&ReadOnly != 0:
		return nil, false, fail(op, gpu.ErrReadOnly, "a WGPUBuffer")
	}
	if o, ok := t.origin.(lent); ok && o.handle == t.Handle && o.buf.Device() == dev {
		return o.buf.Share(), true, nil
	}
	h := core.FromRaw(dev.Handle(), at(t.Handle))
	if h == nil || t.origin != any(dev) {
		return nil, false, fail(op, gpu.ErrForeign, "not known to be of this device")
	}
	b, err = buffer.WrapDevice(dev, h, nil)
	return b, false, err
}
