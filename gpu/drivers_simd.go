// SPDX-License-Identifier: Apache-2.0

//go:build js && sublet_simd && !sublet_page

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
)

// The npm package's program for pages without WebGPU and for Node, which leaves the oracle out.
var drivers = []driver.Driver{simd.New()}

const runsReferences = false

const runsSIMD = true
