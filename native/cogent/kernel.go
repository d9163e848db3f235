// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

// #include "cog.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"context"
	"strconv"
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
		C.wgpuComputePipelineRelease(pipeline)
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
	var e C.cog_error
	C.cog_kernel_put(d.c, C.uint32_t(id), pipeline, C.bool(guarded), &e)
	err := take(op, &e, fault.ErrInvalid)
	if err != nil {
		d.DropKernel(id)
	}
	return err
}

// admit checks the kernel without noting it, as nobody may dispatch it yet, and counts a user. guarded is the kernel with a guard, if
// it is to have one.
func (d *device) admit(
	ctx context.Context, op string, id driver.KernelID, k *driver.Kernel,
) (layout *C.cog_layout, guarded *driver.Kernel, err error) {
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
		return nil, nil, fail(op, fault.ErrCompile, labelled(k, why))
	}
	var e C.cog_error
	if guarded = d.guarded(id, k); guarded != nil {
		C.cog_guard(d.c, &e)
	}
	layout = C.cog_layout_of(d.c, C.uint64_t(k.Layout), &e)
	if err := take(op, &e, fault.ErrInvalid); err != nil {
		return nil, nil, err
	}
	d.users.Add(1)
	return layout, guarded, nil
}

// compileGuarded compiles the kernel with a guard, if there is one. Errors are those of the text without it.
func (d *device) compileGuarded(op string, layout *C.cog_layout, k, guarded *driver.Kernel) (C.WGPUComputePipeline, error) {
	pipeline, err := d.compile(op, layout, cmp.Or(guarded, k), guarded != nil)
	if err == nil || guarded == nil {
		return pipeline, err
	}
	pipeline, own := d.compile(op, layout, k, false)
	if own != nil {
		return nil, own
	}
	C.wgpuComputePipelineRelease(pipeline)
	return nil, fail(op, fault.ErrCompile, labelled(k, "its loops, which this adapter ends early, cannot be watched: "+err.Error()))
}

func (d *device) compile(op string, layout *C.cog_layout, k *driver.Kernel, guarded bool) (C.WGPUComputePipeline, error) {
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
	pipeline := C.cog_compile(d.c, layout, C.bool(guarded), source, entry, label, &e)
	err := take(op, &e, fault.ErrCompile)
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
		var e C.cog_error
		C.cog_kernel_put(d.c, C.uint32_t(id), nil, false, &e) // the table is long enough
	}
}

// The compiler inside wgpu-native descends into a kernel recursively and runs out of stack, which ends the process, on
// sources of a few kilobytes. The limits here are those of Chrome's compiler where it has any, and a tenth or less of
// what is fatal on a stack of eight megabytes.
const (
	maxNesting      = 127  // brackets within brackets
	maxDeclarations = 1024 // of const and alias, which may refer to each other
)

// What is counted within a pair of brackets.
const (
	operators = iota // in a row, without a bracket, comma or semicolon around
	members          // likewise, a.b.c
	branches         // of one if
)

var limits = [...]struct {
	most   int
	excess string
}{
	operators: {512, "an expression has too many operators"},
	members:   {512, "a chain of members is too long"},
	branches:  {256, "an if has too many branches"},
}

// nestingLevel is what was counted within a pair of brackets.
type nestingLevel struct {
	count  [len(limits)]int
	closed bool // the last token was a block's end
}

func atLine(s *wgsl.Scan, token int, what string) string {
	return "line " + strconv.Itoa(s.Line(token)) + ": " + what
}

// unsafeSource says why wgpu-native must not get a WGSL source, or "". A source that only has brackets without partners is
// left to the compiler, whose messages are better.
func unsafeSource(source string) string {
	s, err := wgsl.Tokenize(source)
	if s == nil {
		return err.Error()
	}
	var levels [maxNesting + 1]nestingLevel
	depth, declarations := 0, 0
	for i := range s.Tokens {
		l, of := &levels[depth], -1
		closed := l.closed
		l.closed = false
		switch text := s.At(i); text {
		case "(", "[", "{":
			if depth++; depth > maxNesting {
				return atLine(s, i, "brackets are nested too deeply")
			}
			levels[depth] = nestingLevel{}
		case ")", "]", "}":
			depth = max(depth-1, 0)
			if l = &levels[depth]; text == "}" {
				l.closed, l.count[operators], l.count[members] = true, 0, 0
			}
		case ";", ",":
			*l = nestingLevel{}
		case ".":
			of = members
		case "else":
			of = branches
		case "const", "alias":
			if declarations++; declarations > maxDeclarations {
				return atLine(s, i, "there are too many declarations of constants and types")
			}
		default:
			if s.Char(i) != 0 {
				of = operators
			} else if closed {
				l.count[branches] = 0
			}
		}
		if of >= 0 {
			if l.count[of]++; l.count[of] > limits[of].most {
				return atLine(s, i, limits[of].excess)
			}
		}
	}
	return ""
}
