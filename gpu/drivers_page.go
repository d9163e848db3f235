// SPDX-License-Identifier: Apache-2.0

//go:build js && sublet_page && !sublet_simd

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/wasm/browser"
)

// The npm package has a program of its own for pages without WebGPU, and leaves what computes on the CPU out of this one.
var drivers = []driver.Driver{browser.New()}

const runsReferences = false

const runsSIMD = false
