// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Decompositions work on temporaries of float32, block of columns by block: a kernel of one workgroup factorises a block, and
// products of matrices apply it to the rest, which is nearly all of the work (Golub and Van Loan, Matrix Computations, 3.2.11,
// 4.2.9 and 5.2.3). Substitution within a block is a product with the inverse of its triangle.

// decompose computes a routine.
func (p *planner) decompose(dst Operand, n *expr.Node) {
	a := n.Args[0]
	switch n.Routine {
	case expr.RoutineLU:
		w := p.work(a.Rows, a.Cols+1, a)
		p.eliminate(w, a.Cols, true)
		p.evaluate(dst, p.leaf(w))
	case expr.RoutineCholesky:
		p.cholesky(dst, a)
	case expr.RoutineLUSolve:
		p.evaluate(dst, p.leaf(p.solveLU(p.factor(a, false), n.Args[1], n.Form.Turned)))
	case expr.RoutinePermute:
		x := p.beside(p.factor(a, false), n.Args[1])
		p.swap(x, kernels.Swap{Cols: n.Cols, Skip: n.Cols, Skipped: 1, Count: min(a.Rows, a.Cols-1), Reverse: n.Form.Turned})
		p.evaluate(dst, p.leaf(x.part(block{0, n.Rows, 0, n.Cols})))
	case expr.RoutineTriangle:
		x := p.work(n.Rows, n.Cols, n.Args[1])
		p.substitute(x, p.factor(a, false), n.Form)
		p.evaluate(dst, p.leaf(x))
	case expr.RoutineQR:
		w := p.work(a.Rows, a.Cols, a)
		p.reflect(w)
		p.evaluate(dst, p.leaf(w))
	case expr.RoutineQMul:
		x := p.work(n.Rows, n.Cols, n.Args[1])
		p.applyQ(p.factor(a, false), x, n.Form.Turned)
		p.evaluate(dst, p.leaf(x))
	case expr.RoutineEigen:
		p.eigen(dst, a)
	case expr.RoutineSVD:
		p.singular(dst, a)
	default:
		p.solveStack(dst, a, n.Args[1], int(n.Value))
	}
}

// work makes a temporary of float32 with rows of whole vectors, and computes a into its first columns. The others are 0.
func (p *planner) work(rows, cols int, a *expr.Node) Operand {
	op := p.newTemp(fuse.F32, rows, shaders.Ceil(cols, 4)*4)
	op.Cols = cols
	if a != nil {
		p.evaluate(op.part(block{0, a.Rows, 0, a.Cols}), a)
		rest := op.part(block{0, rows, a.Cols, cols})
		p.evaluate(rest, fill(rest, 0))
	}
	return op
}

// bare appends the launch of a kernel that has no function: it writes to. words are those of its shape that are places in there.
func (p *planner) bare(l *kernels.Launch, to Operand, words []int, own ...Binding) {
	if p.err != nil {
		return
	}
	p.plan.Steps = append(p.plan.Steps, &Step{
		Launch: l, Key: l.Key(nil), Params: shaders.Words(nil, l.Shape...), To: to,
		Bindings: append(own, bindingOf(to, buffer.Writes, words...)),
	})
}

// The following make nodes of operands.

func (p *planner) times(a, b *expr.Node) *expr.Node { return expr.NewProduct("Mul", a, b) }
func turned(a *expr.Node) *expr.Node                { return expr.NewTranspose("T", a) }
func apply(op fuse.Op, args ...*expr.Node) *expr.Node {
	return expr.NewMap(op.String(), op, args...)
}

// number is one of the plan's own, to be stretched.
func number(t fuse.Type, v float64) *expr.Node {
	return fill(Operand{Type: t, Layout: expr.Layout{Rows: 1, Cols: 1}}, v)
}

// places are the numbers of rows and of columns.
func places(rows, cols int) (i, j *expr.Node) {
	return expr.NewIndex("RowIndex", rows, 1, fuse.AxisRows), expr.NewIndex("ColIndex", 1, cols, fuse.AxisCols)
}

// where is a where a condition of whole numbers holds, and b elsewhere.
func where(cond, a, b *expr.Node) *expr.Node {
	return apply(fuse.OpWhere, expr.NewConversion("Where", a.Type, cond), a, b)
}

// subtract computes x -= a * b; the operands are of other memories.
func (p *planner) subtract(x Operand, a, b *expr.Node) {
	if !x.Empty() {
		p.evaluate(x, apply(fuse.OpSub, p.leaf(x), p.times(a, b)))
	}
}

