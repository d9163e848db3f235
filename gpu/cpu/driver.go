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

var (
	_ driver.Driver  = (*Driver)(nil)
	_ driver.Adapter = adapter{}
	_ driver.Device  = (*device)(nil)
)

// Driver offers one adapter, the Go program itself. The zero value is ready.
type Driver struct {
	// Memory is how many bytes of buffers each device may hold, and the size of the largest one. 0 means 16 GiB, or
	// 1 GiB where addresses are short: in WebAssembly and on 32-bit machines.
	Memory uint64
}

// New returns a driver with the default budget of memory.
func New() *Driver { return new(Driver) }

// Name returns "cpu".
func (*Driver) Name() string { return "cpu" }

// Adapters returns the one adapter.
func (d *Driver) Adapters(context.Context) ([]driver.Adapter, error) {
	return []driver.Adapter{adapter{d.memory()}}, nil
}

// Adopt refuses: there is no foreign device that this driver could run on.
func (*Driver) Adopt(context.Context, any) (driver.Device, error) {
	return nil, fail("Adopt", fault.ErrUnsupported, "the Go oracle has no device of a platform")
}

// The runtime ends the program when the system has no memory left, so the defaults are what ordinary machines have.
const (
	wasm          = runtime.GOARCH == "wasm"
	memoryShort   = 1 << 30
	memoryDefault = 16 << 30
)

func (d *Driver) memory() uint64 {
	switch {
	case d != nil && d.Memory != 0:
		return min(d.Memory, math.MaxInt-7) // room to round up
	case wasm || strconv.IntSize == 32:
		return memoryShort
	}
	return memoryDefault
}

type adapter struct{ memory uint64 }

// Info describes the adapter. The limits are those of a good GPU, and the alignment is what WebGPU demands by default,
// so that a program tested here does not break there.
func (a adapter) Info() driver.AdapterInfo {
	return driver.AdapterInfo{
		Driver:  "cpu",
		Name:    "Go on " + runtime.GOARCH,
		Vendor:  "Go",
		Backend: "go",
		Kind:    driver.KindCPU,
		Limits: driver.Limits{
			MaxBufferSize:      a.memory,
			MaxBindingSize:     a.memory,
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

// Open makes a device. Each has its own budget of memory.
func (a adapter) Open(ctx context.Context) (driver.Device, error) {
	if err := alive(ctx, "Open"); err != nil {
		return nil, err
	}
	return newDevice(a.Info()), nil
}

func alive(ctx context.Context, op string) error {
	if ctx == nil {
		return fail(op, fault.ErrInvalid, "nil context")
	}
	if err := ctx.Err(); err != nil {
		return fail(op, err, "")
	}
	return nil
}

func fail(op string, err error, detail string) error { return fault.Fail("cpu: "+op, err, detail) }
