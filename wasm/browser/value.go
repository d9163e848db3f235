// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"syscall/js"

	"github.com/sublet-gpu/sublet/internal/fault"
)

var (
	object   = js.Global().Get("Object")
	uint8s   = js.Global().Get("Uint8Array")
	promise  = js.Global().Get("Promise")
	toString = object.Get("prototype").Get("toString")
	isView   = js.Global().Get("ArrayBuffer").Get("isView")
)

// method binds a method to its object, once, because calling a bound function is several times cheaper than calling a
// method by name.
func method(v js.Value, name string) js.Value { return v.Get(name).Call("bind", v) }

// tag returns the name of a value's class, such as "GPUBuffer", also for objects of another realm, for which instanceof
// fails.
func tag(v js.Value) string {
	s := toString.Call("call", v).String() // "[object GPUBuffer]"
	const prefix = "[object "
	if len(s) <= len(prefix) {
		return ""
	}
	return s[len(prefix) : len(s)-1]
}

// value returns a handle as a js.Value of the class.
func value(handle any, class string) (js.Value, bool) {
	v, ok := handle.(js.Value)
	return v, ok && v.Type() == js.TypeObject && tag(v) == class
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

// sentinels by the names of JavaScript's error objects. The helper names its own errors like the sentinels.
var sentinels = map[string]error{
	"AbortError":          fault.ErrDeviceLost, // of mapAsync: nobody but us unmaps or destroys
	"ErrForeign":          fault.ErrForeign,
	"ErrNoMemory":         fault.ErrNoMemory,
	"GPUOutOfMemoryError": fault.ErrNoMemory,
	"GPUPipelineError":    fault.ErrCompile,
	"RangeError":          fault.ErrNoMemory, // of an ArrayBuffer that does not fit
}

// failure turns a JavaScript error into ours.
func failure(op string, e js.Value) error {
	if e.Type() != js.TypeObject {
		return fault.Fail(op, fault.ErrInvalid, e.String())
	}
	name := text(e, "name")
	if name == "" {
		name = tag(e) // a GPUError has no name
	}
	sentinel, ok := sentinels[name]
	if !ok {
		sentinel = fault.ErrInvalid
	}
	return fault.Fail(op, sentinel, text(e, "message"))
}

// newError makes a JavaScript error that failure will turn into the sentinel of that name.
func newError(name, message string) js.Value {
	e := js.Global().Get("Error").New(message)
	e.Set("name", name)
	return e
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
