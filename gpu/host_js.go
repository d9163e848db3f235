// SPDX-License-Identifier: Apache-2.0

package gpu

import "syscall/js"

// foreignWriter writes to typed arrays, DataViews and ArrayBuffers.
func foreignWriter(op string, h Host) (write func(src []byte), err error) {
	defer func() {
		if recover() != nil { // what JavaScript throws
			write, err = nil, fail(op, ErrInvalid, "the memory is shorter; an ArrayBuffer that was transferred has no bytes")
		}
	}()
	v, ok := h.Foreign.(js.Value)
	if !ok || v.Type() != js.TypeObject {
		return nil, fail(op, ErrInvalid, "no typed array, DataView or ArrayBuffer")
	}
	at, left := h.Offset, v.Get("byteLength")
	switch tag := js.Global().Get("Object").Get("prototype").Get("toString").Call("call", v).String(); {
	case js.Global().Get("ArrayBuffer").Call("isView", v).Bool():
		at += v.Get("byteOffset").Int()
		v = v.Get("buffer")
	case tag != "[object ArrayBuffer]" && tag != "[object SharedArrayBuffer]":
		return nil, fail(op, ErrInvalid, "no typed array, DataView or ArrayBuffer")
	}
	if h.Size > left.Int()-h.Offset {
		return nil, fail(op, ErrInvalid, "the memory is shorter; an ArrayBuffer that was transferred has no bytes")
	}
	view := js.Global().Get("Uint8Array").New(v, at, h.Size)
	return func(src []byte) { js.CopyBytesToJS(view, src) }, nil
}
