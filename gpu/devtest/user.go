// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
)

// User is a program natively with a binding of its own beside the library. It is nil where no binding is linked.
var User *Program

// Program is what a program does with a binding.
type Program struct {
	// Device makes a device, with WebGPU's default limits or all that the adapter has.
	Device func(all bool) (handle any, release func(), err error)
	// Buffer makes a buffer of a device with the usages Storage, CopySrc and CopyDst, or Storage only.
	Buffer func(device any, size uint64, storageOnly bool) (handle any, err error)
	// Destroy and Release are the binding's of a buffer.
	Destroy, Release func(buffer any)
}

// Native is the driver of wgpu that is linked, or "" if there is none.
func Native() string {
	for _, name := range []string{"oliver", "cogent", "rajveer"} {
		if slices.Contains(gpu.Drivers(), name) {
			return name
		}
	}
	return ""
}

// UserBuffer makes a buffer of a device as a program with a binding of its own does, for the time of a test.
func UserBuffer(t testing.TB, dev *gpu.Device, size uint64) (handle any) {
	t.Helper()
	b := Must[any](t)(User.Buffer(dev.Handle(), size, false))
	t.Cleanup(func() { User.Release(b) })
	return b
}

// UserDevice is a device of a program's own, for the time of a test.
func UserDevice(t testing.TB, all bool) (handle any) {
	t.Helper()
	d, release, err := User.Device(all)
	Check(t, err)
	t.Cleanup(release)
	return d
}
