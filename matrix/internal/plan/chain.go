// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// maxChain is how many factors of a chain are ordered together; what is left is a chain of its own.
const maxChain = 64

// chain is a product of two or more factors, with what its result is multiplied by.
type chain struct {
	factors []factor
	scales  []*expr.Node // operations on one operand, the outermost first
	written map[span]int // where the expression cuts the products that it has
	room    int          // for further factors
}

// factor is an operand of a chain, read transposed or not.
type factor struct {
	seen
	b   block      // what is used of it, as the chain sees it
	lu  seen       // of the inverse of a matrix: its packed factors; transposed says that it is the inverse of the transpose
	own *expr.Node // already rewritten
}

// span are factors first to last.
type span struct{ first, last int }

func (f *factor) rows() int { return f.b.k - f.b.i }
func (f *factor) cols() int { return f.b.l - f.b.j }

// newFactor is n as a factor.
func (r *rewriter) newFactor(n *expr.Node, transposed bool) factor {
	b := all(n)
	if transposed {
		b = b.turn()
	}
	f := factor{seen: seen{n, transposed}, b: b}
	if lu, turned, ok := r.inverse(n); ok {
		f.lu = seen{lu, turned != transposed}
	}
	return f
}

// chainOf reads a product with what scales it. Products that are used elsewhere, too, are computed anyway and stay whole.
func (r *rewriter) chainOf(n *expr.Node, transposed bool) *chain {
	c := &chain{written: map[span]int{}, room: maxChain - 1}
	r.collect(c, n, transposed, true)
	return c
}

func (r *rewriter) collect(c *chain, n *expr.Node, transposed, first bool) {
	n, transposed = r.bare(n, transposed)
	if below, turned, scales := r.unscaled(n, transposed, first); below != nil {
		c.scales = append(c.scales, scales...)
		n, transposed = below, turned
	}
	if n.Kind != expr.Product || !first && r.uses[n] > 1 || c.room == 0 {
		c.factors = append(c.factors, r.newFactor(n, transposed))
		return
	}
	c.room--
	left, right := n.Args[0], n.Args[1]
	if transposed {
		left, right = right, left
	}
	begin := len(c.factors)
	r.collect(c, left, transposed, false)
	cut := len(c.factors) - 1
	r.collect(c, right, transposed, false)
	c.written[span{begin, len(c.factors) - 1}] = cut
}

// bare strips transposes, and conversions that change nothing and that nothing else uses.
func (r *rewriter) bare(n *expr.Node, transposed bool) (*expr.Node, bool) {
	n, transposed = expr.Resolve(n, transposed)
	for r.uses[n] == 1 && n.Kind == expr.Map && n.Op == fuse.OpConvert && n.Type == n.Args[0].Type && (!n.Type.Packed() || n.Type == fuse.F16) {
		n, transposed = expr.Resolve(n.Args[0], transposed)
	}
	return n, transposed
}

// unscaled returns what an operand of a product is without the numbers that it is multiplied or divided by and the signs before
// it, with those operations; nil if there are none, or if they are part of a kernel that computes the operand anyway. first says that
// it is no operand but the product itself.
func (r *rewriter) unscaled(n *expr.Node, transposed, first bool) (*expr.Node, bool, []*expr.Node) {
	var scales []*expr.Node
	for first || r.uses[n] == 1 {
		at := scaled(n)
		if at < 0 {
			break
		}
		scales = append(scales, n)
		n, transposed = r.bare(n.Args[at], transposed)
		first = false
	}
	if _, _, ok := r.inverse(n); len(scales) == 0 || elementwise(n) && !ok || n.Kind == expr.Scalar {
		return nil, false, nil
	}
	return n, transposed, scales
}

// scaled returns which operand of a node is multiplied by a number, divided by one or negated, or -1. Whole numbers are not divided:
// that is rounded.
func scaled(n *expr.Node) int {
	if n.Kind != expr.Map {
		return -1
	}
	number := func(i int) bool { return n.Args[i].Kind == expr.Scalar && n.Args[i].Rows == 1 && n.Args[i].Cols == 1 }
	switch {
	case n.Op == fuse.OpNeg, (n.Op == fuse.OpMul || n.Op == fuse.OpDiv && n.Type.Compute() == fuse.F32) && number(1):
		return 0
	case n.Op == fuse.OpMul && number(0):
		return 1
	}
	return -1
}

// scale applies what a chain is scaled by.
func (c *chain) scale(n *expr.Node) *expr.Node {
	for rest := c.scales; len(rest) > 0; rest = rest[:len(rest)-1] {
		s := rest[len(rest)-1]
		args := slices.Clone(s.Args)
		args[scaled(s)] = n
		s = with(s, args...)
		s.Rows, s.Cols = n.Rows, n.Cols
		n = s
	}
	return n
}

// restrict makes it the chain of a part of the product.
func (c *chain) restrict(b block) {
	first, last := &c.factors[0].b, &c.factors[len(c.factors)-1].b
	first.i, first.k = b.i, b.k
	last.j, last.l = b.j, b.l
}

