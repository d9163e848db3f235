// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"context"
	"math"
	"runtime"
	"strconv"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var _ driver.Device = (*device)(nil)

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
		return newDevice(info), nil
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
		},
		Features: driver.FeatureMappable,
	}
}

func fail(op string, err error, detail ...any) error {
	return fault.Fail("cpu: "+op, err, fault.Text(detail...))
}
