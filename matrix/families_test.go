// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/matrix"
)

// BenchmarkShapings reads and writes elements in other places. Those of 1024x1024 move 8 MiB.
func BenchmarkShapings(b *testing.B) {
	const n = 1024
	for what, f := range map[string]func(a, index arg) *expr{
		"transpose": func(a, _ arg) *expr { return matrix.Transpose(a) },
		"stack":     func(a, _ arg) *expr { return matrix.VStack(a, a) },
		"roll":      func(a, _ arg) *expr { return matrix.Roll(a, 3, 5) },
		"flip":      func(a, _ arg) *expr { return matrix.FlipCols(a) },
		"reshape":   func(a, _ arg) *expr { return matrix.Reshape(a, n/2, 2*n) },
		"pad":       func(a, _ arg) *expr { return matrix.Pad(a, 1, 1, 1, 1, 0) },
		"lower":     func(a, _ arg) *expr { return matrix.Tril(a, 0) },
		"tile":      func(a, _ arg) *expr { return matrix.Tile(matrix.Slice(a, 0, n/2, 0, n/2), 2, 2) },
		"take rows": func(a, index arg) *expr { return matrix.TakeRows(a, matrix.Convert[int32](index)) },
		"add to rows": func(a, index arg) *expr {
			return matrix.AddToRows(a, matrix.Convert[int32](index), a)
		},
		"eye": func(_, _ arg) *expr { return matrix.Eye[float32](n, n, 0) },
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			x, c := resident(b, dev, n, n), &dense{}
			rows := make([]float32, n)
			for i := range rows {
				rows[i] = float32(i * 7 % n)
			}
			index := must[*dense](b)(matrix.FromSlice(dev, n, 1, rows))
			b.SetBytes(8 << 20)
			run(b, dev, func() error { return c.Assign(f(x, index).On(dev)) })
			check(b, c.Close())
			check(b, index.Close())
		})
	}
}

// BenchmarkScans goes along rows.
func BenchmarkScans(b *testing.B) {
	for what, f := range map[string]func(a arg) *expr{
		"sums": matrix.CumSumRows[float32], "sums of columns": matrix.CumSumCols[float32], "products": matrix.CumProdRows[float32],
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			x, c := resident(b, dev, 1024, 1024), resident(b, dev, 1024, 1024)
			b.SetBytes(8 << 20)
			run(b, dev, func() error { return c.Assign(f(x)) })
		})
	}
}

// BenchmarkProducts has the products that are not one of two matrices.
func BenchmarkProducts(b *testing.B) {
	for what, c := range map[string]struct {
		rows, cols int
		make       func(a arg) *expr
		flops      float64
	}{
		"1000 of 32x32":  {32000, 32, func(a arg) *expr { return matrix.MulStack(a, a, 1000) }, 2 * 1000 * 32 * 32 * 32},
		"outer":          {1, 2048, func(a arg) *expr { return matrix.Outer(a, a) }, 2048 * 2048},
		"kronecker":      {32, 32, func(a arg) *expr { return matrix.Kron(a, a) }, 1024 * 1024},
		"dots of rows":   {1024, 1024, func(a arg) *expr { return matrix.DotRows(a, a) }, 2 * 1024 * 1024},
		"with a tail":    {512, 512, func(a arg) *expr { return matrix.Tanh(matrix.Add(matrix.Mul(a, a), a)) }, 2 * 512 * 512 * 512},
		"of functions":   {512, 512, func(a arg) *expr { return matrix.Mul(matrix.Exp(a), a) }, 2 * 512 * 512 * 512},
		"gram":           {1024, 256, func(a arg) *expr { return matrix.Mul(matrix.Transpose(a), a) }, 2 * 1024 * 256 * 256},
		"power of eight": {256, 256, func(a arg) *expr { return matrix.MatrixPower(a, 8) }, 3 * 2 * 256 * 256 * 256},
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			x, d := resident(b, dev, c.rows, c.cols), &dense{}
			run(b, dev, func() error { return d.Assign(c.make(x)) })
			b.ReportMetric(c.flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			check(b, d.Close())
		})
	}
}

// BenchmarkPacked computes with elements of fewer than 32 bits.
func BenchmarkPacked(b *testing.B) {
	const n = 1 << 20
	b.Run("sum of int8", func(b *testing.B) {
		packedBench(b, n, 1, func(a matrix.Operand[int8]) *matrix.Expr[int32] { return matrix.Sum(matrix.Convert[int32](a)) })
	})
	b.Run("twice int8", func(b *testing.B) {
		packedBench(b, n, 2, func(a matrix.Operand[int8]) *matrix.Expr[int8] { return matrix.Add(a, a) })
	})
	b.Run("int8 to float32", func(b *testing.B) {
		packedBench(b, n, 5, func(a matrix.Operand[int8]) *expr { return matrix.Convert[float32](a) })
	})
}

