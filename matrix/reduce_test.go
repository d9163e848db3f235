// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

type fold struct {
	name            string
	all, rows, cols func(arg) *expr
	start           float64
	step            func(acc, x float64) float64
}

var folds = []fold{
	{"sum", matrix.Sum[float32], matrix.SumRows[float32], matrix.SumCols[float32], 0, func(a, x float64) float64 { return a + x }},
	{"max", matrix.MaxAll[float32], matrix.MaxRows[float32], matrix.MaxCols[float32], math.Inf(-1), math.Max},
	{"min", matrix.MinAll[float32], matrix.MinRows[float32], matrix.MinCols[float32], math.Inf(1), math.Min},
	{"prod", matrix.Prod[float32], matrix.ProdRows[float32], matrix.ProdCols[float32], 1, func(a, x float64) float64 { return a * x }},
}

// apply folds rows, columns and everything in float64; tol allows for rounding in any order of the additions.
func (f fold) apply(x []float32, rows, cols int) (all, byRow, byCol []float64, tol float64) {
	all, byRow, byCol = []float64{f.start}, make([]float64, rows), make([]float64, cols)
	sum := 0.0
	for i := range byRow {
		byRow[i] = f.start
	}
	for j := range byCol {
		byCol[j] = f.start
	}
	for i := range rows {
		for j := range cols {
			v := float64(x[i*cols+j])
			sum += math.Abs(v)
			all[0], byRow[i], byCol[j] = f.step(all[0], v), f.step(byRow[i], v), f.step(byCol[j], v)
		}
	}
	return all, byRow, byCol, sum * 0x1p-20
}

// folded fails unless every fold of a matrix of the elements is right.
func folded(t *testing.T, what string, a *dense, x []float32) {
	t.Helper()
	rows, cols := a.Dims()
	for _, f := range folds {
		all, byRow, byCol, tol := f.apply(x, rows, cols)
		close64(t, what+" "+f.name, must[[]float32](t)(f.all(a).Read(background)), all, tol)
		close64(t, what+" "+f.name+" of rows", must[[]float32](t)(f.rows(a).Read(background)), byRow, tol)
		close64(t, what+" "+f.name+" of columns", must[[]float32](t)(f.cols(a).Read(background)), byCol, tol)
	}
}

func close64(t testing.TB, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		g := float64(got[i])
		if g != w && !(math.Abs(g-w) <= tol) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, g, w)
		}
	}
}

func TestReduce(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(7)
		for i, d := range [][2]int{{17, 33}, {1, 1}, {1, 5}, {5, 1}, {3, 4}, {4, 3}, {64, 64}, {129, 257}, {1, 4099}, {4099, 1}, {1000, 3}, {3, 1000}, {0, 4}, {4, 0}, {0, 0}} {
			rows, cols := d[0], d[1]
			x := random(rng, rows*cols)
			for k, form := range forms {
				if i > 0 && sparing(dev) && k%3 != i%3 { // all layouts of the first size
					continue
				}
				a, _ := wrapped(t, dev, form, rows, cols, x)
				folded(t, name(d, form.name), a, x)
				check(t, a.Close())
			}
		}
	})
}

