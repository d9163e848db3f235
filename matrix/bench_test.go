// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// benchDevice opens the best native device, or the one SUBLET_DRIVER and SUBLET_ADAPTER name.
func benchDevice(b *testing.B) *gpu.Device {
	b.Helper()
	dev, err := gpu.Open(b.Context())
	check(b, err)
	b.Cleanup(func() { check(b, dev.Close()) })
	return dev
}

func resident(b *testing.B, dev *gpu.Device, rows, cols int) *dense {
	b.Helper()
	m := must[*dense](b)(matrix.FromSlice(dev, rows, cols, random(newRand(1), rows*cols)))
	b.Cleanup(func() { check(b, m.Close()) })
	return m
}

// run times an operation with its operands and its result on the device.
func run(b *testing.B, dev *gpu.Device, op func() error) {
	check(b, op())
	check(b, dev.Sync(b.Context()))
	for b.Loop() {
		check(b, op())
		check(b, dev.Sync(b.Context()))
	}
}

func BenchmarkMul(b *testing.B) {
	for _, s := range [][3]int{{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {4096, 64, 64}, {511, 513, 517}, {1, 2048, 2048}, {2048, 2048, 1}} {
		b.Run(name(s), func(b *testing.B) {
			dev := benchDevice(b)
			x, y, c := resident(b, dev, s[0], s[1]), resident(b, dev, s[1], s[2]), resident(b, dev, s[0], s[2])
			run(b, dev, func() error { return c.Mul(x, y) })
			b.ReportMetric(2*float64(s[0])*float64(s[1])*float64(s[2])*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// BenchmarkChain has products in the order in which they are written, and in the cheapest one.
func BenchmarkChain(b *testing.B) {
	for what, written := range map[string]bool{"written": true, "rewritten": false} {
		b.Run("512 512 1/"+what, func(b *testing.B) {
			dev := benchDevice(b)
			matrix.ComputeAsWritten(dev, written)
			x, y, z, c := resident(b, dev, 512, 512), resident(b, dev, 512, 512), resident(b, dev, 512, 1), resident(b, dev, 512, 1)
			run(b, dev, func() error { return c.Assign(matrix.Mul(x, y).Mul(z)) })
		})
	}
}

// BenchmarkNarrow multiplies whole numbers of 8 bits in 32 bits, as it is written, and by way of float32.
func BenchmarkNarrow(b *testing.B) {
	for what, written := range map[string]bool{"int32": true, "float32": false} {
		for _, n := range []int{160, 256, 512} {
			b.Run(fmt.Sprint(n, "/", what), func(b *testing.B) {
				dev := benchDevice(b)
				matrix.ComputeAsWritten(dev, written)
				x := must[*matrix.Dense[int8]](b)(matrix.FromSlice(dev, n, n, slices.Repeat([]int8{-3, 5, 127, -128}, n*n/4)))
				c := must[*matrix.Dense[int8]](b)(matrix.New[int8](dev, n, n))
				run(b, dev, func() error { return c.Mul(x, x) })
			})
		}
	}
}

func BenchmarkElementwise(b *testing.B) {
	const n = 1 << 20
	for what, f := range map[string]func(x, y, z *dense) *expr{
		"fma": func(x, y, z *dense) *expr { return matrix.MulElem(x, y).Add(z) },
		"chain": func(x, y, z *dense) *expr {
			return matrix.MulElem(x, y).Add(x).Abs().Sqrt().Neg().Exp().Add(y).MulElem(x).Sub(y).MulElem(x)
		},
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			x, y, z, c := resident(b, dev, 1, n), resident(b, dev, 1, n), resident(b, dev, 1, n), resident(b, dev, 1, n)
			b.SetBytes(16 * n)
			run(b, dev, func() error { return c.Assign(f(x, y, z)) })
		})
	}
}

// BenchmarkFunctions has functions of numbers, which cost more than the memory does where a shader is software.
func BenchmarkFunctions(b *testing.B) {
	const n = 1 << 20
	unary := func(f func(arg) *expr) func(x, y *dense) *expr { return func(x, _ *dense) *expr { return f(x) } }
	for what, f := range map[string]func(x, y *dense) *expr{
		"exp": unary(matrix.Exp[float32]), "log1p": unary(matrix.Log1p[float32]), "sin": unary(matrix.Sin[float32]), "tan": unary(matrix.Tan[float32]),
		"atan": unary(matrix.Atan[float32]), "asinh": unary(matrix.Asinh[float32]), "cbrt": unary(matrix.Cbrt[float32]),
		"erf": unary(matrix.Erf[float32]), "gelu": unary(matrix.Gelu[float32]), "lgamma": unary(matrix.Lgamma[float32]),
		"digamma": unary(matrix.Digamma[float32]), "clipped log": unary(matrix.ClippedLog[float32]),
		"sin far": func(x, _ *dense) *expr { return matrix.Scale(1e6, x).Sin() },
		"pow":     func(x, y *dense) *expr { return matrix.Pow(x, y) }, "mod": func(x, y *dense) *expr { return matrix.Mod(x, y) },
		"floor div": func(x, y *dense) *expr { return matrix.FloorDiv(x, y) }, "hypot": func(x, y *dense) *expr { return matrix.Hypot(x, y) },
		"atan2":     func(x, y *dense) *expr { return matrix.Atan2(x, y) },
		"sub":       func(x, y *dense) *expr { return matrix.Sub(x, y) },
		"tanh grad": func(x, y *dense) *expr { return matrix.TanhGrad(x, y) },
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			x, y, c := resident(b, dev, 1, n), resident(b, dev, 1, n), resident(b, dev, 1, n)
			b.SetBytes(8 * n)
			run(b, dev, func() error { return c.Assign(f(x, y)) })
		})
	}
}

func BenchmarkFold(b *testing.B) {
	for what, f := range map[string]func(arg) *expr{
		"sum": matrix.Sum[float32], "rows": matrix.SumRows[float32], "columns": matrix.SumCols[float32],
		"variance": withDdof(matrix.VarCols[float32]), "deviation of all": withDdof(matrix.Std[float32]), "norms": matrix.Norm2Rows[float32],
		"logsumexp": matrix.LogSumExpRows[float32], "argmax": floats(matrix.ArgMax[float32]), "argmax of columns": floats(matrix.ArgMaxCols[float32]),
		"hardmax": matrix.Hardmax[float32], "sort": matrix.SortRows[float32], "sort columns": matrix.SortCols[float32],
		"top 10": func(a arg) *expr { return matrix.TopKRows(a, 10) }, "softmax of columns": matrix.SoftmaxCols[float32],
		"softmax of all": matrix.SoftmaxAll[float32],
		"softmax":        matrix.Softmax[float32], "transpose": matrix.Transpose[float32],
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			x, c := resident(b, dev, 1024, 1024), &dense{}
			b.SetBytes(4 << 20)
			run(b, dev, func() error { return c.Assign(f(x)) })
			check(b, c.Close())
		})
	}
}

