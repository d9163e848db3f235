// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/compile"
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

// TestGridSizes holds workgroups of SwiftShader to 256 invocations that have something to do, where rows are long.
func TestGridSizes(t *testing.T) {
	for _, c := range []struct{ rows, cols, wide, high int }{
		{1024, 1024, 256, 1}, {1024, 1023, 256, 1}, {1024, 1028, 64, 4}, {1, 1028, 256, 1}, {2, 1028, 128, 2}, {300, 640, 64, 4}, {1000, 37, 16, 16}, {1000, 1, 1, 256}, {7, 3000, 256, 1},
	} {
		for name, size := range map[string]int{"swiftshader": 256, "llvmpipe": 64, "portable": 64} {
			l := Grid(c.rows, c.cols, fuse.F32, devices[name])
			wide, high := l.params[1], l.params[2]
			if wide*high != size || name == "swiftshader" && (wide != c.wide || high != c.high) {
				t.Errorf("%d x %d on %s: %d x %d", c.rows, c.cols, name, wide, high)
			}
			if across := l.Shape[2]; 4*wide*across < c.cols || int(l.Groups[0]*l.Groups[1]) < across*shaders.Ceil(c.rows, high) {
				t.Errorf("%d x %d on %s: not all of it: %+v", c.rows, c.cols, name, l)
			}
		}
	}
}

// TestFolded computes a matrix by workgroups in two dimensions, and by ones that are folded, more than it takes.
func TestFolded(t *testing.T) {
	const rows, cols = 37, 50
	f := storing(fuse.F32, fuse.F32)
	f.Code = []fuse.Instr{{Op: fuse.OpRow, Type: fuse.I32}, {Op: fuse.OpCol, Type: fuse.I32}, {Op: fuse.OpConvert, X: 0, Y: uint8(fuse.F32)}, {Op: fuse.OpConvert, X: 1, Y: uint8(fuse.F32)}, {Op: fuse.OpAtan2, X: 2, Y: 3}}
	options = &compile.Options{Guard: true, Wazero: true}
	defer func() {
		options = nil
		clear(modules)
	}()
	for name, l := range map[string]*Launch{"grid": Grid(rows, cols, fuse.F32, &Portable), "block": Block(rows, cols, fuse.F32, &Portable)} {
		if plain := l.params[len(l.params)-1]; plain != 0 {
			t.Errorf("%s is folded", name)
		}
		folded := *l
		folded.params = append(slices.Clone(l.params[:len(l.params)-1]), 1)
		folded.Groups = [3]uint32{3, l.Groups[0]*l.Groups[1]/3 + 1, 1}
		var results [2][]byte
		for i, l := range []*Launch{l, &folded} {
			results[i] = make([]byte, 4*rows*cols)
			launched(t, l.Program(f), l.Groups, f.Params(shaders.Words(nil, l.Shape...), fuse.Place{Row: cols, Col: 1}, nil, nil), [][]byte{results[i]})
		}
		if !bytes.Equal(results[0], results[1]) || bytes.Equal(results[0], make([]byte, len(results[0]))) {
			t.Errorf("%s: folded workgroups compute something else", name)
		}
	}
	for name, l := range map[string]*Launch{"grid": Grid(1<<24, 1, fuse.F32, &Portable), "block": Block(1<<24, 3, fuse.F32, &Portable)} {
		if l.params[len(l.params)-1] != 1 || max(l.Groups[0], l.Groups[1]) > shaders.MaxGroups {
			t.Errorf("%s is not folded: %v, %s", name, l.Groups, l.Name())
		}
	}
}
