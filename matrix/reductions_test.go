// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// reduction is one with its three forms and its reference of the elements of one result.
type reduction struct {
	name            string
	all, rows, cols func(arg) *expr
	of              func(x []float64) float64
}

func withDdof(f func(matrix.Operand[float32], ...int) *expr, ddof ...int) func(arg) *expr {
	return func(a arg) *expr { return f(a, ddof...) }
}

func withPower(f func(matrix.Operand[float32], float64) *expr, p float64) func(arg) *expr {
	return func(a arg) *expr { return f(a, p) }
}

// floats converts results of int32.
func floats(f func(matrix.Operand[float32]) *matrix.Expr[int32]) func(arg) *expr {
	return func(a arg) *expr { return matrix.Convert[float32](f(a)) }
}

func fold64(x []float64, start float64, step func(acc, x float64) float64) float64 {
	for _, v := range x {
		start = step(start, v)
	}
	return start
}

func variance(x []float64, ddof int) float64 {
	mean := fold64(x, 0, func(a, v float64) float64 { return a + v }) / float64(len(x))
	squares := fold64(x, 0, func(a, v float64) float64 { return a + (v-mean)*(v-mean) })
	return squares / max(float64(len(x)-ddof), 0)
}

func norm(x []float64, p float64) float64 {
	return math.Pow(fold64(x, 0, func(a, v float64) float64 { return a + math.Pow(math.Abs(v), p) }), 1/p)
}

func logSumExp(x []float64) float64 {
	top := fold64(x, math.Inf(-1), func(a, v float64) float64 { return max(a, v) })
	if math.IsInf(top, 0) || math.IsNaN(top) {
		return top
	}
	return top + math.Log(fold64(x, 0, func(a, v float64) float64 { return a + math.Exp(v-top) }))
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func nonzeros(x []float64) float64 {
	return fold64(x, 0, func(a, v float64) float64 { return a + one(v != 0) })
}

// place is the index of the first element that nothing is better than; NaN is better than all.
func place(x []float64, better func(a, b float64) bool) float64 {
	at := 0
	for i, v := range x {
		if !math.IsNaN(x[at]) && (math.IsNaN(v) || better(v, x[at])) {
			at = i
		}
	}
	return float64(at)
}

var reductions = []reduction{
	{"mean", matrix.Mean[float32], matrix.MeanRows[float32], matrix.MeanCols[float32], func(x []float64) float64 {
		return fold64(x, 0, func(a, v float64) float64 { return a + v }) / float64(len(x))
	}},
	{"variance", withDdof(matrix.Var[float32]), withDdof(matrix.VarRows[float32]), withDdof(matrix.VarCols[float32]), func(x []float64) float64 { return variance(x, 0) }},
	{"sample variance", withDdof(matrix.Var[float32], 1), withDdof(matrix.VarRows[float32], 1), withDdof(matrix.VarCols[float32], 1), func(x []float64) float64 { return variance(x, 1) }},
	{"deviation", withDdof(matrix.Std[float32]), withDdof(matrix.StdRows[float32]), withDdof(matrix.StdCols[float32]), func(x []float64) float64 { return math.Sqrt(variance(x, 0)) }},
	{"norm 1", matrix.Norm1[float32], matrix.Norm1Rows[float32], matrix.Norm1Cols[float32], func(x []float64) float64 { return norm(x, 1) }},
	{"norm 2", matrix.Norm2[float32], matrix.Norm2Rows[float32], matrix.Norm2Cols[float32], func(x []float64) float64 { return norm(x, 2) }},
	{"largest", matrix.NormInf[float32], matrix.NormInfRows[float32], matrix.NormInfCols[float32], func(x []float64) float64 {
		return fold64(x, 0, func(a, v float64) float64 { return max(a, math.Abs(v)) })
	}},
	{"norm 3", withPower(matrix.NormP[float32], 3), withPower(matrix.NormPRows[float32], 3), withPower(matrix.NormPCols[float32], 3), func(x []float64) float64 { return norm(x, 3) }},
	{"log of exponentials", matrix.LogSumExp[float32], matrix.LogSumExpRows[float32], matrix.LogSumExpCols[float32], logSumExp},
	{"count", floats(matrix.CountNonzero[float32]), floats(matrix.CountNonzeroRows[float32]), floats(matrix.CountNonzeroCols[float32]), nonzeros},
	{"any", matrix.AnyNonzero[float32], matrix.AnyNonzeroRows[float32], matrix.AnyNonzeroCols[float32], func(x []float64) float64 { return one(nonzeros(x) > 0) }},
	{"all", matrix.AllNonzero[float32], matrix.AllNonzeroRows[float32], matrix.AllNonzeroCols[float32], func(x []float64) float64 { return one(nonzeros(x) == float64(len(x))) }},
	{"place of the largest", floats(matrix.ArgMax[float32]), floats(matrix.ArgMaxRows[float32]), floats(matrix.ArgMaxCols[float32]), func(x []float64) float64 {
		return place(x, func(a, b float64) bool { return a > b })
	}},
	{"place of the smallest", floats(matrix.ArgMin[float32]), floats(matrix.ArgMinRows[float32]), floats(matrix.ArgMinCols[float32]), func(x []float64) float64 {
		return place(x, func(a, b float64) bool { return a < b })
	}},
}

// column returns every cols-th element from j on.
func column(x []float64, cols, j int) (list []float64) {
	for ; j < len(x); j += cols {
		list = append(list, x[j])
	}
	return list
}

// reduced fails unless every so many-th reduction of a matrix of the elements is right, from the first one on.
func reduced(t *testing.T, what string, a arg, x []float32, rows, cols, first, step int) {
	t.Helper()
	d := float64s(x)
	for at := first; at < len(reductions); at += step {
		r := reductions[at]
		indices := r.name == "place of the largest" || r.name == "place of the smallest"
		if indices && rows*cols == 0 {
			continue
		}
		byRow, byCol := make([]float64, rows), make([]float64, cols)
		for i := range byRow {
			byRow[i] = r.of(d[i*cols:][:cols])
		}
		for j := range byCol {
			byCol[j] = r.of(column(d, cols, j))
		}
		alike(t, what+", "+r.name, must[[]float32](t)(r.all(a).Read(background)), []float64{r.of(d)})
		alike(t, what+", "+r.name+" of rows", must[[]float32](t)(r.rows(a).Read(background)), byRow)
		alike(t, what+", "+r.name+" of columns", must[[]float32](t)(r.cols(a).Read(background)), byCol)
	}
}

// alike fails unless each element is within a few roundings of the reference, or as special.
func alike(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		g := float64(got[i])
		if g != w && !(math.Abs(g-w) <= 1e-5*max(1, math.Abs(w))) && !(math.IsNaN(g) && math.IsNaN(w)) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, g, w)
		}
	}
}

