// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Expressions of matrices that the device cannot bind at once, such as mapped files larger than its memory, are computed
// block by block: results by parts of theirs, reductions and long products by parts of what they reduce, with the partial
// results reduced again. What a block reads of memory that is windowed goes up for that block.

// blockBytes is how much of a windowed matrix a block uses at most.
const blockBytes = 256 << 20

// large reports whether the matrix has to be used in blocks.
func (m *Any) large() bool {
	if m.buf == nil {
		return false
	}
	limit := bindingLimit(m.dev)
	if m.buf.Windowed() {
		limit = min(limit, m.dev.Limits().MaxBufferSize, blockBytes) - 256 // a window begins at a multiple of that
	}
	return uint64(m.buf.Size()) > limit && uint64(m.span())*uint64(m.t.Size()) > limit
}

// bindingLimit is how many bytes a kernel can bind at once. Kernels count elements, of two bytes and more, with 32 bits.
func bindingLimit(dev *gpu.Device) uint64 { return min(dev.Limits().MaxBindingSize, 1<<33) }

// inBlocks computes n, which or whose result is large, into dst.
func (r *run) inBlocks(dst *Any, n *node, flip bool) error {
	if flip {
		d := *dst
		d.layout = dst.layout.t()
		dst = &d
	}
	n, err := r.inside(n)
	if err != nil {
		return err
	}
	if !n.large && !dst.large() {
		return r.evaluate(dst, n)
	}
	if n.shares(dst, false) {
		return r.viaTemp(dst, n, func(m *Any) error { return r.evaluate(m, n) })
	}
	switch n.kind {
	case kindReduce:
		return r.reduceBlocks(dst, n)
	case kindProduct:
		return r.productBlocks(dst, n)
	}
	return r.mapBlocks(dst, n)
}

// vast reports whether a result is too large for a temporary.
func (n *node) vast() bool {
	return n.dev != nil && uint64(n.rows)*uint64(n.cols) > bindingLimit(n.dev)/uint64(n.t.Compute().Size())
}

// inside evaluates the products, reductions and softmaxes below n, so that what is left has a part for each part of n.
// Results that are too large for that stay; each block computes its part of them.
func (r *run) inside(n *node) (*node, error) {
	done := map[*node]*node{}
	var walk func(n *node) (*node, error)
	walk = func(n *node) (*node, error) {
		if made, ok := done[n]; ok {
			return made, nil
		}
		made := n
		switch n.kind {
		case kindLeaf:
			if err := n.current(); err != nil {
				return nil, err
			}
		case kindProduct, kindReduce, kindSoftmax:
			if n.kind != kindSoftmax && n.vast() {
				var err error
				made, err = n.with(walk)
				if err != nil {
					return nil, err
				}
				break
			}
			m, err := r.materialise(n)
			if err != nil {
				return nil, err
			}
			made = m.node()
		case kindMap, kindCall, kindT:
			var err error
			if made, err = n.with(walk); err != nil {
				return nil, err
			}
		}
		done[n] = made
		return made, nil
	}
	if n.kind == kindLeaf {
		return walk(n)
	}
	return n.with(walk)
}

// with returns n with other operands.
func (n *node) with(change func(*node) (*node, error)) (*node, error) {
	c := *n
	c.args = nil
	c.large = false
	for _, a := range n.args {
		b, err := change(a)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, b)
		c.large = c.large || b.large
	}
	c.large = c.large || c.kind == kindProduct && c.vast()
	return &c, nil
}

// shares reports whether a matrix below n shares elements with dst other than one for one: parts of the result would
// overwrite what later parts read.
func (n *node) shares(dst *Any, flip bool) bool {
	if n.kind == kindLeaf {
		l := n.leaf.layout
		if flip {
			l = l.t()
		}
		return n.leaf.buf != nil && n.leaf.buf.Same(dst.buf) && l != dst.layout && l.overlaps(dst.layout)
	}
	whole := n.kind == kindProduct || n.kind == kindReduce
	for _, a := range n.args {
		if whole && a.uses(dst) || !whole && a.shares(dst, flip != (n.kind == kindT)) {
			return true
		}
	}
	return false
}

