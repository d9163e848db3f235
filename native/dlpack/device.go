// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"context"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/buffer"
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
	d, ok := dev.Handle().(*wgpu.Device)
	if !ok || t.origin != any(dev) {
		return nil, false, fail(op, gpu.ErrForeign, "not known to be of this device")
	}
	b, err = buffer.WrapDevice(dev, cogent.FromRaw(d, at(t.Handle)), nil)
	return b, false, err
}
