// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

// #include "core.h"
import "C"

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// llvmpipeLoops is how many turns the loops of one invocation make together before Mesa's llvmpipe silently ends them.
const llvmpipeLoops = 65535

// describe reads what the library says of an adapter.
func (l *library) describe(raw *C.core_adapter) driver.AdapterInfo {
	vendor := uint32(raw.vendor)
	info := driver.AdapterInfo{
		Driver:  l.Name,
		Name:    C.GoString(&raw.name[0]),
		Vendor:  cmp.Or(vendors[vendor], software[vendor], "0x"+strconv.FormatUint(uint64(vendor), 16)),
		Backend: "unknown",
		Kind:    kindOf(driver.Kind(raw.kind), vendor),
	}
	for _, b := range backendBits {
		if b.bit == raw.backend {
			info.Backend = b.name
		}
	}
	if info.Kind == driver.KindCPU && info.Vendor == "mesa" {
		info.Limits.MaxLoopsPerInvoking = llvmpipeLoops
	}
	grant(&info, raw)
	return info
}

// kindOf finds virtual GPUs, which the library passes off as CPUs: they show the vendor of the real one.
func kindOf(kind driver.Kind, vendor uint32) driver.Kind {
	if kind == driver.KindCPU && vendors[vendor] != "" {
		return driver.KindVirtual
	}
	return kind
}

// mostBuffer is the size of the largest buffer where a driver of the system names no limit.
const mostBuffer = 1 << 40

// grant sets the limits and features of an adapter, or those that a device was granted.
func grant(info *driver.AdapterInfo, raw *C.core_adapter) {
	const word = 3 // sizes of buffers and bindings are multiples of 4
	r, to := &raw.limits, &info.Limits
	to.MaxBufferSize = min(uint64(r.buffer), mostBuffer) &^ word
	to.MaxBindingSize = min(uint64(r.binding), to.MaxBufferSize) &^ word
	to.MaxStorageBuffers = min(uint32(r.storage_buffers), driver.MaxBindings)
	to.MaxGroups = uint32(r.groups)
	to.MaxInvocations = uint32(r.invocations)
	to.MaxGroupSize = [3]uint32{uint32(r.group_size[0]), uint32(r.group_size[1]), uint32(r.group_size[2])}
	to.MaxWorkgroupMemory = uint32(r.workgroup_memory)
	to.BindingOffsetAlign = 256 // many adapters allow less, but not everywhere
	info.Features = driver.Features(raw.features) | driver.FeatureWGSL
	if to.TimestampPeriod = 0; info.Features.Has(driver.FeatureTimestamps) {
		to.TimestampPeriod = float32(raw.tick)
	}
}

// vendors names the makers of GPUs.
var vendors = map[uint32]string{
	0x1002: "amd", 0x1010: "imagination", 0x106b: "apple", 0x10de: "nvidia", 0x13b5: "arm", 0x14e4: "broadcom",
	0x5143: "qualcomm", 0x8086: "intel",
}

// software names the makers of software adapters.
var software = map[uint32]string{0x1414: "microsoft", 0x10005: "mesa", 0x1ae0: "google"}

// identify says which adapter an adopted device is of, which the library does not tell: the only one that is listed and could have
// granted what the device has, and whose loops go as far as the device's were measured to go. turns is the measured limit, 0 if there is none.
func identify(granted driver.AdapterInfo, turns uint32, listed []adapter) driver.AdapterInfo {
	var fits []driver.AdapterInfo
	for _, a := range listed {
		if a.info.Limits.MaxLoopsPerInvoking == turns && covers(a.info, granted) {
			fits = append(fits, a.info)
		}
	}
	info := driver.AdapterInfo{Name: "adopted device", Vendor: "unknown", Backend: "unknown"}
	kind := func(i driver.AdapterInfo) bool { return i.Kind == fits[0].Kind && i.Vendor == fits[0].Vendor }
	same := func(i driver.AdapterInfo) bool {
		return kind(i) && i.Name == fits[0].Name && i.Backend == fits[0].Backend
	}
	switch {
	case len(fits) > 0 && all(fits, same):
		info = fits[0]
	case len(fits) > 0 && all(fits, kind):
		info.Kind, info.Vendor = fits[0].Kind, fits[0].Vendor
	case turns > 0:
		info.Kind, info.Vendor = driver.KindCPU, "mesa"
	}
	info.Driver, info.Features, info.Limits = granted.Driver, granted.Features, granted.Limits
	info.Limits.MaxLoopsPerInvoking = turns
	return info
}

func all[T any](list []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !ok(x) })
}

// covers reports whether an adapter has what a device was granted.
func covers(a, d driver.AdapterInfo) bool {
	x, y := a.Limits, d.Limits
	return x.MaxBufferSize >= y.MaxBufferSize && x.MaxBindingSize >= y.MaxBindingSize && x.MaxStorageBuffers >= y.MaxStorageBuffers &&
		x.MaxGroups >= y.MaxGroups && x.MaxInvocations >= y.MaxInvocations && x.MaxWorkgroupMemory >= y.MaxWorkgroupMemory &&
		x.MaxGroupSize[0] >= y.MaxGroupSize[0] && x.MaxGroupSize[1] >= y.MaxGroupSize[1] && x.MaxGroupSize[2] >= y.MaxGroupSize[2] &&
		a.Features.Has(d.Features)
}