// BenchmarkRandom makes numbers, which nothing is read for.
func BenchmarkRandom(b *testing.B) {
	const n = 1 << 20
	for what, e := range map[string]*expr{
		"uniform": matrix.Uniform[float32](1, n, 0, 1, 1, 0), "normal": matrix.Normal[float32](1, n, 0, 1, 1, 0),
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			c := resident(b, dev, 1, n)
			b.SetBytes(4 * n)
			run(b, dev, func() error { return c.Assign(e) })
		})
	}
}

func BenchmarkTransfer(b *testing.B) {
	const n = 1 << 20
	dev := benchDevice(b)
	host := random(newRand(1), n)
	m := resident(b, dev, 1, n)
	b.Run("upload", func(b *testing.B) {
		b.SetBytes(4 * n)
		run(b, dev, func() error { return m.SetSlice(host) })
	})
	b.Run("download", func(b *testing.B) {
		b.SetBytes(4 * n)
		run(b, dev, func() error { return m.ReadTo(b.Context(), host) })
	})
}

// BenchmarkRecord is the cost of one small operation on the caller's goroutine, submissions included, and with
// execution.
func BenchmarkRecord(b *testing.B) {
	dev := benchDevice(b)
	x, c := resident(b, dev, 64, 64), resident(b, dev, 64, 64)
	b.Run("issue", func(b *testing.B) {
		n := 0
		for b.Loop() {
			check(b, c.Add(c, x))
			if n++; n%200 == 0 {
				b.StopTimer()
				check(b, dev.Sync(b.Context()))
				b.StartTimer()
			}
		}
	})
	b.Run("execute", func(b *testing.B) {
		for b.Loop() {
			check(b, c.Add(c, x))
		}
		check(b, dev.Sync(b.Context()))
	})
}

func BenchmarkWrap(b *testing.B) {
	dev := benchDevice(b)
	host := make([]float32, 4096)
	b.ReportAllocs()
	for b.Loop() {
		m, err := matrix.Wrap(dev, 64, 64, host)
		check(b, err)
		check(b, m.Close())
	}
}

// BenchmarkSparse multiplies a sparse matrix with one element in a hundred by 64 columns, and makes it dense.
func BenchmarkSparse(b *testing.B) {
	const n, cols, every = 4096, 64, 100
	var values []float32
	var indices []int32
	pointers := make([]int32, 1, n+1)
	for i := range n {
		for j := i % every; j < n; j += every {
			values, indices = append(values, float32(i-j)), append(indices, int32(j))
		}
		pointers = append(pointers, int32(len(values)))
	}
	for _, format := range []matrix.Format{matrix.CSR, matrix.CSC} { // the same pattern read by rows and by columns
		dev := benchDevice(b)
		s := must[*matrix.Sparse[float32]](b)(matrix.NewSparse(dev, format, n, n, values, indices, pointers))
		x, c, d := resident(b, dev, n, cols), resident(b, dev, n, cols), resident(b, dev, n, n)
		b.Run("times dense "+format.String(), func(b *testing.B) {
			run(b, dev, func() error { return c.Mul(s, x) })
			b.ReportMetric(2*float64(len(values))*cols*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
		b.Run("to dense "+format.String(), func(b *testing.B) {
			b.SetBytes(4 * n * n)
			run(b, dev, func() error { return d.Assign(s) })
		})
		check(b, s.Close())
	}
}
