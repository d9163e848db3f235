// SPDX-License-Identifier: Apache-2.0

//go:build !js && rajveer

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
)

// Package native/rajveer, a module of its own, registers its driver.
var drivers = []driver.Driver{simd.New(), cpu.New()}

const runsReferences = true

const runsSIMD = true
