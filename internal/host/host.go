// SPDX-License-Identifier: Apache-2.0

// Package host has memory of the CPU as the drivers and the layers above them see it.
package host

import (
	"unsafe"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Memory is memory of the CPU: Go bytes, or something of the platform's such as a JavaScript Uint8Array, which only
// that platform's driver can read.
type Memory struct {
	Bytes    []byte
	Foreign  any
	Offset   int  // where the memory begins in Bytes or Foreign, in bytes
	Size     int  // bytes from there on
	ReadOnly bool // nothing may be written there; to try may end the process
}

// Bytes makes a Memory of Go bytes.
func Bytes(b []byte) Memory { return Memory{Bytes: b, Size: len(b)} }

// BytesOf returns the memory of a slice, in the machine's order, which is little-endian wherever there are devices; see
// [CheckOrder]. That of nil is nil.
func BytesOf[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// CheckOrder refuses an operation on big-endian machines, fault.ErrUnsupported: kernels and files have the low byte first, and
// memory of the host goes there as it is.
func CheckOrder(op string) error {
	if BytesOf([]uint16{1})[0] == 1 {
		return nil
	}
	return fault.Fail(op, fault.ErrUnsupported, "this machine is big-endian")
}

// Valid reports whether the memory is there. Of foreign memory only the platform's driver knows how much there is.
func (m Memory) Valid() bool {
	return m.Offset >= 0 && m.Size >= 0 && (m.Foreign != nil || m.Offset <= len(m.Bytes) && m.Size <= len(m.Bytes)-m.Offset)
}

// Mem returns Go memory as such. It is nil for foreign memory and for what is not [Memory.Valid].
func (m Memory) Mem() []byte {
	if m.Foreign != nil || !m.Valid() {
		return nil
	}
	return m.Bytes[m.Offset:][:m.Size:m.Size]
}

// Part returns size bytes of the memory from offset on. Of Go memory the result has Offset 0. It is not [Memory.Valid] where m
// has not as much, or is not itself.
func (m Memory) Part(offset, size int) Memory {
	if !m.Valid() || offset < 0 || size < 0 || offset > m.Size || size > m.Size-offset {
		m.Size = -1
		return m
	}
	if m.Foreign == nil {
		m.Bytes, m.Offset = m.Mem()[offset:][:size:size], 0
	} else {
		m.Offset += offset
	}
	m.Size = size
	return m
}

// Writer returns a function that copies bytes to the beginning of the memory, without any device. It is ready to use until
// something else is waited for: a page's memory may be gone then.
//
// It is fault.ErrInvalid for memory that is not there, fault.ErrReadOnly, and fault.ErrUnsupported for what the platform does not
// know.
func (m Memory) Writer() (write func(src []byte), err error) {
	const op = "gpu: Writer"
	switch {
	case !m.Valid():
		return nil, fault.Fail(op, fault.ErrInvalid, "memory shorter than it says")
	case m.ReadOnly:
		return nil, fault.Fail(op, fault.ErrReadOnly)
	case m.Foreign != nil:
		return m.foreignWriter(op)
	}
	mem := m.Mem()
	return func(src []byte) { copy(mem, src) }, nil
}

// Copier copies between Go and foreign memory, from a place in it on. It returns how many bytes it copied, which are fewer where memory has
// become shorter.
type Copier interface {
	Load(at int, into []byte) int
	Store(at int, from []byte) int
}

// Copier returns what copies the foreign memory, or nil where the platform does not know it.
func (m Memory) Copier() Copier {
	if c, ok := m.Foreign.(Copier); ok {
		return c
	}
	return m.foreignCopier()
}

// Place tells where the memory lies, so that overlapping memory can be recognised: at is its address in the Go program's memory,
// which is space 0, or its offset in the ArrayBuffer that space stands for. ok is false for memory that is empty or not known.
func (m Memory) Place() (space uint64, at int, ok bool) {
	if m.Size <= 0 || !m.Valid() {
		return 0, 0, false
	}
	if m.Foreign != nil {
		return m.foreignPlace()
	}
	return 0, int(uintptr(unsafe.Pointer(unsafe.SliceData(m.Mem())))), true
}
