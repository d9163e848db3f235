// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Decompositions of matrices that there is no memory for are computed by panels, blocks of columns that lie in memory of the host: each
// one goes to the device, where what the panels before it say is applied to it, one after the other, and is decomposed there as a matrix
// that fits is (left-looking: Golub and Van Loan, Matrix Computations, 3.2.11 and 4.2.5). The device needs two panels at a time, and each
// panel goes up once for every later one. Results are written when all of them are there.

// panels are a matrix by blocks of columns. Each block has a column more, which takes pivots.
type panels struct {
	p          *planner
	rows, cols int
	width      int // columns of a block, but for the last one
	list       []Operand
	pivots     Operand // of an LU: the numbers of rows, in a column
}

// leastWidth is how many columns a block has at least.
const leastWidth = 4

// byPanels plans an expression that is beyond a limit of the device with its decompositions by panels: by the widest ones for which there
// is memory.
func byPanels(p *planner) *planner {
	if !errors.Is(p.err, gpu.ErrLimit) || !factorises(p.Root, map[*expr.Node]bool{}) {
		return p
	}
	room, most := p.Free, min(p.Device.Binding, p.Device.Buffer)
	if room == 0 {
		room = 4 * most
	}
	for share := uint64(3); ; share += share / 3 {
		q := newPlanner(p.Input)
		q.plan.Memories = slices.Clone(p.Memories)
		q.panel = min(room/share, most-min(most, 512))
		q.window, q.factored = q.panel+512, map[*expr.Node]*panels{}
		q.compute()
		if !errors.Is(q.err, gpu.ErrLimit) || !q.wide {
			return q
		}
	}
}

// factorises reports whether an expression has a decomposition.
func factorises(n *expr.Node, done map[*expr.Node]bool) bool {
	if done[n] {
		return false
	}
	done[n] = true
	return n.Kind == expr.Factor || slices.ContainsFunc(n.Args, func(a *expr.Node) bool { return factorises(a, done) })
}

// inPanels computes a routine by panels. It reports whether it is one that this is for.
func inPanels(p *planner, dst Operand, n *expr.Node) bool {
	a := n.Args[0]
	var f *panels
	switch n.Routine {
	case expr.RoutineLU, expr.RoutineCholesky, expr.RoutineQR:
		factored(p, n, false).join(dst)
		return true
	case expr.RoutineLUSolve, expr.RoutinePermute:
		f = factored(p, a, true)
	case expr.RoutineTriangle, expr.RoutineQMul:
		f = factored(p, a, false)
	case expr.RoutineSVD:
		if p.largeNode(a) {
			tall(p, dst, a)
			return true
		}
		return false
	case expr.RoutineEigen:
		if p.largeNode(a) {
			p.tooMuch("Eigen", "eigenvalues take all of a matrix on the device, here of ", a.Shape().String())
		}
		return false
	default:
		return false
	}
	x := newPanels(p, n.Rows, n.Cols)
	x.spread(n.Args[1])
	for _, w := range x.list {
		hold(p, w)
		f.solve(n, w)
	}
	x.join(dst)
	return true
}

// newPanels makes blocks for a matrix, which are in memory of the host.
func newPanels(p *planner, rows, cols int) *panels {
	width := int(p.panel/uint64(4*max(rows, 1)))/4*4 - 4
	if width > 2*kernels.FactorBlock {
		width = width / kernels.FactorBlock * kernels.FactorBlock
	}
	if p.wide = p.wide || min(width, cols) > leastWidth; width < leastWidth {
		p.window = max(p.window, uint64(4*rows*2*leastWidth)+512) // there is no room for these either, which the plan finds out
	}
	s := &panels{p: p, rows: rows, cols: cols, width: max(width, leastWidth)}
	for j := 0; j < cols && p.err == nil; j += s.width {
		w := p.work(rows, min(s.width, cols-j)+1, nil)
		p.plan.Memories[w.Mem].Windowed = true
		s.list = append(s.list, w)
	}
	return s
}

// at returns the columns of a block.
func (s *panels) at(k int) (first, end int) { return k * s.width, min((k+1)*s.width, s.cols) }

// diagonal returns the rows with the block's part of the diagonal, of which there may be none.
func (s *panels) diagonal(k int) (first, end int) {
	first, end = s.at(k)
	return min(first, s.rows), min(end, s.rows)
}

