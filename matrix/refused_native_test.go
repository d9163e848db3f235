// SPDX-License-Identifier: Apache-2.0

//go:build !js && cgo

package matrix_test

import (
	"testing"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/sublet-gpu/sublet/gpu"
)

// foreignBuffer makes a buffer as a program with wgpu of its own does.
func foreignBuffer(t *testing.T, dev *gpu.Device, size uint64) (handle any, destroy func()) {
	t.Helper()
	b := must[*wgpu.Buffer](t)(dev.Handle().(*wgpu.Device).CreateBuffer(&wgpu.BufferDescriptor{
		Size: size, Usage: wgpu.BufferUsageStorage | wgpu.BufferUsageCopySrc | wgpu.BufferUsageCopyDst,
	}))
	t.Cleanup(b.Release)
	return b, b.Destroy
}
