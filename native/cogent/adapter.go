// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// An instance of the library, the adapters it lists and the devices made from them. Within one, the library takes the
// numbers of a device and of its queue for the same, which they are until one of a closed device's two outlives the other
// because somebody still holds an object of it. A submission on any later device would then end the process. So once one
// of its devices has been closed no more are made from an instance.
type instance struct {
	mu    sync.Mutex
	spent bool
}

// spend is called before a device of the instance is released.
func (i *instance) spend() {
	i.mu.Lock()
	i.spent = true
	i.mu.Unlock()
}

// source is an adapter of an instance. It makes one device, so that instances nobody needs any more do not have to wait
// for the garbage collector.
type source struct {
	ref      C.WGPUAdapter
	instance *instance
	cleanup  runtime.Cleanup
}

func newSource(ref C.WGPUAdapter, i *instance) *source {
	s := &source{ref: ref, instance: i}
	s.cleanup = runtime.AddCleanup(s, func(ref C.WGPUAdapter) { C.wgpuAdapterRelease(ref) }, ref)
	return s
}

// drop releases the adapter. Devices keep what they need of it.
func (s *source) drop() {
	s.cleanup.Stop()
	C.wgpuAdapterRelease(s.ref)
}

// open makes a device unless the instance is spent.
func (s *source) open(info driver.AdapterInfo, e *C.cog_error) *device {
	s.instance.mu.Lock()
	defer s.instance.mu.Unlock()
	if s.instance.spent {
		return nil
	}
	c := C.cog_open(s.ref, e)
	if c == nil {
		return nil
	}
	d := newDevice(c, info, nil)
	d.instance = s.instance
	return d
}

// adapter is what users see.
type adapter struct {
	info    driver.AdapterInfo
	ordinal int // how many like this one are listed before it

	mu     sync.Mutex
	source *source // nil if it has made its device
}

// adapters lists the adapters of Vulkan, Metal and Direct3D 12, the best first. Those of OpenGL are left out: the end of
// one instance is that of all others there.
func adapters() []*adapter {
	var list *C.WGPUAdapter
	n := C.cog_adapters(C.WGPUInstanceBackend_Vulkan|C.WGPUInstanceBackend_Metal|C.WGPUInstanceBackend_DX12, &list)
	defer C.free(unsafe.Pointer(list))
	shared := new(instance)
	listed := map[driver.AdapterInfo]int{}
	var found []*adapter
	for _, ref := range unsafe.Slice(list, n) {
		info := describe(ref)
		found = append(found, &adapter{info: info, ordinal: listed[info], source: newSource(ref, shared)})
		listed[info]++
	}
	slices.SortStableFunc(found, func(a, b *adapter) int { return cmp.Compare(rank(a.info.Kind), rank(b.info.Kind)) })
	return found
}

func (a *adapter) open(ctx context.Context) (driver.Device, error) {
	const op = "Open"
	if err := ready(ctx, op); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for range 2 { // the second time with a source that is new
		if a.source == nil {
			a.source = a.find()
		}
		s := a.source
		if s == nil {
			break
		}
		var e C.cog_error
		d := s.open(a.info, &e)
		s.drop()
		a.source = nil
		if err := take(op, &e, fault.ErrNoAdapter); err != nil {
			return nil, err
		}
		if d != nil {
			return d, nil
		}
	}
	return nil, fail(op, fault.ErrNoAdapter, a.info.Name, " is not there any more")
}

// newest is what was listed last, with the sources that nobody has used.
var newest struct {
	mu   sync.Mutex
	list []*adapter
}

// outdate drops the sources of the listing before. Each takes the library a megabyte, of which the garbage collector knows
// nothing. An adapter of an older listing that is opened all the same is looked up again.
func outdate(found []*adapter) {
	newest.mu.Lock()
	old := newest.list
	newest.list = found
	newest.mu.Unlock()
	for _, a := range old {
		a.forget()
	}
}

// forget drops the source, unless Open is about to use it up.
func (a *adapter) forget() {
	if !a.mu.TryLock() {
		return
	}
	defer a.mu.Unlock()
	if a.source != nil {
		a.source.drop()
		a.source = nil
	}
}

// find looks the adapter up in a new instance.
func (a *adapter) find() (s *source) {
	for _, b := range adapters() {
		if b.info == a.info && b.ordinal == a.ordinal {
			s = b.source
		} else {
			b.source.drop()
		}
	}
	return s
}

