// SPDX-License-Identifier: Apache-2.0

//go:build !sublet_page

package compile

import (
	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/lanes"
)

// widen has four invocations run at a time, if that can be done.
func widen(p *ir.Program) (wide *ir.Program) {
	defer func() {
		if recover() != nil { // a mistake of ours, and no need
			wide = nil
		}
	}()
	return lanes.Widen(p)
}