func packedBench[T matrix.Elem](b *testing.B, n int, bytes int64, make func(a matrix.Operand[int8]) *matrix.Expr[T]) {
	dev := benchDevice(b)
	values := *new([]int8)
	for i := range n {
		values = append(values, int8(i))
	}
	x := must[*matrix.Dense[int8]](b)(matrix.FromSlice(dev, 1, n, values))
	c := &matrix.Dense[T]{}
	b.SetBytes(bytes * int64(n))
	run(b, dev, func() error { return c.Assign(make(x)) })
	check(b, x.Close())
	check(b, c.Close())
}

// BenchmarkComplex computes with complex numbers: products of 512x512, elements of 1024x1024.
func BenchmarkComplex(b *testing.B) {
	for what, f := range map[string]func(a, z *matrix.Expr[complex64]) *matrix.Expr[complex64]{
		"product":     func(a, _ *matrix.Expr[complex64]) *matrix.Expr[complex64] { return a.Mul(a) },
		"solve":       func(a, _ *matrix.Expr[complex64]) *matrix.Expr[complex64] { return a.Solve(a) },
		"multiply":    func(_, z *matrix.Expr[complex64]) *matrix.Expr[complex64] { return z.MulElem(z) },
		"exponential": func(_, z *matrix.Expr[complex64]) *matrix.Expr[complex64] { return z.Exp() },
		"sum":         func(_, z *matrix.Expr[complex64]) *matrix.Expr[complex64] { return z.Sum() },
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			a, z, c := &matrix.Dense[complex64]{}, &matrix.Dense[complex64]{}, &matrix.Dense[complex64]{}
			check(b, a.Assign(matrix.Complex[float32](resident(b, dev, 512, 512), resident(b, dev, 512, 512).T())))
			check(b, z.Assign(matrix.Complex[float32](resident(b, dev, 1024, 1024), resident(b, dev, 1024, 1024).T())))
			run(b, dev, func() error { return c.Assign(f(a.Expr(), z.Expr())) })
			for _, m := range []*matrix.Dense[complex64]{a, z, c} {
				check(b, m.Close())
			}
		})
	}
}

// BenchmarkSparseExpressions has 40 entries in each of 4096 rows. Sums and products of sparse matrices find on the host where the entries
// of the result are; "values" has that done before.
func BenchmarkSparseExpressions(b *testing.B) {
	const n, each = 4096, 40
	var indices []int32
	pointers := make([]int32, 1, n+1)
	for i := range n {
		for q := range each {
			indices = append(indices, int32(q*(n/each)+(i*q)%(n/each)))
		}
		pointers = append(pointers, int32(len(indices)))
	}
	dev := benchDevice(b)
	s := must[*sparse](b)(matrix.NewSparse(dev, matrix.CSR, n, n, random(newRand(2), len(indices)), indices, pointers))
	x, wide := resident(b, dev, n, n), resident(b, dev, n, 64)
	defer func() { check(b, s.Close()) }()
	for what, f := range map[string]func() *expr{
		"sum": func() *expr { return matrix.Add(s, matrix.Transpose(s)) }, "with dense": func() *expr { return matrix.MulElem(s, x) },
		"product": func() *expr { return matrix.Mul(s, s) }, "functions": func() *expr { return matrix.Tanh(matrix.Scale(2, s)) },
		"sampled product": func() *expr { return matrix.MulElem(s, matrix.Mul(wide, matrix.Transpose(wide))) },
	} {
		b.Run(what, func(b *testing.B) {
			run(b, dev, func() error {
				r, err := f().Sparse()
				if err != nil {
					return err
				}
				return r.Close()
			})
		})
	}
	for what, e := range map[string]*expr{
		"values of a product": matrix.Sum(matrix.Mul(s, s)), "sums of columns": matrix.SumCols(s), "turned times dense": matrix.Mul(matrix.Transpose(s), wide),
		"dense times": matrix.Mul(matrix.Transpose(wide), s),
	} {
		b.Run(what, func(b *testing.B) {
			c := &dense{}
			run(b, dev, func() error { return c.Assign(e) })
			check(b, c.Close())
		})
	}
}
