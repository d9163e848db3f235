// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
)

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
