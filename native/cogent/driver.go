// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #cgo linux windows CFLAGS: -DCOG_TRACK
// #cgo linux windows LDFLAGS: -Wl,--wrap=wgpuDeviceCreateBuffer -Wl,--wrap=wgpuBufferReference -Wl,--wrap=wgpuBufferRelease -Wl,--wrap=wgpuBufferUnmap
// #include "cog.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
		return nil, fail(op, fault.ErrInvalid, "nil device, or one that is closed")
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
	return C.WGPUDevice(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(d)))) // Close clears handles
}

func deviceHandle(ref C.WGPUDevice) *wgpu.Device {
	return (*wgpu.Device)(unsafe.Pointer(&deviceStruct{ref}))
}

func bufferHandle(device C.WGPUDevice, ref C.WGPUBuffer) *wgpu.Buffer {
	return (*wgpu.Buffer)(unsafe.Pointer(&bufferStruct{device, ref}))
}

// adapter is a processor as it was listed.
type adapter struct {
	info    driver.AdapterInfo
	ordinal int // how many with the same information are listed before it
}

// listing is the adapters of one instance of the library. It opens one device.
//
// Within an instance, the library takes the numbers of a device and of its queue for the same, which they are until one of a
// closed device's two outlives the other because somebody still has an object of it. A submission on any later device of
// the instance would then end the process.
type listing struct {
	adapters []adapter
	refs     []C.WGPUAdapter
	openGL   bool
}

// newest is the last listing until it opens a device, to which it saves a listing of its own. Older ones are released: each takes
// a megabyte, of which the garbage collector knows nothing.
var newest atomic.Pointer[listing]

// list lists the adapters of Vulkan, Metal and Direct3D 12 in a new instance or, where there are none, those of OpenGL.
func list() *listing {
	l := enumerate(C.WGPUInstanceBackend_Vulkan | C.WGPUInstanceBackend_Metal | C.WGPUInstanceBackend_DX12)
	if len(l.refs) > 0 {
		return l
	}
	openGLMutex.Lock()
	defer openGLMutex.Unlock()
	return openGL()
}

func enumerate(backends C.uint32_t) *listing {
	var list *C.WGPUAdapter
	n := C.cog_adapters(backends, &list)
	defer C.free(unsafe.Pointer(list))
	l := new(listing)
	listed := map[driver.AdapterInfo]int{}
	for _, ref := range unsafe.Slice(list, n) {
		info := describe(ref)
		if info.Limits.MaxGroups == 0 { // old OpenGL has no compute shaders
			C.wgpuAdapterRelease(ref)
			continue
		}
		l.adapters, l.refs = append(l.adapters, adapter{info, listed[info]}), append(l.refs, ref)
		listed[info]++
	}
	return l
}

// openGL lists the adapters of OpenGL once. They are never released, nor are their devices: in this library, the end of one
// instance of OpenGL is that of all others.
var openGL = sync.OnceValue(func() *listing {
	l := enumerate(C.WGPUInstanceBackend_GL)
	l.openGL = true
	return l
})

// openGLMutex is the lock of all devices of OpenGL, where the library gives up after waiting a second for its context.
var openGLMutex sync.Mutex

// index returns the adapter's place in the listing, if there is one, or -1.
func (l *listing) index(a adapter) int {
	if l == nil {
		return -1
	}
	return slices.Index(l.adapters, a)
}

func (l *listing) release() {
	if l == nil || l.openGL {
		return
	}
	for _, ref := range l.refs {
		C.wgpuAdapterRelease(ref) // devices keep what they need of it
	}
}

// open requests a device, in a new instance unless the newest has made none.
func (a adapter) open(ctx context.Context) (driver.Device, error) {
	const op = "Open"
	if err := fault.Ended(ctx, "cogent: "+op); err != nil {
		return nil, err
	}
	l := newest.Swap(nil)
	i := l.index(a)
	if i < 0 {
		l.release()
		l = list()
		i = l.index(a)
	}
	defer l.release()
	if i < 0 {
		return nil, fail(op, fault.ErrNoAdapter, a.info.Name, " is not there any more")
	}
	if l.openGL {
		openGLMutex.Lock()
		defer openGLMutex.Unlock()
	}
	var e C.cog_error
	c := C.cog_open(l.refs[i], a.info.Kind == driver.KindCPU, &e)
	if err := take(op, &e, fault.ErrNoAdapter); err != nil {
		return nil, err
	}
	return newDevice(c, a.info, nil), nil
}