func TestReduceHeadAndTail(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(8)
		x, y := random(rng, 30*41), random(rng, 30*41)
		a := must[*dense](t)(matrix.FromSlice(dev, 30, 41, x))
		b := must[*dense](t)(matrix.FromSlice(dev, 41, 30, transposed(y, 30, 41)))
		dot := 0.0
		for i := range x {
			dot += float64(x[i]) * float64(y[i])
		}
		got := must[float32](t)(matrix.Sum(matrix.MulElem(a, b.T())).Value(background))
		close64(t, "dot", []float32{got}, []float64{dot}, 1e-3)
		norm := 0.0
		for _, v := range x {
			norm += float64(v) * float64(v)
		}
		n := must[float32](t)(matrix.Sum(matrix.Square(a)).Sqrt().Value(background))
		close64(t, "norm", []float32{n}, []float64{math.Sqrt(norm)}, 1e-4)
		mean := must[float32](t)(matrix.Mean(a).Value(background))
		s := 0.0
		for _, v := range x {
			s += float64(v)
		}
		close64(t, "mean", []float32{mean}, []float64{s / float64(len(x))}, 1e-5)
		vars := map[string]arg{"A": a}
		close64(t, "means of means", must[[]float32](t)(matrix.MeanRows(a).Mean().Read(background)), []float64{s / float64(len(x))}, 1e-5)
		close64(t, "means of columns", must[[]float32](t)(matrix.MeanCols(a).MeanRows().Read(background)), []float64{s / float64(len(x))}, 1e-5)
		close64(t, "means in text", must[[]float32](t)(matrix.Eval("meancols(meanrows(A))", vars).Read(background)), []float64{s / float64(len(x))}, 1e-5)
		two := must[*dense](t)(matrix.Fill(3, 5, float32(2)).On(dev).Eval())
		same(t, "product", []float32{must[float32](t)(matrix.Prod(two).Value(background))}, []float32{32768})
	})
}

func TestLargeSum(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		n := 3<<20 + 7
		x := make([]float32, n)
		for i := range x {
			x[i] = 0.1
		}
		a := must[*dense](t)(matrix.Wrap(dev, 1, n, x))
		want := float64(float32(0.1)) * float64(n)
		for what, m := range map[string]*dense{"row": a, "column": a.T(), "long rows": a.Slice(0, 1, 0, n-7).Reshape(2, (n-7)/2)} {
			r, c := m.Dims()
			w := want * float64(r*c) / float64(n)
			got := must[float32](t)(matrix.Sum(m).Value(background))
			if math.Abs(float64(got)-w) > w*1e-5 {
				t.Errorf("%s: %v, want %v", what, got, w)
			}
		}
		rows := must[[]float32](t)(matrix.SumRows(a).Read(background))
		close64(t, "rows", rows, []float64{want}, want*1e-5)
		cols := must[[]float32](t)(matrix.SumCols(a.T()).Read(background))
		close64(t, "columns", cols, []float64{want}, want*1e-5)
	})
}

func TestReduceIntegersAndNaN(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 2, 3, []int32{1, -2, 3, math.MaxInt32, 5, -6}))
		same(t, "sum wraps", must[[]int32](t)(matrix.Sum(a).Read(background)), []int32{math.MinInt32})
		same(t, "max", must[[]int32](t)(matrix.MaxRows(a).Read(background)), []int32{3, math.MaxInt32})
		same(t, "min", must[[]int32](t)(matrix.MinCols(a).Read(background)), []int32{1, -2, -6})
		e := must[*matrix.Dense[int32]](t)(matrix.New[int32](dev, 0, 2))
		same(t, "max of nothing", must[[]int32](t)(matrix.MaxCols(e).Read(background)), []int32{math.MinInt32, math.MinInt32})
		x := make([]float32, 1000)
		x[777] = float32(math.NaN())
		n := must[*dense](t)(matrix.FromSlice(dev, 10, 100, x))
		if v := must[float32](t)(matrix.MaxAll(n).Value(background)); v == v {
			t.Errorf("max with NaN is %v", v)
		}
		h := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, 3, 3, []matrix.Half{
			matrix.ToHalf(1), matrix.ToHalf(2), matrix.ToHalf(3), matrix.ToHalf(4), matrix.ToHalf(5), matrix.ToHalf(6), matrix.ToHalf(7), matrix.ToHalf(8), matrix.ToHalf(9),
		}))
		hs := must[[]matrix.Half](t)(matrix.SumRows(h).Read(background))
		for i, w := range []float32{6, 15, 24} {
			if hs[i].Float32() != w {
				t.Errorf("half row %d: %v, want %v", i, hs[i].Float32(), w)
			}
		}
	})
}