// uses reports whether a matrix below n lies in dst's memory.
func (n *node) uses(dst *Any) bool {
	if n.kind == kindLeaf {
		return n.leaf.buf != nil && n.leaf.buf.Same(dst.buf)
	}
	for _, a := range n.args {
		if a.uses(dst) {
			return true
		}
	}
	return false
}

// mapBlocks halves the result until its parts can be computed.
func (r *run) mapBlocks(dst *Any, n *node) error {
	if err := dst.reserve(); err != nil {
		return err
	}
	down := dst.downwards(n)
	if n.kind == kindSoftmax { // rows are computed whole
		if n.rows < 2 {
			return tooLarge(n)
		}
		down = true
	}
	parts := halves(n.rows, n.cols, down)
	if parts == nil {
		return tooLarge(n)
	}
	for _, p := range parts {
		if err := r.evaluate(dst.part(p), n.part(p)); err != nil {
			return err
		}
	}
	return nil
}

// reduceBlocks halves what is reduced and reduces the two results.
func (r *run) reduceBlocks(dst *Any, n *node) error {
	if err := dst.reserve(); err != nil {
		return err
	}
	a := n.args[0]
	down := dst.downwards(a)
	parts := halves(a.rows, a.cols, down)
	if parts == nil {
		return tooLarge(n)
	}
	two := node{dev: n.dev, t: n.t, rows: n.rows * 2, cols: n.cols}
	if n.axis == axisRows && down || n.axis == axisCols && !down || two.vast() && n.rows*n.cols > 1 {
		return r.mapBlocks(dst, n)
	}
	return r.reduceHalves(dst, n, parts)
}

func (r *run) reduceHalves(dst *Any, n *node, parts []block) error {
	rows, cols := dst.rows, 2
	if n.axis == axisCols {
		rows, cols = 2, dst.cols
	}
	two, err := r.newTemp(&node{t: n.t}, rows, cols)
	if err != nil {
		return err
	}
	for i, p := range parts {
		to := block{0, rows, i, i + 1}
		if n.axis == axisCols {
			to = block{i, i + 1, 0, cols}
		}
		half, err := n.with(func(a *node) (*node, error) { return a.part(p), nil })
		if err != nil {
			return err
		}
		if err := r.evaluate(two.part(to), half); err != nil {
			return err
		}
	}
	again, err := n.with(func(*node) (*node, error) { return two.node(), nil })
	if err != nil {
		return err
	}
	return r.evaluate(dst, again)
}

// productBlocks halves the result, or the dimension that the product sums over.
func (r *run) productBlocks(dst *Any, n *node) error {
	a, b := n.args[0], n.args[1]
	if dst.large() {
		return r.mapBlocks(dst, n)
	}
	h := a.cols / 2
	biggest, down := largest(a)
	if other, right := largest(b); other.bigger(biggest) {
		if !right && b.cols > 1 || h == 0 {
			return r.mapBlocks(dst, n)
		}
	} else if biggest == nil || down && a.rows > 1 || h == 0 {
		return r.mapBlocks(dst, n)
	}
	if dst.t == fuse.F16 { // what is added up is rounded once
		if n.vast() {
			return r.mapBlocks(dst, n)
		}
		return r.viaTemp(dst, n, func(m *Any) error { return r.productBlocks(m, n) })
	}
	half := func(i, k int) *node {
		return productNode("Mul", a.part(block{0, a.rows, i, k}), b.part(block{i, k, 0, b.cols}))
	}
	if err := r.evaluate(dst, half(0, h)); err != nil {
		return err
	}
	return r.evaluate(dst, mapNode("Add", fuse.OpAdd, dst.node(), half(h, a.cols)))
}

func tooLarge(n *node) error {
	return fail("Assign", ErrLimit, "operands of ", n.shape().String(), " do not fit into the device by parts either")
}

// block is rows i to k-1 and columns j to l-1.
type block struct{ i, k, j, l int }

// halves cuts rows, or columns, in two; the other way where there is only one.
func halves(rows, cols int, down bool) []block {
	if rows < 2 && cols < 2 {
		return nil
	}
	if down && rows > 1 || cols < 2 {
		h := rows / 2
		return []block{{0, h, 0, cols}, {h, rows, 0, cols}}
	}
	h := cols / 2
	return []block{{0, rows, 0, h}, {0, rows, h, cols}}
}

