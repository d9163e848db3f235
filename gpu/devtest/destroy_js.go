// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"syscall/js"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// Losable are the drivers whose devices tests can lose.
var Losable = []string{"cpu", "browser"}

// Destroy loses a device of the browser's.
func Destroy(dev *gpu.Device) { dev.Handle().(js.Value).Call("destroy") }

// Driver is for devices of wgpu.
func Driver(*gpu.Device) driver.Device { return nil }

// NewReal is for devices of wgpu.
func NewReal(dev driver.Device, plan Plan) *Faulty { return NewFaulty(dev, plan) }
