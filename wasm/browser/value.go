// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

var uint8s = js.Global().Get("Uint8Array")

// copied makes a Uint8Array with a copy of Go's memory.
func copied(b []byte) js.Value {
	array := uint8s.New(len(b))
	js.CopyBytesToJS(array, b)
	return array
}

// value returns a handle as a js.Value of the class.
func value(handle any, class string) (js.Value, bool) {
	v, ok := handle.(js.Value)
	return v, ok && v.Type() == js.TypeObject && host.Tag(v) == class
}

// text returns a property as a string, and "" where it is something else.
func text(v js.Value, property string) string {
	if p := v.Get(property); p.Type() == js.TypeString {
		return p.String()
	}
	return ""
}

// number returns a property that is a count, and 0 where it is none.
func number(v js.Value, property string) uint64 {
	if p := v.Get(property); p.Type() == js.TypeNumber && p.Float() >= 0 {
		return uint64(p.Float())
	}
	return 0
}

// sentinel tells what the name of a JavaScript error means. The helper names its own errors like the sentinels.
func sentinel(name string) error {
	switch name {
	case "AbortError": // of mapAsync: nobody but us unmaps or destroys
		return fault.ErrDeviceLost
	case "ErrForeign":
		return fault.ErrForeign
	case "ErrNoMemory", "GPUOutOfMemoryError", "RangeError": // the last of an ArrayBuffer that does not fit
		return fault.ErrNoMemory
	case "GPUPipelineError":
		return fault.ErrCompile
	}
	return fault.ErrInvalid
}

// failure turns a JavaScript error into ours.
func failure(op string, e js.Value) error {
	if e.Type() != js.TypeObject {
		return fault.Fail(op, fault.ErrInvalid, e.String())
	}
	name := text(e, "name")
	if name == "" {
		name = host.Tag(e) // a GPUError has no name
	}
	return fault.Fail(op, sentinel(name), text(e, "message"))
}

// rescue turns an exception that JavaScript threw into an error. In syscall/js it is a panic, which would end the
// program and take every matrix of the page with it.
func rescue(op string, err *error) {
	switch p := recover().(type) {
	case nil:
	case js.Error:
		*err = failure(op, p.Value)
	case *js.ValueError:
		*err = fault.Fail(op, fault.ErrInvalid, p.Error())
	default:
		panic(p)
	}
}
