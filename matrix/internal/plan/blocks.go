// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"runtime"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Expressions of matrices that the device cannot bind at once, such as mapped files larger than its memory, are computed
// block by block: results by parts of theirs, reductions and long products by parts of what they reduce, with the partial
// results reduced again. What a block reads of memory that is windowed goes up for that block.

// blockBytes is how much of a windowed matrix a block uses at most.
const blockBytes = 256 << 20

// streams tells that evaluations may wait for results to leave the device, which they cannot in a page.
const streams = runtime.GOOS != "js"

// ranged is how many memories are used in ranges.
func ranged(in *Input) (n int) {
	for _, m := range in.Memories {
		n += shaders.Bit(m.Windowed)
	}
	return n
}

// rangeBytes is how many bytes a range has at most: where memory is limited there are two of each matrix, and as much for temporaries.
func rangeBytes(in *Input) uint64 {
	if in.Free == 0 {
		return blockBytes
	}
	return min(in.Free/uint64(2*ranged(in)+2), blockBytes)
}

// large reports whether a matrix has to be used in blocks.
func (p *planner) large(op Operand) bool {
	m, limit := p.plan.Memories[op.Mem], p.Device.Binding
	if m.Windowed {
		// A window begins at a multiple of 256; an element is in one of that size.
		window := uint64(blockBytes)
		if streams {
			window = max(p.window, 256)
		}
		limit = max(min(limit, p.Device.Buffer, window)-256, uint64(op.Type.Size()))
	}
	return uint64(m.Size) > limit && uint64(op.Span())*uint64(op.Type.Size()) > limit
}

// vast reports whether a result of that size is too large for a temporary.
func (p *planner) vast(t fuse.Type, rows, cols int) bool {
	limit := p.Device.Binding
	if streams && p.Free > 0 {
		limit = min(limit, p.window)
	}
	return uint64(rows)*uint64(cols) > limit/uint64(t.Compute().Size())
}

// largeNode reports whether a matrix, or a product, of an expression is large.
func (p *planner) largeNode(n *expr.Node) bool {
	large, ok := p.larges[n]
	if !ok {
		switch n.Kind {
		case expr.Leaf:
			large = p.large(p.operand(n))
		case expr.Product:
			large = p.vast(n.Type, n.Rows, n.Cols)
		}
		large = large || slices.ContainsFunc(n.Args, p.largeNode)
		p.larges[n] = large
	}
	return large
}

// inBlocks computes n, which or whose result is large, into dst.
func (p *planner) inBlocks(dst Operand, n *expr.Node) {
	if n = p.inside(n); p.largeNode(n) || p.large(dst) {
		p.divide(dst, n)
	} else {
		p.evaluate(dst, n)
	}
}

// divide computes n, below which is nothing that has no parts, by parts.
func (p *planner) divide(dst Operand, n *expr.Node) {
	switch {
	case p.shares(n, dst, false, true):
		p.viaTemp(dst, n)
	case n.Kind == expr.Reduce:
		p.reduceBlocks(dst, n)
	case n.Kind == expr.Product:
		p.productBlocks(dst, n)
	case n.Kind == expr.StackProduct && n.Stack.Count > 1:
		p.stackBlocks(dst, n)
	case undivided(n):
		p.tooLarge(n)
	default:
		p.mapBlocks(dst, n)
	}
}

// with returns n with other operands.
func with(n *expr.Node, args ...*expr.Node) *expr.Node {
	c := *n
	c.Args = args
	return &c
}

// inside returns n with the products, reductions and softmaxes below it evaluated, so that what is left has a part for each
// part of n. Results that are too large for that stay; each block computes its part of them.
func (p *planner) inside(n *expr.Node) *expr.Node {
	return p.insideWith(n, map[*expr.Node]*expr.Node{})
}

// insideWith is inside, with the nodes below that were evaluated already.
func (p *planner) insideWith(n *expr.Node, done map[*expr.Node]*expr.Node) *expr.Node {
	if len(n.Args) == 0 {
		return n
	}
	args := make([]*expr.Node, len(n.Args))
	for i, a := range n.Args {
		if done[a] == nil {
			folds := a.Kind == expr.Product || a.Kind == expr.Reduce
			if wholeRows(a) || undivided(a) || folds && !p.vast(a.Type, a.Rows, a.Cols) {
				done[a] = p.leaf(p.materialise(a))
			} else {
				done[a] = p.insideWith(a, done)
			}
		}
		args[i] = done[a]
	}
	n = with(n, args...)
	if streams {
		return view(p, n)
	}
	return n
}

