// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

type buffer struct {
	handle *wgpu.Buffer // what Handle returns: the user's if it was imported
	own    bool
	ref    C.WGPUBuffer
	claim  *claim // of the call of Map that maps it or has mapped it

	populated uint64 // of the bytes before it, those that were mapped are in memory
}

func (d *device) NewBuffer(id driver.BufferID, size uint64, mappable bool) error {
	const op = "NewBuffer"
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.AddBuffer(id, size, mappable, false); err != nil {
		return err
	}
	var e C.cog_error
	C.cog_buffer_new(d.c, C.uint32_t(id), C.uint64_t(size), C.bool(mappable), &e)
	if err := take(op, &e, fault.ErrInvalid); err != nil {
		d.DropBuffer(id)
		d.noticeLoss()
		return err
	}
	d.buffers[id] = &buffer{own: true, ref: C.cog_buffer_handle(d.c, C.uint32_t(id), 0)}
	return nil
}

// ImportBuffer takes a *wgpu.Buffer that is neither mapped nor destroyed. A buffer that is still mapped from its creation
// is refused but unmapped by the attempt: the library offers no other way to find out. What is known goes by wgpu-native's object,
// which several *wgpu.Buffer may name.
func (d *device) ImportBuffer(id driver.BufferID, handle any) (known driver.BufferID, size uint64, err error) {
	const op = "ImportBuffer"
	err = d.borrow(op, handle, func(b *wgpu.Buffer, ref C.WGPUBuffer) error {
		size = uint64(C.wgpuBufferGetSize(ref))
		for other, o := range d.buffers {
			if o.ref == ref && !o.own {
				known = other
				return nil
			}
		}
		const need = C.WGPUBufferUsage_Storage | C.WGPUBufferUsage_CopySrc | C.WGPUBufferUsage_CopyDst
		if C.wgpuBufferGetUsage(ref)&need != need {
			return fail(op, fault.ErrInvalid, "the buffer needs the usages Storage, CopySrc and CopyDst")
		}
		if err := d.AddBuffer(id, size, false, true); err != nil {
			return err
		}
		var e C.cog_error
		C.cog_buffer_import(d.c, C.uint32_t(id), ref, &e)
		if err := take(op, &e, fault.ErrInvalid); err != nil {
			d.DropBuffer(id)
			return err
		}
		d.buffers[id] = &buffer{handle: b, ref: ref}
		known = id
		return nil
	})
	return known, size, err
}

// DestroyBuffer destroys a *wgpu.Buffer. The object itself stays the caller's, to be released.
func (d *device) DestroyBuffer(handle any) error {
	const op = "DestroyBuffer"
	return d.borrow(op, handle, func(_ *wgpu.Buffer, ref C.WGPUBuffer) error {
		var e C.cog_error
		C.cog_buffer_destroy(d.c, ref, &e)
		return take(op, &e, fault.ErrInvalid)
	})
}

// borrow calls use under the lock with a buffer of the user's, which is this device's and alive meanwhile.
func (d *device) borrow(op string, handle any, use func(*wgpu.Buffer, C.WGPUBuffer) error) error {
	b, ok := handle.(*wgpu.Buffer)
	if !ok {
		return fail(op, fault.ErrUnsupported, "not a *wgpu.Buffer of github.com/cogentcore/webgpu")
	}
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	raw := (*bufferStruct)(unsafe.Pointer(b))
	switch {
	case raw == nil || raw.ref == nil || raw.device == nil:
		return fail(op, fault.ErrInvalid, "nil buffer")
	case raw.device != C.cog_handle(d.c):
		return fail(op, fault.ErrForeign)
	case C.cog_take_buffer(raw.ref) == 0:
		return fail(op, fault.ErrClosed, "the buffer was released")
	}
	ref := raw.ref
	defer C.wgpuBufferRelease(ref)
	return use(b, ref)
}

// Handle returns a *wgpu.Buffer, borrowed unless it was imported, or the *wgpu.Device.
func (d *device) Handle(id driver.BufferID) any {
	if id == 0 {
		if errors.Is(d.Usable(""), fault.ErrClosed) {
			return nil
		}
		if deviceRef(d.handle) == nil { // adopted of a device that was closed
			return d.ours
		}
		return d.handle
	}
	if d.lock("Handle") != nil {
		return nil
	}
	defer d.mu.Unlock()
	b := d.buffers[id]
	if b == nil {
		return nil
	}
	if b.handle == nil {
		b.handle = bufferHandle(C.cog_handle(d.c), C.cog_buffer_handle(d.c, C.uint32_t(id), 1))
	}
	return b.handle
}

func (d *device) FreeBuffer(id driver.BufferID) {
	if d.lock("FreeBuffer") != nil {
		return // closing the device releases it
	}
	defer d.freed()
	b := d.buffers[id]
	if b == nil {
		return
	}
	d.DropBuffer(id)
	if b.claim != nil {
		C.cog_unmap(d.c, b.ref)
	}
	C.cog_buffer_free(d.c, C.uint32_t(id), C.bool(b.own))
	delete(d.buffers, id)
}

// Raw returns the WGPUBuffer of a handle, for C code that takes one, with a reference of its own: the object stays until
// release is called, even if the device it belongs to is closed first, though it has no memory any more then. Calls of
// release after the first do nothing. A nil handle has no WGPUBuffer.
func Raw(b *wgpu.Buffer) (ref unsafe.Pointer, release func()) {
	if b == nil {
		return nil, func() {}
	}
	raw := (*bufferStruct)(unsafe.Pointer(b)).ref
	if raw == nil {
		return nil, func() {}
	}
	C.wgpuBufferReference(raw)
	return unsafe.Pointer(raw), sync.OnceFunc(func() { C.wgpuBufferRelease(raw) })
}

// FromRaw makes a handle of a WGPUBuffer of the device. It is borrowed: the reference stays the caller's.
func FromRaw(d *wgpu.Device, ref unsafe.Pointer) *wgpu.Buffer {
	if d == nil || ref == nil {
		return nil
	}
	return bufferHandle(deviceRef(d), C.WGPUBuffer(ref))
}
