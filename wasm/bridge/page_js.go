// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package bridge

import (
	"context"
	"errors"
	"syscall/js"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/gpu"
)

// page is the JavaScript side, web/src/program.mjs.
type page struct {
	object, settle js.Value
}

// Object implements [Page].
func (p *page) Object(number uint32) any { return p.object.Invoke(number) }

// Text implements [Page].
func (p *page) Text(number uint32) string { return p.object.Invoke(number).String() }

// Load implements [Page] for a Uint8Array.
func (p *page) Load(object any, at int, into []byte) int {
	v, ok := from(object, at)
	if !ok {
		return 0
	}
	return js.CopyBytesToGo(into, v)
}

// Store implements [Page] for a Uint8Array.
func (p *page) Store(object any, at int, data []byte) {
	if v, ok := from(object, at); ok {
		js.CopyBytesToJS(v, data)
	}
}

// from returns a Uint8Array from a byte on. One that was detached has none.
func from(object any, at int) (v js.Value, ok bool) {
	v, ok = object.(js.Value)
	if ok && at > 0 {
		if at >= v.Length() {
			return v, false
		}
		v = v.Call("subarray", at)
	}
	return v, ok
}

// Settle implements [Page].
func (p *page) Settle(ticket uint32, value any, err error) {
	if err != nil {
		if e, ok := errors.AsType[*file.Error](err); ok {
			p.settle.Invoke(ticket, nil, gpu.Code(err), err.Error(), e.Offset)
			return
		}
		p.settle.Invoke(ticket, nil, gpu.Code(err), err.Error())
		return
	}
	switch v := value.(type) {
	case nil:
		p.settle.Invoke(ticket)
	case []byte:
		array := js.Global().Get("Uint8Array").New(len(v))
		js.CopyBytesToJS(array, v)
		p.settle.Invoke(ticket, array)
	default:
		p.settle.Invoke(ticket, v)
	}
}

// startKey is the symbol under which the loader leaves what the program needs to start. It is gone as soon as it is read.
const startKey = "sublet.start"

// Main serves the page that has loaded the program. It returns when the page closes the device.
func Main() {
	key := js.Global().Get("Symbol").Call("for", startKey)
	reflect := js.Global().Get("Reflect")
	start := reflect.Call("get", js.Global(), key)
	reflect.Call("deleteProperty", js.Global(), key)
	if start.Type() != js.TypeObject {
		println("sublet: this program is part of the npm package sublet, whose init() loads it")
		return
	}
	dev, err := gpu.Open(context.Background(), options(start)...)
	if err != nil {
		start.Get("failed").Invoke(gpu.Code(err), err.Error())
		return
	}
	handle := dev.Handle()
	served = New(dev, &page{object: start.Get("object"), settle: start.Get("settle")})
	start.Get("ready").Invoke(information(dev.Info()), handle)
	served.Run()
	served = nil
}

// options reads what init was told.
func options(start js.Value) []gpu.Option {
	var list []gpu.Option
	if device := start.Get("device"); device.Type() == js.TypeObject {
		return append(list, gpu.WithDevice(device))
	}
	if start.Get("frugal").Truthy() {
		list = append(list, gpu.WithPower(gpu.LowPower))
	}
	return list
}

// information is what the page shows as gpu.info.
func information(i gpu.AdapterInfo) map[string]any {
	features := []any{}
	for _, name := range i.Features.Names() {
		features = append(features, name)
	}
	return map[string]any{
		"driver": i.Driver, "name": i.Name, "vendor": i.Vendor, "backend": i.Backend, "kind": i.Kind.String(),
		"features": features,
		"limits": map[string]any{
			"maxBufferSize":     i.Limits.MaxBufferSize,
			"maxBindingSize":    i.Limits.MaxBindingSize,
			"maxStorageBuffers": i.Limits.MaxStorageBuffers,
			"maxWorkgroups":     i.Limits.MaxGroups,
		},
	}
}