// shares reports whether a matrix below n shares elements with dst other than one for one: parts of the result would
// overwrite what later parts read. aligned says that parts of n read the same parts of it.
func (p *planner) shares(n *expr.Node, dst Operand, transposed, aligned bool) bool {
	return p.sharesBelow(visit{n, transposed, aligned}, dst, map[visit]bool{})
}

// visit is one state of the search of shares: a node, whether it is read transposed, and whether its parts lie where the result's do.
type visit struct {
	n                   *expr.Node
	transposed, aligned bool
}

func (p *planner) sharesBelow(v visit, dst Operand, done map[visit]bool) bool {
	if done[v] {
		return false
	}
	done[v] = true
	n := v.n
	if n.Kind == expr.Leaf {
		op := p.operand(n).read(v.transposed)
		return op.Mem == dst.Mem && (!v.aligned || op.Layout != dst.Layout && op.Overlaps(dst.Layout))
	}
	v.transposed = v.transposed != (n.Kind == expr.Transpose)
	v.aligned = v.aligned && n.Kind != expr.Product && n.Kind != expr.Reduce && n.Kind != expr.Gather && !undivided(n)
	return slices.ContainsFunc(n.Args, func(a *expr.Node) bool {
		return p.sharesBelow(visit{a, v.transposed, v.aligned}, dst, done)
	})
}

// undivided reports whether a node has no parts that are computed by themselves.
func undivided(n *expr.Node) bool {
	return n.Kind == expr.Factor || n.Kind == expr.Reshape || n.Kind == expr.Sparse || n.Kind == expr.SparseProduct ||
		n.Kind == expr.StackProduct
}

// wholeRows reports whether rows of n's result are of whole rows of its operand.
func wholeRows(n *expr.Node) bool {
	return n.Kind == expr.Softmax || n.Kind == expr.Sort || n.Kind == expr.Scan
}

// mapBlocks halves the result until its parts can be computed.
func (p *planner) mapBlocks(dst Operand, n *expr.Node) {
	p.reserve(dst)
	softmax := wholeRows(n) // whose rows are computed whole
	if softmax && (n.Rows < 2 || n.Hard && n.Axis == fuse.AxisAll) {
		p.tooLarge(n)
		return
	}
	for _, b := range p.halves(n, n.Rows, n.Cols, softmax || p.downwards(dst, n)) {
		p.evaluate(dst.part(b), p.part(n, b))
	}
}

// reduceBlocks halves what is reduced and reduces the two results.
func (p *planner) reduceBlocks(dst Operand, n *expr.Node) {
	switch n.Red {
	case fuse.ReduceTrace:
		p.evaluate(dst, sumOf(n, p.leaf(p.materialise(n.Args[0]).diagonal())))
		return
	case fuse.ReduceVar, fuse.ReduceStd:
		p.evaluate(dst, p.spread(n))
		return
	}
	p.reserve(dst)
	a := n.Args[0]
	down := p.downwards(dst, a)
	vast := p.vast(n.Type, n.Rows*2, n.Cols) && n.Rows*n.Cols > 1
	switch {
	case n.Axis == fuse.AxisRows && down || n.Axis == fuse.AxisCols && !down || vast:
		p.mapBlocks(dst, n)
		return
	case n.Red == fuse.ReduceArgMax || n.Red == fuse.ReduceArgMin: // indices of a part are not those of the whole
		p.tooLarge(n)
		return
	}
	byCols := n.Axis == fuse.AxisCols
	rows, cols := dst.Rows, 2
	if byCols {
		rows, cols = 2, dst.Cols
	}
	two := p.newTemp(n.Type, rows, cols)
	for i, b := range p.halves(n, a.Rows, a.Cols, down) {
		to := block{0, rows, i, i + 1}
		if byCols {
			to = block{i, i + 1, 0, cols}
		}
		p.evaluate(two.part(to), unfinished(with(n, p.part(a, b))))
	}
	n = with(n, p.leaf(two))
	if n.Red == fuse.ReduceCountNonzero {
		n.Red = fuse.ReduceSum
	}
	p.evaluate(dst, n)
}

