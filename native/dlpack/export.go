// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package dlpack

// #include "dlpack.h"
import "C"

import (
	"runtime"
	"runtime/cgo"
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
)

// sameLayout is false where Go aligns int64 otherwise than C (32-bit Arm and the like).
const sameLayout = C.sizeof_DLTensor == unsafe.Sizeof(tensor{}) &&
	C.SUBLET_DL_DATA == unsafe.Offsetof(tensor{}.data) &&
	C.SUBLET_DL_DEVICE == unsafe.Offsetof(tensor{}.device) &&
	C.SUBLET_DL_NDIM == unsafe.Offsetof(tensor{}.ndim) &&
	C.SUBLET_DL_DTYPE == unsafe.Offsetof(tensor{}.code) &&
	C.SUBLET_DL_SHAPE == unsafe.Offsetof(tensor{}.shape) &&
	C.SUBLET_DL_STRIDES == unsafe.Offsetof(tensor{}.strides) &&
	C.SUBLET_DL_BYTE_OFFSET == unsafe.Offsetof(tensor{}.byteOffset) &&
	C.sizeof_DLManagedTensor == unsafe.Sizeof(Legacy{}) &&
	C.SUBLET_DL_LEGACY_CONTEXT == unsafe.Offsetof(Legacy{}.context) &&
	C.SUBLET_DL_LEGACY_DELETER == unsafe.Offsetof(Legacy{}.deleter) &&
	C.sizeof_DLManagedTensorVersioned == unsafe.Sizeof(Managed{}) &&
	C.SUBLET_DL_CONTEXT == unsafe.Offsetof(Managed{}.context) &&
	C.SUBLET_DL_DELETER == unsafe.Offsetof(Managed{}.deleter) &&
	C.SUBLET_DL_FLAGS == unsafe.Offsetof(Managed{}.flags) &&
	C.SUBLET_DL_TENSOR == unsafe.Offsetof(Managed{}.tensor)

func supported(op string) error {
	if !sameLayout {
		return fail(op, gpu.ErrUnsupported, "this processor")
	}
	return nil
}

// loan is what Go remembers of a tensor that somebody has.
type loan struct {
	pinner  runtime.Pinner
	release func()
	origin  any
}

// loans counts those that are out.
var loans atomic.Int64

// lend makes C memory for a tensor and pins what it lends. On failure t is as it was.
func (t *Tensor) lend(op string, alloc func(C.int32_t, C.uintptr_t) C.uintptr_t) (m uintptr, e extent, err error) {
	if err := supported(op); err != nil {
		return 0, e, err
	}
	if e, err = t.check(op); err != nil {
		return 0, e, err
	}
	if !t.gone.CompareAndSwap(false, true) {
		return 0, e, fail(op, gpu.ErrClosed, "the tensor")
	}
	l := &loan{release: t.Release, origin: t.origin}
	h := cgo.NewHandle(l)
	m = uintptr(alloc(C.int32_t(len(t.Shape)), C.uintptr_t(h)))
	if m == 0 {
		h.Delete()
		t.gone.Store(false)
		return 0, e, fail(op, gpu.ErrNoMemory, "for the description of a tensor")
	}
	if e.elements > 0 && t.Data != nil {
		l.pinner.Pin(t.Data)
	}
	loans.Add(1)
	return m, e, nil
}

// Export lends a tensor: it returns a DLManagedTensorVersioned of DLPack 1.2 for one consumer, which calls its deleter
// when done, from any thread. Until then Go memory stays pinned. Shape and strides are copied, strides are always there
// when there are dimensions, and a tensor without elements has no data. Whoever has no use for the result gives it back by
// Import and Close.
//
// It fails with [ErrType], [ErrShape] (which includes strides and more than [MaxRank] dimensions), [ErrMemory] for
// addresses that cannot be, [gpu.ErrClosed] for a tensor that was closed or exported before, [gpu.ErrNoMemory], and
// [gpu.ErrUnsupported] without cgo. A tensor that could not be exported is the caller's to close.
func Export(t *Tensor) (*Managed, error) {
	p, e, err := t.lend("Export", func(n C.int32_t, h C.uintptr_t) C.uintptr_t { return C.sublet_dl_new(n, h) })
	if err != nil {
		return nil, err
	}
	m := (*Managed)(at(p))
	m.version = version{1, 2}
	m.flags = uint64(t.Flags & known)
	m.tensor.write(t, e)
	return m, nil
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
	p, e, err := t.lend(op, func(n C.int32_t, h C.uintptr_t) C.uintptr_t { return C.sublet_dl_new_legacy(n, h) })
	if err != nil {
		return nil, err
	}
	m := (*Legacy)(at(p))
	m.tensor.write(t, e)
	return m, nil
}

// subletDLPackRelease is the deleters' way to Go.
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