// eliminate is Gaussian elimination of the first n columns of w, whose last column takes the pivots. What stands between them is
// treated like the columns of the matrix.
func (p *planner) eliminate(w Operand, n int, pivot bool) {
	m, width, rank := w.Rows, w.Cols-1, min(w.Rows, n)
	cols := p.Device.EliminateCols(m)
	if cols == 0 {
		p.tooMuch("LU", "columns of ", w.Shape().String())
		return
	}
	wide := min(cols, max(rank, 1))
	left, top, inverse := p.work(m, wide, nil), p.work(wide, width, nil), p.work(wide, kernels.FactorBlock, nil)
	for k := 0; k < rank && p.err == nil; k += cols {
		e := min(k+cols, rank)
		l := kernels.Eliminate{
			Items: 1, Rows: m - k, Cols: e - k, Width: e - k, Stride: w.Stride, Offset: w.Offset + k*w.Stride + k,
			Pivots: w.Offset + k*w.Stride + width, First: k, Pivot: pivot,
		}
		p.bare(l.Launch(&p.Device.Device), w, kernels.EliminatePlaces)
		if pivot {
			p.swap(w, kernels.Swap{Cols: width - (e - k), Skip: k, Skipped: e - k, First: k, Count: e - k})
		}
		if e == width {
			break
		}
		p.invert(inverse, w.part(block{k, e, k, e}), expr.Form{Unit: true})
		right := w.part(block{k, e, e, width})
		u := top.part(block{0, e - k, 0, width - e})
		p.evaluate(u, p.times(p.leaf(inverse.part(block{0, e - k, 0, e - k})), p.leaf(right)))
		p.evaluate(right, p.leaf(u))
		if e < m {
			factors := left.part(block{0, m - e, 0, e - k})
			p.evaluate(factors, p.leaf(w.part(block{e, m, k, e})))
			p.subtract(w.part(block{e, m, e, width}), p.leaf(factors), p.leaf(u))
		}
	}
}

// swap exchanges rows of w as its last column says, from row First on.
func (p *planner) swap(w Operand, s kernels.Swap) {
	if s.Cols == 0 {
		return
	}
	s.Stride, s.Offset = w.Stride, w.Offset
	s.Pivots = w.Offset + s.First*w.Stride + w.Cols - 1
	p.bare(s.Launch(), w, kernels.SwapPlaces)
}

// invert inverts the blocks on the diagonal of a triangle into a matrix of their width, in which they stand below each other.
func (p *planner) invert(to, t Operand, form expr.Form) {
	v := kernels.Invert{Rows: t.Rows, Offset: t.Offset, To: to.Offset, ToBlock: kernels.FactorBlock * to.Stride, Unit: form.Unit}
	v.Row, v.Col = t.Steps()
	v.ToRow, v.ToCol = to.Steps()
	if form.Upper {
		v.Row, v.Col, v.ToRow, v.ToCol = v.Col, v.Row, v.ToCol, v.ToRow
	}
	p.bare(v.Launch(), to, []int{kernels.InvertTo}, bindingOf(t, buffer.Reads, kernels.InvertFrom))
}

// substitute solves T x = b in the place of b, where T is a triangle, or with Turned the transpose of one.
func (p *planner) substitute(x, t Operand, form expr.Form) {
	t = t.read(form.Turned)
	form.Upper = form.Upper != form.Turned
	const size = kernels.FactorBlock
	n := t.Rows
	inverse, solved := p.work(n, size, nil), p.work(min(size, n), x.Cols, nil)
	p.invert(inverse, t, form)
	for at := 0; at < n && p.err == nil; at += size {
		k, rest := at, block{min(at+size, n), n, 0, x.Cols}
		if form.Upper {
			k = (n - 1 - at) / size * size
			rest = block{0, k, 0, x.Cols}
		}
		e := min(k+size, n)
		own, s := x.part(block{k, e, 0, x.Cols}), solved.part(block{0, e - k, 0, x.Cols})
		p.evaluate(s, p.times(p.leaf(inverse.part(block{k, e, 0, e - k})), p.leaf(own)))
		p.evaluate(own, p.leaf(s))
		if rest.i < rest.k {
			p.subtract(x.part(rest), p.leaf(t.part(block{rest.i, rest.k, k, e})), p.leaf(s))
		}
	}
}

