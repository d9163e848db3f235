// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// LimitSparseScratch makes products with long rows use so few bytes of temporary memory at a time on a device.
func LimitSparseScratch(dev *gpu.Device, bytes int) {
	exec.Of(dev).Tune(func(info *plan.Device) { info.Scratch = bytes })
}