// part is a view that ends with the evaluation.
func (m *Any) part(p block) *Any {
	v := *m
	v.layout = m.layout.slice(p.i, p.k, p.j, p.l)
	v.view, v.fixed = true, true
	return &v
}

// part is the expression of a part of n's result.
func (n *node) part(p block) *node {
	type key struct {
		n *node
		p block
	}
	done := map[key]*node{}
	var walk func(n *node, p block) *node
	walk = func(n *node, p block) *node {
		if n.rows == 1 { // and stretched, if need be
			p.i, p.k = 0, 1
		}
		if n.cols == 1 {
			p.j, p.l = 0, 1
		}
		if p == (block{0, n.rows, 0, n.cols}) {
			return n
		}
		if made, ok := done[key{n, p}]; ok {
			return made
		}
		if n.kind == kindLeaf {
			return n.leaf.part(p).node()
		}
		i := -1
		made, _ := n.with(func(a *node) (*node, error) {
			i++
			return walk(a, n.reads(i, p)), nil
		})
		made.rows, made.cols = p.k-p.i, p.l-p.j
		made.large = slices.ContainsFunc(made.args, func(a *node) bool { return a.large }) || made.kind == kindProduct && made.vast()
		done[key{n, p}] = made
		return made
	}
	return walk(n, p)
}

// reads returns the part of operand i that part p of the result needs.
func (n *node) reads(i int, p block) block {
	switch a := n.args[i]; {
	case n.kind == kindT:
		return block{p.j, p.l, p.i, p.k}
	case n.kind == kindReduce && n.axis == axisAll:
		return block{0, a.rows, 0, a.cols}
	case n.kind == kindReduce && n.axis == axisRows, n.kind == kindProduct && i == 0, n.kind == kindSoftmax:
		return block{p.i, p.k, 0, a.cols}
	case n.kind == kindReduce && n.axis == axisCols, n.kind == kindProduct:
		return block{0, a.rows, p.j, p.l}
	}
	return p
}

// downwards reports whether to halve the rows of n: so that the parts of a large result lie apart, else so that the
// largest matrix gets smaller.
func (m *Any) downwards(n *node) bool {
	if m.large() {
		return m.steep()
	}
	big, down := largest(n)
	return big == nil || down
}

// reserve makes one window of a result that needs several no longer, for its parts may lie between each other.
func (m *Any) reserve() error {
	if m.buf == nil || !m.buf.Windowed() || m.large() {
		return nil
	}
	_, _, err := m.bindRange(m.offset, m.offset+m.span(), true, false)
	return err
}

// steep reports whether parts of the rows lie together in memory.
func (m *Any) steep() bool {
	if m.order == RowMajorOrder {
		return m.rows > 1
	}
	return m.cols <= 1
}

func (m *Any) bigger(o *Any) bool { return m != nil && (o == nil || m.span() > o.span()) }

// largest returns the largest of the large matrices in an expression, and which way parts of it lie together in memory as
// the expression's result has it: by rows or, if not, by columns.
func largest(n *node) (m *Any, down bool) {
	if !n.large {
		return nil, false
	}
	if n.kind == kindLeaf {
		return n.leaf, n.leaf.steep()
	}
	for _, a := range n.args {
		if b, d := largest(a); b.bigger(m) {
			m, down = b, d
		}
	}
	return m, down != (n.kind == kindT)
}

// bindRange binds elements lo to hi-1 of a buffer, for reading or, with write set, for writing too; whole says that all
// of it is written. It tells how many elements before lo the binding begins.
func (m *Any) bindRange(lo, hi int, write, whole bool) (a gpu.Arg, shift int, err error) {
	size, mem, base := m.t.Size(), (*gpu.Buffer)(nil), 0
	from, to := 0, m.buf.Size()
	if m.buf.Windowed() {
		from, to = lo*size, min((hi*size+3)/4*4, to)
	}
	if write {
		mem, base, err = m.buf.WritableRange(from, to, whole)
	} else {
		mem, base, err = m.buf.ReadableRange(from, to)
	}
	if err != nil {
		return a, 0, err
	}
	if mem.Size() <= bindingLimit(m.dev) {
		return gpu.Arg{Buffer: mem}, base / size, nil
	}
	return part(mem, lo, hi, size)
}
