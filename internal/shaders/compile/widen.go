// SPDX-License-Identifier: Apache-2.0

//go:build !sublet_page

package compile

import (
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/lanes"
)

// widen rewrites a program to run four invocations at a time. It returns nil where package lanes does not, or fails: the program itself
// runs without it.
func widen(p *ir.Program) (wide *ir.Program) {
	defer func() {
		if recover() != nil { // a bug of package lanes must not fail a kernel that compiles without it
			wide = nil
		}
	}()
	return lanes.Widen(p)
}
