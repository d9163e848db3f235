// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// reflect is the QR factorisation of w in place, by blocks of Householder reflections.
func (p *planner) reflect(w Operand) {
	cols := p.Device.ReflectCols(w.Rows)
	if cols == 0 {
		p.tooMuch("QR", "columns of ", w.Shape().String())
		return
	}
	q := p.newReflections(w, cols)
	for k := 0; k < q.rank && p.err == nil; k += cols {
		e := min(k+cols, q.rank)
		l := kernels.Reflect(&p.Device.Device, w.Rows-k, e-k, cols, w.Stride, w.Offset+k*w.Stride+k)
		p.bare(l, w, []int{kernels.ReflectOffset})
		if e < w.Cols {
			q.apply(w.part(block{k, w.Rows, e, w.Cols}), k, true)
		}
	}
}

// applyQ multiplies x by the Q of a packed QR, or with transposed by its transpose, in place.
func (p *planner) applyQ(qr, x Operand, transposed bool) {
	q := p.newReflections(qr, kernels.FactorBlock)
	for at := 0; at < q.rank; at += q.cols {
		k := at
		if !transposed {
			k = (q.rank - 1 - at) / q.cols * q.cols
		}
		q.apply(x.part(block{k, x.Rows, 0, x.Cols}), k, transposed)
	}
}

// reflections are those of a packed QR, taken together in blocks: the product of the reflections of a block is I - V T V^T, where V
// has their vectors, and T is the inverse of the upper triangle of V^T V with half its diagonal (Puglisi 1992; Joffrain et al.,
// ACM TOMS 32(2), 2006).
type reflections struct {
	p          *planner
	qr         Operand
	rank, cols int
	vectors    Operand
	triangle   Operand
	inverse    Operand
}

func (p *planner) newReflections(qr Operand, cols int) *reflections {
	rank := min(qr.Rows, qr.Cols)
	cols = min(cols, max(rank, 1))
	return &reflections{
		p: p, qr: qr, rank: rank, cols: cols,
		vectors: p.work(qr.Rows, cols, nil), triangle: p.work(cols, cols, nil), inverse: p.work(cols, kernels.FactorBlock, nil),
	}
}

// apply multiplies rows from k on by the block that begins at column k, or its transpose.
func (q *reflections) apply(x Operand, k int, transposed bool) {
	p, e := q.p, min(k+q.cols, q.rank)
	rows, cols := q.qr.Rows-k, e-k
	v := q.vectors.part(block{0, rows, 0, cols})
	i, j := places(rows, cols)
	below := where(apply(fuse.OpGt, i, j), p.leaf(q.qr.part(block{k, q.qr.Rows, k, e})), number(fuse.F32, 0))
	p.evaluate(v, where(apply(fuse.OpEq, i, j), number(fuse.F32, 1), below))
	vectors := p.leaf(v)
	t := q.triangle.part(block{0, cols, 0, cols})
	i, j = places(cols, cols)
	half := where(apply(fuse.OpEq, i, j), number(fuse.F32, 0.5), number(fuse.F32, 1))
	p.evaluate(t, apply(fuse.OpMul, p.times(turned(vectors), vectors), half))
	inverse := q.inverse.part(block{0, cols, 0, cols})
	p.invert(inverse, t, expr.Form{Upper: true})
	factor := p.leaf(inverse)
	if transposed {
		factor = turned(factor)
	}
	p.subtract(x, vectors, p.times(factor, p.times(turned(vectors), p.leaf(x))))
}

// rotated is a temporary of rows for jacobi and what it needs below them. Rows are an odd number of lines of a cache, so that the
// rows of a launch do not displace each other.
func (p *planner) rotated(rows, cols int) Operand {
	const line = 16
	w := p.work(shaders.Ceil(rows, kernels.RotateRows)*kernels.RotateRows+1, line*(shaders.Ceil(max(cols, marksMost), line)|1), nil)
	p.evaluate(w, fill(w, 0))
	return w
}

