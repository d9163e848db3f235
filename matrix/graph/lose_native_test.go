// SPDX-License-Identifier: Apache-2.0

//go:build !js

package graph_test

import (
	"reflect"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
)

// destroy loses a device of wgpu. No call of the platform's does that on purpose, so this sets, as the driver's own test does,
// what its callback would.
func destroy(t *testing.T, dev *gpu.Device) {
	t.Helper()
	flag := reflect.ValueOf(dev).Elem().FieldByName("drv").Elem().Elem().FieldByName("watch").Elem().FieldByName("lost")
	atomic.StoreInt32((*int32)(unsafe.Pointer(flag.UnsafeAddr())), 1)
}

// losable are the drivers whose devices the tests can lose.
var losable = []string{"cpu", "cogent"}
