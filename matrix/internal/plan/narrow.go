// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

const (
	// mostExact is up to where float32 has all whole numbers.
	mostExact = 1 << 24
	// From so many multiplications on, and so many for each element of a factor, a product is worth its conversions.
	narrowWork, narrowSide = 1 << 22, 32
)

// ruleNarrow is a product of whole numbers of at most 8 bits by way of float32, which adapters but llvmpipe multiply faster than int32. It
// is exact: k is cut into parts whose sums float32 holds, in whatever order it adds. It returns n where there is nothing to gain.
func (r *rewriter) ruleNarrow(n *expr.Node) *expr.Node {
	if n.Kind != expr.Product || n.Type.Compute() == fuse.F32 {
		return n
	}
	a, b := narrow(n.Args[0]), narrow(n.Args[1])
	rows, depth, cols := n.Rows, n.Args[0].Cols, n.Cols
	if a == nil || b == nil || r.Device.Software && r.readsBytes() || min(rows, cols) < narrowSide || float64(rows)*float64(depth)*float64(cols) < narrowWork {
		return n
	}
	terms := mostExact / (largestOf(a.Type) * largestOf(b.Type)) &^ 3
	parts := shaders.Ceil(depth, terms)
	m, k, c := uint64(rows), uint64(depth), uint64(cols)
	most := 4 * max(m*k, k*c, m*c) // bytes of a converted factor or of a part of the result
	if room := min(r.Device.Binding, r.Device.Buffer); most > room || streams && r.Free > 0 && 16*uint64(parts)*most > r.Free || uint64(parts)*most > 8*room {
		return n
	}
	var sum *expr.Node
	for at := 0; at < depth; at += terms {
		end := min(at+terms, depth)
		x, y := r.pick(a, block{0, rows, at, end}), r.pick(b, block{at, end, 0, cols})
		part := converted(fuse.I32, r.times(converted(fuse.F32, x), converted(fuse.F32, y)))
		if sum == nil {
			sum = part
		} else {
			sum = apply(fuse.OpAdd, sum, part)
		}
	}
	return converted(n.Type, sum)
}

// narrow returns the whole numbers of at most 8 bits that a factor is, or that it has in 32 bits, or nil. Of 32 bits the product has the
// last ones, to which it makes no difference whether a factor has a sign. What is computed is cut to 8 bits, as where it is stored.
func narrow(n *expr.Node) *expr.Node {
	below, transposed := expr.Resolve(n, false)
	switch {
	case n.Type.Size() == 1 && below.Kind == expr.Leaf:
		return n
	case n.Type.Size() == 1:
		return expr.NewConversion("Convert", n.Type, n)
	case below.Kind != expr.Map || below.Op != fuse.OpConvert || below.Type.Size() != 4:
		return nil
	}
	from := below.Args[0]
	if leaf, _ := expr.Resolve(from, false); leaf.Kind != expr.Leaf || leaf.Type.Size() != 1 {
		return nil
	}
	if transposed {
		return turned(from)
	}
	return from
}

// largestOf is the largest magnitude of a type of at most 8 bits.
func largestOf(t fuse.Type) int {
	switch t {
	case fuse.Bool:
		return 1
	case fuse.I8:
		return 1 << 7
	}
	return 1<<8 - 1
}

// readsBytes reports whether products read small numbers as fast as larger ones: unlike those of SwiftShader, whose kernels load elements
// one by one, and of driver simd, whose copy factors.
func (p *planner) readsBytes() bool { return !p.Device.SwiftShader && p.Device.SIMD == nil }

// widened returns the matrix that a factor is converted from, if kernels of products can read that in its place, and convert as exactly.
func (p *planner) widened(n *expr.Node, transposed bool) (op Operand, ok bool) {
	from, transposed := expr.Resolve(n.Args[0], transposed)
	exact := n.Type == fuse.F32 || n.Type == from.Type.Compute() || n.Type == fuse.I32 && from.Type.Compute() == fuse.U32
	if from.Kind != expr.Leaf || !exact || !p.readsBytes() {
		return op, false
	}
	op = p.operand(from)
	return op.read(transposed), p.vectors(op) && op.Offset%4 == 0 && op.Stride%4 == 0 && !p.large(op)
}