// jacobi makes the rows of w orthogonal, whose elements are in so many columns. The last row of w takes the marks. Everything else in w
// is 0.
func (p *planner) jacobi(w Operand, cols int) {
	marks := w.part(block{w.Rows - 1, w.Rows, 0, w.Cols})
	r := kernels.Rotate{Rows: w.Rows - 1, Cols: cols, Stride: w.Stride, Offset: w.Offset, Marks: marks.Offset}
	rounds := r.Rounds(&p.Device.Device)
	if rounds == 0 {
		p.tooMuch("SVD", "rows of ", w.Shape().String())
	}
	for r.Sweep = range jacobiSweeps(r.Rows) {
		for r.Round = range rounds {
			p.bare(r.Launch(&p.Device.Device), w, kernels.RotatePlaces)
		}
	}
}

// jacobiSweeps is how many sweeps of rotations rows take at most: they converge quadratically once they are near, which takes some
// sweeps more the more rows there are.
func jacobiSweeps(rows int) int { return min(8+bits.Len(uint(rows)), sweepsMost) }

// The most sweeps, and how many elements a row of marks has for them.
const (
	sweepsMost = 24
	marksMost  = 4 * sweepsMost
)

// eigen finds the eigenvalues and vectors of a symmetric matrix: those of the matrix shifted so far that it is positive definite,
// whose singular vectors they are. The values are the Rayleigh quotients.
func (p *planner) eigen(dst Operand, a *expr.Node) {
	n := a.Rows
	whole := p.work(n, n, p.mirrored(a))
	scale := p.magnitude(p.leaf(whole))
	p.evaluate(whole, apply(fuse.OpDiv, p.leaf(whole), scale))
	sums := expr.NewReduction("Eigen", fuse.ReduceSum, fuse.AxisRows, 0, apply(fuse.OpAbs, p.leaf(whole)))
	norm := expr.NewReduction("Eigen", fuse.ReduceMax, fuse.AxisAll, 0, sums)
	scaled := p.leaf(p.materialise(apply(fuse.OpDiv, p.leaf(whole), p.orOne(norm))))
	i, j := places(n, n)
	shift := where(apply(fuse.OpEq, i, j), number(fuse.F32, 1.0625), number(fuse.F32, 0))
	w := p.rotated(n, n)
	vectors := w.part(block{0, n, 0, n})
	p.evaluate(vectors, apply(fuse.OpAdd, apply(fuse.OpDiv, scaled, p.orOne(p.radius(scaled))), shift))
	p.jacobi(w, n)
	unit := apply(fuse.OpDiv, p.leaf(vectors), lengths(p.leaf(vectors)))
	v := p.leaf(p.materialise(unit))
	values := expr.NewReduction("Eigen", fuse.ReduceSum, fuse.AxisRows, 0, apply(fuse.OpMul, p.times(v, p.leaf(whole)), v))
	values = p.leaf(p.materialise(apply(fuse.OpMul, values, scale)))
	order := turned(p.leaf(p.materialise(expr.NewSort("Eigen", false, true, -1, turned(values)))))
	_, j = places(1, n)
	p.evaluate(dst.part(block{0, n, 0, n}), expr.NewGather("Eigen", v, order, j))
	p.evaluate(dst.part(block{0, n, n, n + 1}), expr.NewGather("Eigen", values, order, number(fuse.I32, 0)))
}

// magnitude is a power of two near the largest element: a matrix that is divided by it is not rounded, and its sums do not overflow.
func (p *planner) magnitude(a *expr.Node) *expr.Node {
	top := expr.NewReduction("Norm", fuse.ReduceMax, fuse.AxisAll, 0, apply(fuse.OpAbs, a))
	exponent := apply(fuse.OpFloor, apply(fuse.OpLog2, top))
	return p.leaf(p.materialise(apply(fuse.OpExp2, apply(fuse.OpMax, exponent, number(fuse.F32, -126)))))
}

// radius is a bound of the absolute eigenvalues of a symmetric matrix: the eighth root of the sum of their eighth powers. It is at
// most the eighth root of n too large. Rounding errors are relative to what is shifted, and norms of the matrix itself would shift it
// up to the root of n too far.
func (p *planner) radius(a *expr.Node) *expr.Node {
	square := p.leaf(p.materialise(p.times(a, a)))
	fourth := p.leaf(p.materialise(p.times(square, square)))
	norm := expr.NewReduction("Norm2", fuse.ReduceNorm2, fuse.AxisAll, 1, apply(fuse.OpSquare, fourth))
	return apply(fuse.OpSqrt, apply(fuse.OpSqrt, norm))
}

