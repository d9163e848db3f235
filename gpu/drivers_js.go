// SPDX-License-Identifier: Apache-2.0

//go:build js && !sublet_page && !sublet_simd

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
	"github.com/sublet-gpu/sublet/wasm/browser"
)

var drivers = []driver.Driver{browser.New(), simd.New(), cpu.New()}

const runsReferences = true

const runsSIMD = true
