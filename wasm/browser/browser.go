// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
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
	if err := ctx.Err(); err != nil {
		return nil, fault.Fail(op, err)
	}
	seen := map[part]bool{}
	for _, wish := range wishes {
		a, err := request(ctx, op, wish)
		if err != nil {
			return nil, err
		}
		if a != nil && !seen[a.part] {
			seen[a.part] = true
			list = append(list, driver.Adapter{Info: a.info, Open: a.open})
		}
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

// awaitPromise waits for a promise that belongs to no device.
func awaitPromise(ctx context.Context, op string, promise js.Value) (js.Value, error) {
	p := newPromises(func(js.Value) {})
	defer p.close() // frees the callback, at once or when the promise is settled
	w := p.wait()
	p.follow(promise, w.ticket)
	return p.await(ctx, op, w)
}
