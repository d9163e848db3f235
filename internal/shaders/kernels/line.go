// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// The kernels for products of a single row.
const (
	lineStripe  = 4 * 1024 // columns of a stripe: STRIPE of line.wgsl, in elements
	lineRows    = 8        // rows of B that line.wgsl reads side by side
	enoughParts = 8        // how many parts of k are enough for processors' threads: to add them takes time, too
	leastChunk  = 16       // the fewest and the most quads of k in a part
	mostChunk   = 96
	dotsGroup   = 4                     // invocations of a workgroup of dots.wgsl
	mostDots    = 4 * shaders.LoopLimit // the most elements of a column for dots.wgsl
)

// single reports whether a product is that of a single row, and large enough for the kernels of such products.
func (r *Request) single() bool {
	if r.B.ColMajor {
		return r.M == 1 && r.N > 4 && r.K > 4 && r.K <= mostDots
	}
	return r.M == 1 && r.N >= 16 && r.K >= lineRows
}

// loads tells how to read a matrix whose lines have so many elements: in vectors if each line ends with a whole one, else one by one.
func (o *Operand) loads(rows, cols, line int, alongK bool) Factor {
	f := o.factor(rows, cols, alongK)
	f.Vector = f.Vector && line%4 == 0
	return f
}

// step returns by how much the index grows from a vector to the next: 4 where a factor is read one element at a time.
func (c Factor) step() int { return 4 / c.Unit() }

// planLine plans the product of a row and a matrix that is stored by rows.
func planLine(r *Request) *Product {
	wide := shaders.Ceil(r.N, lineStripe)
	chunk := min(max(leastChunk, shaders.Ceil(quads(r.K), enoughParts)), mostChunk) &^ 1
	parts := shaders.Ceil(quads(r.K), chunk)
	k := Kernel{form: productLine}
	k.a, k.b = Factor{Type: r.A.Type, AlongK: !r.A.ColMajor}, r.B.loads(r.K, r.N, r.N, false)
	k.params = []int{k.b.step(), shaders.Bit(r.N%4 != 0)}
	next := r.A.Stride
	if k.a.AlongK {
		next = 1
	}
	unit := k.b.Unit()
	p := &Product{A: k.a, B: k.b, Parts: parts, Width: 4 * quads(r.N)}
	p.First = k.launch(wide*parts, 1, r.N, r.K, wide, 1, parts, chunk, chunk, r.A.Offset, next, r.B.Offset/unit, r.B.Stride/unit)
	p.Sum = Kernel{form: productSum}.launch(shaders.Ceil(quads(r.N), sumGroup), 1, r.N, quads(r.N), parts)
	return p
}

// planDots plans the product of a row and a matrix that is stored by columns.
func planDots(r *Request) *Product {
	k := Kernel{form: productDots}
	k.a, k.b = r.A.loads(1, r.K, r.K, !r.A.ColMajor), r.B.loads(r.K, r.N, r.K, true)
	k.a.Vector = k.a.Vector && k.a.AlongK
	k.params = []int{dotsGroup, k.a.step(), k.b.step(), shaders.Bit(k.a.AlongK), shaders.Bit(r.K%4 != 0), shaders.Bit(r.N%4 != 0)}
	p := &Product{A: k.a, B: k.b, Parts: 1, Width: 4 * quads(r.N)}
	p.First = k.launch(shaders.Ceil(quads(r.N), dotsGroup), 1, r.N, r.K, 1, 1, 1, quads(r.K), 0,
		r.A.Offset/k.a.Unit(), r.A.Stride/k.a.Unit(), r.B.Offset/k.b.Unit(), r.B.Stride/k.b.Unit())
	return p
}

// lineParts returns the part of line.wgsl that depends on the types of the factors.
func lineParts(k *Kernel, f *fuse.Func) string {
	a := fuse.Slot{Type: k.a.Type}
	return a.Text("a", 1, "read") + splatText + k.b.reads("b", "quad", "some", 2, "") + addingText(f.Type, true) + storedText(k, f)
}

// dotsParts returns the part of dots.wgsl that depends on the types and layouts of the factors.
func dotsParts(k *Kernel, f *fuse.Func) string {
	next := ""
	if !k.a.AlongK {
		next = " * p.shape.a.y"
	}
	return k.a.reads("a", "left", "some_left", 1, next) + k.b.reads("b", "quad", "some", 2, "") + addingText(f.Type, true)
}

// reads returns WGSL text: the binding of a factor, which is called x; a function, called quad, that reads a vector of it; and one, called
// some, that reads the first n elements of a vector, with zeros for the others. next is the text of a factor " * step" where elements are
// not next to each other, otherwise empty.
func (c Factor) reads(x, quad, some string, binding int, next string) string {
	s := fuse.Slot{Type: c.Type, Vec: c.Vector}
	text := s.Text(x, binding, "read") + "fn $1(q: u32) -> V { return V($0_quad(q)); }\nfn $2(q: u32, n: u32) -> V { return $1(q); }\n"
	if !c.Vector {
		text = s.Text(x, binding, "read") + "fn $1(q: u32) -> V { return V(T($0_at(q)), T($0_at(q + 1u$3)), T($0_at(q + 2u$3)), T($0_at(q + 3u$3))); }\n" +
			"fn $2(q: u32, n: u32) -> V {\n  var v = V();\n  v.x = T($0_at(q));\n  if (n > 1u) { v.y = T($0_at(q + 1u$3)); }\n" +
			"  if (n > 2u) { v.z = T($0_at(q + 2u$3)); }\n  return v;\n}\n"
	}
	return shaders.Fill(text, x, quad, some, next)
}