// unfinished is the reduction of a part, whose result is reduced again.
func unfinished(n *expr.Node) *expr.Node {
	switch n.Red {
	case fuse.ReduceMean, fuse.ReduceNorm2, fuse.ReduceNormP:
		n.Red = fuse.ReduceSum
	}
	return n
}

// spread is a variance as the mean of squares of differences from the mean, which takes two passes but can be put together of parts.
func (p *planner) spread(n *expr.Node) *expr.Node {
	a := n.Args[0]
	mean := with(n, a)
	mean.Red, mean.Value = fuse.ReduceMean, float64(n.Rows*n.Cols)/float64(a.Rows*a.Cols)
	apply := func(op fuse.Op, args ...*expr.Node) *expr.Node {
		return &expr.Node{Kind: expr.Map, Op: op, Type: n.Type.Compute(), Rows: a.Rows, Cols: a.Cols, Dev: n.Dev, Args: args}
	}
	square := with(n, apply(fuse.OpSquare, apply(fuse.OpSub, a, p.leaf(p.materialise(mean)))))
	square.Red = fuse.ReduceMean
	if n.Red == fuse.ReduceStd {
		square.Red = fuse.ReduceNorm2
	}
	return square
}

// productBlocks halves the result, or the dimension that the product sums over.
func (p *planner) productBlocks(dst Operand, n *expr.Node) {
	if streams && strips(p, dst, n) {
		return
	}
	a, b := n.Args[0], n.Args[1]
	h := a.Cols / 2
	big, other := p.largestLarge(a), p.largestLarge(b)
	outside := big.Span() == 0 || big.steep() && a.Rows > 1 // the larger factor is cut where the result is
	if other.Span() > big.Span() {
		outside = !other.steep() && b.Cols > 1
	}
	switch {
	case p.large(dst), outside, h == 0, dst.Type.Packed() && p.vast(n.Type, n.Rows, n.Cols):
		p.mapBlocks(dst, n)
		return
	case dst.Type.Packed(): // what is added up is rounded once
		p.viaTemp(dst, n)
		return
	}
	half := func(i, k int) *expr.Node {
		return with(n, p.part(a, block{0, a.Rows, i, k}), p.part(b, block{i, k, 0, b.Cols}))
	}
	p.evaluate(dst, half(0, h))
	p.evaluate(dst, &expr.Node{
		Kind: expr.Map, Op: fuse.OpAdd, Type: n.Type, Rows: n.Rows, Cols: n.Cols, Args: []*expr.Node{p.leaf(dst), half(h, a.Cols)},
	})
}

// stackBlocks halves a stack of products.
func (p *planner) stackBlocks(dst Operand, n *expr.Node) {
	p.reserve(dst)
	high, half := n.Rows/n.Stack.Count, n.Stack.Count/2
	for _, at := range [][2]int{{0, half}, {half, n.Stack.Count}} {
		part := with(n)
		stack := *n.Stack
		stack.Count = at[1] - at[0]
		part.Rows, part.Stack = high*stack.Count, &stack
		for _, a := range n.Args {
			each := a.Rows / n.Stack.Count
			part.Args = append(part.Args, p.part(a, block{at[0] * each, at[1] * each, 0, a.Cols}))
		}
		p.evaluate(dst.part(block{at[0] * high, at[1] * high, 0, n.Cols}), part)
	}
}

// placement is where an operand of a Concat goes.
type placement struct {
	block
	arg *expr.Node
}

// placed returns where the operands of a Concat go.
func placed(n *expr.Node) []placement {
	list := make([]placement, len(n.Args))
	at := 0
	for i, a := range n.Args {
		if n.Axis == fuse.AxisCols {
			list[i] = placement{block{0, n.Rows, at, at + a.Cols}, a}
			at += a.Cols
		} else {
			list[i] = placement{block{at, at + a.Rows, 0, n.Cols}, a}
			at += a.Rows
		}
	}
	return list
}

// concat computes each operand where it belongs.
func (p *planner) concat(dst Operand, n *expr.Node) {
	if p.shares(n, dst, false, false) {
		p.viaTemp(dst, n)
		return
	}
	for _, part := range placed(n) {
		p.evaluate(dst.part(part.block), part.arg)
	}
}

