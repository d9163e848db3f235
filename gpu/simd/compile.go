// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"errors"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/front"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/modules"
)

// compileKernel compiles the text of a kernel for this program's engine.
func compileKernel(k *driver.Kernel, limits driver.Limits) (*modules.Module, error) {
	p, err := front.Parse(k.Source, k.Entry)
	if err != nil {
		return nil, compileError(err.Error())
	}
	if err = check(p, limits); err != nil {
		return nil, err
	}
	m, err := modules.Compile(p, content(k), &modules.Engine{JavaScript: goMemory, Relaxed: relaxed(), Shared: sharedMemory(), Widen: widen})
	switch {
	case errors.Is(err, fault.ErrLimit):
		return nil, fail("NewKernel", fault.ErrLimit, err.Error())
	case err != nil:
		return nil, compileError(err.Error())
	}
	return m, nil
}

// content is what the module of a kernel depends on.
func content(k *driver.Kernel) *modules.Kernel {
	return &modules.Kernel{Source: k.Source, Entry: k.Entry, Bounded: k.Bounded, Exact: k.Exact}
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
