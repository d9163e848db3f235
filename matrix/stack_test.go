// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// stackSizes are numbers of products, and their rows, inner sizes and columns.
var stackSizes = [][4]int{
	{1, 1, 1, 1},
	{200, 3, 4, 5},
	{7, 1, 9, 1},
	{5, 8, 1, 3},
	{3, 70, 65, 66},
	{1, 4, 5, 6},
	{9, 2, 3, 1},
	{4, 1, 12, 8},
	{6, 8, 16, 4},
	{65, 1, 33, 20},
}

// stackOf makes an operand of a stack of rows x cols: in some layout, of transposes, or of rows of a matrix with gaps between them.
func stackOf(t testing.TB, dev *gpu.Device, rng *rand.Rand, turn, count, rows, cols int) (matrix.Operand[float32], *mat.Dense) {
	t.Helper()
	switch turn % 4 {
	case 1:
		of, ref := stackOf(t, dev, rng, turn/4*2, count, cols, rows)
		turned := mat.NewDense(count*rows, cols, nil)
		for k := range count {
			turned.Slice(k*rows, (k+1)*rows, 0, cols).(*mat.Dense).Copy(ref.Slice(k*cols, (k+1)*cols, 0, rows).T())
		}
		return matrix.TransposeStack(of, count), turned
	case 2:
		gaps, ref := sampled(t, dev, rng, 0, count, rows*cols+turn%3+1)
		part := mat.DenseCopyOf(ref.Slice(0, count, 0, rows*cols))
		whole := gaps.(*matrix.Dense[float32])
		return matrix.Reshape[float32](whole.Slice(0, count, 0, rows*cols), count*rows, cols), mat.NewDense(count*rows, cols, part.RawMatrix().Data)
	}
	return sampled(t, dev, rng, turn/4, count*rows, cols)
}

// testStacks multiplies stacks of all layouts, with an element-wise tail, into results of all layouts.
func testStacks(t *testing.T, dev *gpu.Device, turns int) {
	rng := newRand(62)
	for at, s := range stackSizes {
		for turn := range turns {
			turn += at
			count, m, k, n := s[0], s[1], s[2], s[3]
			what := fmt.Sprintf("%d of %dx%dx%d, %d", count, m, k, n, turn)
			a, left := stackOf(t, dev, rng, turn, count, m, k)
			b, right := stackOf(t, dev, rng, turn/4+turn, count, k, n)
			row, bias := sampled(t, dev, rng, 0, 1, n)
			before := dev.Stats().Dispatches
			e := matrix.Add(matrix.MulStack(a, b, count), row)
			want := mat.NewDense(count*m, n, nil)
			for i := range count {
				part := want.Slice(i*m, (i+1)*m, 0, n).(*mat.Dense)
				part.Mul(left.Slice(i*m, (i+1)*m, 0, k), right.Slice(i*k, (i+1)*k, 0, n))
			}
			want.Apply(func(_, j int, v float64) float64 { return v + bias.At(0, j) }, want)
			got := wide(t, dev, what, e)
			if used := dev.Stats().Dispatches - before; used > 4 { // parts of transposes and columns are copied, and a kernel of its own may do what is behind a product
				t.Errorf("%s: %d kernels", what, used)
			}
			bound := 64 * float64(k*k+4)
			residual(t, what, got, want, 1, bound)
			byCols := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, n, count*m))
			check(t, byCols.T().Assign(e))
			residual(t, what+" by columns", wide(t, dev, what, byCols.Expr()), want.T(), 1, bound)
		}
	}
}

func TestMulStack(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		turns := 8
		switch {
		case few:
			turns = 1
		case sparing(dev):
			turns = 2
		}
		testStacks(t, dev, turns)
		none := func(rows, cols int) *dense { return must[*dense](t)(matrix.New[float32](dev, rows, cols)) }
		same(t, "nothing to add up", readAll[float32](t, matrix.MulStack[float32](none(6, 0), none(0, 4), 2).On(dev)), make([]float32, 24))
		same(t, "no rows", readAll[float32](t, matrix.MulStack[float32](none(0, 3), none(6, 4), 2).On(dev)), nil)
		same(t, "no stack", readAll[float32](t, matrix.MulStack[float32](none(0, 3), none(0, 4), 0).On(dev)), nil)
		same(t, "no transposes", readAll[float32](t, matrix.TransposeStack[float32](none(0, 3), 0).On(dev)), nil)
		for _, e := range []*matrix.Expr[float32]{
			matrix.MulStack[float32](none(4, 3), none(6, 2), 3), matrix.MulStack[float32](none(4, 3), none(5, 2), 2), matrix.MulStack[float32](none(4, 3), none(6, 2), 0),
			matrix.TransposeStack[float32](none(4, 3), 3), matrix.TransposeStack[float32](none(4, 3), 0), matrix.SymmetricLower[float32](none(4, 3)),
		} {
			isError(t, e.Err(), buffer.ErrShape)
		}
		isError(t, matrix.MulStack[float32](none(4, 3), none(6, 2), -2).Err(), buffer.ErrSize)
		a := must[*dense](t)(matrix.FromRows(dev, [][]float32{{1, 2}, {3, 4}, {5, 6}, {7, 8}}))
		check(t, a.Assign(matrix.MulStack[float32](a, matrix.TransposeStack[float32](a, 2), 2))) // into its operand
		same(t, "in place", readAll[float32](t, a), []float32{5, 11, 11, 25, 61, 83, 83, 113})
	})
}

// TestSymmetric multiplies by triangles in the place of matrices; the elements of the other triangle are not used.
func TestSymmetric(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(63)
		for turn, n := range []int{1, 3, 17, 40} {
			a, ref := sampled(t, dev, rng, turn, n, n)
			b, right := sampled(t, dev, rng, turn+1, n, 5)
			nan := float32(math.NaN())
			lower, upper := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
			triangle := mat.NewTriDense(n, mat.Lower, nil)
			for i := range n {
				for j := range i + 1 {
					lower.SetSym(i, j, ref.At(i, j))
					upper.SetSym(i, j, ref.At(j, i))
					triangle.SetTri(i, j, ref.At(i, j))
				}
			}
			above := matrix.Where(matrix.Triu(matrix.Fill[float32](n, n, 1), 1), matrix.Fill(n, n, nan), a)
			below := matrix.Where(matrix.Tril(matrix.Fill[float32](n, n, 1), -1), matrix.Fill(n, n, nan), a)
			bound := 64 * float64(n*n)
			residual(t, "lower", wide(t, dev, "lower", matrix.Mul(matrix.SymmetricLower(above), b)), product(lower, right), 1, bound)
			residual(t, "upper", wide(t, dev, "upper", matrix.Mul(matrix.SymmetricUpper(below), b)), product(upper, right), 1, bound)
			residual(t, "triangle", wide(t, dev, "triangle", matrix.Mul(matrix.Tril(above, 0), b)), product(triangle, right), 1, bound)
			residual(t, "diagonal", wide(t, dev, "diagonal", matrix.MulElem(matrix.Transpose(matrix.Diagonal(a, 0)), b)), product(diagonal(ref), right), 1, bound)
		}
	})
}

func diagonal(a *mat.Dense) mat.Matrix {
	n, _ := a.Dims()
	d := mat.NewDiagDense(n, nil)
	for i := range n {
		d.SetDiag(i, a.At(i, i))
	}
	return d
}
