// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"runtime"
	"slices"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Submit runs a list in one call into C. An error that only the platform can find, such as a lack of memory for a write,
// leaves done what stood in the list before the write or the segment that failed.
func (d *device) Submit(list *driver.CommandList) error {
	const op = "Submit"
	if list == nil {
		return fail(op, fault.ErrInvalid, "no list")
	}
	if d.own && d.blocks {
		d.turn.Lock()
		defer d.turn.Unlock()
		if err := d.drain(context.Background(), op); err != nil {
			return err
		}
	}
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	for i := range list.Data {
		if list.Data[i].Foreign != nil {
			return fail(op, fault.ErrUnsupported, "host memory that is not Go's")
		}
	}
	if err := d.objects.Check(list); err != nil {
		return err
	}
	if len(list.Words) == 0 {
		return nil
	}
	defer d.writes.unpin()
	if !d.writes.pin(list.Data) {
		return fail(op, fault.ErrNoMemory, "out of host memory")
	}
	params := list.Params
	for len(params)%4 != 0 {
		params = append(slices.Clip(params), 0)
	}
	var e C.cog_error
	C.cog_submit(d.c,
		(*C.uint32_t)(unsafe.SliceData(list.Words)), C.size_t(len(list.Words)),
		unsafe.Pointer(unsafe.SliceData(params)), C.size_t(len(params)), d.writes.table, &e)
	d.noticeLoss()
	return take(op, &e, fault.ErrInvalid)
}

// writeTable shows C the memory of a list's writes: addresses, in C memory, of bytes that are pinned meanwhile.
type writeTable struct {
	table  *C.cog_data
	cap    int
	pinner runtime.Pinner
}

func (w *writeTable) pin(data []driver.Host) bool {
	if len(data) > w.cap {
		w.free()
		n := max(16, len(data), 2*w.cap)
		if w.table = (*C.cog_data)(C.calloc(C.size_t(n), C.sizeof_cog_data)); w.table == nil {
			return false
		}
		w.cap = n
	}
	table := unsafe.Slice(w.table, w.cap)
	for i := range data {
		table[i] = C.cog_data{}
		if data[i].Size > 0 {
			p := unsafe.SliceData(data[i].Mem())
			w.pinner.Pin(p)
			table[i] = C.cog_data{C.uintptr_t(uintptr(unsafe.Pointer(p))), C.uint64_t(data[i].Size)}
		}
	}
	return true
}

func (w *writeTable) unpin() { w.pinner.Unpin() }

func (w *writeTable) free() {
	C.free(unsafe.Pointer(w.table))
	w.table, w.cap = nil, 0
}
