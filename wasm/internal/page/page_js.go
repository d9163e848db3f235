// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package page

import (
	"context"
	"errors"
	"syscall/js"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// startKey is the symbol under which web/src/loader.mjs leaves what a program needs to start. It is gone as soon as it is read.
const startKey = "sublet.start"

// host is the JavaScript side, web/src/connection.mjs.
type host struct{ start, object, settle js.Value }

// Main serves the page that has loaded the program, until the page ends it. begin makes the session, which gets the device that
// the page asks for.
func Main(begin func(*gpu.Device, Page) *Session) {
	key := js.Global().Get("Symbol").Call("for", startKey)
	reflect := js.Global().Get("Reflect")
	start := reflect.Call("get", js.Global(), key)
	reflect.Call("deleteProperty", js.Global(), key)
	if start.Type() != js.TypeObject {
		println("sublet: this program belongs to a page, which loads it with web/src/loader.mjs")
		return
	}
	dev, err := gpu.Open(context.Background(), options(start)...)
	if err != nil {
		start.Get("failed").Invoke(fault.Code(err), err.Error())
		return
	}
	session := begin(dev, &host{start, start.Get("object"), start.Get("settle")})
	served.session, served.dev = session, dev
	start.Get("ready").Invoke(Information(dev.Info()), dev.Handle())
	session.Run()
	served.session = nil
}

func options(start js.Value) []gpu.Option {
	if !gpu.Lean && start.Get("debug").Type() == js.TypeString {
		return []gpu.Option{gpu.WithDebug(start.Get("debug").String())} // of the program for pages without WebGPU
	}
	if device := start.Get("device"); device.Type() == js.TypeObject {
		return []gpu.Option{gpu.WithDevice(device)}
	}
	if start.Get("frugal").Truthy() {
		return []gpu.Option{gpu.WithLowPower()}
	}
	return nil
}

// Object implements [Page].
func (h *host) Object(number uint32) any { return h.object.Invoke(number) }

// Text implements [Page].
func (h *host) Text(number uint32) string { return h.object.Invoke(number).String() }

// Load implements [Page] for a Uint8Array.
func (h *host) Load(object any, at int, into []byte) (n int) {
	if v := from(object, at); v.Type() == js.TypeObject && v.Length() >= len(into) {
		n = js.CopyBytesToGo(into, v)
	}
	return n
}

// Store implements [Page] for a Uint8Array.
func (h *host) Store(object any, at int, data []byte) (n int) {
	if v := from(object, at); v.Type() == js.TypeObject {
		n = js.CopyBytesToJS(v, data)
	}
	return n
}

// from returns a Uint8Array from a byte on, or undefined. One that was detached has none.
func from(object any, at int) js.Value {
	v, _ := object.(js.Value)
	switch {
	case v.Type() != js.TypeObject || at >= v.Length():
		return js.Undefined()
	case at > 0:
		return v.Call("subarray", at)
	}
	return v
}

// Settle implements [Page].
func (h *host) Settle(ticket uint32, value any, err error) {
	if err != nil {
		outcome := []any{ticket, nil, fault.Code(err), err.Error()}
		if e, ok := errors.AsType[*file.Error](err); ok {
			outcome = append(outcome, e.Offset)
		}
		h.settle.Invoke(outcome...)
		return
	}
	if b, ok := value.([]byte); ok {
		array := js.Global().Get("Uint8Array").New(len(b))
		js.CopyBytesToJS(array, b)
		value = array
	}
	h.settle.Invoke(ticket, value)
}

// Information is what the page shows of a device.
func Information(i gpu.AdapterInfo) map[string]any {
	return Object(
		"driver", i.Driver, "name", i.Name, "vendor", i.Vendor, "backend", i.Backend, "kind", i.Kind.String(),
		"features", List(i.Features.Names()),
		"limits", Object(
			"maxBufferSize", i.Limits.MaxBufferSize, "maxBindingSize", i.Limits.MaxBindingSize,
			"maxStorageBuffers", i.Limits.MaxStorageBuffers, "maxWorkgroups", i.Limits.MaxGroups,
		),
	)
}

// Object makes what [js.ValueOf] takes for an object, of names that are each followed by a value. It takes less code than a
// literal.
func Object(pairs ...any) map[string]any {
	o := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		o[name] = pairs[i+1]
	}
	return o
}

// List makes a slice what [js.ValueOf] takes for an array.
func List[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}
