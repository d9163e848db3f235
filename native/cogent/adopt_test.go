// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// requestDevice makes a device with the binding alone, as a user would who has one already.
func requestDevice(t testing.TB) *wgpu.Device {
	t.Helper()
	a := userAdapter()
	if a == nil {
		t.Fatal("no adapter")
	}
	dev, err := a.RequestDevice(&wgpu.DeviceDescriptor{})
	must(t, err)
	return dev
}

// userAdapter is found once. Given a descriptor, the binding passes uninitialised memory to the library and may abort;
// given none, it tries OpenGL among others, whose instances end each other's.
var userAdapter = sync.OnceValue(func() *wgpu.Adapter {
	wgpu.SetLogLevel(wgpu.LogLevelOff)
	list := wgpu.CreateInstance(nil).EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{
		Backends: wgpu.InstanceBackendVulkan | wgpu.InstanceBackendMetal | wgpu.InstanceBackendDX12,
	})
	if len(list) == 0 {
		return nil
	}
	return list[0]
})

// adoptDevice adopts a device and releases the user's handle at once: the driver has its own reference.
func adoptDevice(t testing.TB) *device {
	t.Helper()
	dev := requestDevice(t)
	d, err := New().Adopt(t.Context(), dev)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	dev.Release()
	return d.(*device)
}

func TestAdopt(t *testing.T) {
	dev := requestDevice(t)
	d, err := New().Adopt(t.Context(), dev)
	must(t, err)
	if d.Handle(0) != any(dev) {
		t.Error("the handle is another one")
	}
	if got, want := d.Info().Limits.MaxInvocations, dev.GetLimits().Limits.MaxComputeInvocationsPerWorkgroup; got != want {
		t.Errorf("the device has %d invocations, want %d", got, want)
	}
	if d.Info().Features.Has(driver.FeatureMappable) {
		t.Error("the device was requested without features and has one")
	}
	healthy(t, d, 1)
	must(t, d.Close())
	b, err := dev.CreateBuffer(&wgpu.BufferDescriptor{Size: 16, Usage: wgpu.BufferUsageCopyDst})
	must(t, err) // the device is still the user's
	b.Release()
	dev.Release()
}

// The handle of a device that was closed is refused, and whoever adopted it before goes on.
func TestAdoptClosed(t *testing.T) {
	own, err := open(t.Context())
	must(t, err)
	handle := own.Handle(0)
	d, err := New().Adopt(t.Context(), handle)
	must(t, err)
	must(t, own.Close())
	if _, err := New().Adopt(t.Context(), handle); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%v, want %v", err, fault.ErrInvalid)
	}
	b, err := d.Handle(0).(*wgpu.Device).CreateBuffer(&wgpu.BufferDescriptor{Size: 16, Usage: wgpu.BufferUsageCopyDst})
	must(t, err)
	b.Release()
	healthy(t, d, 1)
	must(t, d.Close())
}

func TestAdoptedConformance(t *testing.T) {
	gputest.Run(t, func(ctx context.Context) (driver.Device, error) {
		dev := requestDevice(t)
		defer dev.Release()
		return New().Adopt(ctx, dev)
	})
}

// A buffer that a user made with the binding is computed on where it is.
func TestImport(t *testing.T) {
	const n = 256
	dev := requestDevice(t)
	t.Cleanup(dev.Release)
	adopted, err := New().Adopt(t.Context(), dev)
	must(t, err)
	t.Cleanup(func() { must(t, adopted.Close()) })
	own := openDevice(t)
	for name, d := range map[string]driver.Device{"adopted": adopted, "own": own} {
		t.Run(name, func(t *testing.T) {
			dev := d.Handle(0).(*wgpu.Device)
			queue := dev.GetQueue()
			defer queue.Release()
			b, err := dev.CreateBuffer(&wgpu.BufferDescriptor{
				Size:  4 * n,
				Usage: wgpu.BufferUsageStorage | wgpu.BufferUsageCopySrc | wgpu.BufferUsageCopyDst,
			})
			must(t, err)
			must(t, queue.WriteBuffer(b, 0, bytesOf(ramp(n, 7))))
			_, size, err := d.ImportBuffer(1, b)
			must(t, err)
			if size != 4*n {
				t.Errorf("the buffer has %d bytes, want %d", size, 4*n)
			}
			if d.Handle(1) != any(b) {
				t.Error("the handle is another buffer")
			}
			b.Release() // the driver has its own reference
			must(t, d.NewKernel(t.Context(), 1, &bump))
			var l driver.CommandList
			l.Bind(1, bump.Layout, []driver.Binding{whole(1, n)})
			l.Dispatch(1, 1, groups(n), nil)
			must(t, d.Submit(&l))
			want(t, d, 1, ramp(n, 8))
			d.FreeBuffer(1)
			healthy(t, d, 10)
		})
	}
}

