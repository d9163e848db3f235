// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
)

// UseHardwareKernels makes expressions on the device take the kernels meant for hardware, with workgroup memory and
// barriers, whatever the adapter is.
func UseHardwareKernels(dev *gpu.Device) { exec.Of(dev).Pretend(false, false) }

// UseNarrowKernels makes expressions on the device take the kernels meant for SwiftShader.
func UseNarrowKernels(dev *gpu.Device) { exec.Of(dev).Pretend(true, true) }

// KeepKernels makes expressions on the device keep n kernels.
func KeepKernels(dev *gpu.Device, n int) { exec.Of(dev).KeepKernels(n) }

// Planned returns how many plans were made for expressions on the device.
func Planned(dev *gpu.Device) int { return exec.Of(dev).Planned() }
