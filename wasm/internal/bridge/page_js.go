// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package bridge

import (
	"errors"
	"syscall/js"

	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/wasm/internal/start"
)

// page is the JavaScript side, web/src/session.mjs.
type page struct {
	*start.Page
	object js.Value
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
	if err == nil {
		p.Page.Settle(ticket, value)
		return
	}
	if e, ok := errors.AsType[*file.Error](err); ok {
		p.Fail(ticket, gpu.Code(err), err, e.Offset)
		return
	}
	p.Fail(ticket, gpu.Code(err), err)
}

// Main serves the page that has loaded the program. It returns when the page closes the device.
func Main() {
	from := start.Enter()
	if from == nil {
		return
	}
	dev := from.Open()
	if dev == nil {
		return
	}
	served = New(dev, &page{from, from.Get("object")})
	from.Ready(dev, nil)
	served.Run()
	served = nil
}
