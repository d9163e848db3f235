// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package dlpack

// #include "dlpack.h"
import "C"

import (
	"fmt"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
)

// Import takes a tensor that another library lends. It consumes m whatever happens: m's deleter, if it has one, is called
// exactly once, by Close of the result, or before Import returns an error. So refused is given back, and the caller never
// touches m again. Only a nil or misaligned m, which cannot be a tensor, is left alone.
//
// A tensor of another major version fails with [ErrVersion], and nothing but its deleter is looked at. The rest fails with
// [ErrType] for an element type that DLPack 1.1 does not have or that has the wrong bits, [ErrShape] for a negative or
// missing dimension, more than [MaxRank] of them, or a size that cannot be, [ErrMemory] for an address that cannot be, and
// [gpu.ErrUnsupported] without cgo, where nothing can be given back. Missing strides are filled in.
func Import(m *Managed) (*Tensor, error) {
	const op = "Import"
	if err := importable(op, unsafe.Pointer(m)); err != nil {
		return nil, err
	}
	l := newLease(m.deleter, uintptr(unsafe.Pointer(m)))
	if m.version.major != 1 {
		err := fail(op, ErrVersion, fmt.Sprintf("%d.%d", m.version.major, m.version.minor))
		l.end()
		return nil, err
	}
	return l.take(op, &m.tensor, m.context, Flags(m.flags))
}

// ImportLegacy is [Import] for a tensor without version and flags.
func ImportLegacy(m *Legacy) (*Tensor, error) {
	const op = "ImportLegacy"
	if err := importable(op, unsafe.Pointer(m)); err != nil {
		return nil, err
	}
	return newLease(m.deleter, uintptr(unsafe.Pointer(m))).take(op, &m.tensor, m.context, 0)
}

func importable(op string, m unsafe.Pointer) error {
	if m == nil || uintptr(m)%unsafe.Alignof(uintptr(0)) != 0 {
		return fail(op, gpu.ErrInvalid, fmt.Sprintf("a tensor at %#x", uintptr(m)))
	}
	return supported(op)
}

// lease is what has to be given back.
type lease struct{ deleter, self uintptr }

// leases counts those that are out.
var leases atomic.Int64

func newLease(deleter, self uintptr) lease {
	leases.Add(1)
	return lease{deleter, self}
}

func (l lease) end() {
	leases.Add(-1)
	C.sublet_dl_delete(C.uintptr_t(l.deleter), C.uintptr_t(l.self))
}

// take makes a Tensor of what is leased or gives it back.
func (l lease) take(op string, f *tensor, context uintptr, flags Flags) (*Tensor, error) {
	t, err := f.read(op, flags)
	if err != nil {
		l.end()
		return nil, err
	}
	if h := C.sublet_dl_context(C.uintptr_t(l.deleter), C.uintptr_t(context)); h != 0 {
		t.origin = cgo.Handle(h).Value().(*loan).origin
	}
	t.Release = sync.OnceFunc(l.end)
	return t, nil
}