func TestReductions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng, turns := newRand(11), len(forms)
		if devtest.Long() {
			turns = 3
		}
		for i, d := range [][2]int{{1, 1}, {1, 5}, {5, 1}, {3, 4}, {17, 33}, {129, 65}, {1, 4099}, {4099, 1}, {1500, 3}, {3, 1500}, {0, 4}, {4, 0}, {0, 0}} {
			rows, cols := d[0], d[1]
			x := random(rng, rows*cols)
			for k := range x {
				if rng.IntN(8) == 0 { // zeros, and ties
					x[k] = float32(rng.IntN(3) - 1)
				}
			}
			for k, form := range forms {
				first, step := 0, 1
				switch {
				case i != 4 && (k%turns != i%turns || sparing(dev) && i%3 != 0): // compiling takes most of the time
					continue
				case i == 4 && sparing(dev): // each reduction of one layout
					first, step = k, len(forms)
				}
				a, _ := wrapped(t, dev, form, rows, cols, x)
				reduced(t, name(d, form.name), a, x, rows, cols, first, step)
				check(t, a.Close())
			}
		}
	})
}

// TestReductionsOfSpecials has NaN, infinities and large numbers.
func TestReductionsOfSpecials(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, odd := range [][]float32{{nan}, {inf}, {-inf}, {inf, -inf}, {nan, inf}, {nan, nan}, {0}} {
			for _, cols := range []int{1, 7, 1100} {
				if sparing(dev) && cols < 1100 {
					continue
				}
				x := random(newRand(uint64(cols)), 3*cols)
				for k, v := range odd {
					x[cols+(k*5+cols/2)%cols] = v
				}
				a := must[*dense](t)(matrix.FromSlice(dev, 3, cols, x))
				d := float64s(x)
				for _, r := range reductions {
					if r.name == "norm 3" {
						continue // math.Pow(math.Inf(1), 1/3) and the like are tested elsewhere
					}
					want := []float64{r.of(d[:cols]), r.of(d[cols : 2*cols]), r.of(d[2*cols:])}
					what := name(r.name, odd, cols)
					alike(t, what, must[[]float32](t)(r.rows(a).Read(background)), want)
					alike(t, what+" of columns", must[[]float32](t)(r.cols(a.T()).Read(background)), want)
				}
				check(t, a.Close())
			}
		}
		far := []float32{1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 4}
		a := must[*dense](t)(matrix.FromSlice(dev, 1, 4, far))
		alike(t, "variance far from zero", must[[]float32](t)(matrix.Var(a).Read(background)), []float64{1.25})
		big := must[*dense](t)(matrix.FromSlice(dev, 1, 3, []float32{1000, 1000, 999}))
		alike(t, "large exponentials", must[[]float32](t)(matrix.LogSumExp(big).Read(background)), []float64{logSumExp([]float64{1000, 1000, 999})})
	})
}