// insert puts a factor before another one, or behind the last. What the expression has as products is then of no use any more.
func (c *chain) insert(at int, f factor) {
	c.factors = append(c.factors, f)
	copy(c.factors[at+1:], c.factors[at:])
	c.factors[at] = f
	c.written = map[span]int{}
}

func (c *chain) empty() bool {
	for i := range c.factors {
		if c.factors[i].b.empty() {
			return true
		}
	}
	return false
}

// cost is what a product takes: multiplications, and elements that it reads and writes.
type cost struct{ work, moved float64 }

func (c cost) plus(o cost) cost    { return cost{c.work + o.work, c.moved + o.moved} }
func (c cost) less(o cost) bool    { return c.work < o.work || c.work == o.work && c.moved < o.moved }
func (c cost) passOver(n int) cost { return c.plus(cost{float64(n), float64(n)}) }

// costOf is the cost of an m x k matrix times a k x n matrix, on no machine fused with what it is added to.
func costOf(m, k, n int) cost {
	x, y, z := float64(m), float64(k), float64(n)
	return cost{float64(x * y * z), float64(x*y) + float64(y*z) + float64(x*z)}
}

// ordering is how a chain is computed: the costs of its parts, and where they are cut.
type ordering struct {
	costs map[span]cost
	cuts  map[span]int
}

// best finds the cheapest order by dynamic programming (Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, 14.2). That
// of the expression wins where no other is cheaper.
func (r *rewriter) best(c *chain) ordering {
	n := len(c.factors)
	o := ordering{map[span]cost{}, map[span]int{}}
	for length := 2; length <= n; length++ {
		for first := 0; first+length <= n; first++ {
			s := span{first, first + length - 1}
			o.costs[s] = cost{math.Inf(1), 0}
			if at, ok := c.written[s]; ok {
				r.try(c, o, s, at)
			}
			for at := first; at < s.last; at++ {
				r.try(c, o, s, at)
			}
		}
	}
	return o
}

// try cuts a part of a chain behind a factor if that is cheaper.
func (r *rewriter) try(c *chain, o ordering, s span, at int) {
	m, k, n := c.factors[s.first].rows(), c.factors[at].cols(), c.factors[s.last].cols()
	sum := costOf(m, k, n).plus(o.costs[span{s.first, at}]).plus(o.costs[span{at + 1, s.last}])
	if _, ok := expr.Elements(m, n); !ok || r.vast(r.typeOf(c), m, n) && !c.has(s) {
		sum.work = math.Inf(1) // it would not fit into memory
	}
	if _, known := o.cuts[s]; !known || sum.less(o.costs[s]) {
		o.costs[s], o.cuts[s] = sum, at
	}
}

// has reports whether the expression has this part of a chain as a product.
func (c *chain) has(s span) bool {
	_, ok := c.written[s]
	return ok
}

func (r *rewriter) typeOf(c *chain) fuse.Type { return c.factors[0].n.Type }

// multiplied is a part of a chain in an order.
func (r *rewriter) multiplied(c *chain, o ordering, s span) *expr.Node {
	if s.first == s.last {
		return r.operandOf(&c.factors[s.first])
	}
	at := o.cuts[s]
	left, right := span{s.first, at}, span{at + 1, s.last}
	if f := &c.factors[at]; s.first == at && f.lu.n != nil {
		return r.solution(f.lu, r.multiplied(c, o, right))
	}
	if f := &c.factors[s.last]; at+1 == s.last && f.lu.n != nil { // x * inverse(a) is the transpose of inverse(T(a)) * T(x)
		x := r.solution(seen{f.lu.n, !f.lu.transposed}, turned(r.multiplied(c, o, left)))
		return turned(x)
	}
	return r.times(r.multiplied(c, o, left), r.multiplied(c, o, right))
}

// operandOf is a factor, rewritten.
func (r *rewriter) operandOf(f *factor) *expr.Node {
	switch {
	case f.own != nil:
		return f.own
	case f.transposed:
		return turned(r.rewritten(f.n, f.b.turn()))
	}
	return r.rewritten(f.n, f.b)
}

// ruleChain is a product, or a part of one, in the order of the fewest operations. Numbers that factors are multiplied by multiply
// the result, where they are part of the product's kernel. Of an inverse it is the solution of a system, which is faster and more
// accurate, and is computed whole.
func (r *rewriter) ruleChain(n *expr.Node, b block) *expr.Node {
	c := r.chainOf(n, false)
	if c.empty() {
		return r.again(n, b)
	}
	whole := b
	if c.factors[0].lu.n != nil {
		whole.i, whole.k = 0, n.Rows
	}
	if c.factors[len(c.factors)-1].lu.n != nil {
		whole.j, whole.l = 0, n.Cols
	}
	c.restrict(whole)
	if len(c.factors) == 2 && len(c.scales) == 0 && c.factors[0].lu.n == nil && c.factors[1].lu.n == nil {
		return r.again(n, b)
	}
	made := c.scale(r.multiplied(c, r.best(c), span{0, len(c.factors) - 1}))
	return r.pick(made, block{b.i - whole.i, b.k - whole.i, b.j - whole.j, b.l - whole.j})
}
