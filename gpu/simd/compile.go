// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// compileKernel compiles the text of a kernel.
func compileKernel(*driver.Kernel, driver.Limits) (*code, error) {
	return nil, fault.ErrUnsupported
}
