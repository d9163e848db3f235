// SPDX-License-Identifier: Apache-2.0

package gpu

import "syscall/js"

// arrayBuffer returns the buffer of a typed array, DataView or ArrayBuffer, and where its bytes begin there.
func arrayBuffer(op string, h Host) (buf js.Value, at int, err error) {
	v, ok := h.Foreign.(js.Value)
	if !ok || v.Type() != js.TypeObject {
		return v, 0, fail(op, ErrInvalid, "no typed array, DataView or ArrayBuffer")
	}
	at, left := h.Offset, v.Get("byteLength")
	switch tag := js.Global().Get("Object").Get("prototype").Get("toString").Call("call", v).String(); {
	case js.Global().Get("ArrayBuffer").Call("isView", v).Bool():
		at += v.Get("byteOffset").Int()
		v = v.Get("buffer")
	case tag != "[object ArrayBuffer]" && tag != "[object SharedArrayBuffer]":
		return v, 0, fail(op, ErrInvalid, "no typed array, DataView or ArrayBuffer")
	}
	if h.Size > left.Int()-h.Offset {
		return v, 0, fail(op, ErrInvalid, "the memory is shorter; an ArrayBuffer that was transferred has no bytes")
	}
	return v, at, nil
}

// foreignWriter writes to typed arrays, DataViews and ArrayBuffers.
func foreignWriter(op string, h Host) (write func(src []byte), err error) {
	defer func() {
		if recover() != nil { // what JavaScript throws
			write, err = nil, fail(op, ErrInvalid, "the memory is shorter; an ArrayBuffer that was transferred has no bytes")
		}
	}()
	v, at, err := arrayBuffer(op, h)
	if err != nil {
		return nil, err
	}
	view := js.Global().Get("Uint8Array").New(v, at, h.Size)
	return func(src []byte) { js.CopyBytesToJS(view, src) }, nil
}

// spaces numbers ArrayBuffers as long as they are there.
var spaces struct {
	numbers js.Value // a WeakMap
	last    int
}

// foreignPlace tells where typed arrays, DataViews and ArrayBuffers lie.
func foreignPlace(h Host) (space uint64, at int, ok bool) {
	defer func() {
		if recover() != nil { // what JavaScript throws
			ok = false
		}
	}()
	v, at, err := arrayBuffer("HostPlace", h)
	if err != nil {
		return 0, 0, false
	}
	if spaces.last == 0 {
		spaces.numbers = js.Global().Get("WeakMap").New()
	}
	number := spaces.numbers.Call("get", v)
	if number.IsUndefined() {
		spaces.last++
		number = js.ValueOf(spaces.last)
		spaces.numbers.Call("set", v, number)
	}
	return uint64(number.Int()), at, true
}
