// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// UseHardwareKernels makes expressions on the device take the kernels meant for hardware, with workgroup memory and
// barriers, whatever the adapter is.
func UseHardwareKernels(dev *gpu.Device) { pretend(dev, false) }

// UseNarrowKernels makes expressions on the device take the kernels meant for SwiftShader.
func UseNarrowKernels(dev *gpu.Device) { pretend(dev, true) }

// UseOneLaunch makes expressions on the device take kernels of products that need no launch before or behind them.
func UseOneLaunch(dev *gpu.Device) {
	exec.Of(dev).Tune(func(info *plan.Device) { info.SIMD, info.Native = nil, false })
}

// UseSIMDKernels makes expressions on the device take the kernels meant for SIMD on the CPU.
func UseSIMDKernels(dev *gpu.Device) {
	exec.Of(dev).Tune(func(info *plan.Device) {
		info.Software, info.SIMD, info.Native = true, kernels.SIMD, false
	})
}

func pretend(dev *gpu.Device, swiftShader bool) {
	UseOneLaunch(dev)
	exec.Of(dev).Tune(func(info *plan.Device) {
		info.Software, info.SwiftShader = swiftShader, swiftShader
		info.Quads = swiftShader && dev.Info().Features.Has(driver.FeatureSubgroups)
	})
}

// KeepKernels makes expressions on the device keep n kernels.
func KeepKernels(dev *gpu.Device, n int) {
	exec.Of(dev).Inspect(func(kept *int, _ int) { *kept = n })
}

// Planned returns how many plans were made for expressions on the device.
func Planned(dev *gpu.Device) (n int) {
	exec.Of(dev).Inspect(func(_ *int, planned int) { n = planned })
	return n
}

// ComputeAsWritten makes expressions on the device be computed in the order in which they are written, or rewritten first.
func ComputeAsWritten(dev *gpu.Device, written bool) {
	exec.Of(dev).Tune(func(info *plan.Device) { info.AsWritten = written })
}

// OtherNames are the names of other libraries, with what Eval suggests.
const OtherNames = otherNames

// During runs fn as if an evaluation on the device took that long.
func During(dev *gpu.Device, fn func()) {
	exec.Of(dev).Inspect(func(*int, int) { fn() })
}

// Balance makes another balancer decide the shares of a group.
func Balance(g *DeviceGroup, b balance.Balancer) { g.balancer = b }
