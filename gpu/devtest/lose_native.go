// SPDX-License-Identifier: Apache-2.0

//go:build !js

package devtest

import (
	"reflect"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Lose loses a device: one of the oracle by a kernel that panics. No call of wgpu's loses one on purpose, so this sets what its
// callback would.
func Lose(t testing.TB, dev *gpu.Device) {
	t.Helper()
	if dev.Info().Features.Has(driver.FeatureWGSL) {
		flag := reflect.ValueOf(dev).Elem().FieldByName("drv").Elem().Elem().FieldByName("watch").Elem().FieldByName("lost")
		atomic.StoreInt32((*int32)(unsafe.Pointer(flag.UnsafeAddr())), 1)
	} else {
		k := Must[*gpu.Kernel](t)(dev.Kernel(t.Context(), gpu.KernelDesc{
			Source: "@compute @workgroup_size(1) fn main() {}", Reference: func([3]uint32, []byte, [][]byte) { panic("lost") },
		}))
		Check(t, k.Dispatch([3]uint32{1, 1, 1}, nil))
	}
	_ = dev.Sync(t.Context()) // some only look when they are called
	<-dev.Lost()
}