// TestReductionPasses asserts how many kernels run: one for a variance of columns, with its element-wise head.
func TestReductionPasses(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 200, 300, random(newRand(3), 200*300)))
		for what, e := range map[string]*expr{
			"variance of columns": matrix.VarCols(a), "deviation with a head": matrix.StdCols(matrix.Exp(a).AddScalar(1), 1),
			"means of rows": matrix.MeanRows(a), "norms of columns": matrix.Norm2Cols(a), "logarithms": matrix.LogSumExpRows(a),
			"cubic norms": matrix.NormPCols(a, 3),
		} {
			check(t, dev.Sync(background))
			before := dev.Stats().Dispatches
			m := must[*dense](t)(e.Eval())
			check(t, dev.Sync(background))
			if n := dev.Stats().Dispatches - before; n != 1 {
				t.Errorf("%s: %d dispatches", what, n)
			}
			check(t, m.Close())
		}
	})
}

func TestReductionErrors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 3, random(newRand(3), 6)))
		none := must[*dense](t)(matrix.New[float32](dev, 0, 3))
		whole := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 3, []int32{3, -4, 0}))
		for what, c := range map[string]struct{ got, want error }{
			"index of nothing":       {matrix.ArgMax(none).Err(), gpu.ErrInvalid},
			"index of empty columns": {matrix.ArgMinCols(none).Err(), gpu.ErrInvalid},
			"negative ddof":          {matrix.Var(a, -1).Err(), gpu.ErrInvalid},
			"two ddofs":              {matrix.Var(a, 1, 2).Err(), gpu.ErrInvalid},
			"two ddofs of rows":      {matrix.StdRows(a, 0, 0).Err(), gpu.ErrInvalid},
			"one ddof":               {matrix.Std(a, 1).Err(), nil},
			"power 0":                {matrix.NormP(a, 0).Err(), gpu.ErrInvalid},
			"power NaN":              {matrix.NormP(a, math.NaN()).Err(), gpu.ErrInvalid},
			"variance of integers":   {matrix.Var(whole).Err(), gpu.ErrUnsupported},
			"norm of integers":       {matrix.NormP(whole, 2).Err(), gpu.ErrUnsupported},
			"text":                   {matrix.Eval("norm2(A, 3)", map[string]arg{"A": a}).Err(), matrix.ErrSyntax},
			"ddof":                   {matrix.Eval("var(A, A)", map[string]arg{"A": a}).Err(), gpu.ErrInvalid},
		} {
			if !errors.Is(c.got, c.want) {
				t.Errorf("%s: %v", what, c.got)
			}
		}
		if n, _ := matrix.ArgMaxRows(none).Dims(); n != 0 {
			t.Errorf("%d indices of no rows", n)
		}
		alike(t, "sum of absolute integers", must[[]float32](t)(matrix.Convert[float32](matrix.Norm1(whole)).Read(background)), []float64{7})
		alike(t, "text", must[[]float32](t)(matrix.Eval("var(A, 1) - std(A, 1) % std(A, 1) + normp(A, 3) - normp(A, 3)", map[string]arg{"A": a}).Read(background)), []float64{0})
		far := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
		alike(t, "trace", must[[]float32](t)(matrix.Trace(matrix.Mul(far, far)).Read(background)), []float64{29})
	})
}

