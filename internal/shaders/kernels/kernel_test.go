// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// identity is the function that stores the kernel's own value.
func identity(store fuse.View) *fuse.Func {
	return &fuse.Func{
		Type: store.Type.Compute(), Code: []fuse.Instr{{Op: fuse.OpAcc, Type: store.Type.Compute()}}, Store: store,
		Slots: []fuse.Slot{{Type: store.Type, Vec: store.Class == fuse.Vector}},
	}
}

// TestFiles looks for each parameter in the file that should have it, and for marks without a partner.
func TestFiles(t *testing.T) {
	forms := []*form{
		mapLinear, mapGrid, mapBlock, mapWords, foldRows, foldTree, foldCols, softmaxRows, softmaxGroup,
		productTile, productGroup, productRow, productSum, productPanel, productPack, productLine, productDots, softmaxHeld, sparseRows, sparseSum, sparseScatter,
		eliminateForm, swapForm, invertForm, reflectForm, rotateForm,
	}
	for _, file := range forms {
		text := *file.text
		for name := range strings.FieldsSeq(file.params) {
			if strings.Count(text, "const "+name+": ") != 1 {
				t.Errorf("%s: no parameter %s", file.name, name)
			}
		}
		begin, end := strings.Count(text, "// @fuse\n"), strings.Count(text, "// @end\n")
		if own := file.name == "sparse/scatter" || strings.HasPrefix(file.name, "factor/"); begin != end || own == (begin == 1) {
			t.Errorf("%s: fused regions begin %d times and end %d times", file.name, begin, end)
		}
		if loops, ends := strings.Count(text, "++) { // @unroll\n"), strings.Count(text, "} // @unroll\n"); loops != ends || 2*loops != strings.Count(text, "@unroll") {
			t.Errorf("%s: unrolled loops begin %d times and end %d times", file.name, loops, ends)
		}
	}
}
