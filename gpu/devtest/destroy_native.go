// SPDX-License-Identifier: Apache-2.0

//go:build !js

package devtest

import (
	"context"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Losable are the drivers whose devices tests can lose.
var Losable = []string{"cpu", "oliver", "cogent", "rajveer"}

// Destroy loses a device of wgpu. No call of the platform's does that on purpose, so this sets, as the driver's own test does,
// what its callback would. The oracle is lost by a kernel that panics. Whatever waits is told; others see it at their next call.
func Destroy(dev *gpu.Device) {
	if dev.Info().Features.Has(driver.FeatureWGSL) {
		destroy(Driver(dev))
	} else if k, err := dev.Kernel(context.Background(), gpu.KernelDesc{
		Source: "@compute @workgroup_size(1) fn main() {}", Reference: func([3]uint32, []byte, [][]byte) { panic("lost") },
	}); err == nil {
		_ = k.Dispatch([3]uint32{1, 1, 1}, nil)
	}
	_ = dev.Sync(context.Background()) // some only look when they are called
	<-dev.Lost()
}

func destroy(dev driver.Device) {
	flag := reflect.ValueOf(dev).Elem().FieldByName("watch").Elem().FieldByName("lost")
	atomic.StoreInt32((*int32)(unsafe.Pointer(flag.UnsafeAddr())), 1)
}

// Driver returns the driver's device behind one.
func Driver(dev *gpu.Device) driver.Device {
	return *(*driver.Device)(unsafe.Pointer(reflect.ValueOf(dev).Elem().FieldByName("drv").UnsafeAddr()))
}

// NewReal is [NewFaulty] for a device of wgpu, which is really lost as planned.
func NewReal(dev driver.Device, plan Plan) *Faulty {
	f := NewFaulty(dev, plan)
	f.destroy = func() { destroy(dev) }
	return f
}
