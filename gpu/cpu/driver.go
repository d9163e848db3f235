// SPDX-License-Identifier: Apache-2.0

// Package cpu is the oracle: a driver that runs kernels through their reference implementations in Go.
//
// It is the reference that the tests compare real devices with, and the device of last resort where there is no WebGPU.
// It compiles no WGSL: a kernel without a [driver.Kernel.Reference] is fault.ErrUnsupported.
//
// # Memory
//
// Buffers are Go memory, aligned to 8 bytes and counted against a budget. Running out of memory cannot be
// recovered from in Go, so what is beyond that budget is refused before it is allocated, and on Linux also what the system says it
// does not have at the time. Elsewhere to ask takes calls that the standard library lacks. [driver.Device.Handle]
// returns the bytes themselves and [driver.Device.ImportBuffer] takes a []byte, which is used in place and never freed;
// such bytes may be read and written while no submitted work uses them.
//
// # Execution
//
// Lists run one after another on a goroutine that exists only while there is work. Several devices run side by side.
//
// A reference that panics loses its device, as a crashing shader does on a GPU: half of its results may be written, so nothing
// after it may run. Calls then return fault.ErrDeviceLost and [driver.Device.LostReason] names the kernel. What no
// driver can survive is a panic in a goroutine that the reference started, and what the Go runtime calls a fatal error.
//
// In a page everything shares one thread. The goroutine lets the page run between commands, but a single long kernel
// holds it up; load the program in a worker to avoid that.
package cpu

import (
	"context"
	"math"
	"runtime"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/internal/software"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// New returns the driver. Each of its devices may hold 16 GiB of buffers, or 1 GiB where addresses are short: in
// WebAssembly and on 32-bit machines.
func New() driver.Driver {
	if wasm || strconv.IntSize == 32 {
		return newWithin(memoryShort)
	}
	return newWithin(memoryDefault)
}

// newWithin returns a driver whose devices may hold so many bytes of buffers, which is also the size of the largest one.
func newWithin(memory uint64) driver.Driver {
	info := describe(min(memory, math.MaxInt-7)) // -7 leaves room to round up
	adapter := driver.Adapter{Info: info, Open: func(ctx context.Context) (driver.Device, error) {
		if err := fault.Ended(ctx, "cpu: Open"); err != nil {
			return nil, err
		}
		return software.New(software.Config{Info: info, Engine: references{}, GoMemory: true}), nil
	}}
	return driver.Driver{
		Name:     info.Driver,
		Adapters: func(context.Context) ([]driver.Adapter, error) { return []driver.Adapter{adapter}, nil },
		Adopt: func(context.Context, any) (driver.Device, error) {
			return nil, fail("Adopt", fault.ErrUnsupported, "the Go oracle has no device of a platform")
		},
	}
}

// The runtime ends the program when the system has no memory left, so the defaults are what ordinary machines have.
const (
	wasm          = runtime.GOARCH == "wasm"
	memoryShort   = 1 << 30
	memoryDefault = 16 << 30
)

// describe describes the adapter, the Go program itself. The limits are those of a good GPU, and the alignment is what
// WebGPU demands by default, so that a program tested here does not break there.
func describe(memory uint64) driver.AdapterInfo {
	return driver.AdapterInfo{
		Driver:  "cpu",
		Name:    "Go on " + runtime.GOARCH,
		Vendor:  "Go",
		Backend: "go",
		Kind:    driver.KindCPU,
		Limits: driver.Limits{
			MaxBufferSize:      memory,
			MaxBindingSize:     memory,
			MaxStorageBuffers:  driver.MaxBindings,
			MaxGroups:          65535,
			MaxInvocations:     1024,
			MaxGroupSize:       [3]uint32{1024, 1024, 64},
			MaxWorkgroupMemory: 32 << 10,
			BindingOffsetAlign: 256,
			TimestampPeriod:    1,
		},
		Features: driver.FeatureMappable | driver.FeatureTimestamps,
	}
}

func fail(op string, err error, detail ...any) error {
	return fault.Fail("cpu: "+op, err, fault.Text(detail...))
}
