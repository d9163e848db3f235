// SPDX-License-Identifier: Apache-2.0

//go:build !js && cgo && !cogent && !rajveer

package devtest

import (
	"errors"

	"github.com/oliverbestmann/webgpu/wgpu"
)

func init() {
	User = &user
}

var user = Program{
	Device: func(all bool) (any, func(), error) {
		list := wgpu.CreateInstance(nil).EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{
			Backends: 1<<0 | 1<<2 | 1<<3, // Vulkan, Metal and Direct3D 12, for which the binding has no names
		})
		if len(list) == 0 {
			return nil, nil, errors.New("no adapter")
		}
		var desc wgpu.DeviceDescriptor
		if all {
			limits := list[0].GetLimits()
			desc.RequiredLimits = &limits
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
		usage := wgpu.BufferUsageStorage | wgpu.BufferUsageCopySrc | wgpu.BufferUsageCopyDst
		if storageOnly {
			usage = wgpu.BufferUsageStorage
		}
		return d.TryCreateBuffer(&wgpu.BufferDescriptor{Size: size, Usage: usage})
	},
	Destroy: func(buffer any) { buffer.(*wgpu.Buffer).Destroy() },
	Release: func(buffer any) { buffer.(*wgpu.Buffer).Release() },
}
