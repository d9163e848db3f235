// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package oliver

// #cgo linux windows CFLAGS: -DLIVE
// #cgo linux windows LDFLAGS: -Wl,--wrap=wgpuDeviceCreateBuffer -Wl,--wrap=wgpuBufferAddRef -Wl,--wrap=wgpuBufferRelease -Wl,--wrap=wgpuBufferUnmap
// #cgo linux windows LDFLAGS: -Wl,--wrap=wgpuBufferDestroy -Wl,--wrap=wgpuDeviceAddRef -Wl,--wrap=wgpuDeviceRelease
// #include "../internal/core/binding.h"
// extern core_calls const sublet_oliver_calls;
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/oliverbestmann/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

// implied are WGSL extensions that the library's compiler always has; it rejects the directive that enables them, which is taken out.
var implied = []string{"subgroups"}

// New returns the driver.
func New() driver.Driver {
	return core.New(core.Binding{
		Name:     "oliver",
		Package:  "github.com/oliverbestmann/webgpu",
		Calls:    unsafe.Pointer(&C.sublet_oliver_calls),
		Unzeroed: true,
		Rewrite:  func(source string) string { return wgsl.WithoutEnable(source, implied) },
		Device: func(handle any) (unsafe.Pointer, bool) {
			d, ok := handle.(*wgpu.Device)
			if d == nil {
				return nil, ok
			}
			return atomic.LoadPointer(&(*deviceStruct)(unsafe.Pointer(d)).ref), true // Close clears it
		},
		Buffer: func(handle any) (unsafe.Pointer, bool) {
			b, ok := handle.(*wgpu.Buffer)
			if b == nil {
				return nil, ok
			}
			return (*bufferStruct)(unsafe.Pointer(b)).ref, true
		},
		NewDevice: func(ref unsafe.Pointer) (any, func()) {
			d := &deviceStruct{ref: ref}
			return (*wgpu.Device)(unsafe.Pointer(d)), func() { atomic.StorePointer(&d.ref, nil) }
		},
		NewBuffer: func(device, ref unsafe.Pointer) any {
			return (*wgpu.Buffer)(unsafe.Pointer(&bufferStruct{ref: ref, device: device}))
		},
		Owned: func(buffer any, device unsafe.Pointer) bool {
			b, _ := buffer.(*wgpu.Buffer)
			return b != nil && (*bufferStruct)(unsafe.Pointer(b)).device == device
		},
	})
}

// The handles of the binding are structs of C pointers. Tests hold them to that.
type (
	deviceStruct struct {
		ref    unsafe.Pointer
		shared bool
	}
	instanceStruct = deviceStruct
	adapterStruct  = deviceStruct
	bufferStruct   struct {
		ref, device unsafe.Pointer
		shared      bool
	}
)

// Origin returns the instance and the adapter of an open device that Sublet made, for a program that draws with the device to a window:
// surfaces are made of this very instance, and ask this adapter what they can do. The device is what gpu.Device.Handle returns. Both
// are borrowed: they must not be released, and are gone with the device. Of other devices they are nil.
func Origin(device *wgpu.Device) (*wgpu.Instance, *wgpu.Adapter) {
	instance, adapter := core.Origin(device)
	if instance == nil || adapter == nil {
		return nil, nil
	}
	return (*wgpu.Instance)(unsafe.Pointer(&instanceStruct{ref: instance})), (*wgpu.Adapter)(unsafe.Pointer(&adapterStruct{ref: adapter}))
}

// Raw returns the WGPUBuffer of a handle, for C code that takes one, with a reference of its own: the object stays until
// release is called, even if the device it belongs to is closed first, though it has no memory any more then. Calls of
// release after the first do nothing. A nil handle has no WGPUBuffer, nor, on Linux and Windows, one that was released.
func Raw(b *wgpu.Buffer) (ref unsafe.Pointer, release func()) { return core.Raw(b) }

// FromRaw makes a handle of a WGPUBuffer of the device. It is borrowed: the reference stays the caller's. It is nil if there is no such
// device or buffer.
func FromRaw(d *wgpu.Device, ref unsafe.Pointer) *wgpu.Buffer {
	b, _ := core.FromRaw(d, ref).(*wgpu.Buffer)
	return b
}