// bands is how many rows of a matrix are used at once, for the other parts of them lie between each other. Rows of blocks begin ranges
// where they are in sixteens.
func bands(p *planner, op Operand) int {
	if !p.plan.Memories[op.Mem].Windowed || !op.steep() {
		return op.Rows
	}
	n := fitting(op, p.panel, op.Rows)
	if n < op.Rows && n >= 16 {
		n = n / 16 * 16
	}
	return max(n, 1)
}

// hold has the device get all of an operand at once, of which the next steps use parts.
func hold(p *planner, op Operand) {
	if p.err == nil && !op.Empty() && p.plan.Memories[op.Mem].Windowed && !p.large(op) {
		p.plan.Steps = append(p.plan.Steps, &Step{To: op, Bindings: []Binding{bindingOf(op, buffer.Reads)}})
	}
}

// spread computes a matrix into the blocks, and a column more into the pivots if there are such.
func (s *panels) spread(a *expr.Node) {
	p, each := s.p, s.rows
	a = p.inside(&expr.Node{Kind: expr.Concat, Args: []*expr.Node{a}}).Args[0]
	big := p.largestLarge(a)
	if big.Rows == s.rows {
		each = bands(p, big)
	}
	for i := 0; i < s.rows && p.err == nil; i += each {
		e := min(i+each, s.rows)
		if each < s.rows {
			hold(p, big.part(block{i, e, 0, big.Cols}))
		}
		for k, w := range s.list {
			j, l := s.at(k)
			p.evaluate(w.part(block{i, e, 0, l - j}), p.part(a, block{i, e, j, l}))
		}
		if s.pivots.Rows > 0 {
			p.evaluate(s.pivots.part(block{i, e, 0, 1}), p.part(a, block{i, e, s.cols, s.cols + 1}))
		}
	}
}

// join computes the matrix of the blocks, and of the pivots.
func (s *panels) join(dst Operand) {
	p, each := s.p, bands(s.p, dst)
	for i := 0; i < s.rows && p.err == nil; i += each {
		e := min(i+each, s.rows)
		p.reserve(dst.part(block{i, e, 0, dst.Cols}))
		for k, w := range s.list {
			j, l := s.at(k)
			p.evaluate(dst.part(block{i, e, j, l}), p.leaf(w.part(block{i, e, 0, l - j})))
		}
		if s.pivots.Rows > 0 {
			p.evaluate(dst.part(block{i, e, s.cols, s.cols + 1}), p.leaf(s.pivots.part(block{i, e, 0, 1})))
		}
	}
}

// factored is a packed decomposition by panels: one that the plan computes, or a matrix that there is.
func factored(p *planner, n *expr.Node, pivots bool) *panels {
	f := p.factored[n]
	switch {
	case f != nil:
	case n.Kind == expr.Factor && (n.Routine == expr.RoutineLU || n.Routine == expr.RoutineCholesky || n.Routine == expr.RoutineQR):
		f = newPanels(p, n.Args[0].Rows, n.Args[0].Cols)
		f.spread(n.Args[0])
		f.factorise(n.Routine)
		p.factored[n] = f
	case pivots:
		f = newPanels(p, n.Rows, n.Cols-1)
		f.pivots = p.newTemp(fuse.F32, n.Rows, 1)
		f.spread(n)
	default:
		f = newPanels(p, n.Rows, n.Cols)
		f.spread(n)
	}
	return f
}

// factorise decomposes the matrix in the blocks.
func (s *panels) factorise(r expr.Routine) {
	p := s.p
	if r == expr.RoutineLU {
		s.pivots = p.newTemp(fuse.F32, s.rows, 1)
		p.evaluate(s.pivots, fill(s.pivots, 0))
	}
	for j, x := range s.list {
		if p.err != nil {
			return
		}
		if hold(p, x); r == expr.RoutineCholesky {
			s.mirror(j)
		}
		for k := range s.list[:j] {
			if first, end := s.diagonal(k); first < end {
				s.update(r, k, j)
			}
		}
		if first, end := s.diagonal(j); first < end {
			s.decompose(r, j)
		}
	}
	switch r {
	case expr.RoutineLU:
		s.exchange()
	case expr.RoutineCholesky:
		s.scale()
	}
}