func (p *planner) tooLarge(n *expr.Node) {
	p.tooMuch("Assign", "operands of ", n.Shape().String(), " do not fit into the device by parts either")
}

// block is rows i to k-1 and columns j to l-1.
type block struct{ i, k, j, l int }

// halves cuts the rows, or the columns, of a part of n in two; the other way where there is only one.
func (p *planner) halves(n *expr.Node, rows, cols int, down bool) []block {
	switch {
	case rows < 2 && cols < 2:
		p.tooLarge(n)
		return nil
	case down && rows > 1 || cols < 2:
		h := rows / 2
		if streams {
			h = middle(rows)
		}
		return []block{{0, h, 0, cols}, {h, rows, 0, cols}}
	}
	h := cols / 2
	if streams {
		h = middle(cols)
	}
	return []block{{0, rows, 0, h}, {0, rows, h, cols}}
}

// tile is what kernels compute at once, at most, in each direction: parts of a multiple of it leave nothing over.
const tile = 64

// middle is where to cut n in two.
func middle(n int) int {
	if h := n / 2; h < tile {
		return h
	}
	return n / 2 / tile * tile
}

func (op Operand) part(b block) Operand {
	op.Layout = op.Slice(b.i, b.k, b.j, b.l)
	return op
}

// partKey is a part of a node's result.
type partKey struct {
	n *expr.Node
	b block
}

// part is the expression of a part of n's result.
func (p *planner) part(n *expr.Node, b block) *expr.Node {
	return p.cutOut(partKey{n, b}, map[partKey]*expr.Node{})
}

// cutOut is part with the parts that were made already.
func (p *planner) cutOut(k partKey, done map[partKey]*expr.Node) *expr.Node {
	n := k.n
	k.b = stretched(n, k.b)
	switch {
	case k.b == all(n):
		return n
	case done[k] != nil:
		return done[k]
	case n.Kind == expr.Leaf, computed(n, k.b) != k.b: // what has no such part is computed whole
		return p.leaf(p.materialise(n).part(k.b))
	}
	args := make([]*expr.Node, 0, len(n.Args))
	for _, of := range reached(n, k.b) {
		if n.Kind != expr.Concat || !of.b.empty() {
			args = append(args, p.cutOut(of, done))
		}
	}
	done[k] = partOf(n, k.b, args)
	return done[k]
}

// operand returns the part of operand i that is needed.
func (k partKey) operand(i int) partKey {
	n, b, a := k.n, k.b, k.n.Args[i]
	switch {
	case n.Kind == expr.Transpose:
		b = block{b.j, b.l, b.i, b.k}
	case n.Kind == expr.Reduce && n.Axis == fuse.AxisAll, n.Kind == expr.Gather && i == 0, n.Kind == expr.Factor && (i == 0 || !columnwise(n)),
		undivided(n) && n.Kind != expr.Factor:
		b = block{0, a.Rows, 0, a.Cols}
	case n.Kind == expr.Reduce && n.Axis == fuse.AxisRows, n.Kind == expr.Product && i == 0, wholeRows(n):
		b.j, b.l = 0, a.Cols
	case n.Kind == expr.Reduce, n.Kind == expr.Product, n.Kind == expr.Factor:
		b.i, b.k = 0, a.Rows
	}
	return partKey{a, b}
}

// downwards reports whether to halve the rows of n: so that the parts of a large result lie apart, else so that the
// largest matrix gets smaller.
func (p *planner) downwards(dst Operand, n *expr.Node) bool {
	if p.large(dst) {
		return dst.steep()
	}
	big := p.largestLarge(n)
	return big.Span() == 0 || big.steep()
}

// reserve makes one window of a result that needs several no longer, for its parts may lie between each other.
func (p *planner) reserve(op Operand) {
	if p.plan.Memories[op.Mem].Windowed && !p.large(op) {
		p.plan.Steps = append(p.plan.Steps, &Step{To: op, Bindings: []Binding{bindingOf(op, buffer.Writes)}})
	}
}

// steep reports whether parts of the rows lie together in memory.
func (op Operand) steep() bool {
	if op.ColMajor {
		return op.Cols <= 1
	}
	return op.Rows > 1
}

// largestLarge returns the largest of the large matrices in an expression, as the expression's result has it; an empty one if
// there are none.
func (p *planner) largestLarge(n *expr.Node) Operand { return p.largest(seen{n, false}, p.largeNode) }