// rank orders adapters: discrete, integrated, virtual, software, and those of unknown kind before software.
func rank(k driver.Kind) int {
	switch k {
	case driver.KindDiscrete, driver.KindIntegrated, driver.KindVirtual:
		return int(k)
	case driver.KindUnknown:
		return int(driver.KindVirtual)
	}
	return int(driver.KindCPU)
}

func describe(ref C.WGPUAdapter) driver.AdapterInfo {
	var raw C.WGPUAdapterInfo
	C.wgpuAdapterGetInfo(ref, &raw)
	defer C.wgpuAdapterInfoFreeMembers(raw)
	info := driver.AdapterInfo{
		Driver:  name,
		Name:    C.GoString(raw.description), // the other strings are numbers in hexadecimal
		Vendor:  vendor(uint32(raw.vendorID)),
		Backend: backend(uint32(raw.backendType)),
		Kind:    kind(uint32(raw.adapterType), uint32(raw.vendorID)),
		Features: features(func(f C.uint32_t) bool {
			return C.wgpuAdapterHasFeature(ref, f) != 0
		}),
	}
	if llvmpipe(info.Name) {
		info.Limits.MaxLoopsPerInvoking = llvmpipeLoops
	}
	var l C.WGPULimits
	C.cog_adapter_limits(ref, &l)
	setLimits(&info.Limits, &l)
	return info
}

// llvmpipe reports whether an adapter is Mesa's llvmpipe, which has two peculiarities of its own.
func llvmpipe(name string) bool { return strings.Contains(strings.ToLower(name), "llvmpipe") }

// llvmpipeLoops is how many turns the loops of one invocation make together before Mesa's llvmpipe silently ends them.
const llvmpipeLoops = 65535

// bindingAlign is what the offset of a binding is a multiple of. Many adapters allow less, but not everywhere.
const bindingAlign = 256

func setLimits(to *driver.Limits, l *C.WGPULimits) {
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
	to.BindingOffsetAlign = bindingAlign
}

// features leaves out half: the adapter may have it, but the compiler of this wgpu-native does not parse it.
func features(has func(C.uint32_t) bool) driver.Features {
	f := driver.FeatureWGSL
	for raw, feature := range map[C.uint32_t]driver.Features{
		C.WGPUFeatureName_TimestampQuery:           driver.FeatureTimestamps,
		C.WGPUNativeFeature_MappablePrimaryBuffers: driver.FeatureMappable,
		C.WGPUNativeFeature_ShaderF64:              driver.FeatureDouble,
	} {
		if has(raw) {
			f |= feature
		}
	}
	return f
}

var vendors = map[uint32]string{
	0x1002: "amd", 0x1010: "imagination", 0x106b: "apple", 0x10de: "nvidia", 0x13b5: "arm", 0x14e4: "broadcom",
	0x5143: "qualcomm", 0x8086: "intel",
	vendorMicrosoft: "microsoft", vendorMesa: "mesa", vendorGoogle: "google",
}

// The makers of software adapters.
const (
	vendorMicrosoft = 0x1414
	vendorMesa      = 0x10005
	vendorGoogle    = 0x1ae0
)

func vendor(id uint32) string {
	if v, ok := vendors[id]; ok {
		return v
	}
	return "0x" + strconv.FormatUint(uint64(id), 16)
}

// backend names a WGPUBackendType.
func backend(id uint32) string {
	switch id {
	case C.WGPUBackendType_D3D12:
		return "d3d12"
	case C.WGPUBackendType_Metal:
		return "metal"
	case C.WGPUBackendType_Vulkan:
		return "vulkan"
	}
	return "unknown"
}

// kind reads a WGPUAdapterType. The library passes virtual GPUs off as CPUs; they show the vendor of the real one.
func kind(id, vendorID uint32) driver.Kind {
	switch id {
	case C.WGPUAdapterType_DiscreteGPU:
		return driver.KindDiscrete
	case C.WGPUAdapterType_IntegratedGPU:
		return driver.KindIntegrated
	case C.WGPUAdapterType_CPU:
		_, known := vendors[vendorID]
		if known && vendorID != vendorMicrosoft && vendorID != vendorMesa && vendorID != vendorGoogle {
			return driver.KindVirtual
		}
		return driver.KindCPU
	}
	return driver.KindUnknown
}
