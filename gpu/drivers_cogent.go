// SPDX-License-Identifier: Apache-2.0

//go:build !js && cogent && !rajveer

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
	"github.com/sublet-gpu/sublet/native/cogent"
)

// For programs that use github.com/cogentcore/webgpu themselves.
var drivers = []driver.Driver{cogent.New(), simd.New(), cpu.New()}

const runsReferences = true

const runsSIMD = true