// softmaxes are the softmax of rows and its logarithm in float64.
func softmaxes(x []float32, rows, cols int) (want, logs []float64) {
	want, logs = make([]float64, len(x)), make([]float64, len(x))
	for i := range rows {
		m, s := math.Inf(-1), 0.0
		for j := range cols {
			m = math.Max(m, float64(x[i*cols+j]))
		}
		for j := range cols {
			s += math.Exp(float64(x[i*cols+j]) - m)
		}
		for j := range cols {
			want[i*cols+j] = math.Exp(float64(x[i*cols+j])-m) / s
			logs[i*cols+j] = float64(x[i*cols+j]) - m - math.Log(s)
		}
	}
	return want, logs
}

// TestSoftmaxOfColumns has as many elements as are worth kernels of their own where neighbours lie apart, and such that make results NaN.
func TestSoftmaxOfColumns(t *testing.T) {
	const rows, cols = 200, 100
	inf := float32(math.Inf(1))
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := random(newRand(41), rows*cols)
		for i := range rows {
			row := x[i*cols:]
			row[3], row[7] = -inf, -inf
			row[11] *= 1e30
			row[13] = -1e30
		}
		x[5*cols+3], x[6*cols+19], x[199*cols+20], x[20*cols+21], x[21*cols+22] = 1, inf, float32(math.NaN()), -inf, 3e38
		a := must[*dense](t)(matrix.FromSlice(dev, rows, cols, x))
		turned := must[*dense](t)(matrix.Transpose(a).Eval())
		for what, f := range map[string][2]func(arg) *expr{
			"softmax": {matrix.SoftmaxCols[float32], matrix.Softmax[float32]}, "log": {matrix.LogSoftmaxCols[float32], matrix.LogSoftmax[float32]},
		} {
			want := float64s(must[[]float32](t)(f[1](turned).T().Read(background)))
			alike(t, what, must[[]float32](t)(f[0](a).Read(background)), want)
			b := must[*dense](t)(matrix.FromSlice(dev, rows, cols, x))
			check(t, b.Assign(f[0](b)))
			alike(t, what+" in place", must[[]float32](t)(b.Read(background)), want)
			half := must[*dense](t)(matrix.FromSlice(dev, rows, cols, x))
			part := half.Slice(0, rows/2, 0, cols)
			check(t, part.Assign(f[0](matrix.Scale(1, half)).Slice(rows/2, rows, 0, cols)))
			alike(t, what+" into a part of the operand", must[[]float32](t)(part.Read(background)), want[rows/2*cols:])
			for _, m := range []*dense{b, part, half} {
				check(t, m.Close())
			}
		}
		check(t, a.Close())
		check(t, turned.Close())
	})
}

func TestSoftmax(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(9)
		for i, d := range [][2]int{{33, 65}, {1, 1}, {3, 5}, {4, 8}, {2, 1023}, {200, 3}, {0, 3}} {
			rows, cols := d[0], d[1]
			x := random(rng, rows*cols)
			for i := range x {
				x[i] *= 50
			}
			want, logs := softmaxes(x, rows, cols)
			for k, form := range forms {
				if i > 0 && sparing(dev) && k%3 != i%3 { // all layouts of the first size
					continue
				}
				a, _ := wrapped(t, dev, form, rows, cols, x)
				c, mem := wrapped(t, dev, forms[1], rows, cols, make([]float32, rows*cols))
				check(t, c.Assign(matrix.Softmax(a)))
				check(t, c.Sync(background))
				close64(t, name(d, form.name), must[[]float32](t)(c.Read(background)), want, 2e-6)
				guarded(t, name(d, form.name), c, mem)
				close64(t, name(d, form.name, "log"), must[[]float32](t)(matrix.LogSoftmax(a).Read(background)), logs, 3e-5)
				check(t, a.Assign(matrix.Softmax(a)))
				close64(t, name(d, form.name, "in place"), must[[]float32](t)(a.Read(background)), want, 2e-6)
				check(t, a.Close())
				check(t, c.Close())
			}
		}
	})
}
