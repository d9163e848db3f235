// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

const (
	// float32 has all whole numbers of up to so many bits, and the next one.
	exactBits = 24
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
	depth := n.Args[0].Cols
	m, k, c := uint64(n.Rows), uint64(depth), uint64(n.Cols)
	if a == nil || b == nil || r.Device.Software && r.readsBytes() || min(m, c) < narrowSide || m*k*c < narrowWork {
		return n
	}
	terms := 1 << (exactBits - bitsOf(a.Type) - bitsOf(b.Type))
	most := 4 * max(m*k, k*c, m*c) // bytes of a converted factor or of a part of the result
	room := min(r.Device.Binding, r.Device.Buffer)
	if streams && r.Free > 0 {
		room = min(room, r.Free/16)
	}
	if most > room || k/uint64(terms)*most > 8*room {
		return n
	}
	var sum *expr.Node
	for at := 0; at < depth; at += terms {
		end := min(at+terms, depth)
		x, y := r.pick(a, block{0, n.Rows, at, end}), r.pick(b, block{at, end, 0, n.Cols})
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

// bitsOf is how many bits the magnitude of a type of at most 8 bits has: it is at most the power of two.
func bitsOf(t fuse.Type) int {
	switch t {
	case fuse.Bool:
		return 0
	case fuse.I8:
		return 7
	}
	return 8
}

// readsBytes reports whether products read small numbers as fast as larger ones. Kernels for SwiftShader do not, as they load elements one by
// one, and those for driver simd multiply copies of factors in the type of the result.
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
