// SPDX-License-Identifier: Apache-2.0

//go:build sublet_page

package simd

import "github.com/sublet-gpu/sublet/internal/shaders/compile/ir"

// widen is nil: programs for pages that use WebGPU too, such as that of the number cruncher, are to be small. Kernels run one invocation after
// another there.
var widen func(*ir.Program) *ir.Program
