// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

// #include "dlpack.h"
import "C"

import (
	"fmt"
	"runtime"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
)

// Compilation fails where what Go writes is not laid out as in C.
var (
	_ [C.sizeof_DLTensor]byte                 = [unsafe.Sizeof(tensor{})]byte{}
	_ [C.sizeof_DLManagedTensor]byte          = [unsafe.Sizeof(Legacy{})]byte{}
	_ [C.sizeof_DLManagedTensorVersioned]byte = [unsafe.Sizeof(Managed{})]byte{}
)

// Export lends a tensor: it returns a DLManagedTensorVersioned of DLPack 1.2 for one consumer, which calls its deleter
// when done, from any thread. Shape and strides are copied, strides are always there when there are dimensions, and a tensor
// without elements has no data. Whoever has no use for the result gives it back by Import and Close.
//
// It fails with [ErrType], [ErrShape], also for strides and more than 32 dimensions, [ErrMemory], [gpu.ErrClosed] for a tensor
// that was closed or exported before, and [gpu.ErrNoMemory]. The tensor is the caller's to close then.
func Export(t *Tensor) (*Managed, error) {
	m, e, err := lend("Export", t, func(dims C.int32_t, h C.uintptr_t) C.uintptr_t { return C.sublet_dl_new(dims, h) })
	if err != nil {
		return nil, err
	}
	managed := (*Managed)(m)
	managed.version = version{1, 2}
	managed.flags = t.Flags & known
	managed.tensor.write(t, e)
	return managed, nil
}

// ExportLegacy is [Export] for consumers that know no versions. There are no flags in it, so tensors that are [ReadOnly]
// fail with [gpu.ErrReadOnly] and those that are [Padded] with [gpu.ErrUnsupported].
func ExportLegacy(t *Tensor) (*Legacy, error) {
	const op = "ExportLegacy"
	switch {
	case t == nil:
	case t.Flags&ReadOnly != 0:
		return nil, fail(op, gpu.ErrReadOnly, "which a consumer would not know")
	case t.Flags&Padded != 0 && t.Type.Bits%8 != 0:
		return nil, fail(op, gpu.ErrUnsupported, t.Type.String(), " with a byte for each")
	}
	m, e, err := lend(op, t, func(dims C.int32_t, h C.uintptr_t) C.uintptr_t { return C.sublet_dl_new_legacy(dims, h) })
	if err != nil {
		return nil, err
	}
	legacy := (*Legacy)(m)
	legacy.tensor.write(t, e)
	return legacy, nil
}

// loan is what Go keeps of a tensor that somebody has.
type loan struct {
	pinner  runtime.Pinner
	release func()
	origin  any
}

// lend has C memory made for the description of a tensor and pins what it lends. On failure t is as it was.
func lend(op string, t *Tensor, describe func(dims C.int32_t, h C.uintptr_t) C.uintptr_t) (m unsafe.Pointer, e extent, err error) {
	if e, err = t.check(op); err != nil {
		return nil, e, err
	}
	if !t.gone.CompareAndSwap(false, true) {
		return nil, e, fail(op, gpu.ErrClosed, "the tensor")
	}
	l := &loan{release: t.Release, origin: t.origin}
	h := cgo.NewHandle(l)
	address := describe(C.int32_t(len(t.Shape)), C.uintptr_t(h))
	if address == 0 {
		h.Delete()
		t.gone.Store(false)
		return nil, e, fail(op, gpu.ErrNoMemory, "for the description of a tensor")
	}
	if e.elements > 0 && t.Data != nil {
		l.pinner.Pin(t.Data)
	}
	loans.Add(1)
	return at(uintptr(address)), e, nil
}

// subletDLPackRelease is what the deleters of both kinds call.
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

// Import takes a tensor that another library lends. It consumes m whatever happens: m's deleter, if it has one, is called
// exactly once, by Close of the result, or before Import returns an error. Only a nil or misaligned m, which cannot be a
// tensor, is left alone: [gpu.ErrInvalid]. Missing strides are filled in.
//
// A tensor of another major version fails with [gpu.ErrUnsupported], and nothing but its deleter is looked at. Others fail with
// [ErrType] for an element type that DLPack 1.1 does not have, [ErrShape] for dimensions, strides or a size that cannot be, and
// [ErrMemory] for an address that cannot be.
func Import(m *Managed) (*Tensor, error) {
	const op = "Import"
	if err := importable(op, unsafe.Pointer(m)); err != nil {
		return nil, err
	}
	release := lease(m.deleter, uintptr(unsafe.Pointer(m)))
	if v := m.version; v.major != 1 {
		release()
		return nil, fail(op, gpu.ErrUnsupported, fmt.Sprintf("version %d.%d", v.major, v.minor))
	}
	return take(op, &m.tensor, m.deleter, m.context, m.flags, release)
}

// ImportLegacy is [Import] for a tensor without version and flags.
func ImportLegacy(m *Legacy) (*Tensor, error) {
	const op = "ImportLegacy"
	if err := importable(op, unsafe.Pointer(m)); err != nil {
		return nil, err
	}
	return take(op, &m.tensor, m.deleter, m.context, 0, lease(m.deleter, uintptr(unsafe.Pointer(m))))
}

func importable(op string, m unsafe.Pointer) error {
	if m == nil || uintptr(m)%unsafe.Alignof(uintptr(0)) != 0 {
		return fail(op, gpu.ErrInvalid, fmt.Sprintf("a tensor at %#x", uintptr(m)))
	}
	return nil
}

// leases counts the tensors that are imported, loans those that are exported.
var leases, loans atomic.Int64

// lease returns what gives an imported tensor back, once.
func lease(deleter, self uintptr) func() {
	leases.Add(1)
	return sync.OnceFunc(func() {
		leases.Add(-1)
		C.sublet_dl_delete(C.uintptr_t(deleter), C.uintptr_t(self))
	})
}

// take makes a Tensor of what is leased or gives it back. What was exported here is known by its handle.
func take(op string, f *tensor, deleter, context uintptr, flags uint64, release func()) (*Tensor, error) {
	t, err := f.read(op, flags)
	if err != nil {
		release()
		return nil, err
	}
	t.Release = release
	if h := C.sublet_dl_context(C.uintptr_t(deleter), C.uintptr_t(context)); h != 0 {
		t.origin = cgo.Handle(h).Value().(*loan).origin
	}
	return t, nil
}
