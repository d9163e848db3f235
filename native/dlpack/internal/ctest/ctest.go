// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package ctest

// #cgo CFLAGS: -I${SRCDIR}/../..
// #cgo LDFLAGS: -lpthread
// #include "ctest.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Spec says what a producer writes into a managed tensor, however wrong.
type Spec struct {
	Major, Minor         uint32
	Flags                uint64
	Data                 uintptr
	DeviceType, DeviceID int32
	Rank                 int32 // the dimensions it says it has
	Code, Bits           uint8
	Lanes                uint16
	ByteOffset           uint64
	Shape                []int64 // the dimensions there is memory for
	Strides              []int64 // nil: none
	NoShape, NoDeleter   bool
}

// Tally counts what happened to a produced tensor.
type Tally struct{ c *C.ctest_tally }

// NewTally makes a Tally in C memory.
func NewTally() Tally { return Tally{C.ctest_tally_new()} }

// Deleted returns how often the deleter was called, and how often of these with a wrong argument.
func (t Tally) Deleted() (calls, wrong int) { return int(t.c.deleted), int(t.c.wrong) }

// Free frees the Tally.
func (t Tally) Free() { C.ctest_tally_free(t.c) }

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// Make produces a managed tensor, the legacy kind or the versioned one.
func (s *Spec) Make(legacy bool, tally Tally) unsafe.Pointer {
	var pins runtime.Pinner
	defer pins.Unpin()
	c := C.ctest_spec{
		major: C.uint32_t(s.Major), minor: C.uint32_t(s.Minor), flags: C.uint64_t(s.Flags), data: C.uintptr_t(s.Data),
		device_type: C.int32_t(s.DeviceType), device_id: C.int32_t(s.DeviceID), ndim: C.int32_t(s.Rank),
		code: C.uint8_t(s.Code), bits: C.uint8_t(s.Bits), lanes: C.uint16_t(s.Lanes), byte_offset: C.uint64_t(s.ByteOffset),
		n: C.int32_t(len(s.Shape)), no_shape: flag(s.NoShape), no_strides: flag(s.Strides == nil), no_deleter: flag(s.NoDeleter),
	}
	if len(s.Shape) > 0 {
		pins.Pin(&s.Shape[0])
		c.shape = (*C.int64_t)(&s.Shape[0])
	}
	if len(s.Strides) > 0 {
		pins.Pin(&s.Strides[0])
		c.strides = (*C.int64_t)(&s.Strides[0])
	}
	return C.ctest_make(&c, flag(legacy), tally.c)
}

// Free frees what Make made without a deleter.
func Free(m unsafe.Pointer, legacy bool) { C.ctest_free(m, flag(legacy)) }

// Check returns what a consumer has to complain about in a managed tensor of float32, or "".
func Check(m unsafe.Pointer, legacy bool) string {
	if why := C.ctest_check(m, flag(legacy)); why != nil {
		return C.GoString(why)
	}
	return ""
}

// Sum adds up the elements, float32.
func Sum(m unsafe.Pointer, legacy bool) float64 { return float64(C.ctest_sum(m, flag(legacy))) }

// Fill writes to every element, float32.
func Fill(m unsafe.Pointer, legacy bool, v float32) { C.ctest_fill(m, flag(legacy), C.float(v)) }

// Delete calls the deleter, as a consumer does that is done.
func Delete(m unsafe.Pointer, legacy bool) { C.ctest_delete(m, flag(legacy)) }

// DeleteOnThread calls it from a thread that Go does not know. It reports whether there was one.
func DeleteOnThread(m unsafe.Pointer, legacy bool) bool {
	return C.ctest_delete_on_thread(m, flag(legacy)) == 0
}

// SumsOnThread adds the elements up many times on such a thread, then calls the deleter there. It returns how often the
// sum was another one, or -1 if there was no thread.
func SumsOnThread(m unsafe.Pointer, legacy bool, rounds int, want float64) int {
	return int(C.ctest_sums_on_thread(m, flag(legacy), C.int(rounds), C.double(want)))
}

// Heap returns how many bytes of C memory are in use, or -1 where the C library does not tell.
func Heap() int64 { return int64(C.ctest_heap()) }
