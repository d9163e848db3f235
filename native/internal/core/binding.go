// SPDX-License-Identifier: Apache-2.0

package core

import (
	"sync"
	"unsafe"
)

// Binding is what a driver gives to this package: the functions of its WebGPU library, and the Go types by which users know the
// library's objects.
type Binding struct {
	Name    string         // of the driver
	Package string         // import path of the handles' types
	Calls   unsafe.Pointer // *core_calls, see binding.h

	// Device returns the WGPUDevice of a handle, which is nil if the handle was closed. ok is false for other types.
	Device func(handle any) (ref unsafe.Pointer, ok bool)
	// Buffer does the same for a buffer.
	Buffer func(handle any) (ref unsafe.Pointer, ok bool)
	// NewDevice makes a handle that owns nothing. clear makes the handle one of a closed device.
	NewDevice func(ref unsafe.Pointer) (handle any, clear func())
	// NewBuffer makes a handle that owns nothing.
	NewBuffer func(device, ref unsafe.Pointer) any
	// Owned reports whether the library knows that a buffer is of a device, where handles tell it.
	Owned func(buffer any, device unsafe.Pointer) bool
	// Unzeroed says that the library leaves in a workgroup's memory what was there, which WGSL says is zero.
	Unzeroed bool
	// Rewrite returns the source of a kernel as the library's compiler takes it, with the same lines. Nil leaves all as it is.
	Rewrite func(source string) string
}

// bindings are those that drivers were made of.
var bindings struct {
	sync.Mutex
	list []*Binding
}

func register(b *Binding) {
	bindings.Lock()
	defer bindings.Unlock()
	bindings.list = append(bindings.list, b)
}

// bindingOf returns the binding that one of its functions says yes to, or nil.
func bindingOf(knows func(*Binding) bool) *Binding {
	bindings.Lock()
	defer bindings.Unlock()
	for _, b := range bindings.list {
		if knows(b) {
			return b
		}
	}
	return nil
}
