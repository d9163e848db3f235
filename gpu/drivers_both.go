// SPDX-License-Identifier: Apache-2.0

//go:build js && sublet_simd && sublet_page

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/simd"
	"github.com/sublet-gpu/sublet/wasm/browser"
)

// Programs of the npm package that run beside either.
var drivers = []driver.Driver{browser.New(), simd.New()}

const runsReferences = false

const runsSIMD = true
