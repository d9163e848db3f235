// SPDX-License-Identifier: Apache-2.0

//go:build sublet_page

package compile

import "github.com/sublet-gpu/sublet/internal/shaders/compile/ir"

// widen leaves programs as they are: those for pages with and without a GPU, which have this compiler too, are to be small, and run the
// library's kernels.
func widen(*ir.Program) *ir.Program { return nil }
