// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package dlpack

import (
	"context"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/cogent"
)

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
	case *wgpu.Buffer:
		if place == OnHost {
			break
		}
		ref, back := cogent.Raw(h)
		t.Device, t.Handle = Device{WebGPU, 0}, uintptr(ref)
		t.origin = lent{b, t.Handle}
		return back, nil
	}
	return nil, fail("FromArray", gpu.ErrUnsupported, "the memory of "+b.Device().Info().Driver)
}

// onDevice makes an array of a WGPUBuffer of the device. One that comes back is still the buffer that was lent: the array
// takes a share of that, and the loan is over.
func (t *Tensor) onDevice(op string, dev *gpu.Device, shape, strides []int, offset int) (*ndarray.Array, error) {
	switch {
	case t.Device.Type != WebGPU:
		return nil, fail(op, gpu.ErrUnsupported, t.Device.String())
	case t.Flags&ReadOnly != 0:
		return nil, fail(op, gpu.ErrReadOnly, "a WGPUBuffer")
	}
	if o, ok := t.origin.(lent); ok && o.handle == t.Handle && o.buf.Device() == dev {
		a, err := ndarray.New(o.buf, t.Type, shape, strides, offset)
		if err == nil && t.Release != nil {
			t.Release()
		}
		return a, err
	}
	d, ok := dev.Handle().(*wgpu.Device)
	if !ok || t.origin != any(dev) {
		return nil, fail(op, gpu.ErrForeign, "not known to be of this device")
	}
	return ndarray.WrapBuffer(dev, cogent.FromRaw(d, at(t.Handle)), t.Type, shape, ndarray.Placement{Strides: strides, Offset: offset, Release: t.Release})
}