// update applies what block k says to a later one.
func (s *panels) update(r expr.Routine, k, j int) {
	p, w, x := s.p, s.list[k], s.list[j]
	first, end := s.diagonal(k)
	below, cols := block{first, s.rows, 0, end - first}, x.Cols-1
	hold(p, w.part(block{first, s.rows, 0, w.Cols}))
	switch r {
	case expr.RoutineLU:
		s.swap(x, first, end, false)
		s.substitute(x.part(block{0, s.rows, 0, cols}), k, expr.Form{Unit: true})
	case expr.RoutineQR:
		p.applyQ(w.part(below), x.part(block{first, s.rows, 0, cols}), true)
	default:
		i, e := s.diagonal(j)
		d := p.leaf(w.part(block{first, end, 0, end - first}).diagonal())
		rows := p.leaf(w.part(block{i, e, 0, end - first}))
		u := p.work(end-first, cols, apply(fuse.OpMul, turned(rows), d))
		p.subtract(x.part(block{i, s.rows, 0, cols}), p.leaf(w.part(block{i, s.rows, 0, end - first})), p.leaf(u))
	}
}

// decompose decomposes a block from its part of the diagonal on.
func (s *panels) decompose(r expr.Routine, j int) {
	p, x := s.p, s.list[j]
	first, end := s.diagonal(j)
	own := x.part(block{first, s.rows, 0, x.Cols})
	if r == expr.RoutineQR {
		p.reflect(own.part(block{0, own.Rows, 0, x.Cols - 1}))
		return
	}
	p.eliminate(own, x.Cols-1, r == expr.RoutineLU)
	if r == expr.RoutineLU {
		found := p.leaf(own.part(block{0, end - first, x.Cols - 1, x.Cols}))
		p.evaluate(s.pivots.part(block{first, end, 0, 1}), apply(fuse.OpAdd, found, number(fuse.F32, float64(first))))
	}
}

// swap exchanges rows of a block, or of right sides, as some pivots say.
func (s *panels) swap(x Operand, first, end int, reverse bool) {
	if first < end {
		last := x.Cols - 1
		s.p.evaluate(x.part(block{first, end, last, x.Cols}), s.p.leaf(s.pivots.part(block{first, end, 0, 1})))
		s.p.swap(x, kernels.Swap{Cols: last, Skip: last, Skipped: 1, First: first, Count: end - first, Reverse: reverse})
	}
}

// exchange has the multipliers of each block go where the pivots of later ones took their rows.
func (s *panels) exchange() {
	for k, w := range s.list {
		if _, end := s.diagonal(k); end < min(s.rows, s.cols) && s.p.err == nil {
			hold(s.p, w)
			s.swap(w, end, min(s.rows, s.cols), false)
		}
	}
}

// mirror makes a block symmetric where it has a part of the diagonal.
func (s *panels) mirror(j int) {
	p, x := s.p, s.list[j]
	first, end := s.diagonal(j)
	own := x.part(block{first, end, 0, end - first})
	whole := p.leaf(p.work(own.Rows, own.Cols, p.leaf(own)))
	down, across := places(own.Rows, own.Cols)
	p.evaluate(own, where(apply(fuse.OpGe, down, across), whole, turned(whole)))
}

// scale makes L of the multipliers, as [planner.rooted] does.
func (s *panels) scale() {
	for k, w := range s.list {
		first, end := s.diagonal(k)
		l := w.part(block{0, s.rows, 0, end - first})
		hold(s.p, w)
		d := s.p.work(1, end-first, turned(s.p.leaf(l.part(block{first, end, 0, end - first}).diagonal())))
		s.p.evaluate(l, s.p.rooted(l, s.p.leaf(d), first))
	}
}

