// SPDX-License-Identifier: Apache-2.0

// Package product holds the kernels of matrix products and of products of a row with a matrix.
//
// A product C = A B, with an element-wise function of each element of C behind it, is planned by [Pick]. There are four
// kernels. Tile computes tiles of C in registers and serves software adapters; with tiles of one row it is also their
// product of a row and a matrix. Group and Row go through workgroup memory and serve hardware. Sum adds the parts where
// k was cut: to keep more of the device busy, or because no invocation may loop so often.
//
// A product with a column, C = A b, is a product with a row: hand over its transpose, and the function's operands with it.
// So is any product whose result is stored by columns.
package product

import (
	_ "embed"
	"errors"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/plan"
)

//go:embed tile.wgsl
var tileSource string

//go:embed group.wgsl
var groupSource string

//go:embed row.wgsl
var rowSource string

//go:embed sum.wgsl
var sumSource string

// Kernel is a kernel of this package.
type Kernel uint8

// The kernels.
const (
	Tile Kernel = iota
	Group
	Row
	Sum
)

var kernelNames = [...]string{"tile", "group", "row", "sum"}

// Tiling is the size of a kernel's work. Quads are four rows, four columns or four steps along k.
type Tiling struct {
	TX, TY uint8 // workgroup; Row: quads of columns and invocations that share each
	RQ, CQ uint8 // quads of rows and of columns of an invocation
	RT     uint8 // Tile: rows of a quad of rows, 4 or fewer
	KQ     uint8 // Group: quads of k of a step
}

// Spec is what the text of a kernel depends on, beside the function.
type Spec struct {
	Kernel Kernel
	Tiling Tiling
	A, B   Class // of Sum neither
	// Of Tile. A kernel for the general case takes longer to compile and a little longer to run.
	Ragged bool // k is no multiple of four
	Edge   bool // n is no multiple of four
}

// Key appends what identifies the text to b.
func (s Spec) Key(b []byte) []byte {
	t := s.Tiling
	b = append(b, byte(s.Kernel), t.TX, t.TY, t.RQ, t.CQ, t.RT, t.KQ)
	for _, c := range [2]Class{s.A, s.B} {
		b = append(b, byte(c.Type)<<2|bit(c.AlongK)<<1|bit(c.Vector))
	}
	return append(b, bit(s.Ragged)<<1|bit(s.Edge))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// rows and cols are the size of the tile of C that an invocation of Tile or a workgroup of Group and Row computes.
func (s Spec) rows() int {
	switch s.Kernel {
	case Tile:
		return int(s.Tiling.RQ) * int(s.Tiling.RT)
	case Group:
		return 4 * int(s.Tiling.TY) * int(s.Tiling.RQ)
	}
	return 1
}

func (s Spec) cols() int {
	switch s.Kernel {
	case Tile:
		return 4 * int(s.Tiling.CQ)
	case Group:
		return 4 * int(s.Tiling.TX) * int(s.Tiling.CQ)
	}
	return 4 * int(s.Tiling.TX)
}

// threads is the number of invocations of a workgroup.
func (s Spec) threads() int { return int(s.Tiling.TX) * int(s.Tiling.TY) }

// memory is the workgroup memory that the kernel takes.
func (s Spec) memory() int {
	switch s.Kernel {
	case Group:
		return 4 * 4 * int(s.Tiling.KQ) * (s.rows() + s.cols())
	case Row:
		return 16 * s.threads()
	}
	return 0
}

// Build writes a kernel's text. A result in binary16 must be stored in vectors.
func Build(s Spec, f *fuse.Func) (shaders.Program, error) {
	if f.Store.Type == fuse.F16 && f.Store.Class != fuse.Vector {
		return shaders.Program{}, errors.New("product: a binary16 result that is not aligned")
	}
	source, fused, params := s.parts(f)
	own := []shaders.Access{shaders.Read, shaders.Read}
	if s.Kernel == Sum {
		own = own[:1]
	}
	return plan.Program("product/"+s.String(), source, fused, f, reference{s, f}, own, params...)
}

// parts returns the file of a kernel, its fused region and its parameters.
func (s Spec) parts(f *fuse.Func) (source, fused string, params []shaders.Param) {
	t := s.Tiling
	tx, ty, rq, cq, kq := int(t.TX), int(t.TY), int(t.RQ), int(t.CQ), int(t.KQ)
	switch s.Kernel {
	case Tile:
		return tileSource, s.region(f, int(t.RT)), []shaders.Param{
			shaders.Uint("GROUP", tx), shaders.Uint("RQ", rq), shaders.Uint("RT", int(t.RT)), shaders.Uint("CQ", cq),
			shaders.Bool("RAGGED", s.Ragged), shaders.Bool("EDGE", s.Edge),
		}
	case Group:
		return groupSource, s.region(f, 0), []shaders.Param{
			shaders.Uint("TX", tx), shaders.Uint("TY", ty), shaders.Uint("THREADS", tx*ty),
			shaders.Uint("RQ", rq), shaders.Uint("CQ", cq), shaders.Uint("KQ", kq), shaders.Uint("DEPTH", 4*kq),
			shaders.Uint("AW", ty*rq), shaders.Uint("BW", tx*cq),
			shaders.Uint("LOADS", shaders.Ceil((ty*rq+tx*cq)*kq, tx*ty)),
			shaders.Uint("BLOCKS_A", ty*rq*kq), shaders.Uint("BLOCKS", (ty*rq+tx*cq)*kq),
			shaders.Bool("A_ALONG_K", s.A.AlongK), shaders.Bool("B_ALONG_K", s.B.AlongK),
		}
	case Row:
		return rowSource, s.region(f, 1), []shaders.Param{
			shaders.Uint("LANES", ty), shaders.Uint("COLS", tx), shaders.Uint("THREADS", tx*ty), shaders.Bool("B_ALONG_K", s.B.AlongK),
		}
	}
	fused = f.Text(2, false) + "@group(0) @binding(1) var<storage, read> a: array<V>;\n"
	return sumSource, fused, []shaders.Param{shaders.Uint("GROUP", tx)}
}

// region is the fused region of a product. lines is how many rows of A one load takes; 0 takes four rows in the same form
// as columns of B.
func (s Spec) region(f *fuse.Func, lines int) string {
	a := s.A.text("a", 1, lines, f.Type)
	return f.Text(3, false) + a + s.B.text("b", 2, 0, f.Type)
}

// String names the kernel and its size.
func (s Spec) String() string {
	name := kernelNames[s.Kernel&3]
	if s.Kernel == Sum {
		return name
	}
	name += " " + num(s.rows()) + "x" + num(s.cols())
	if s.Kernel != Tile {
		name += " of " + num(int(s.Tiling.TX)) + "x" + num(int(s.Tiling.TY))
	}
	return name + " " + s.A.String() + s.B.String()
}
