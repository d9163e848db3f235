// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// NewKernel compiles beside other calls on a device of our own, and under the lock on an adopted one. A compilation that
// has begun is not interrupted.
func (d *device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	const op = "NewKernel"
	layout, err := d.admit(ctx, op, id, k)
	if err != nil {
		return err
	}
	defer d.users.Add(-1)
	pipeline, err := d.compile(op, layout, k)
	if err != nil {
		return err
	}
	if err = d.keep(op, id, k, pipeline); err != nil {
		C.wgpuComputePipelineRelease(pipeline)
	}
	return err
}

// keep notes a kernel that is compiled.
func (d *device) keep(op string, id driver.KernelID, k *driver.Kernel, pipeline C.WGPUComputePipeline) error {
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.AddKernel(id, k); err != nil { // somebody took the id
		return err
	}
	var e C.cog_error
	C.cog_kernel_put(d.c, C.uint32_t(id), pipeline, &e)
	err := take(op, &e, fault.ErrInvalid)
	if err != nil {
		d.DropKernel(id)
	}
	return err
}

// admit checks the kernel without noting it, as nobody may dispatch it yet, and counts a user.
func (d *device) admit(ctx context.Context, op string, id driver.KernelID, k *driver.Kernel) (*C.cog_layout, error) {
	if err := d.enter(ctx, op); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if err := d.AddKernel(id, k); err != nil {
		return nil, err
	}
	d.DropKernel(id)
	why := unsafeSource(k.Source)
	if !utf8.ValidString(k.Entry) || strings.IndexByte(k.Entry, 0) >= 0 {
		why = "an entry point that is not UTF-8, or with a zero byte"
	}
	if why != "" { // the library would end the process
		return nil, fail(op, fault.ErrCompile, k.Label, ": ", why)
	}
	var e C.cog_error
	layout := C.cog_layout_of(d.c, C.uint64_t(k.Layout), &e)
	if err := take(op, &e, fault.ErrInvalid); err != nil {
		return nil, err
	}
	d.users.Add(1)
	return layout, nil
}

func (d *device) compile(op string, layout *C.cog_layout, k *driver.Kernel) (C.WGPUComputePipeline, error) {
	source, entry, label := C.CString(k.Source), C.CString(k.Entry), C.CString(k.Label)
	defer C.free(unsafe.Pointer(source))
	defer C.free(unsafe.Pointer(entry))
	defer C.free(unsafe.Pointer(label))
	if !d.own || d.openGL {
		if err := d.lock(op); err != nil {
			return nil, err
		}
		defer d.mu.Unlock()
	}
	var e C.cog_error
	pipeline := C.cog_compile(d.c, layout, source, entry, label, &e)
	return pipeline, take(op+" "+k.Label, &e, fault.ErrCompile)
}

func (d *device) FreeKernel(id driver.KernelID) {
	if d.lock("FreeKernel") != nil {
		return
	}
	defer d.mu.Unlock()
	if d.DropKernel(id) {
		var e C.cog_error
		C.cog_kernel_put(d.c, C.uint32_t(id), nil, &e) // the table is long enough
	}
}
