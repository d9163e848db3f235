// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #cgo linux windows CFLAGS: -DCOG_TRACK
// #cgo linux windows LDFLAGS: -Wl,--wrap=wgpuDeviceCreateBuffer -Wl,--wrap=wgpuBufferReference -Wl,--wrap=wgpuBufferRelease
// #include "cog.h"
import "C"

import (
	"context"
	"slices"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// New returns the driver.
func New() driver.Driver { return driver.Driver{Name: name, Adapters: listAdapters, Adopt: adopt} }

const name = "cogent"

// listAdapters lists the adapters as they are now: what the environment selects may have changed.
func listAdapters(ctx context.Context) ([]driver.Adapter, error) {
	if err := fault.Ended(ctx, "cogent: Adapters"); err != nil {
		return nil, err
	}
	l := list()
	newest.Swap(l).release()
	var adapters []driver.Adapter
	for _, a := range l.adapters {
		adapters = append(adapters, driver.Adapter{Info: a.info, Open: a.open})
	}
	slices.SortStableFunc(adapters, func(a, b driver.Adapter) int {
		return slices.Index(order, a.Info.Kind) - slices.Index(order, b.Info.Kind)
	})
	return adapters, nil
}

// adopt takes a *wgpu.Device. What its adapter was is not to be found out any more, so the information about it says
// little, and the limit of loop turns is the lowest there is.
func adopt(ctx context.Context, handle any) (driver.Device, error) {
	const op = "Adopt"
	if err := fault.Ended(ctx, "cogent: "+op); err != nil {
		return nil, err
	}
	dev, ok := handle.(*wgpu.Device)
	if !ok {
		return nil, fail(op, fault.ErrUnsupported, "not a *wgpu.Device of github.com/cogentcore/webgpu")
	}
	ref := deviceRef(dev)
	if ref == nil {
		return nil, fail(op, fault.ErrInvalid, "nil device")
	}
	var e C.cog_error
	c := C.cog_adopt(ref, &e)
	if err := take(op, &e, fault.ErrInvalid); err != nil {
		return nil, err
	}
	info := driver.AdapterInfo{Driver: name, Name: "adopted device", Backend: "unknown"}
	info.Limits.MaxLoopsPerInvoking = llvmpipeLoops
	return newDevice(c, info, dev), nil
}

// The handles of the binding are structs of C pointers. Tests hold them to that.
type (
	deviceStruct struct{ ref C.WGPUDevice }
	bufferStruct struct {
		device C.WGPUDevice
		ref    C.WGPUBuffer
	}
)

func deviceRef(d *wgpu.Device) C.WGPUDevice {
	if d == nil {
		return nil
	}
	return (*deviceStruct)(unsafe.Pointer(d)).ref
}

func deviceHandle(ref C.WGPUDevice) *wgpu.Device {
	return (*wgpu.Device)(unsafe.Pointer(&deviceStruct{ref}))
}

func bufferHandle(device C.WGPUDevice, ref C.WGPUBuffer) *wgpu.Buffer {
	return (*wgpu.Buffer)(unsafe.Pointer(&bufferStruct{device, ref}))
}
