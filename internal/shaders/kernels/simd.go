// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	_ "embed"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Special is a set of kernels for one kind of device.
type Special struct {
	product func(*Request) *Product
	softmax func(rows, cols int) *Launch
}

// SIMD is kernels for processors with vectors of four that run the invocations of a workgroup one after another. The linker leaves
// them out of programs that do not name them.
var SIMD = &Special{planSIMD, planHeld}

var (
	//go:embed softmax/held.wgsl
	softmaxHeldText string
	//go:embed product/panel.wgsl
	panelKernel string
	//go:embed product/pack.wgsl
	packText string
	//go:embed product/line.wgsl
	lineText string
	//go:embed product/dots.wgsl
	dotsText string
)

var (
	softmaxHeld  = &form{"softmax/held", &softmaxHeldText, "SIZE", 0, 4, &member{storedText, func(*Kernel) bool { return false }}}
	productPanel = &form{"product/panel", &panelKernel, "GROUP RT CQ A_ALONG_K PACKED EDGE", 2, 16, &member{panelText, func(k *Kernel) bool { return k.params[5] == 0 }}}
	productLine  = &form{"product/line", &lineText, "STEP EDGE", 2, 16, &member{lineParts, func(*Kernel) bool { return true }}}
	productDots  = &form{"product/dots", &dotsText, "GROUP STEP_A STEP_B A_ALONG_K RAGGED EDGE", 2, 16, &member{dotsParts, func(k *Kernel) bool { return k.params[5] == 0 }}}
	productPack  = &form{"product/pack", &packText, "SIZE CQ ALONG_K", 0, 4, nil}
)

// planSIMD plans a product that the family has a kernel for, or returns nil.
func planSIMD(r *Request) *Product {
	switch {
	case r.Stack != 0:
		return nil
	case r.panels():
		return planPanels(r)
	case !r.single():
		return nil
	case r.B.ColMajor:
		return planDots(r)
	}
	return planLine(r)
}

// planHeld plans the softmax of rows. The result must be float32, and the elements of a row next to each other.
func planHeld(rows, cols int) *Launch {
	return Kernel{form: softmaxHeld, params: []int{rowsSize}}.launch(shaders.Ceil(rows, rowsSize), rows, cols, nan)
}

// storedText returns the text of a function that reads a vector of the result.
func storedText(_ *Kernel, f *fuse.Func) string {
	if f.Store.Class == fuse.Beside {
		return "fn stored(f: Fixed, i: u32, j: u32) -> V {\n  let o = f.o.x + i * f.o.y + j;\n  return V(s0_at(o), s0_at(o + 1u), s0_at(o + 2u), s0_at(o + 3u));\n}\n"
	}
	return "fn stored(f: Fixed, i: u32, j: u32) -> V { return s0_quad((f.o.x + i * f.o.y + j) >> 2u); }\n"
}
