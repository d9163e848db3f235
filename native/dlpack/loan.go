// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

// #include "dlpack.h"
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// Compilation fails where what Go writes is not laid out as in C.
var (
	_ [C.sizeof_DLTensor]byte                 = [unsafe.Sizeof(tensor{})]byte{}
	_ [C.sizeof_DLManagedTensor]byte          = [unsafe.Sizeof(Legacy{})]byte{}
	_ [C.sizeof_DLManagedTensorVersioned]byte = [unsafe.Sizeof(Managed{})]byte{}
)

// newManaged makes the structure of a loan in C memory, or returns nil.
func newManaged[M Managed | Legacy](dims int, l *loan) *M {
	n, h := C.int32_t(dims), cgo.NewHandle(l)
	var m C.uintptr_t
	switch any((*M)(nil)).(type) {
	case *Managed:
		m = C.sublet_dl_new(n, C.uintptr_t(h))
	case *Legacy:
		m = C.sublet_dl_new_legacy(n, C.uintptr_t(h))
	}
	if m == 0 {
		h.Delete()
		return nil
	}
	return (*M)(at(uintptr(m)))
}

// subletDLPackRelease is what the deleters of both call.
//
//export subletDLPackRelease
func subletDLPackRelease(context C.uintptr_t) {
	h := cgo.Handle(context)
	l := h.Value().(*loan)
	h.Delete()
	l.pinner.Unpin()
	loans.Add(-1)
	if l.release != nil {
		l.release()
	}
}

// giveBack calls the deleter of an imported tensor.
func giveBack(deleter, self uintptr) { C.sublet_dl_delete(C.uintptr_t(deleter), C.uintptr_t(self)) }

// originOf returns what is behind the handle of a tensor that was exported here, nil for others.
func originOf(deleter, context uintptr) any {
	if h := C.sublet_dl_context(C.uintptr_t(deleter), C.uintptr_t(context)); h != 0 {
		return cgo.Handle(h).Value().(*loan).origin
	}
	return nil
}
