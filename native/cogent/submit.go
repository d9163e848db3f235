// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
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
		if err := d.Drain(context.Background()); err != nil {
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
	if err := d.Check(list); err != nil {
		return err
	}
	if len(list.Words) == 0 {
		return nil
	}
	// C sees the writes' memory as addresses of bytes that are pinned meanwhile.
	var pinner runtime.Pinner
	defer pinner.Unpin()
	writes := make([]C.cog_data, len(list.Data))
	for i := range list.Data {
		if size := list.Data[i].Size; size > 0 {
			p := unsafe.SliceData(list.Data[i].Mem())
			pinner.Pin(p)
			writes[i] = C.cog_data{C.uintptr_t(uintptr(unsafe.Pointer(p))), C.uint64_t(size)}
		}
	}
	params := list.Params
	for len(params)%4 != 0 {
		params = append(slices.Clip(params), 0)
	}
	var e C.cog_error
	C.cog_submit(d.c,
		(*C.uint32_t)(unsafe.SliceData(list.Words)), C.size_t(len(list.Words)),
		unsafe.Pointer(unsafe.SliceData(params)), C.size_t(len(params)), unsafe.SliceData(writes), &e)
	d.noticeLoss()
	return take(op, &e, fault.ErrInvalid)
}
