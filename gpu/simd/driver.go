// SPDX-License-Identifier: Apache-2.0

// Package simd is the driver that computes on the CPU at its speed: it compiles WGSL to WebAssembly with instructions for vectors, which
// natively github.com/tetratelabs/wazero turns into machine code, and in a page or in Node the JavaScript engine.
//
// It is for machines and pages without a GPU. Where neither wazero nor the JavaScript engine has a compiler for the processor, there is no
// adapter.
//
// # Memory
//
// Modules address memory with 32 bits. Natively the buffers of a device are in one range of addresses of nearly 4 GiB, whose pages become
// memory when they are first used, and go back to the system with large buffers that are freed. In JavaScript buffers are Go's memory,
// which is a WebAssembly memory itself.
//
// [driver.Device.Handle] returns a []byte. Natively [driver.Device.ImportBuffer] takes such handles only, and a device that gave handles out
// leaves the addresses, and the memory of those buffers, when it is closed. In JavaScript it takes any []byte, as package cpu does.
//
// # Execution
//
// Lists run one after another; the workgroups of a dispatch are divided among as many goroutines as there are processors, if they are
// worth it. JavaScript has one thread, and the page runs between two parts of a dispatch; in programs that the npm package loads with shared
// memory, web workers take the place of the goroutines. A list that has no list to wait for, and that is likely to take some microseconds
// only, runs in the call of Submit.
//
// Close ends a kernel that is running. Kernels that do not say how far their loops go are watched: a workgroup that works on in loops for
// some seconds is ended, and its list is a [driver.Refusal] with fault.ErrLimit. The turns of loops are counted, those of long bodies as
// several. Natively a workgroup is not interrupted: Go's garbage collector waits for it, and with the collector everything else,
// contexts included.
package simd

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/internal/software"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/modules"
)

// New returns the driver.
func New() driver.Driver {
	return newDriver(config{turns: turns, threads: threads(), compile: compileKernel})
}

// config is what tests change.
type config struct {
	turns   uint32 // of loops in a workgroup
	threads int
	compile func(*driver.Kernel, driver.Limits) (*modules.Module, error)
}

func newDriver(c config) driver.Driver {
	info := describe(c.turns)
	open := func(ctx context.Context) (driver.Device, error) {
		if err := fault.Ended(ctx, "simd: Open"); err != nil {
			return nil, err
		}
		e, err := newEngine(c)
		if err != nil {
			return nil, fail("Open", fault.ErrNoMemory, "addresses for buffers: ", err.Error())
		}
		granted := info
		granted.Limits.MaxBufferSize = min(info.Limits.MaxBufferSize, e.size())
		granted.Limits.MaxBindingSize = granted.Limits.MaxBufferSize
		return software.New(software.Config{Info: granted, Engine: e, GoMemory: goMemory, Pauses: true}), nil
	}
	return driver.Driver{
		Name: info.Driver,
		Adapters: func(context.Context) ([]driver.Adapter, error) {
			if ok, why := supported(); !ok {
				return nil, why
			}
			return []driver.Adapter{{Info: info, Open: open}}, nil
		},
		Adopt: func(context.Context, any) (driver.Device, error) {
			return nil, fail("Adopt", fault.ErrUnsupported, "the driver has no device of a platform")
		},
	}
}

// maxInvocations of a workgroup. The limits are those of package cpu where they are not memory's.
const maxInvocations = 1024

func describe(turns uint32) driver.AdapterInfo {
	const largest = memoryBytes - controlBytes - granule
	return driver.AdapterInfo{
		Driver:  "simd",
		Name:    machineName,
		Vendor:  "Go",
		Backend: "wasm",
		Kind:    driver.KindCPU,
		Limits: driver.Limits{
			MaxBufferSize:       largest,
			MaxBindingSize:      largest,
			MaxStorageBuffers:   driver.MaxBindings,
			MaxGroups:           65535,
			MaxInvocations:      maxInvocations,
			MaxGroupSize:        [3]uint32{1024, 1024, 64},
			MaxWorkgroupMemory:  32 << 10,
			BindingOffsetAlign:  256,
			MaxLoopsPerInvoking: turns / maxInvocations,
			TimestampPeriod:     1,
		},
		Features: driver.FeatureMappable | driver.FeatureTimestamps | driver.FeatureWGSL,
	}
}

func fail(op string, err error, detail ...any) error {
	return fault.Fail("simd: "+op, err, fault.Text(detail...))
}
