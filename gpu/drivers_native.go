// SPDX-License-Identifier: Apache-2.0

//go:build !js && !cogent && !rajveer

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
	"github.com/sublet-gpu/sublet/native/oliver"
)

// Bindings of wgpu-native define the same C symbols, so that a program has one of them.
var drivers = []driver.Driver{oliver.New(), simd.New(), cpu.New()}

const runsReferences = true

const runsSIMD = true
