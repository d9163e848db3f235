// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

// #include "core.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/wgsl"
)

// NewKernel compiles beside other calls on a device of our own, and under the lock on an adopted one. A compilation that
// has begun is not interrupted.
func (d *device) NewKernel(ctx context.Context, id driver.KernelID, k *driver.Kernel) error {
	const op = "NewKernel"
	layout, guarded, err := d.admit(ctx, op, id, k)
	if err != nil {
		return err
	}
	defer d.users.Add(-1)
	pipeline, err := d.compileGuarded(op, layout, k, guarded)
	if err != nil {
		return err
	}
	if err = d.keep(op, id, k, pipeline, guarded != nil); err != nil {
		C.core_drop_pipeline(d.c, pipeline)
	}
	return err
}

// keep notes a kernel that is compiled.
func (d *device) keep(op string, id driver.KernelID, k *driver.Kernel, pipeline C.WGPUComputePipeline, guarded bool) error {
	if err := d.lock(op); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.AddKernel(id, k); err != nil { // somebody took the id
		return err
	}
	var e C.core_error
	C.core_kernel_put(d.c, C.uint32_t(id), pipeline, C.bool(guarded), &e)
	err := d.take(op, &e, fault.ErrInvalid)
	if err != nil {
		d.DropKernel(id)
	}
	return err
}

// admit checks the kernel without noting it, as nobody may dispatch it yet, and counts a user. guarded is the kernel with a guard, if
// it is to have one.
func (d *device) admit(
	ctx context.Context, op string, id driver.KernelID, k *driver.Kernel,
) (layout *C.core_layout, guarded *driver.Kernel, err error) {
	if err := d.enter(ctx, op); err != nil {
		return nil, nil, err
	}
	defer d.mu.Unlock()
	if err := d.AddKernel(id, k); err != nil {
		return nil, nil, err
	}
	d.DropKernel(id)
	why := unsafeSource(k.Source)
	if s, err := wgsl.Tokenize(k.Source); err == nil && why == "" {
		why = s.Excess(k.Entry, d.Info().Limits.MaxWorkgroupMemory)
	}
	if !utf8.ValidString(k.Entry) || strings.IndexByte(k.Entry, 0) >= 0 {
		why = "an entry point that is not UTF-8, or with a zero byte"
	}
	if why != "" { // the library would end the process
		return nil, nil, d.fail(op, fault.ErrCompile, labelled(k, why))
	}
	var e C.core_error
	if guarded = d.guarded(id, k); guarded != nil {
		C.core_guard(d.c, &e)
	}
	layout = C.core_layout_of(d.c, C.uint64_t(k.Layout), &e)
	if err := d.take(op, &e, fault.ErrInvalid); err != nil {
		return nil, nil, err
	}
	d.users.Add(1)
	return layout, guarded, nil
}

// compileGuarded compiles the kernel with a guard, if there is one. Errors are those of the text without it.
func (d *device) compileGuarded(op string, layout *C.core_layout, k, guarded *driver.Kernel) (C.WGPUComputePipeline, error) {
	pipeline, err := d.compile(op, layout, cmp.Or(guarded, k), guarded != nil)
	if err == nil || guarded == nil {
		return pipeline, err
	}
	pipeline, own := d.compile(op, layout, k, false)
	if own != nil {
		return nil, own
	}
	C.core_drop_pipeline(d.c, pipeline)
	return nil, d.fail(op, fault.ErrCompile, labelled(k, "its loops, which this adapter ends early, cannot be watched: "+err.Error()))
}

func (d *device) compile(op string, layout *C.core_layout, k *driver.Kernel, guarded bool) (C.WGPUComputePipeline, error) {
	source, entry, label := C.CString(d.text(wgsl.WithoutEnable(k.Source, d.lib.Implied))), C.CString(k.Entry), C.CString(k.Label)
	defer C.free(unsafe.Pointer(source))
	defer C.free(unsafe.Pointer(entry))
	defer C.free(unsafe.Pointer(label))
	if !d.own || d.openGL {
		if err := d.lock(op); err != nil {
			return nil, err
		}
		defer d.mu.Unlock()
	}
	var e C.core_error
	pipeline := C.core_compile(d.c, layout, C.bool(guarded), source, entry, label, &e)
	err := d.take(op, &e, fault.ErrCompile)
	if err != nil {
		o := err.(*fault.OpError) //nolint:errorlint,forcetypeassert // as take makes them
		o.Detail = labelled(k, o.Detail)
	}
	return pipeline, err
}

// labelled says which kernel something is wrong with, if that has a name.
func labelled(k *driver.Kernel, what string) string {
	if k.Label == "" {
		return what
	}
	return fault.Short(k.Label) + ": " + what
}

func (d *device) FreeKernel(id driver.KernelID) {
	if d.lock("FreeKernel") != nil {
		return
	}
	defer d.freed()
	if d.DropKernel(id) {
		var e C.core_error
		C.core_kernel_put(d.c, C.uint32_t(id), nil, false, &e) // the table is long enough
	}
}
