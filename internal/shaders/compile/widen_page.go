// SPDX-License-Identifier: Apache-2.0

//go:build sublet_page

package compile

import "github.com/sublet-gpu/sublet/internal/shaders/compile/ir"

// widen returns nil: the programs for pages, which have this compiler too, are to be small, and run the library's own kernels, which
// compute four elements at a time as they are written.
func widen(*ir.Program) *ir.Program { return nil }
