// SPDX-License-Identifier: Apache-2.0

package gpu

import "unsafe"

// HostWriter returns a function that copies bytes to the beginning of host memory, without any device. They must fit
// in. It is ready to use until something else is waited for: a page's memory may be gone then.
//
// It is [ErrInvalid] for memory that is not there, [ErrReadOnly], and [ErrUnsupported] for what the platform does not know.
func HostWriter(h Host) (write func(src []byte), err error) {
	const op = "HostWriter"
	switch {
	case !h.Valid():
		return nil, fail(op, ErrInvalid, "memory shorter than it says")
	case h.ReadOnly:
		return nil, fail(op, ErrReadOnly)
	case h.Foreign != nil:
		return foreignWriter(op, h)
	}
	mem := h.Mem()
	return func(src []byte) { copy(mem, src) }, nil
}

// HostPlace tells where host memory lies, so that overlapping memory can be recognised: at is its address in the Go program's
// memory, which is space 0, or its offset in the ArrayBuffer that space stands for. ok is false for memory that is empty or not
// known.
func HostPlace(h Host) (space uint64, at int, ok bool) {
	if h.Size <= 0 || !h.Valid() {
		return 0, 0, false
	}
	if h.Foreign != nil {
		return foreignPlace(h)
	}
	return 0, int(uintptr(unsafe.Pointer(unsafe.SliceData(h.Mem())))), true
}