// order is that of adapters in the list.
var order = []driver.Kind{driver.KindDiscrete, driver.KindIntegrated, driver.KindVirtual, driver.KindUnknown, driver.KindCPU}

func describe(ref C.WGPUAdapter) driver.AdapterInfo {
	var raw C.WGPUAdapterInfo
	C.wgpuAdapterGetInfo(ref, &raw)
	defer C.wgpuAdapterInfoFreeMembers(raw)
	info := driver.AdapterInfo{
		Driver:   name,
		Name:     C.GoString(raw.description), // the other strings are numbers in hexadecimal
		Vendor:   cmp.Or(vendors[uint32(raw.vendorID)], software[uint32(raw.vendorID)], "0x"+strconv.FormatUint(uint64(raw.vendorID), 16)),
		Backend:  cmp.Or(backends[uint32(raw.backendType)], "unknown"),
		Kind:     kind(uint32(raw.adapterType), uint32(raw.vendorID)),
		Features: features(func(f C.uint32_t) bool { return C.wgpuAdapterHasFeature(ref, f) != 0 }),
	}
	if llvmpipe(info.Name) {
		info.Limits.MaxLoopsPerInvoking = llvmpipeLoops
	}
	setLimits(&info.Limits, C.cog_adapter_limits(ref))
	return info
}

// llvmpipe reports whether an adapter is Mesa's llvmpipe, which has two peculiarities of its own.
func llvmpipe(name string) bool { return strings.Contains(strings.ToLower(name), "llvmpipe") }

// llvmpipeLoops is how many turns the loops of one invocation make together before Mesa's llvmpipe silently ends them.
const llvmpipeLoops = 65535

func setLimits(to *driver.Limits, l C.WGPULimits) {
	const word = 3 // sizes of buffers and bindings are multiples of 4
	to.MaxBufferSize = uint64(l.maxBufferSize) &^ word
	to.MaxBindingSize = min(uint64(l.maxStorageBufferBindingSize), uint64(l.maxBufferSize)) &^ word
	to.MaxStorageBuffers = min(uint32(l.maxStorageBuffersPerShaderStage), driver.MaxBindings)
	to.MaxGroups = uint32(l.maxComputeWorkgroupsPerDimension)
	to.MaxInvocations = uint32(l.maxComputeInvocationsPerWorkgroup)
	to.MaxGroupSize = [3]uint32{
		uint32(l.maxComputeWorkgroupSizeX), uint32(l.maxComputeWorkgroupSizeY), uint32(l.maxComputeWorkgroupSizeZ),
	}
	to.MaxWorkgroupMemory = uint32(l.maxComputeWorkgroupStorageSize)
	to.BindingOffsetAlign = 256 // many adapters allow less, but not everywhere
}

// features leaves out half: the adapter may have it, but the compiler of this wgpu-native does not parse it.
func features(has func(C.uint32_t) bool) driver.Features {
	f := driver.FeatureWGSL
	if has(C.WGPUNativeFeature_MappablePrimaryBuffers) {
		f |= driver.FeatureMappable
	}
	if has(C.WGPUNativeFeature_ShaderF64) {
		f |= driver.FeatureDouble
	}
	return f
}

// vendors names the makers of GPUs.
var vendors = map[uint32]string{
	0x1002: "amd", 0x1010: "imagination", 0x106b: "apple", 0x10de: "nvidia", 0x13b5: "arm", 0x14e4: "broadcom",
	0x5143: "qualcomm", 0x8086: "intel",
}

// software names the makers of software adapters.
var software = map[uint32]string{0x1414: "microsoft", 0x10005: "mesa", 0x1ae0: "google"}

// backends names each WGPUBackendType.
var backends = map[uint32]string{
	C.WGPUBackendType_D3D12: "d3d12", C.WGPUBackendType_Metal: "metal", C.WGPUBackendType_Vulkan: "vulkan",
	C.WGPUBackendType_OpenGL: openGLBackend, C.WGPUBackendType_OpenGLES: openGLBackend,
}

const openGLBackend = "opengl"

// kind reads a WGPUAdapterType. The library passes virtual GPUs off as CPUs; they show the vendor of the real one.
func kind(id, vendorID uint32) driver.Kind {
	switch id {
	case C.WGPUAdapterType_DiscreteGPU:
		return driver.KindDiscrete
	case C.WGPUAdapterType_IntegratedGPU:
		return driver.KindIntegrated
	case C.WGPUAdapterType_CPU:
		if vendors[vendorID] != "" {
			return driver.KindVirtual
		}
		return driver.KindCPU
	}
	return driver.KindUnknown
}