// TestPlacesOfIntegers finds the first largest and smallest of integers that are stored the other way round.
func TestPlacesOfIntegers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		places[int32](t, dev)
		places[int8](t, dev)
		places[uint32](t, dev)
	})
}

func places[T int32 | int8 | uint32](t *testing.T, dev *gpu.Device) {
	t.Helper()
	rng := newRand(7)
	for _, d := range [][2]int{{2, 3}, {1, 9}, {40, 33}} {
		rows, cols := d[0], d[1]
		x := make([]T, rows*cols)
		for i := range x {
			x[i] = T(rng.IntN(100) - 50)
		}
		m := must[*matrix.Dense[T]](t)(matrix.FromSlice(dev, rows, cols, x))
		by := must[*matrix.Dense[T]](t)(matrix.New[T](dev, rows, cols, matrix.Options{ColMajor: true}))
		check(t, by.Assign(m))
		turned := make([]T, 0, len(x))
		for i := range x {
			turned = append(turned, x[i%rows*cols+i/rows])
		}
		for what, c := range map[string]struct {
			e    matrix.Operand[T]
			list []T
		}{"as it is": {m, x}, "transposed": {m.T(), turned}, "by columns": {by, x}, "by columns, transposed": {by.T(), turned}} {
			most, least := int32(slices.Index(c.list, slices.Max(c.list))), int32(slices.Index(c.list, slices.Min(c.list)))
			same(t, name(what, rows, cols, "largest"), must[[]int32](t)(matrix.ArgMax(c.e).Read(background)), []int32{most})
			same(t, name(what, rows, cols, "smallest"), must[[]int32](t)(matrix.ArgMin(c.e).Read(background)), []int32{least})
		}
		check(t, m.Close())
		check(t, by.Close())
	}
}

// softmax64 is the reference of the softmax of some elements.
func softmax64(x []float64, log bool) []float64 {
	sum := logSumExp(x)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v - sum
		if !log {
			out[i] = math.Exp(out[i])
		}
	}
	return out
}

func hardmax64(x []float64) []float64 {
	out := make([]float64, len(x))
	if len(x) > 0 {
		out[int(place(x, func(a, b float64) bool { return a > b }))] = 1
	}
	return out
}

// TestNormalise has softmax, its logarithm and hardmax along rows, columns and everything, of layouts of all sorts.
func TestNormalise(t *testing.T) {
	plain := func(x []float64) []float64 { return softmax64(x, false) }
	logs := func(x []float64) []float64 { return softmax64(x, true) }
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(12)
		for i, d := range [][2]int{{17, 33}, {130, 129}, {1, 1}, {3, 4}, {1, 1030}, {1030, 1}, {0, 3}, {3, 0}} {
			rows, cols := d[0], d[1]
			x := random(rng, rows*cols)
			for k := range x {
				if rng.IntN(3) == 0 {
					x[k] = 2 // ties
				}
			}
			for k, form := range forms {
				if i > 0 && sparing(dev) && k != i-1 { // all layouts of the first size
					continue
				}
				a, _ := wrapped(t, dev, form, rows, cols, x)
				for what, f := range map[string]struct {
					rows, cols, all func(arg) *expr
					of              func([]float64) []float64
				}{
					"softmax":    {matrix.Softmax[float32], matrix.SoftmaxCols[float32], matrix.SoftmaxAll[float32], plain},
					"logsoftmax": {matrix.LogSoftmax[float32], matrix.LogSoftmaxCols[float32], matrix.LogSoftmaxAll[float32], logs},
					"hardmax":    {matrix.Hardmax[float32], matrix.HardmaxCols[float32], matrix.HardmaxAll[float32], hardmax64},
				} {
					d := float64s(x)
					byRow, byCol := []float64{}, make([]float64, rows*cols)
					for i := range rows {
						byRow = append(byRow, f.of(d[i*cols:][:cols])...)
					}
					for j := range cols {
						for i, v := range f.of(column(d, cols, j)) {
							byCol[i*cols+j] = v
						}
					}
					what = name(what, rows, cols, form.name)
					alike(t, what, must[[]float32](t)(f.rows(a).Read(background)), byRow)
					alike(t, what+" of columns", must[[]float32](t)(f.cols(a).Read(background)), byCol)
					alike(t, what+" of all", must[[]float32](t)(f.all(a).Read(background)), f.of(d))
					mem := must[*dense](t)(matrix.New[float32](dev, rows, cols, form.opts(rows, cols)))
					check(t, mem.Assign(f.rows(a)))
					alike(t, what+" in place", must[[]float32](t)(mem.Read(background)), byRow)
					check(t, mem.Close())
				}
				check(t, a.Close())
			}
		}
		whole := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 2, 3, []int32{3, -4, 3, -9, -9, -8}))
		same(t, "hardmax of integers", must[[]int32](t)(matrix.Hardmax(whole).Read(background)), []int32{1, 0, 0, 0, 0, 1})
		check(t, whole.Assign(matrix.HardmaxCols(whole)))
		same(t, "hardmax in place", must[[]int32](t)(whole.Read(background)), []int32{1, 1, 1, 0, 0, 0})
		half := must[*matrix.Dense[matrix.Half]](t)(matrix.Convert[matrix.Half](whole).Eval())
		same(t, "hardmax of halves", must[[]float32](t)(matrix.Convert[float32](matrix.HardmaxAll(half)).Read(background)), []float32{1, 0, 0, 0, 0, 0})
		if err := matrix.SoftmaxAll(whole).Err(); !errors.Is(err, gpu.ErrUnsupported) {
			t.Error(err)
		}
	})
}