// beside is a temporary of b with the pivots of a packed LU in one column more.
func (p *planner) beside(lu Operand, b *expr.Node) Operand {
	x := p.work(b.Rows, b.Cols+1, b)
	p.evaluate(x.part(block{0, b.Rows, b.Cols, b.Cols + 1}), p.leaf(lu.part(block{0, lu.Rows, lu.Cols - 1, lu.Cols})))
	return x
}

// solveLU solves with a packed LU.
func (p *planner) solveLU(lu Operand, b *expr.Node, transposed bool) Operand {
	n := lu.Rows
	x := p.beside(lu, b)
	right := x.part(block{0, n, 0, b.Cols})
	exchange := kernels.Swap{Cols: b.Cols, Skip: b.Cols, Skipped: 1, Count: n, Reverse: transposed}
	lower, upper := expr.Form{Unit: true, Turned: transposed}, expr.Form{Upper: true, Turned: transposed}
	t := lu.part(block{0, n, 0, n})
	if transposed {
		p.substitute(right, t, upper)
		p.substitute(right, t, lower)
		p.swap(x, exchange)
	} else {
		p.swap(x, exchange)
		p.substitute(right, t, lower)
		p.substitute(right, t, upper)
	}
	return right
}

// mirrored is a symmetric matrix of its lower triangle.
func (p *planner) mirrored(a *expr.Node) *expr.Node {
	whole := p.leaf(p.materialise(a))
	i, j := places(a.Rows, a.Cols)
	return where(apply(fuse.OpGe, i, j), whole, turned(whole))
}

// cholesky eliminates without pivots, which for a positive definite matrix is L D L^T, and multiplies the columns by the roots of D. Where
// an element of D is not positive the column is NaN.
func (p *planner) cholesky(dst Operand, a *expr.Node) {
	n := a.Rows
	w := p.work(n, n+1, p.mirrored(a))
	p.eliminate(w, n, false)
	_, j := places(n, n)
	p.evaluate(dst, p.rooted(w.part(block{0, n, 0, n}), expr.NewGather("Cholesky", p.leaf(w), j, j), 0))
}

// rooted is L of columns of an elimination from one on, with these pivots.
func (p *planner) rooted(w Operand, pivots *expr.Node, from int) *expr.Node {
	i, j := places(w.Rows, w.Cols)
	j.Value = float64(from)
	pivots = apply(fuse.OpWhere, apply(fuse.OpGt, pivots, number(fuse.F32, 0)), pivots, number(fuse.F32, -1)) // whose root is NaN
	factors := where(apply(fuse.OpEq, i, j), number(fuse.F32, 1), p.leaf(w))
	return where(apply(fuse.OpGe, i, j), apply(fuse.OpMul, factors, apply(fuse.OpSqrt, pivots)), number(fuse.F32, 0))
}

// solveStack solves a small system for each matrix of a stack, one workgroup each.
func (p *planner) solveStack(dst Operand, a, b *expr.Node, count int) {
	n := a.Cols
	w := p.work(a.Rows, n+b.Cols+1, a)
	p.evaluate(w.part(block{0, b.Rows, n, n + b.Cols}), b)
	width := n + b.Cols
	if shaders.Ceil(n, p.Device.EliminateSize())*n*(width+2)+32*n > shaders.LoopLimit {
		for k := range count { // each is large enough for a device
			rows := block{k * n, (k + 1) * n, 0, w.Cols}
			p.solveOne(dst.part(block{rows.i, rows.k, 0, b.Cols}), w.part(rows))
		}
		return
	}
	l := kernels.Eliminate{
		Items: count, Item: n * w.Stride, Rows: n, Cols: n, Width: width, Stride: w.Stride, Offset: w.Offset,
		Pivots: w.Offset + width, Pivot: true, Jordan: true,
	}
	p.bare(l.Launch(&p.Device.Device), w, kernels.EliminatePlaces)
	i, _ := places(b.Rows, 1)
	diagonal := expr.NewGather("Solve", p.leaf(w), i, apply(fuse.OpMod, i, number(fuse.I32, float64(n))))
	p.evaluate(dst, apply(fuse.OpDiv, p.leaf(w.part(block{0, b.Rows, n, width})), diagonal))
}

// solveOne solves a system whose right sides stand beside its matrix.
func (p *planner) solveOne(dst, w Operand) {
	n := w.Rows
	p.eliminate(w, n, true)
	x := p.work(n, dst.Cols, p.leaf(w.part(block{0, n, n, w.Cols - 1})))
	p.substitute(x, w.part(block{0, n, 0, n}), expr.Form{Upper: true})
	p.evaluate(dst, p.leaf(x))
}