// solve computes a routine in the place of right sides, which have a column more for pivots.
func (s *panels) solve(n *expr.Node, x Operand) {
	right, turned := x.part(block{0, x.Rows, 0, x.Cols - 1}), n.Form.Turned
	lower, upper := expr.Form{Unit: true, Turned: turned}, expr.Form{Upper: true, Turned: turned}
	rank := min(s.rows, s.cols)
	switch n.Routine {
	case expr.RoutinePermute:
		s.swap(x, 0, rank, turned)
	case expr.RoutineTriangle:
		s.triangle(right, n.Form)
	case expr.RoutineQMul:
		s.each(!turned, func(k int) {
			if first, end := s.diagonal(k); first < end {
				w := s.list[k].part(block{first, s.rows, 0, end - first})
				hold(s.p, w)
				s.p.applyQ(w, right.part(block{first, s.rows, 0, right.Cols}), turned)
			}
		})
	case expr.RoutineLUSolve:
		if turned {
			s.triangle(right, upper)
			s.triangle(right, lower)
			s.swap(x, 0, rank, true)
		} else {
			s.swap(x, 0, rank, false)
			s.triangle(right, lower)
			s.triangle(right, upper)
		}
	}
}

// each calls a function for the blocks, or with back for the last one first.
func (s *panels) each(back bool, do func(k int)) {
	for at := range s.list {
		if back {
			at = len(s.list) - 1 - at
		}
		if s.p.err == nil {
			do(at)
		}
	}
}

// triangle solves T x = b in the place of b, where T is a triangle of the matrix in the blocks, or with Turned the transpose of one.
func (s *panels) triangle(x Operand, form expr.Form) {
	s.each(form.Upper != form.Turned, func(k int) {
		first, end := s.at(k)
		rows := block{first, s.rows, 0, end - first}
		if form.Upper {
			rows.i, rows.k = 0, end
		}
		hold(s.p, s.list[k].part(rows))
		s.substitute(x, k, form)
	})
}

// substitute is the part of triangle that one block has.
func (s *panels) substitute(x Operand, k int, form expr.Form) {
	p, w := s.p, s.list[k]
	first, end := s.diagonal(k)
	rest := block{end, s.rows, 0, end - first}
	if form.Upper {
		rest.i, rest.k = 0, first
	}
	own, others := x.part(block{first, end, 0, x.Cols}), x.part(block{rest.i, rest.k, 0, x.Cols})
	factors := p.leaf(w.part(rest))
	if form.Turned && !others.Empty() {
		known := p.work(own.Rows, own.Cols, p.times(turned(factors), p.leaf(others)))
		p.evaluate(own, apply(fuse.OpSub, p.leaf(own), p.leaf(known)))
	}
	p.substitute(own, w.part(block{first, end, 0, end - first}), form)
	if !form.Turned && !others.Empty() {
		p.subtract(others, factors, p.leaf(p.work(own.Rows, own.Cols, p.leaf(own))))
	}
}

// tall is the singular value decomposition of a matrix whose columns are few enough: that of R, where a = Q R. Its left vectors times Q are
// those of a.
func tall(p *planner, dst Operand, a *expr.Node) {
	m, n := a.Rows, a.Cols
	if uint64(4*n*n) > p.panel {
		p.tooMuch("SVD", "singular values take R on the device, which of ", a.Shape().String(), " has ", strconv.Itoa(n), " columns")
		return
	}
	f := factored(p, expr.NewFactor("SVD", expr.RoutineQR, expr.Form{}, 1, a), false)
	r, small := p.work(n, n, nil), p.work(n, 2*n+1, nil)
	for k, w := range f.list {
		j, l := f.at(k)
		p.evaluate(r.part(block{0, n, j, l}), p.leaf(w.part(block{0, n, 0, l - j})))
	}
	i, j := places(n, n)
	p.singular(small, where(apply(fuse.OpLe, i, j), p.leaf(r), number(fuse.F32, 0)))
	u := newPanels(p, m, n)
	for k, w := range u.list {
		j, l := u.at(k)
		left := w.part(block{0, m, 0, l - j})
		rest := left.part(block{n, m, 0, left.Cols})
		hold(p, left)
		p.evaluate(left.part(block{0, n, 0, left.Cols}), turned(p.leaf(small.part(block{j, l, 0, n}))))
		p.evaluate(rest, fill(rest, 0))
		f.solve(&expr.Node{Routine: expr.RoutineQMul}, w)
		p.evaluate(dst.part(block{j, l, 0, m}), turned(p.leaf(left)))
	}
	p.evaluate(dst.part(block{0, n, m, m + n + 1}), p.leaf(small.part(block{0, n, n, 2*n + 1})))
}