// TestReductionsInBlocks reduces, normalises and sorts matrices that are larger than a device's buffers.
func TestReductionsInBlocks(t *testing.T) {
	onSmall(t, func(t *testing.T, small, dev *gpu.Device) {
		p := newPair(t, small, dev, newRand(16), 60, 70)
		for what, f := range map[string]func(a *dense) *expr{
			"mean": func(a *dense) *expr { return matrix.Mean(a) }, "means of columns": func(a *dense) *expr { return matrix.MeanCols(a) },
			"variance": func(a *dense) *expr { return matrix.Var(a, 1) }, "deviations of columns": func(a *dense) *expr { return matrix.StdCols(a) },
			"norm": func(a *dense) *expr { return matrix.Norm2(a) }, "norms of rows": func(a *dense) *expr { return matrix.NormPRows(a, 3) },
			"largest": func(a *dense) *expr { return matrix.NormInf(a) }, "norm 3": func(a *dense) *expr { return matrix.NormP(a, 3) },
			"exponentials": func(a *dense) *expr { return matrix.LogSumExp(a) }, "trace": func(a *dense) *expr { return matrix.Trace(a) },
			"count": func(a *dense) *expr { return matrix.Convert[float32](matrix.CountNonzero(a)) },
			"any":   func(a *dense) *expr { return matrix.AnyNonzeroCols(a) }, "all": func(a *dense) *expr { return matrix.AllNonzero(a) },
			"indices of rows": func(a *dense) *expr { return matrix.Convert[float32](matrix.ArgMaxRows(a)) },
			"softmax":         func(a *dense) *expr { return matrix.Softmax(a) }, "hardmax": func(a *dense) *expr { return matrix.Hardmax(a) },
			"sorted": func(a *dense) *expr { return matrix.SortRows(a) }, "top": func(a *dense) *expr { return matrix.TopKRows(a, 3) },
			"running sums": func(a *dense) *expr { return matrix.CumSumRows(a) },
		} {
			want := must[[]float32](t)(f(p.whole).Read(background))
			rows, cols := f(p.small).Dims()
			out := make([]float32, rows*cols)
			m := must[*dense](t)(matrix.Wrap(small, rows, cols, out))
			if err := m.Assign(f(p.small)); err != nil {
				t.Errorf("%s: %v", what, err)
			} else {
				check(t, m.Sync(background))
				alike(t, what, out, float64s(want))
			}
			check(t, m.Close())
		}
		for what, e := range map[string]*expr{
			"index of all": floats(matrix.ArgMax[float32])(p.small), "softmax of columns": matrix.SoftmaxCols(p.small), "sorted columns": matrix.SortCols(p.small),
		} {
			m := must[*dense](t)(matrix.Wrap(small, 60, 70, make([]float32, 4200)))
			if what == "index of all" {
				check(t, m.Close())
				m = must[*dense](t)(matrix.New[float32](small, 1, 1))
			}
			if err := m.Assign(e); err != nil && !errors.Is(err, gpu.ErrLimit) {
				t.Errorf("%s: %v", what, err)
			}
			check(t, m.Close())
		}
		p.close(t)
	})
}
