// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// New returns the driver.
func New() driver.Driver {
	return driver.Driver{Name: "browser", Adapters: listAdapters, Adopt: adoptDevice}
}

// listAdapters lists what the wishes bring. A page without WebGPU, such as one that was not loaded over HTTPS, has none.
func listAdapters(ctx context.Context) (list []driver.Adapter, err error) {
	const op = "browser: Adapters"
	defer rescue(op, &err)
	if err := fault.Ended(ctx, op); err != nil {
		return nil, err
	}
	if promise := prefetched(); promise.Type() == js.TypeObject {
		p, err := awaitPromise(ctx, op, promise)
		if err != nil {
			return nil, err
		}
		a := found(p.Get("wish"), p.Get("adapter"))
		a.device = p.Get("device")
		return []driver.Adapter{{Info: a.info, Open: a.open}}, nil
	}
	asked := make([]js.Value, len(wishes)) // at the same time, as each takes some milliseconds
	for i, wish := range wishes {
		asked[i] = ask(wish)
	}
	for i, wish := range wishes {
		a, failed := answered(ctx, op, wish, asked[i])
		err = cmp.Or(err, failed)
		if a != nil && !slices.ContainsFunc(list, func(known driver.Adapter) bool { return known.Info == a.info }) {
			list = append(list, driver.Adapter{Info: a.info, Open: a.open})
		}
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// adoptDevice takes a GPUDevice.
func adoptDevice(ctx context.Context, handle any) (d driver.Device, err error) {
	const op = "browser: Adopt"
	defer rescue(op, &err)
	v, ok := value(handle, "GPUDevice")
	if !ok {
		return nil, fault.Fail(op, fault.ErrUnsupported, "not a GPUDevice")
	}
	helper, err := helperObject(ctx)
	if err != nil {
		return nil, err
	}
	return newDevice(v, false, describe(partOf(v.Get("adapterInfo")), v), helper), nil
}

// gpu returns navigator.gpu, or undefined.
func gpu() js.Value {
	if navigator := js.Global().Get("navigator"); navigator.Type() == js.TypeObject {
		return navigator.Get("gpu")
	}
	return js.Undefined()
}

// wishes are the options of requestAdapter that may bring different adapters, best first.
var wishes = []map[string]any{
	{"powerPreference": "high-performance"},
	{"powerPreference": "low-power"},
	{"forceFallbackAdapter": true},
}

// adapter is what one of the wishes brings.
type adapter struct {
	wish   any
	handle js.Value
	device js.Value // the promise of a device that was requested of the handle and is not in use yet, if there is one
	part   part
	info   driver.AdapterInfo
}

// prefetched returns what the page has requested before the program ran, or undefined: the promise of an object with the wish, the adapter
// that it has brought and the promise of a device. A page asks the first program of its choice to take that adapter, so no other one is asked for.
func prefetched() js.Value {
	helper := presentHelper()
	if helper.Type() != js.TypeObject {
		return helper
	}
	return helper.Call("takePrefetched")
}

// ask asks for an adapter.
func ask(wish any) js.Value {
	g := gpu()
	if g.Type() != js.TypeObject {
		return js.Undefined()
	}
	return g.Call("requestAdapter", wish)
}

// answered waits for the adapter that was asked for. It returns nil where there is none.
func answered(ctx context.Context, op string, wish any, asked js.Value) (*adapter, error) {
	if asked.Type() != js.TypeObject {
		return nil, nil
	}
	v, err := awaitPromise(ctx, op, asked)
	if err != nil || v.Type() != js.TypeObject {
		return nil, err
	}
	return found(wish, v), nil
}

// found makes an adapter of a GPUAdapter.
func found(wish any, v js.Value) *adapter {
	p := partOf(v.Get("info"))
	p.software = p.software || v.Get("isFallbackAdapter").Truthy() // where the property was before
	return &adapter{wish: wish, handle: v, part: p, info: describe(p, v)}
}

// open takes the device that was requested already, or requests one. A GPUAdapter gives one device and is then of no more use, so a new one
// is requested.
func (a *adapter) open(ctx context.Context) (d driver.Device, err error) {
	const op = "browser: Open"
	defer rescue(op, &err)
	helper, err := helperObject(ctx)
	if err != nil {
		return nil, err
	}
	if promise := a.device; promise.Type() == js.TypeObject {
		a.device = js.Value{} // undefined
		if v, err := awaitPromise(ctx, op, promise); err == nil {
			return newDevice(v, true, describe(a.part, v), helper), nil
		}
	}
	again, err := answered(ctx, op, a.wish, ask(a.wish))
	if err != nil {
		return nil, err
	}
	if again == nil || again.info != a.info {
		return nil, fault.Fail(op, fault.ErrNoAdapter, a.info.Name+" is gone")
	}
	v, err := awaitPromise(ctx, op, helper.Call("requestDevice", again.handle))
	if err != nil {
		return nil, err
	}
	return newDevice(v, true, describe(again.part, v), helper), nil
}

// features by WebGPU's names, which glue.js asks for.
var features = map[string]driver.Features{
	"shader-f16": driver.FeatureHalf, "subgroups": driver.FeatureSubgroups, "timestamp-query": driver.FeatureTimestamps,
}

// describe describes an adapter or a device.
func describe(p part, v js.Value) driver.AdapterInfo {
	limits := limitsOf(v.Get("limits"))
	info := driver.AdapterInfo{
		Driver:   "browser",
		Name:     p.name,
		Vendor:   p.vendor,
		Backend:  "webgpu",
		Kind:     p.kind(),
		Limits:   limits,
		Features: driver.FeatureWGSL,
	}
	has := v.Get("features")
	for name, f := range features {
		if has.Call("has", name).Bool() {
			info.Features |= f
		}
	}
	if !info.Features.Has(driver.FeatureTimestamps) {
		info.Limits.TimestampPeriod = 0
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

// limitsOf reads those limits that the library makes use of. What a device is asked for is all of them, as high as the adapter has them;
// see LIMITS in glue.js.
func limitsOf(has js.Value) driver.Limits {
	wide := func(name string) uint64 { return number(has, name) }
	small := func(name string) uint32 { return uint32(min(wide(name), 1<<32-1)) }
	return driver.Limits{
		MaxBufferSize:      wide("maxBufferSize") &^ 3,
		MaxBindingSize:     wide("maxStorageBufferBindingSize") &^ 3,
		MaxStorageBuffers:  small("maxStorageBuffersPerShaderStage"),
		MaxGroups:          small("maxComputeWorkgroupsPerDimension"),
		MaxInvocations:     small("maxComputeInvocationsPerWorkgroup"),
		MaxGroupSize:       [3]uint32{small("maxComputeWorkgroupSizeX"), small("maxComputeWorkgroupSizeY"), small("maxComputeWorkgroupSizeZ")},
		MaxWorkgroupMemory: small("maxComputeWorkgroupStorageSize"),
		BindingOffsetAlign: bindingAlign,
		TimestampPeriod:    1,
	}
}

// part is what a browser tells about a processor.
type part struct {
	name, vendor string
	words        string // all texts, in lower case
	software     bool
}

// partOf reads a GPUAdapterInfo, which older browsers lack.
func partOf(info js.Value) part {
	p := part{name: "WebGPU adapter"}
	if info.Type() == js.TypeObject {
		architecture, device, description := text(info, "architecture"), text(info, "device"), text(info, "description")
		p.vendor = text(info, "vendor")
		family := strings.TrimSpace(p.vendor + " " + architecture)
		p.name = cmp.Or(description, device, family, p.name)
		p.words = strings.ToLower(family + " " + device + " " + description)
		p.software = info.Get("isFallbackAdapter").Truthy()
	}
	return p
}

func (p part) mentions(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(p.words, w) })
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
