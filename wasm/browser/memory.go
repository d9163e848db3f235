// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"strconv"
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// checkHost checks host memory that lives in JavaScript, which package driver cannot. The size must be there now: an
// ArrayBuffer that was transferred to a worker is detached and has none.
func checkHost(op string, h driver.Host) error {
	if h.Foreign == nil {
		return nil
	}
	v, ok := h.Foreign.(js.Value)
	if !ok || v.Type() != js.TypeObject || !isView.Invoke(v).Bool() && !isMemory(v) {
		return fault.Fail(op, fault.ErrInvalid, "host memory is no typed array, DataView or ArrayBuffer")
	}
	if n := number(v, "byteLength"); !h.Valid() || n < uint64(h.Offset)+uint64(h.Size) {
		return fault.Fail(op, fault.ErrInvalid, "host memory has "+strconv.FormatUint(n, 10)+" bytes where "+
			strconv.Itoa(h.Size)+" from "+strconv.Itoa(h.Offset)+" on are wanted; an ArrayBuffer that was transferred is detached and has none")
	}
	return nil
}

func isMemory(v js.Value) bool {
	class := tag(v)
	return class == "ArrayBuffer" || class == "SharedArrayBuffer"
}

// memoryOf returns the memory that a view shows, or v itself, and where it begins.
func memoryOf(v js.Value) (memory js.Value, at int) {
	if isView.Invoke(v).Bool() {
		return v.Get("buffer"), int(number(v, "byteOffset"))
	}
	return v, 0
}

// resizable reports whether memory can change its size. WebGPU refuses such memory.
func resizable(memory js.Value) bool {
	return memory.Get("resizable").Truthy() || memory.Get("growable").Truthy()
}
