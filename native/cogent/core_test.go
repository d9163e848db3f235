// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

import (
	"errors"
	"reflect"
	"runtime"
	"sync"
	"testing"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/native/internal/core/ctest"
)

func TestCore(t *testing.T) { ctest.Run(t, bench()) }

// What abi.h declares is what the binding's headers declare.
func TestABI(t *testing.T) { ctest.ABI(t, "github.com/cogentcore/webgpu/wgpu", "lib/wgpu.h") }

func BenchmarkCore(b *testing.B) { ctest.Benchmark(b, bench()) }

func FuzzNewKernel(f *testing.F) { ctest.FuzzNewKernel(f, bench()) }

func bench() ctest.Bench {
	unseen := ""
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		unseen = "the linker there does not put functions in front of others"
	}
	return ctest.Bench{
		Driver: New(),
		Old:    true,
		Second: true,

		RequestDevice: func() (any, error) {
			a := userAdapter()
			if a == nil {
				return nil, errors.New("no adapter")
			}
			return a.RequestDevice(&wgpu.DeviceDescriptor{})
		},
		ReleaseDevice: func(device any) { device.(*wgpu.Device).Release() },
		MaxInvocations: func(device any) uint32 {
			return device.(*wgpu.Device).GetLimits().Limits.MaxComputeInvocationsPerWorkgroup
		},
		CreateModule: func(device any, source string) (any, error) {
			return device.(*wgpu.Device).CreateShaderModule(module(source))
		},
		Stray: stray,

		CreateBuffer: func(device any, size uint64, usage ctest.Usage, mapped bool) (any, error) {
			return device.(*wgpu.Device).CreateBuffer(&wgpu.BufferDescriptor{
				Size: size, Usage: wgpu.BufferUsage(usage), MappedAtCreation: mapped,
			})
		},
		DestroyBuffer: func(buffer any) { buffer.(*wgpu.Buffer).Destroy() },
		ReleaseBuffer: func(buffer any) { buffer.(*wgpu.Buffer).Release() },
		MappedRange:   func(buffer any, size int) []byte { return buffer.(*wgpu.Buffer).GetMappedRange(0, uint(size)) },
		Unmap:         func(buffer any) error { return buffer.(*wgpu.Buffer).Unmap() },
		Write: func(device, buffer any, data []byte) error {
			queue := device.(*wgpu.Device).GetQueue()
			defer queue.Release()
			return queue.WriteBuffer(buffer.(*wgpu.Buffer), 0, data)
		},
		Copy: copyBuffer,

		NilDevice: (*wgpu.Device)(nil), EmptyDevice: new(wgpu.Device),
		NilBuffer: (*wgpu.Buffer)(nil), EmptyBuffer: new(wgpu.Buffer),

		Unseen: unseen,
	}
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

func module(source string) *wgpu.ShaderModuleDescriptor {
	return &wgpu.ShaderModuleDescriptor{WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: source}}
}

// stray asks a pipeline for a group that it does not have, which the binding takes no error for.
func stray(device any) error {
	dev := device.(*wgpu.Device)
	m, err := dev.CreateShaderModule(module(`
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = 1u; }`))
	if err != nil {
		return err
	}
	defer m.Release()
	pipeline, err := dev.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
		Compute: wgpu.ProgrammableStageDescriptor{Module: m, EntryPoint: "main"},
	})
	if err != nil {
		return err
	}
	defer pipeline.Release()
	pipeline.GetBindGroupLayout(1000).Release()
	return nil
}

func copyBuffer(device, from, to any, size uint64) error {
	dev := device.(*wgpu.Device)
	queue := dev.GetQueue()
	defer queue.Release()
	encoder, err := dev.CreateCommandEncoder(nil)
	if err != nil {
		return err
	}
	defer encoder.Release()
	if err := encoder.CopyBufferToBuffer(from.(*wgpu.Buffer), 0, to.(*wgpu.Buffer), 0, size); err != nil {
		return err
	}
	commands, err := encoder.Finish(nil)
	if err != nil {
		return err
	}
	defer commands.Release()
	queue.Submit(commands)
	return nil
}

// The driver reads and makes handles of the binding by their layout.
func TestHandleLayout(t *testing.T) {
	for _, c := range []struct{ theirs, ours any }{{wgpu.Device{}, deviceStruct{}}, {wgpu.Buffer{}, bufferStruct{}}} {
		theirs, ours := reflect.TypeOf(c.theirs), reflect.TypeOf(c.ours)
		if theirs.Size() != ours.Size() || theirs.NumField() != ours.NumField() {
			t.Errorf("%v has %d fields in %d bytes, want %d in %d", theirs, theirs.NumField(), theirs.Size(), ours.NumField(), ours.Size())
			continue
		}
		for i := range ours.NumField() {
			if got, want := theirs.Field(i), ours.Field(i); got.Name != want.Name || got.Offset != want.Offset || got.Type.Size() != want.Type.Size() {
				t.Errorf("field %d of %v is %s at %d, want %s at %d", i, theirs, got.Name, got.Offset, want.Name, want.Offset)
			}
		}
	}
}
