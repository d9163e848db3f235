// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

// #include "core.h"
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

type buffer struct {
	handle any // what Handle returns: the user's if it was imported
	own    bool
	size   uint64 // of one of our own
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
	end, err := d.spare(op, size)
	if err != nil {
		d.DropBuffer(id)
		return err
	}
	defer end()
	var e C.core_error
	C.core_buffer_new(d.c, C.uint32_t(id), C.uint64_t(size), C.bool(mappable), &e)
	if err := d.take(op, &e, fault.ErrInvalid); err != nil {
		d.DropBuffer(id)
		d.noticeLoss()
		return err
	}
	d.memory.taken(size)
	d.buffers[id] = &buffer{own: true, size: size, ref: C.core_buffer_handle(d.c, C.uint32_t(id), 0)}
	return nil
}

// ImportBuffer takes a *wgpu.Buffer that is neither mapped nor destroyed. What is known goes by wgpu-native's object,
// which several *wgpu.Buffer may name.
func (d *device) ImportBuffer(id driver.BufferID, handle any) (known driver.BufferID, size uint64, err error) {
	const op = "ImportBuffer"
	err = d.borrow(op, handle, func(ref C.WGPUBuffer) error {
		size = uint64(C.core_buffer_size(d.c, ref))
		for other, o := range d.buffers {
			if o.ref == ref && !o.own {
				known = other
				return nil
			}
		}
		const need = C.CORE_STORAGE | C.CORE_COPY_SRC | C.CORE_COPY_DST
		if C.core_buffer_usage(d.c, ref)&need != need {
			return d.fail(op, fault.ErrInvalid, "the buffer needs the usages Storage, CopySrc and CopyDst")
		}
		if err := d.AddBuffer(id, size, false, true); err != nil {
			return err
		}
		var e C.core_error
		C.core_buffer_import(d.c, C.uint32_t(id), ref, &e)
		if err := d.take(op, &e, fault.ErrInvalid); err != nil {
			d.DropBuffer(id)
			return err
		}
		d.buffers[id] = &buffer{handle: handle, ref: ref}
		known = id
		return nil
	})
	return known, size, err
}

// DestroyBuffer destroys a *wgpu.Buffer. The object itself stays the caller's, to be released.
func (d *device) DestroyBuffer(handle any) error {
	const op = "DestroyBuffer"
	return d.borrow(op, handle, func(ref C.WGPUBuffer) error {
		for _, b := range d.buffers {
			if b.own && b.ref == ref {
				return d.fail(op, fault.ErrInvalid, "the buffer is Sublet's own")
			}
		}
		var e C.core_error
		C.core_buffer_destroy(d.c, ref, &e)
		return d.take(op, &e, fault.ErrInvalid)
	})
}

// borrow calls use under the lock with a buffer of the user's, which is this device's and alive meanwhile.
func (d *device) borrow(op string, handle any, use func(C.WGPUBuffer) error) error {
	raw, ok := d.lib.Buffer(handle)
	if !ok {
		return d.fail(op, fault.ErrUnsupported, "not a *wgpu.Buffer of "+d.lib.Package)
	}
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	ref := C.WGPUBuffer(raw)
	switch {
	case ref == nil:
		return d.fail(op, fault.ErrInvalid, "nil buffer")
	case !d.lib.Owned(handle, unsafe.Pointer(C.core_handle(d.c))):
		return d.fail(op, fault.ErrForeign)
	case !bool(C.core_take_buffer(d.c, ref)):
		return d.fail(op, fault.ErrClosed, "the buffer was released")
	}
	defer C.core_drop_buffer(d.lib.calls, ref)
	if bool(C.core_foreign(d.lib.calls, C.core_handle(d.c), ref)) {
		return d.fail(op, fault.ErrForeign)
	}
	return use(ref)
}

// Handle returns a *wgpu.Buffer, borrowed unless it was imported, or the *wgpu.Device.
func (d *device) Handle(id driver.BufferID) any {
	if id == 0 {
		if errors.Is(d.Usable(""), fault.ErrClosed) {
			return nil
		}
		if ref, _ := d.lib.Device(d.handle); ref == nil { // adopted of a device that was closed
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
		ref := C.core_buffer_handle(d.c, C.uint32_t(id), 1)
		b.handle = d.lib.NewBuffer(unsafe.Pointer(C.core_handle(d.c)), unsafe.Pointer(ref))
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
	d.unclaim(b)
	C.core_buffer_free(d.c, C.uint32_t(id), C.bool(b.own))
	d.memory.live -= b.size
	delete(d.buffers, id)
}

// Raw returns the WGPUBuffer of a handle, which is a *wgpu.Buffer of a binding that is linked, for C code that takes one. It has a
// reference of its own: the object stays until release is called, even if the device it belongs to is closed first, though it has no
// memory any more then. Calls of release after the first do nothing. Other values, nil handles, and
// on Linux and Windows buffers that were released, have no WGPUBuffer.
func Raw(handle any) (ref unsafe.Pointer, release func()) {
	b := bindingOf(func(b *Binding) bool {
		r, ok := b.Buffer(handle)
		ref = r
		return ok
	})
	if b == nil || ref == nil {
		return nil, func() {}
	}
	calls := (*C.core_calls)(b.Calls)
	if !bool(C.core_share_buffer(calls, C.WGPUBuffer(ref))) {
		return nil, func() {}
	}
	return ref, sync.OnceFunc(func() { C.core_drop_buffer(calls, C.WGPUBuffer(ref)) })
}

// FromRaw makes a handle, a *wgpu.Buffer, of a WGPUBuffer of the device, a *wgpu.Device. It is borrowed: the reference stays the
// caller's. It is nil if there is no such device or, on Linux and Windows, no such buffer of it.
func FromRaw(device any, ref unsafe.Pointer) any {
	var of unsafe.Pointer
	b := bindingOf(func(b *Binding) bool {
		r, ok := b.Device(device)
		of = r
		return ok
	})
	if b == nil || of == nil || ref == nil || bool(C.core_foreign((*C.core_calls)(b.Calls), C.WGPUDevice(of), C.WGPUBuffer(ref))) {
		return nil
	}
	return b.NewBuffer(of, ref)
}
