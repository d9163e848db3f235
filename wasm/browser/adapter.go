// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"strings"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// wishes are the options of requestAdapter that may bring different adapters, best first.
var wishes = []map[string]any{
	{"powerPreference": "high-performance"},
	{"powerPreference": "low-power"},
	{"forceFallbackAdapter": true},
}

// adapter is what one of the wishes brings.
type adapter struct {
	wish   map[string]any
	handle js.Value
	part   part
	info   driver.AdapterInfo
}

// request asks for an adapter. It returns nil where there is none.
func request(ctx context.Context, op string, wish map[string]any) (*adapter, error) {
	g := gpu()
	if g.Type() != js.TypeObject {
		return nil, nil
	}
	v, err := awaitPromise(ctx, op, g.Call("requestAdapter", wish))
	if err != nil || v.Type() != js.TypeObject {
		return nil, err
	}
	p := partOf(v.Get("info"))
	p.software = p.software || v.Get("isFallbackAdapter").Truthy() // where the property was before
	return &adapter{wish, v, p, describe(p, v)}, nil
}

// open requests a device. A GPUAdapter gives one device and is then of no more use, so a new one is requested.
func (a *adapter) open(ctx context.Context) (d driver.Device, err error) {
	const op = "browser: Open"
	defer rescue(op, &err)
	helper, err := helperObject(ctx)
	if err != nil {
		return nil, err
	}
	again, err := request(ctx, op, a.wish)
	if err != nil {
		return nil, err
	}
	if again == nil || again.part != a.part {
		return nil, fault.Fail(op, fault.ErrNoAdapter, a.info.Name+" is gone")
	}
	v, err := awaitPromise(ctx, op, again.handle.Call("requestDevice", again.descriptor()))
	if err != nil {
		return nil, err
	}
	return newDevice(v, true, describe(again.part, v), helper), nil
}

// limitNames are the limits that a device is asked for, all as high as the adapter has them.
var limitNames = []string{
	"maxBufferSize",
	"maxStorageBufferBindingSize",
	"maxStorageBuffersPerShaderStage",
	"maxComputeWorkgroupsPerDimension",
	"maxComputeInvocationsPerWorkgroup",
	"maxComputeWorkgroupSizeX",
	"maxComputeWorkgroupSizeY",
	"maxComputeWorkgroupSizeZ",
	"maxComputeWorkgroupStorageSize",
}

// features by WebGPU's names.
var features = []struct {
	name    string
	feature driver.Features
}{
	{"shader-f16", driver.FeatureHalf},
	{"subgroups", driver.FeatureSubgroups},
}

// descriptor asks for everything that the library makes use of and the adapter has.
func (a *adapter) descriptor() map[string]any {
	limits, wanted := map[string]any{}, []any{}
	has := a.handle.Get("limits")
	for _, name := range limitNames {
		if v := has.Get(name); v.Type() == js.TypeNumber {
			limits[name] = v
		}
	}
	for _, f := range features {
		if a.info.Features.Has(f.feature) {
			wanted = append(wanted, f.name)
		}
	}
	return map[string]any{"label": "sublet", "requiredLimits": limits, "requiredFeatures": wanted}
}

// describe describes an adapter or a device.
func describe(p part, v js.Value) driver.AdapterInfo {
	info := driver.AdapterInfo{
		Driver:   "browser",
		Name:     p.name(),
		Vendor:   p.vendor,
		Backend:  "webgpu",
		Kind:     p.kind(),
		Limits:   limitsOf(v.Get("limits")),
		Features: driver.FeatureWGSL,
	}
	has := method(v.Get("features"), "has")
	for _, f := range features {
		if has.Invoke(f.name).Bool() {
			info.Features |= f.feature
		}
	}
	if info.Kind == driver.KindCPU && !p.mentions("swiftshader") {
		info.Limits.MaxLoopsPerInvoking = llvmpipeLoops
	}
	return info
}

// llvmpipeLoops is where Mesa's llvmpipe stops a shader, silently. Browsers do not always name it, so every software
// adapter but SwiftShader is taken for it.
const llvmpipeLoops = 65535

// bindingAlign is the alignment that every device accepts.
const bindingAlign = 256

func limitsOf(v js.Value) driver.Limits {
	small := func(name string) uint32 { return uint32(min(number(v, name), 1<<32-1)) }
	return driver.Limits{
		MaxBufferSize:      number(v, "maxBufferSize") &^ 3,
		MaxBindingSize:     number(v, "maxStorageBufferBindingSize") &^ 3,
		MaxStorageBuffers:  small("maxStorageBuffersPerShaderStage"),
		MaxGroups:          small("maxComputeWorkgroupsPerDimension"),
		MaxInvocations:     small("maxComputeInvocationsPerWorkgroup"),
		MaxGroupSize:       [3]uint32{small("maxComputeWorkgroupSizeX"), small("maxComputeWorkgroupSizeY"), small("maxComputeWorkgroupSizeZ")},
		MaxWorkgroupMemory: small("maxComputeWorkgroupStorageSize"),
		BindingOffsetAlign: bindingAlign,
	}
}

// part is what a browser tells about a processor. The texts may be empty.
type part struct {
	vendor, architecture, device, description string
	software                                  bool
}

// partOf reads a GPUAdapterInfo, which older browsers lack.
func partOf(info js.Value) part {
	if info.Type() != js.TypeObject {
		return part{}
	}
	return part{
		vendor:       text(info, "vendor"),
		architecture: text(info, "architecture"),
		device:       text(info, "device"),
		description:  text(info, "description"),
		software:     info.Get("isFallbackAdapter").Truthy(),
	}
}

func (p part) name() string {
	switch {
	case p.description != "":
		return p.description
	case p.device != "":
		return p.device
	case p.vendor != "" || p.architecture != "":
		return strings.TrimSpace(p.vendor + " " + p.architecture)
	}
	return "WebGPU adapter"
}

func (p part) mentions(words ...string) bool {
	all := strings.ToLower(p.vendor + " " + p.architecture + " " + p.device + " " + p.description)
	for _, w := range words {
		if strings.Contains(all, w) {
			return true
		}
	}
	return false
}

// kind guesses: WebGPU does not say. The architectures are Dawn's, which other browsers have taken over.
func (p part) kind() driver.Kind {
	switch {
	case p.software || p.mentions("swiftshader", "llvmpipe", "lavapipe", "basic render"):
		return driver.KindCPU
	case p.mentions("virtio", "vmware", "virtualbox", "parallels"):
		return driver.KindVirtual
	case p.mentions("nvidia", "geforce", "quadro", "12hp", "xe-hpg", "xe-2hpg", "intel(r) arc"):
		return driver.KindDiscrete
	case p.mentions("apple", "intel", "qualcomm", "adreno", "arm ", "mali", "img-tec", "imagination", "samsung", "broadcom"):
		return driver.KindIntegrated
	}
	return driver.KindUnknown // AMD's names do not tell
}
