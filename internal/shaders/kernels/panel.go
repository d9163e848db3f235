// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// The tile of the product's kernel for SIMD: eight accumulators of four, which with the operands fit into sixteen registers.
const (
	panelRows  = 4
	panelQuads = 2
	panelCols  = 4 * panelQuads
	panelGroup = 16 // tiles of a workgroup
	packGroup  = 64
	// smallFactor is how many elements of B stay in a cache where they lie.
	smallFactor = 1 << 15
)

// panels reports whether a product is computed by panels: it has more than two rows, and more than one vector of columns.
func (r *Request) panels() bool { return r.M > 2 && r.N > 4 }

// planPanels lists the launches of a product by panels of B, which are packed unless the kernel can read them where they lie and it is
// not worth it.
func planPanels(r *Request) *Product {
	result := r.Type
	wide := shaders.Ceil(r.N, panelCols)
	k := Kernel{form: productPanel}
	k.a = Factor{Type: r.A.Type, AlongK: !r.A.ColMajor}
	k.b = Factor{Type: result, Vector: true}
	packed := !r.inPlace(result)
	k.params = []int{panelGroup, panelRows, panelQuads, shaders.Bit(k.a.AlongK), shaders.Bit(packed), shaders.Bit(r.N%4 != 0)}
	p := &Product{A: k.a, B: k.b, Parts: 1, Width: 4 * quads(r.N)}
	offset, next, panel := r.B.Offset/4, r.B.Stride/4, panelQuads
	if packed {
		offset, next, panel = 0, panelQuads, panelQuads*r.K
		pack := Kernel{form: productPack, params: []int{packGroup, panelQuads, shaders.Bit(r.B.ColMajor)}}
		p.Pack = pack.launch(shaders.Ceil(wide*r.K, packGroup), r.K, r.N, wide)
		p.Packed = [2]int{wide * r.K, panelCols}
	}
	groups := wide * shaders.Ceil(r.M, panelRows*panelGroup)
	p.First = k.launch(groups, r.M, r.N, r.K, wide, panel, 0, 0, 0, r.A.Offset, r.A.Stride, offset, next)
	return p
}

// inPlace reports whether B is read where it lies.
func (r *Request) inPlace(result fuse.Type) bool {
	b := r.B.factor(r.K, r.N, r.B.ColMajor)
	return b.Vector && !b.AlongK && b.Type == result && r.N%panelCols == 0 && (r.M <= panelRows*panelGroup || r.K*r.B.Stride <= smallFactor)
}

// panelText is the part of panel's text that depends on the factors' types.
func panelText(k *Kernel, f *fuse.Func) string {
	a, b := fuse.Slot{Type: k.a.Type}, fuse.Slot{Type: k.b.Type, Vec: true}
	return a.Text("a", 1, "read") + b.Text("b", 2, "read") + splatText + "fn quad(q: u32) -> V { return b_quad(q); }\n" + addingText(f.Type, true)
}

// splatText is a function that reads an element of A into all elements of a vector.
const splatText = "fn splat(q: u32) -> V { return V(T(a_at(q))); }\n"

// addingText returns a function that adds the product of two vectors of a type to a third. With once, product and sum of floats are rounded
// together, by fma.
func addingText(t fuse.Type, once bool) string {
	sum := "x * y + sum"
	if once && t == fuse.F32 {
		sum = "fma(x, y, sum)"
	}
	return "fn add_product(x: V, y: V, sum: V) -> V { return " + sum + "; }\n"
}

// packPanels is the reference of the kernel that copies a factor into panels.
func packPanels[N fuse.Num](e *fuse.Eval[N], shape []int) {
	depth, cols, wide := shape[0], shape[1], shape[2]
	for panel := range wide {
		first := panel * panelCols
		for l := range depth {
			row := make([]N, panelCols)
			e.Apply(l, first, row[:min(panelCols, cols-first)])
			e.Store(panel*depth+l, 0, row)
		}
	}
}

// multiplyPanels is the reference of panel.
func multiplyPanels[N fuse.Num](k *Kernel, e *fuse.Eval[N], shape []int, storage [][]byte) {
	m, n, depth, panel := shape[0], shape[1], shape[2], shape[4]
	a := newElements(k.a, storage[0], shape[ProductA], shape[ProductA+1])
	left, right, acc := make([]N, depth), make([]N, depth*n), make([]N, n)
	for l := range depth {
		for j := 0; j < n; j += panelCols {
			at := 4 * (shape[ProductB] + j/panelCols*panel + l*shape[ProductB+1])
			fuse.Read(right[l*n+j:][:min(panelCols, n-j)], k.b.Type, storage[1], at, 1)
		}
	}
	for i := range m {
		fuse.Read(left, a.t, a.mem, a.offset+i*a.line, a.k)
		clear(acc)
		addRows(acc, left, right)
		e.Apply(i, 0, acc)
		e.Store(i, 0, acc)
	}
}
