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
	c, err := d.admit(ctx, op, id, k)
	if err != nil {
		return err
	}
	defer d.users.Add(-1)
	pipeline, err := d.compileGuarded(op, c)
	if err != nil {
		return c.whole.Explain(err)
	}
	if err = d.keep(op, id, k, pipeline, c.guarded != nil); err != nil {
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

// compilerBytes is the memory that a compiler takes for a typical kernel.
const compilerBytes = 4 << 20

// candidate is a kernel to be compiled.
type candidate struct {
	layout  *C.core_layout
	whole   *wgsl.Whole    // the text without pointers to parts of variables, if it had such
	kernel  *driver.Kernel // with that text
	scan    *wgsl.Scan     // of that text; nil if it cannot be read
	guarded *driver.Kernel // the same with a guard, if it is to have one
}

// admit checks the kernel without noting it, as nobody may dispatch it yet, and counts a user.
func (d *device) admit(ctx context.Context, op string, id driver.KernelID, k *driver.Kernel) (*candidate, error) {
	if err := d.enter(ctx, op); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if err := d.AddKernel(id, k); err != nil {
		return nil, err
	}
	d.DropKernel(id)
	if err := d.afford(op, compilerBytes); err != nil {
		return nil, err
	}
	c := &candidate{kernel: k}
	if why := c.check(d.Info()); why != "" {
		return nil, d.fail(op, fault.ErrCompile, labelled(k, why))
	}
	if d.lib.Unzeroed {
		c.zero()
	}
	var e C.core_error
	if c.guarded = d.guarded(id, c.kernel, c.scan); c.guarded != nil {
		C.core_guard(d.c, &e)
	}
	c.layout = C.core_layout_of(d.c, C.uint64_t(k.Layout), &e)
	if err := d.take(op, &e, fault.ErrInvalid); err != nil {
		return nil, err
	}
	d.users.Add(1)
	return c, nil
}

// check says why the library must not get the kernel, which would end the process, and rewrites a kernel
// that would, if there is another way to write it.
func (c *candidate) check(info driver.AdapterInfo) string {
	k, workgroup, effort := c.kernel, info.Limits.MaxWorkgroupMemory, int64(wgsl.Effort)
	switch {
	case k.Bounded: // the library's own, or one that somebody knows well
		effort = wgsl.Unlimited
	case k.Fused || info.Kind != driver.KindCPU: // what compiles for GPUs does not put each function into its callers
		effort *= 16
	}
	if !utf8.ValidString(k.Entry) || strings.IndexByte(k.Entry, 0) >= 0 {
		return "an entry point that is not UTF-8, or with a zero byte"
	}
	s, err := wgsl.Tokenize(k.Source)
	if s == nil {
		return err.Error()
	}
	if why := s.Unsafe(); why != "" || err != nil {
		return why // or, with brackets that have no partners, what the compiler says
	}
	c.scan = s
	whole, why := s.Pointers()
	if whole == nil || why != "" {
		return cmp.Or(why, s.Excess(k.Entry, workgroup, effort))
	}
	if s, err = wgsl.Tokenize(whole.Text); err != nil {
		return err.Error()
	}
	rewritten := *k
	rewritten.Source = whole.Text
	c.whole, c.kernel, c.scan = whole, &rewritten, s
	return whole.Report(s.Excess(k.Entry, workgroup, effort))
}

// zero has the kernel begin with zeros in the workgroup's memory.
func (c *candidate) zero() {
	if c.scan == nil {
		return
	}
	if text := c.scan.Zeroed(c.kernel.Entry); text != c.scan.Text {
		zeroed := *c.kernel
		zeroed.Source = text
		c.kernel = &zeroed
		c.scan, _ = wgsl.Tokenize(text)
	}
}

// compileGuarded compiles the kernel with a guard, if there is one. Errors are those of the text without it.
func (d *device) compileGuarded(op string, c *candidate) (C.WGPUComputePipeline, error) {
	pipeline, err := d.compile(op, c.layout, cmp.Or(c.guarded, c.kernel), c.guarded != nil)
	if err == nil || c.guarded == nil {
		return pipeline, err
	}
	pipeline, own := d.compile(op, c.layout, c.kernel, false)
	if own != nil {
		return nil, own
	}
	C.core_drop_pipeline(d.c, pipeline)
	return nil, d.fail(op, fault.ErrCompile,
		labelled(c.kernel, "its loops, which this adapter ends early, cannot be watched: "+err.Error()))
}

func (d *device) compile(op string, layout *C.core_layout, k *driver.Kernel, guarded bool) (C.WGPUComputePipeline, error) {
	text := d.text(k.Source)
	if d.lib.Rewrite != nil {
		text = d.lib.Rewrite(text)
	}
	source, entry, label := C.CString(text), C.CString(k.Entry), C.CString(k.Label)
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
