// SPDX-License-Identifier: Apache-2.0

package matrix

import "github.com/sublet-gpu/sublet/gpu"

// UseHardwareKernels makes expressions on the device take the kernels meant for hardware, with workgroup memory and
// barriers, whatever the adapter is.
func UseHardwareKernels(dev *gpu.Device) {
	g := engineOf(dev)
	g.mu.Lock()
	g.software, g.narrow = false, false
	g.mu.Unlock()
}

// KeepKernels makes expressions on the device keep n kernels.
func KeepKernels(dev *gpu.Device, n int) {
	g := engineOf(dev)
	g.mu.Lock()
	g.kernels.Most = n
	g.mu.Unlock()
}

// UseNarrowKernels makes expressions on the device take the kernels meant for SwiftShader.
func UseNarrowKernels(dev *gpu.Device) {
	g := engineOf(dev)
	g.mu.Lock()
	g.software, g.narrow = true, true
	g.mu.Unlock()
}
