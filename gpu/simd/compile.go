// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"errors"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/front"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// compileKernel compiles the text of a kernel.
func compileKernel(k *driver.Kernel, limits driver.Limits) (*code, error) {
	p, err := front.Parse(k.Source, k.Entry)
	if err != nil {
		return nil, compileError(err.Error())
	}
	if err = check(p, limits); err != nil {
		return nil, err
	}
	o := compile.Options{Exact: k.Exact, Guard: !k.Bounded, Relaxed: relaxed(), Fuse: relaxed(), Apart: fuse.Function, Threads: !goMemory, Wazero: !goMemory}
	if sharedMemory() {
		o.Threads, o.Shared, o.MaxPages = true, true, 1<<16
	}
	if !k.Bounded { // the library's own kernels compute four elements at a time as they are
		o.Widen = widen
	}
	m, err := compile.Generate(p, o)
	switch {
	case errors.Is(err, fault.ErrLimit):
		return nil, fail("NewKernel", fault.ErrLimit, err.Error())
	case err != nil:
		return nil, compileError(err.Error())
	}
	c := &code{wasm: m.Wasm, scratch: m.Scratch}
	for _, b := range m.Bindings {
		access := driver.AccessRead
		if b.Write {
			access = driver.AccessReadWrite
		}
		c.bindings = append(c.bindings, binding{b.Binding, access, b.Min})
	}
	if m.Params >= 0 {
		c.bindings = append(c.bindings, binding{number: m.Params, access: driver.AccessParams})
	}
	return c, nil
}

// check holds a program to the limits of WebGPU.
func check(p *ir.Program, limits driver.Limits) error {
	invocations := 1
	for i, n := range p.Size {
		if n < 1 || n > int(limits.MaxGroupSize[i]) {
			return compileError("a workgroup of ", n, " invocations in dimension ", i, ", the most are ", limits.MaxGroupSize[i])
		}
		invocations *= n
	}
	if invocations > int(limits.MaxInvocations) {
		return compileError("a workgroup of ", invocations, " invocations, the most are ", limits.MaxInvocations)
	}
	shared := 0
	for _, v := range p.Vars {
		switch v.Space {
		case ir.Workgroup:
			shared += (v.Type.Size + 15) / 16 * 16
		case ir.Uniform:
			if v.Type.Size > driver.MaxParams {
				return compileError("a parameter block of ", v.Type.Size, " bytes, the most are ", driver.MaxParams)
			}
		}
		if shared > int(limits.MaxWorkgroupMemory) {
			return compileError("more than ", limits.MaxWorkgroupMemory, " bytes of workgroup memory")
		}
	}
	return nil
}

func compileError(detail ...any) error {
	return fault.Fail("simd: NewKernel", fault.ErrCompile, fault.Text(detail...))
}