// orOne is a number, or 1 in the place of 0.
func (p *planner) orOne(a *expr.Node) *expr.Node {
	a = p.leaf(p.materialise(a))
	return p.leaf(p.materialise(apply(fuse.OpWhere, apply(fuse.OpEq, a, number(fuse.F32, 0)), number(fuse.F32, 1), a)))
}

// lengths are the norms of rows.
func lengths(a *expr.Node) *expr.Node {
	return expr.NewReduction("Norm2", fuse.ReduceNorm2, fuse.AxisRows, 1, apply(fuse.OpSquare, a))
}

// singular is the singular value decomposition by one-sided Jacobi rotations of the rows of R, where a = Q R: they take fewer sweeps
// than those of a, and the rows are short (Drmac and Veselic, SIAM J. Matrix Anal. Appl. 29(4), 2008). The columns of a are sorted
// by their lengths before, so that R has large rows first. What becomes of the rows is a right vector times its singular value,
// each; the product of a and the right vectors has the left ones times those.
func (p *planner) singular(dst Operand, a *expr.Node) {
	m, n := a.Rows, a.Cols
	whole := p.leaf(p.materialise(expr.NewConversion("SVD", fuse.F32, a)))
	scale := p.magnitude(whole)
	scaled := p.leaf(p.materialise(apply(fuse.OpDiv, whole, scale)))
	_, first := p.longest(turned(scaled))
	down, _ := places(m, 1)
	qr := p.work(m, n, expr.NewGather("SVD", scaled, down, turned(first)))
	p.reflect(qr)
	w := p.rotated(n, n)
	rows := w.part(block{0, n, 0, n})
	i, j := places(n, n)
	p.evaluate(rows, where(apply(fuse.OpLe, i, j), p.leaf(qr.part(block{0, n, 0, n})), number(fuse.F32, 0)))
	p.jacobi(w, n)
	values, order := p.longest(p.leaf(rows))
	p.evaluate(dst.part(block{0, n, m + n, m + n + 1}), apply(fuse.OpMul, expr.NewGather("SVD", values, order, number(fuse.I32, 0)), scale))
	v := p.work(n, n, nil)
	p.orthonormal(v, expr.NewGather("SVD", p.leaf(rows), order, j))
	back := expr.NewSort("SVD", false, true, -1, turned(first))
	right := dst.part(block{0, n, m, m + n})
	p.evaluate(right, expr.NewGather("SVD", p.leaf(v), i, p.leaf(p.materialise(back))))
	p.orthonormal(dst.part(block{0, n, 0, m}), p.times(p.leaf(right), turned(scaled)))
}

// longest are the lengths of rows, and the numbers of the rows with the longest first.
func (p *planner) longest(rows *expr.Node) (values, order *expr.Node) {
	values = p.leaf(p.materialise(lengths(rows)))
	return values, p.leaf(p.materialise(turned(expr.NewSort("SVD", true, true, -1, turned(values)))))
}

// orthonormal makes rows orthonormal, which are orthogonal unless they are close to 0: the result is the Q of the QR factorisation of
// the transpose, with the signs of R's diagonal.
func (p *planner) orthonormal(dst Operand, rows *expr.Node) {
	n, m := dst.Rows, dst.Cols
	qr := p.work(m, n, turned(rows))
	p.reflect(qr)
	i, j := places(m, n)
	diagonal := expr.NewGather("SVD", p.leaf(qr), j, j)
	sign := apply(fuse.OpWhere, apply(fuse.OpLt, diagonal, number(fuse.F32, 0)), number(fuse.F32, -1), number(fuse.F32, 1))
	u := p.work(m, n, where(apply(fuse.OpEq, i, j), sign, number(fuse.F32, 0)))
	p.applyQ(qr, u, false)
	p.evaluate(dst, turned(p.leaf(u)))
}
