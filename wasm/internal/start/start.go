// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Package start is what the programs of the npm package have in common: how they start, and how they report to the page
// that has loaded them. The other side is web/src/loader.mjs.
package start

import (
	"context"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu"
)

// startKey is the symbol under which the loader leaves what a program needs to start. It is gone as soon as it is read.
const startKey = "sublet.start"

// Page is the JavaScript side.
type Page struct{ start, settle js.Value }

// Enter returns the page that has loaded the program, or nil if it was started in another way.
func Enter() *Page {
	key := js.Global().Get("Symbol").Call("for", startKey)
	reflect := js.Global().Get("Reflect")
	start := reflect.Call("get", js.Global(), key)
	reflect.Call("deleteProperty", js.Global(), key)
	if start.Type() != js.TypeObject {
		println("sublet: this program is part of the npm package sublet, whose init() loads it")
		return nil
	}
	return &Page{start, start.Get("settle")}
}

// Get returns something else that the loader has left for the program.
func (p *Page) Get(name string) js.Value { return p.start.Get(name) }

// Open opens the device that the page asks for. It returns nil, and has told the page why, if there is none.
func (p *Page) Open() *gpu.Device {
	dev, err := gpu.Open(context.Background(), p.options()...)
	if err != nil {
		p.start.Get("failed").Invoke(gpu.Code(err), err.Error())
		return nil
	}
	return dev
}

func (p *Page) options() []gpu.Option {
	if device := p.start.Get("device"); device.Type() == js.TypeObject {
		return []gpu.Option{gpu.WithDevice(device)}
	}
	if p.start.Get("frugal").Truthy() {
		return []gpu.Option{gpu.WithLowPower()}
	}
	return nil
}

// Ready tells the page that the program is at its service: with a device, and with functions that it may call.
func (p *Page) Ready(dev *gpu.Device, functions map[string]any) {
	p.start.Get("ready").Invoke(Information(dev.Info()), dev.Handle(), functions)
}

// Settle reports the value that the page waits for under the ticket. Bytes are copied.
func (p *Page) Settle(ticket uint32, value any) {
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

// Fail reports an error in place of a value. code is that of the error, as a rule; more is what else web/src/answers.mjs
// takes.
func (p *Page) Fail(ticket uint32, code string, err error, more ...any) {
	p.settle.Invoke(append([]any{ticket, nil, code, err.Error()}, more...)...)
}

// Information is what the page shows of a device.
func Information(i gpu.AdapterInfo) map[string]any {
	return map[string]any{
		"driver": i.Driver, "name": i.Name, "vendor": i.Vendor, "backend": i.Backend, "kind": i.Kind.String(),
		"features": List(i.Features.Names()),
		"limits": map[string]any{
			"maxBufferSize":     i.Limits.MaxBufferSize,
			"maxBindingSize":    i.Limits.MaxBindingSize,
			"maxStorageBuffers": i.Limits.MaxStorageBuffers,
			"maxWorkgroups":     i.Limits.MaxGroups,
		},
	}
}

// List makes a slice what [js.ValueOf] takes for an array.
func List[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}