// What the driver computes in its own buffer, a user sees through the handle.
func TestBufferHandle(t *testing.T) {
	const n = 64
	d := openDevice(t)
	dev := d.Handle(0).(*wgpu.Device)
	queue := dev.GetQueue()
	defer queue.Release()
	must(t, d.NewBuffer(1, 4*n, false))
	write(t, d, 1, ramp(n, 3))
	must(t, d.NewBuffer(2, 4*n, false))

	encoder, err := dev.CreateCommandEncoder(nil)
	must(t, err)
	source, target := d.Handle(1).(*wgpu.Buffer), d.Handle(2).(*wgpu.Buffer)
	must(t, encoder.CopyBufferToBuffer(source, 0, target, 0, 4*n))
	commands, err := encoder.Finish(nil)
	must(t, err)
	queue.Submit(commands)
	commands.Release()
	encoder.Release()
	want(t, d, 2, ramp(n, 3))
	if d.Handle(1) != any(source) {
		t.Error("the handle of a buffer changes")
	}
}

// An error that no call of the driver waits for is counted and does not end the process.
func TestStrayErrors(t *testing.T) {
	d := openDevice(t)
	dev := d.Handle(0).(*wgpu.Device)
	module, err := dev.CreateShaderModule(&wgpu.ShaderModuleDescriptor{
		WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: bump.Source},
	})
	must(t, err)
	defer module.Release()
	pipeline, err := dev.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
		Compute: wgpu.ProgrammableStageDescriptor{Module: module, EntryPoint: "main"},
	})
	must(t, err)
	defer pipeline.Release()
	pipeline.GetBindGroupLayout(7).Release()
	if d.watch.strays != 1 {
		t.Errorf("%d errors were counted, want 1", d.watch.strays)
	}
	healthy(t, d, 1)
}

// The driver reads and makes handles of the binding by their layout.
func TestHandleLayout(t *testing.T) {
	pointer := unsafe.Sizeof(uintptr(0))
	if got := unsafe.Sizeof(wgpu.Device{}); got != pointer {
		t.Errorf("wgpu.Device has %d bytes, want one pointer", got)
	}
	if got := unsafe.Sizeof(wgpu.Buffer{}); got != 2*pointer {
		t.Errorf("wgpu.Buffer has %d bytes, want two pointers", got)
	}
	fields := func(v any) (names []string) {
		for f := range reflect.TypeOf(v).Fields() {
			names = append(names, f.Name)
		}
		return names
	}
	if got := fields(wgpu.Device{}); !reflect.DeepEqual(got, []string{"ref"}) {
		t.Errorf("wgpu.Device has the fields %v", got)
	}
	if got := fields(wgpu.Buffer{}); !reflect.DeepEqual(got, []string{"deviceRef", "ref"}) {
		t.Errorf("wgpu.Buffer has the fields %v", got)
	}
}

func TestOddSize(t *testing.T) {
	d := openDevice(t)
	gputest.OddSizes(t, d, func(size int) any {
		b, err := d.Handle(0).(*wgpu.Device).CreateBuffer(&wgpu.BufferDescriptor{
			Size: uint64(size), Usage: wgpu.BufferUsageStorage | wgpu.BufferUsageCopySrc | wgpu.BufferUsageCopyDst,
		})
		must(t, err)
		t.Cleanup(b.Release)
		return b
	})
}

// A buffer of the user's is destroyed: at once for him, for the work that was submitted later.
func TestDestroyBuffer(t *testing.T) {
	d := openDevice(t)
	dev := d.Handle(0).(*wgpu.Device)
	b, err := dev.CreateBuffer(&wgpu.BufferDescriptor{
		Size: 256, Usage: wgpu.BufferUsageStorage | wgpu.BufferUsageCopySrc | wgpu.BufferUsageCopyDst, MappedAtCreation: true,
	})
	must(t, err)
	must(t, d.DestroyBuffer(b))
	must(t, d.DestroyBuffer(b)) // there is nothing more to do
	if _, _, err := d.ImportBuffer(1, b); err == nil {
		t.Error("a destroyed buffer was imported")
	}
	b.Release()
	var null *wgpu.Buffer
	if err := d.DestroyBuffer(null); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
	other := openDevice(t)
	must(t, other.NewBuffer(1, 16, false))
	if err := d.DestroyBuffer(other.Handle(1)); !errors.Is(err, fault.ErrForeign) {
		t.Errorf("another device's: %v", err)
	}
	healthy(t, d, 2)
}
