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

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// Compilation fails where what Go writes is not laid out as in C.
var (
	_ [C.sizeof_DLTensor]byte                 = [unsafe.Sizeof(tensor{})]byte{}
	_ [C.sizeof_DLManagedTensor]byte          = [unsafe.Sizeof(Legacy{})]byte{}
	_ [C.sizeof_DLManagedTensorVersioned]byte = [unsafe.Sizeof(Managed{})]byte{}
)

// Managed is a DLManagedTensorVersioned in C memory, on its way from a producer to its one consumer. unsafe.Pointer(m) is
// what C takes; a pointer from C becomes a Managed by (*Managed)(pointer).
//
// Addresses are integers here: what a foreign library wrote there must not be looked at by the garbage collector.
type Managed struct {
	version version
	context uintptr
	deleter uintptr
	flags   uint64
	tensor  tensor
}

// Legacy is a DLManagedTensor, which DLPack had before version 1.0 and many libraries still use.
type Legacy struct {
	tensor  tensor
	context uintptr
	deleter uintptr
}

type version struct{ major, minor uint32 }

// tensor is a DLTensor.
type tensor struct {
	data       uintptr
	device     Device
	ndim       int32
	dtype      dtype.Type
	shape      uintptr
	strides    uintptr
	byteOffset uint64
}

// lowest is where memory can begin: the first page of an address space is nobody's.
const lowest = 4096

// at makes a pointer of an address in C memory, or of one that is pinned.
func at(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// dims copies n numbers out of C memory, whatever its alignment.
func dims(address uintptr, n int) []int64 {
	v := make([]int64, n)
	if n > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 8*n), unsafe.Slice((*byte)(at(address)), 8*n))
	}
	return v
}

// read makes a Tensor of what a foreign library wrote.
func (f *tensor) read(op string, flags uint64) (*Tensor, error) {
	n := int(f.ndim)
	if n < 0 || n > maxRank {
		return nil, fail(op, ErrShape, fmt.Sprintf("%d dimensions", n))
	}
	if n > 0 && f.shape < lowest || f.strides != 0 && f.strides < lowest {
		return nil, fail(op, ErrShape, "shape or strides are nowhere")
	}
	t := &Tensor{
		Device:     f.device,
		Type:       f.dtype,
		Shape:      dims(f.shape, n),
		ByteOffset: f.byteOffset,
		Flags:      flags & known,
	}
	if f.strides != 0 {
		t.Strides = dims(f.strides, n)
	}
	e, err := t.judge(op, f.data)
	switch {
	case err != nil:
		return nil, err
	case !f.device.onHost():
		t.Handle = f.data
	case e.elements > 0:
		t.Data = at(f.data)
	}
	t.Strides = t.strides()
	return t, nil
}

// write fills in the structure but for shape and strides, for which there is memory already.
func (f *tensor) write(t *Tensor, e extent) {
	if e.elements > 0 {
		f.data = max(uintptr(t.Data), t.Handle) // one of them is 0
	}
	f.device, f.dtype, f.byteOffset = t.Device, t.Type, t.ByteOffset
	f.ndim = int32(len(t.Shape))
	copy(unsafe.Slice((*int64)(at(f.shape)), f.ndim), t.Shape)
	copy(unsafe.Slice((*int64)(at(f.strides)), f.ndim), t.strides())
}

// Export lends a tensor: it returns a DLManagedTensorVersioned of DLPack 1.2 for one consumer, which calls its deleter
// when done, from any thread. Shape and strides are copied, strides are always there when there are dimensions, and a tensor
// without elements has no data. Whoever has no use for the result gives it back by Import and Close.
//
// It fails with [ErrType], [ErrShape], also for strides and more than 32 dimensions, [ErrMemory], [gpu.ErrClosed] for a tensor
// that was closed or exported before, and [gpu.ErrNoMemory]. The tensor is the caller's to close then.
func Export(t *Tensor) (*Managed, error) {
	m, err := lend("Export", t, false)
	return (*Managed)(m), err
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
	m, err := lend(op, t, true)
	return (*Legacy)(m), err
}

// loan is what Go keeps of a tensor that somebody has.
type loan struct {
	pinner  runtime.Pinner
	release func()
	origin  any
}

// lend describes a tensor in C memory and pins what it lends. On failure t is as it was.
func lend(op string, t *Tensor, legacy bool) (unsafe.Pointer, error) {
	e, err := t.check(op)
	if err != nil {
		return nil, err
	}
	if !t.gone.CompareAndSwap(false, true) {
		return nil, fail(op, gpu.ErrClosed, "the tensor")
	}
	l := &loan{release: t.Release, origin: t.origin}
	h := cgo.NewHandle(l)
	m := at(uintptr(C.sublet_dl_new(C.bool(legacy), C.int32_t(len(t.Shape)), C.uintptr_t(h))))
	if m == nil {
		h.Delete()
		t.gone.Store(false)
		return nil, fail(op, gpu.ErrNoMemory, "for the description of a tensor")
	}
	if e.elements > 0 && t.Data != nil {
		l.pinner.Pin(t.Data)
	}
	loans.Add(1)
	managed, out := (*Managed)(m), &(*Legacy)(m).tensor
	if !legacy {
		managed.version, managed.flags, out = version{1, 2}, t.Flags&known, &managed.tensor
	}
	out.write(t, e)
	return m, nil
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
func Import(m *Managed) (*Tensor, error) { return take("Import", unsafe.Pointer(m), false) }

// ImportLegacy is [Import] for a tensor without version and flags.
func ImportLegacy(m *Legacy) (*Tensor, error) { return take("ImportLegacy", unsafe.Pointer(m), true) }

// leases counts the tensors that are imported, loans those that are exported.
var leases, loans atomic.Int64

// take makes a Tensor of what is lent or gives it back. What was exported here is known by its handle.
func take(op string, m unsafe.Pointer, legacy bool) (t *Tensor, err error) {
	if m == nil || uintptr(m)%unsafe.Alignof(uintptr(0)) != 0 {
		return nil, fail(op, gpu.ErrInvalid, fmt.Sprintf("a tensor at %#x", uintptr(m)))
	}
	managed, old := (*Managed)(m), (*Legacy)(m)
	foreign, context, deleter, flags := &managed.tensor, managed.context, managed.deleter, managed.flags
	if legacy {
		foreign, context, deleter, flags = &old.tensor, old.context, old.deleter, 0
	}
	self := C.uintptr_t(uintptr(m))
	leases.Add(1)
	release := sync.OnceFunc(func() {
		leases.Add(-1)
		C.sublet_dl_delete(C.uintptr_t(deleter), self)
	})
	if v := managed.version; !legacy && v.major != 1 {
		err = fail(op, gpu.ErrUnsupported, fmt.Sprintf("version %d.%d", v.major, v.minor))
	} else {
		t, err = foreign.read(op, flags)
	}
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
