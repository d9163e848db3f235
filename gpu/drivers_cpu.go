// SPDX-License-Identifier: Apache-2.0

//go:build js && sublet_cpu

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
)

// The npm package's program for pages without WebGPU.
var drivers = []driver.Driver{simd.New(), cpu.New()}

const runsReferences = true
