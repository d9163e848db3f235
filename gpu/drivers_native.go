// SPDX-License-Identifier: Apache-2.0

//go:build !js

package gpu

import (
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/native/cogent"
)

var drivers = []driver.Driver{cogent.New(), cpu.New()}

// RunsReferences tells whether one of the linked drivers runs the Go references of kernels: [KernelDesc.Reference].
const RunsReferences = true
