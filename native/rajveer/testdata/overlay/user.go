// SPDX-License-Identifier: Apache-2.0

//go:build !js && cgo && rajveer

package devtest

import (
	"errors"

	"github.com/rajveermalviya/go-webgpu/wgpu"
)

func init() {
	User = &user
}

var user = Program{
	Device: func(all bool) (any, func(), error) {
		list := wgpu.CreateInstance(nil).EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{
			Backends: wgpu.InstanceBackend_Vulkan | wgpu.InstanceBackend_Metal | wgpu.InstanceBackend_DX12,
		})
		if len(list) == 0 {
			return nil, nil, errors.New("no adapter")
		}
		var desc wgpu.DeviceDescriptor
		if all {
			desc.RequiredLimits = &wgpu.RequiredLimits{Limits: list[0].GetLimits().Limits}
		}
		d, err := list[0].RequestDevice(&desc)
		if err != nil {
			return nil, nil, err
		}
		return d, d.Release, nil
	},
	Buffer: func(device any, size uint64, storageOnly bool) (any, error) {
		d, ok := device.(*wgpu.Device)
		if !ok {
			return nil, errors.New("not a *wgpu.Device")
		}
		usage := wgpu.BufferUsage_Storage | wgpu.BufferUsage_CopySrc | wgpu.BufferUsage_CopyDst
		if storageOnly {
			usage = wgpu.BufferUsage_Storage
		}
		return d.CreateBuffer(&wgpu.BufferDescriptor{Size: size, Usage: usage})
	},
	Destroy: func(buffer any) { buffer.(*wgpu.Buffer).Destroy() },
	Release: func(buffer any) { buffer.(*wgpu.Buffer).Release() },
}
