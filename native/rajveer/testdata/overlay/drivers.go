// SPDX-License-Identifier: Apache-2.0

//go:build !js && rajveer

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
	"github.com/sublet-gpu/sublet/native/rajveer"
)

// For tests of package gpu and of what stands on it, which cannot import what imports package gpu.
var drivers = []driver.Driver{rajveer.New(), simd.New(), cpu.New()}

const runsReferences = true

const runsSIMD = true
