// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
	nodes "github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// sparseArgs are the operands of a sparse expression: a and b of 9x7, c of 7x5, x dense of 9x7, y dense of 7x3 and z of 4x9. Those
// of the reference are all dense.
type sparseArgs struct{ a, b, c, x, y, z arg }

// sparseExpressions are expressions that stay sparse, with how many entries they have, or not.
var sparseExpressions = map[string]struct {
	build  func(v *sparseArgs) *expr
	stays  bool
	merges bool // which orders the terms of sums in other ways
}{
	"abs":             {func(v *sparseArgs) *expr { return matrix.Abs(v.a) }, true, false},
	"chain":           {func(v *sparseArgs) *expr { return matrix.Tanh(matrix.Scale(3, matrix.Neg(v.a))) }, true, false},
	"transpose":       {func(v *sparseArgs) *expr { return matrix.Transpose(v.a) }, true, false},
	"twice":           {func(v *sparseArgs) *expr { return matrix.Transpose(matrix.Transpose(v.a)) }, true, false},
	"scale":           {func(v *sparseArgs) *expr { return matrix.Scale(3, v.a) }, true, false},
	"quotient":        {func(v *sparseArgs) *expr { return matrix.DivScalar(v.a, 3) }, true, false},
	"power":           {func(v *sparseArgs) *expr { return matrix.PowScalar(v.a, 2) }, true, false},
	"threshold":       {func(v *sparseArgs) *expr { return matrix.Max(v.a, matrix.Fill[float32](1, 1, 0)) }, true, false},
	"greater":         {func(v *sparseArgs) *expr { return matrix.Greater(v.a, matrix.Fill[float32](9, 7, 0.25)) }, true, false},
	"less":            {func(v *sparseArgs) *expr { return matrix.Less(v.a, matrix.Fill[float32](1, 1, 0.25)) }, false, false},
	"add a number":    {func(v *sparseArgs) *expr { return matrix.AddScalar(v.a, 1) }, false, false},
	"exp":             {func(v *sparseArgs) *expr { return matrix.Exp(v.a) }, false, false},
	"dense":           {func(v *sparseArgs) *expr { return matrix.MulElem(v.a, v.x) }, true, false},
	"dense first":     {func(v *sparseArgs) *expr { return matrix.MulElem(v.x, v.a) }, true, false},
	"row":             {func(v *sparseArgs) *expr { return matrix.MulElem(v.a, matrix.Slice(v.x, 2, 3, 0, 7)) }, true, false},
	"column":          {func(v *sparseArgs) *expr { return matrix.MulElem(matrix.Slice(v.x, 0, 9, 3, 4), v.a) }, true, false},
	"by dense":        {func(v *sparseArgs) *expr { return matrix.DivElem(v.a, v.x) }, true, false},
	"dense by sparse": {func(v *sparseArgs) *expr { return matrix.DivElem(v.x, matrix.AddScalar(v.a, 9)) }, false, false},
	"sum with dense":  {func(v *sparseArgs) *expr { return matrix.Add(v.a, v.x) }, false, false},
	"sum":             {func(v *sparseArgs) *expr { return matrix.Add(v.a, v.b) }, true, true},
	"difference":      {func(v *sparseArgs) *expr { return matrix.Sub(matrix.Scale(2, v.a), matrix.Abs(v.b)) }, true, true},
	"with itself":     {func(v *sparseArgs) *expr { return matrix.Sub(v.a, v.a) }, true, true},
	"three":           {func(v *sparseArgs) *expr { return matrix.Add(matrix.Add(v.a, v.b), matrix.Scale(0.5, v.a)) }, true, true},
	"elements":        {func(v *sparseArgs) *expr { return matrix.MulElem(v.a, v.b) }, true, true},
	"largest":         {func(v *sparseArgs) *expr { return matrix.Max(v.a, v.b) }, true, true},
	"product":         {func(v *sparseArgs) *expr { return matrix.Mul(v.a, v.c) }, true, true},
	"gram":            {func(v *sparseArgs) *expr { return matrix.Mul(matrix.Transpose(v.a), v.b) }, true, true},
	"outer":           {func(v *sparseArgs) *expr { return matrix.Mul(v.a, matrix.Transpose(v.b)) }, true, true},
	"long product":    {func(v *sparseArgs) *expr { return matrix.Mul(matrix.Mul(v.a, v.c), matrix.Transpose(v.c)) }, true, true},
	"times dense":     {func(v *sparseArgs) *expr { return matrix.Mul(v.a, v.y) }, false, false},
	"times function":  {func(v *sparseArgs) *expr { return matrix.Mul(v.a, matrix.Exp(v.y)) }, false, false},
	"times fill":      {func(v *sparseArgs) *expr { return matrix.Mul(v.a, matrix.Fill[float32](7, 2, 3)) }, false, false},
	"dense times":     {func(v *sparseArgs) *expr { return matrix.Mul(v.z, v.a) }, false, false},
	"turned times":    {func(v *sparseArgs) *expr { return matrix.Mul(matrix.Transpose(v.a), matrix.Transpose(v.z)) }, false, false},
	"times turned":    {func(v *sparseArgs) *expr { return matrix.Mul(matrix.Transpose(v.y), matrix.Transpose(v.a)) }, false, false},
	"mapped times":    {func(v *sparseArgs) *expr { return matrix.Mul(matrix.Abs(v.a), v.y).Tanh() }, false, false},
	"added to":        {func(v *sparseArgs) *expr { return matrix.Add(matrix.Mul(v.a, v.y), matrix.Slice(v.x, 0, 9, 0, 3)) }, false, false},
	"sampled": {func(v *sparseArgs) *expr {
		return matrix.MulElem(v.a, matrix.Mul(matrix.Transpose(v.z), matrix.Slice(v.x, 0, 4, 0, 7)))
	}, true, true},
	"sum of all":      {func(v *sparseArgs) *expr { return matrix.Sum(v.a) }, false, true},
	"mean of all":     {func(v *sparseArgs) *expr { return matrix.Mean(v.a) }, false, true},
	"norm of all":     {func(v *sparseArgs) *expr { return matrix.Norm2(v.a) }, false, true},
	"norm 1":          {func(v *sparseArgs) *expr { return matrix.Norm1(v.a) }, false, true},
	"norm 3":          {func(v *sparseArgs) *expr { return matrix.NormP(v.a, 3) }, false, true},
	"largest norm":    {func(v *sparseArgs) *expr { return matrix.NormInf(v.a) }, false, true},
	"any":             {func(v *sparseArgs) *expr { return matrix.AnyNonzero(v.a) }, false, true},
	"sum of rows":     {func(v *sparseArgs) *expr { return matrix.SumRows(v.a) }, false, true},
	"sum of columns":  {func(v *sparseArgs) *expr { return matrix.SumCols(matrix.Abs(v.a)) }, false, true},
	"mean of rows":    {func(v *sparseArgs) *expr { return matrix.MeanRows(v.a) }, false, true},
	"norm of columns": {func(v *sparseArgs) *expr { return matrix.Norm2Cols(v.a) }, false, true},
	"count":           {func(v *sparseArgs) *expr { return matrix.Convert[float32](matrix.CountNonzeroRows(v.a)) }, false, true},
	"largest of rows": {func(v *sparseArgs) *expr { return matrix.MaxRows(v.a) }, false, false},
	"trace":           {func(v *sparseArgs) *expr { return matrix.Trace(matrix.Mul(v.a, matrix.Transpose(v.b))) }, false, true},
	"softmax":         {func(v *sparseArgs) *expr { return matrix.Softmax(v.a) }, false, false},
	"beside":          {func(v *sparseArgs) *expr { return matrix.HStack(v.a, v.x, v.b) }, false, false},
	"part":            {func(v *sparseArgs) *expr { return matrix.Slice(v.a, 1, 8, 2, 5) }, false, false},
	"sorted":          {func(v *sparseArgs) *expr { return matrix.SortRows(v.a) }, false, false},
}

// TestSparseExpressions compares expressions of sparse matrices with those of the dense ones that they stand for.
func TestSparseExpressions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(70)
		for round, form := range []matrix.Format{matrix.CSC, matrix.CSR, matrix.BlockColumn} {
			dense := func(rows, cols int, x []float32) arg {
				return must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, rows, cols, x))
			}
			var all, plain sparseArgs
			for k, size := range [][2]int{{9, 7}, {9, 7}, {7, 5}} {
				x := sparsely(rng, size[0], size[1])
				f := formats[(int(form)+k*round)%3]
				values, indices, pointers := pack(x, size[0], size[1], f)
				s := must[*sparse](t)(matrix.NewSparse(dev, f, size[0], size[1], values, indices, pointers))
				*[]*arg{&all.a, &all.b, &all.c}[k], *[]*arg{&plain.a, &plain.b, &plain.c}[k] = s, dense(size[0], size[1], x)
			}
			all.x, all.y, all.z = dense(9, 7, random(rng, 63)), dense(7, 3, random(rng, 21)), dense(4, 9, random(rng, 36))
			plain.x, plain.y, plain.z = all.x, all.y, all.z
			for what, c := range sparseExpressions {
				if few && len(what)%3 != round { // compiling takes most of the time
					continue
				}
				what := name(form, what)
				got, want := c.build(&all), c.build(&plain)
				compareSparse(t, dev, what, got, want, c.stays, c.merges)
			}
			for _, m := range []arg{all.a, all.b, all.c, all.x, all.y, all.z, plain.a, plain.b, plain.c} {
				check(t, m.(interface{ Close() error }).Close())
			}
		}
		nothingLeft(t, dev)
	})
}

// compareSparse compares an expression, evaluated as dense and, where it stays sparse, as sparse, with another one.
func compareSparse(t *testing.T, dev *gpu.Device, what string, got, want *expr, stays, merges bool) {
	t.Helper()
	rows, cols := want.Dims()
	if r, c := got.Dims(); r != rows || c != cols || got.Err() != nil {
		t.Fatalf("%s: %dx%d, want %dx%d: %v", what, r, c, rows, cols, got.Err())
	}
	exact, tolerance := must[[]float32](t)(want.Read(background)), float32(1e-6)
	if merges {
		tolerance = 1e-5
	}
	alikeTo(t, what, must[[]float32](t)(got.Read(background)), exact, tolerance)
	into := must[*dense](t)(matrix.New[float32](dev, rows, cols, matrix.Options{ColMajor: true}))
	check(t, into.Assign(got))
	alikeTo(t, what+" by columns", must[[]float32](t)(into.Read(background)), exact, tolerance)
	check(t, into.Close())
	s, err := got.Sparse()
	if !stays {
		if !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("%s: error %v of a sparse result", what, err)
		}
		return
	}
	check(t, err)
	d := must[*dense](t)(s.ToDense())
	alikeTo(t, what+", sparse", must[[]float32](t)(d.Read(background)), exact, tolerance)
	check(t, errors.Join(d.Close(), s.Close()))
}

// alikeTo fails unless elements are as near to others as the tolerance, relative to 1 or to themselves.
func alikeTo(t *testing.T, what string, got, want []float32, tolerance float32) {
	t.Helper()
	for k, w := range want {
		if d := got[k] - w; !(max(d, -d) <= tolerance*max(1, w, -w)) && got[k] != w {
			t.Fatalf("%s: element %d is %v, want %v", what, k, got[k], w)
		}
	}
}

// TestSparseKeepsZero compares the list of operations that make 0 of 0 with what the reference makes.
func TestSparseKeepsZero(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	zero := must[*dense](t)(matrix.New[float32](dev, 1, 1))
	for op := fuse.OpCopy; op.Arity() > 0; op++ {
		if op.Arity() != 1 || !op.Takes(fuse.F32) {
			continue
		}
		got := must[float32](t)(matrix.Elementwise[float32](op, zero).Value(background))
		if keeps := nodes.KeepsZero(op); keeps && got != 0 {
			t.Errorf("%v of 0 is %v", op, got)
		} else if !keeps && got == 0 {
			t.Logf("%v of 0 is 0, and makes matrices dense", op)
		}
	}
}

// TestSparseUnstored multiplies by infinities and NaN: where nothing is stored the result is 0.
func TestSparseUnstored(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		for _, format := range formats[:2] {
			values, indices, pointers := pack([]float32{1, 0, 0, nan, 2, 0}, 2, 3, format)
			s := must[*sparse](t)(matrix.NewSparse(dev, format, 2, 3, values, indices, pointers))
			x := must[*dense](t)(matrix.FromSlice(dev, 2, 3, []float32{3, nan, inf, inf, inf, nan}))
			near(t, "product", must[[]float32](t)(matrix.MulElem(s, x).Read(background)), []float64{3, 0, 0, math.NaN(), math.Inf(1), 0}, 0)
			near(t, "number", must[[]float32](t)(matrix.Scale(inf, s).Read(background)), []float64{math.Inf(1), 0, 0, math.NaN(), math.Inf(1), 0}, 0)
			check(t, errors.Join(s.Close(), x.Close()))
		}
	})
}

// TestSparseStructureChanges appends to a matrix and changes a wrapped structure after expressions of it were built.
func TestSparseStructureChanges(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, 3, []float32{1}, []int32{0}, []int32{0, 1, 1}))
		sum, plain := matrix.Add(s, s), matrix.Add(s, matrix.Scale(2, matrix.Abs(s)))
		product, with := matrix.Mul(s, matrix.Transpose(s)), s.Expr().With(matrix.Fill[float32](1, 1, 2))
		check(t, s.Append(1, 2, 4))
		for what, e := range map[string]*expr{
			"sum": sum, "other sum": plain, "product": product, "with": with, "with times": matrix.Mul(with, matrix.Fill[float32](3, 1, 1)),
			"turned with times": matrix.Mul(matrix.Transpose(with), matrix.Fill[float32](2, 1, 1)),
		} {
			if _, err := e.Read(background); !errors.Is(err, buffer.ErrShape) && !errors.Is(err, matrix.ErrSparse) {
				t.Errorf("%s: error %v", what, err)
			}
			if e, err := e.Sparse(); err == nil {
				t.Errorf("%s: a sparse matrix of %d entries", what, e.NNZ())
			}
		}
		same(t, "sum", must[[]float32](t)(matrix.Add(s, s).Read(background)), []float32{2, 0, 0, 0, 0, 8})
		check(t, s.Close())

		values, indices := []float32{1, 2}, []int32{0, 2}
		w := must[*sparse](t)(matrix.WrapSparse(dev, matrix.CSR, 2, 3, values, indices, []int32{0, 1, 2}))
		times := matrix.Mul(w, matrix.Fill[float32](3, 1, 1))
		derived := matrix.Mul(w, matrix.Transpose(w))
		same(t, "before", must[[]float32](t)(times.Read(background)), []float32{1, 2})
		same(t, "before", must[[]float32](t)(derived.Read(background)), []float32{1, 0, 0, 4})
		indices[0], values[1] = 2, 5
		check(t, w.Touch())
		same(t, "after", must[[]float32](t)(times.Read(background)), []float32{1, 5})
		if _, err := derived.Read(background); !errors.Is(err, matrix.ErrSparse) {
			t.Errorf("derived: error %v", err)
		}
		same(t, "again", must[[]float32](t)(matrix.Mul(w, matrix.Transpose(w)).Read(background)), []float32{1, 5, 5, 25})
		check(t, w.Close())
		if _, err := times.Read(background); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("closed: error %v", err)
		}
	})
}

// TestSparsePairs applies every operation of two operands to two sparse matrices, to one with a dense one and to one with a number, and
// compares it with the same of dense matrices. Products and quotients of stored values alone have another test.
func TestSparsePairs(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x, y := []int32{0, 3, 0, -2, 5, 0, 0, 1}, []int32{4, 3, 0, 0, -1, 0, 2, 0}
		pairsOf(t, dev, x, y, fuse.I32)
		fx, fy := make([]float32, len(x)), make([]float32, len(y))
		for i := range x {
			fx[i], fy[i] = float32(x[i])/2, float32(y[i])/4
		}
		pairsOf(t, dev, fx, fy, fuse.F32)
	})
}

func pairsOf[T int32 | float32](t *testing.T, dev *gpu.Device, x, y []T, typ fuse.Type) {
	t.Helper()
	dense := func(x []T) *matrix.Dense[T] { return must[*matrix.Dense[T]](t)(matrix.FromSlice(dev, 2, 4, x)) }
	sparse := func(x []T, f matrix.Format) *matrix.Sparse[T] {
		values, indices, pointers := pack(x, 2, 4, f)
		return must[*matrix.Sparse[T]](t)(matrix.NewSparse(dev, f, 2, 4, values, indices, pointers))
	}
	a, b, s, u := dense(x), dense(y), sparse(x, matrix.CSR), sparse(y, matrix.CSC)
	for op := fuse.OpCopy; op.Arity() > 0; op++ {
		if op.Arity() != 2 || !op.Takes(typ) {
			continue
		}
		if some && op%8 != 0 && dev.Info().Driver != "cpu" { // the rules do not depend on the device
			continue
		}
		if op == fuse.OpDiv { // 0 of what is not stored, whatever it is divided by
			continue
		}
		for _, v := range []T{0, 1, 2} {
			number := matrix.Fill(1, 1, v)
			alike(t, name(op, typ, v), asFloats(t, matrix.Elementwise[T](op, s, number)), wideOf(t, matrix.Elementwise[T](op, a, number)))
			alike(t, name(v, op, typ), asFloats(t, matrix.Elementwise[T](op, number, s)), wideOf(t, matrix.Elementwise[T](op, number, a)))
		}
		want := wideOf(t, matrix.Elementwise[T](op, a, b))
		alike(t, name(op, typ, "both"), asFloats(t, matrix.Elementwise[T](op, s, u)), want)
		alike(t, name(op, typ, "first"), asFloats(t, matrix.Elementwise[T](op, s, b)), want)
		alike(t, name(op, typ, "second"), asFloats(t, matrix.Elementwise[T](op, a, u)), want)
	}
	check(t, errors.Join(a.Close(), b.Close(), s.Close(), u.Close()))
}

func asFloats[T int32 | float32](t *testing.T, e *matrix.Expr[T]) []float32 {
	t.Helper()
	return must[[]float32](t)(matrix.Convert[float32](e).Read(background))
}

func wideOf[T int32 | float32](t *testing.T, e *matrix.Expr[T]) []float64 {
	t.Helper()
	return float64s(asFloats(t, e))
}

// TestSparseSizes evaluates the same expression of matrices that differ in their sizes alone, and not in how many entries they have.
func TestSparseSizes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for cols := 2; cols < 7; cols++ {
			s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, cols, []float32{1, 2}, []int32{0, 1}, []int32{0, 1, 2}))
			near(t, "sum", must[[]float32](t)(matrix.Sum(matrix.AddScalar(s, 1)).Read(background)), []float64{3 + 2*float64(cols)}, 1)
			near(t, "sorted", must[[]float32](t)(matrix.MaxRows(matrix.SortRows(s)).Read(background)), []float64{1, 2}, 1)
			check(t, s.Close())
		}
	})
}

// TestSparseNothing has results without entries: no place is in both operands, or a product has no terms.
func TestSparseNothing(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, 2, []float32{1, 2}, []int32{0, 0}, []int32{0, 1, 2}))
		b := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSC, 2, 2, []float32{3}, []int32{1}, []int32{0, 0, 1}))
		none := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, 2, []float32{}, []int32{}, []int32{0, 0, 0}))
		for what, e := range map[string]*expr{
			"elements": matrix.MulElem(a, b), "product": matrix.Mul(a, none), "both": matrix.Add(none, none.Expr().With(matrix.Fill[float32](1, 1, 2))),
			"turned": matrix.Mul(none, matrix.Transpose(a)), "chain": matrix.Abs(matrix.Mul(matrix.MulElem(a, b), a)),
		} {
			same(t, what, must[[]float32](t)(e.Read(background)), make([]float32, 4))
			same(t, what+" rows", must[[]float32](t)(matrix.SumRows(e).Read(background)), make([]float32, 2))
			same(t, what+" mean", must[[]float32](t)(matrix.Mean(e).Read(background)), make([]float32, 1))
			s := must[*sparse](t)(e.Sparse())
			same(t, what+" mean, sparse", must[[]float32](t)(matrix.Mean[float32](s).Read(background)), make([]float32, 1))
			same(t, what+", sparse", must[[]float32](t)(s.Expr().Read(background)), make([]float32, 4))
			check(t, errors.Join(s.Append(1, 1, 7), s.Close()))
		}
		check(t, errors.Join(a.Close(), b.Close(), none.Close()))
		nothingLeft(t, dev)
	})
}

// TestSparseSampledLarge samples a product whose terms are more than a kernel counts: it is computed whole.
func TestSparseSampledLarge(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	const entries, inner = 125, 40_000_000
	var index []int32
	for k := range int32(entries) {
		index = append(index, k%100)
	}
	s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSC, 100, 100, make([]float32, entries), index, append([]int32{0, 100}, slices.Repeat([]int32{entries}, 99)...)))
	vast := matrix.Mul(matrix.Fill[float32](100, inner, 1), matrix.Fill[float32](inner, 100, 1))
	check(t, matrix.MulElem(s, vast).Err())
	check(t, s.Close())
}

// TestSparseFormats converts every format to every other, and takes transposes as views.
func TestSparseFormats(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(71)
		for _, size := range [][2]int{{0, 0}, {0, 4}, {3, 0}, {1, 1}, {5, 8}, {13, 6}} {
			rows, cols := size[0], size[1]
			x := sparsely(rng, rows, cols)
			for _, f := range formats {
				values, indices, pointers := pack(x, rows, cols, f)
				s := must[*sparse](t)(matrix.NewSparse(dev, f, rows, cols, values, indices, pointers))
				for _, to := range formats {
					made := must[*sparse](t)(s.ToFormat(to))
					if made.Format() != to || made.External() {
						t.Errorf("%v to %v is %v", f, to, made.Format())
					}
					if f != matrix.BlockColumn || to == f {
						v, i, p := pack(x, rows, cols, to)
						samePartsOf(t, name(f, to), made, v, i, p)
					}
					same(t, name(f, to), must[[]float32](t)(made.Expr().Read(background)), x)
					check(t, made.Close())
				}
				turned := s.T()
				if f == matrix.BlockColumn {
					isError(t, turned.Err(), gpu.ErrUnsupported)
				} else {
					v, i, p := pack(transposed(x, rows, cols), cols, rows, matrix.CSC+matrix.CSR-f)
					samePartsOf(t, name(f, "T"), turned, v, i, p)
				}
				check(t, errors.Join(turned.Close(), s.Close()))
			}
		}
		nothingLeft(t, dev)
	})
}

// TestSparseWith replaces the values.
func TestSparseWith(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, 3, []float32{1, 2, 3}, []int32{0, 2, 1}, []int32{0, 2, 3}))
		v := must[*dense](t)(matrix.FromSlice(dev, 3, 1, []float32{5, 6, 7}))
		same(t, "with", must[[]float32](t)(s.Expr().With(matrix.Transpose(v)).Read(background)), []float32{5, 0, 6, 0, 7, 0})
		same(t, "pattern", must[[]float32](t)(s.Expr().With(matrix.Fill[float32](1, 1, 1)).Read(background)), []float32{1, 0, 1, 0, 1, 0})
		same(t, "times", must[[]float32](t)(matrix.Mul(s.Expr().With(matrix.Transpose(v)), matrix.Fill[float32](3, 1, 1)).Read(background)), []float32{11, 7})
		blocks := must[*sparse](t)(matrix.NewSparse(dev, matrix.BlockColumn, 2, 3, []float32{1, 2, 3, 4}, []int32{0, 2}, nil))
		row := must[*dense](t)(matrix.FromSlice(dev, 1, 4, []float32{5, 6, 7, 8}))
		same(t, "blocks", must[[]float32](t)(blocks.Expr().With(row).Read(background)), []float32{5, 0, 7, 6, 0, 8})
		check(t, errors.Join(blocks.Close(), row.Close()))
		isError(t, s.Expr().With(v).Err(), buffer.ErrShape)
		isError(t, s.Expr().With(nil).Err(), buffer.ErrNil)
		wide := must[*matrix.Sparse[int32]](t)(matrix.Convert[int32](s).Sparse())
		same(t, "converted", must[[]int32](t)(wide.Expr().Read(background)), []int32{1, 0, 2, 0, 3, 0})
		if _, err := matrix.Convert[int8](s).Sparse(); !errors.Is(err, gpu.ErrUnsupported) {
			t.Errorf("int8: error %v", err)
		}
		check(t, errors.Join(s.Close(), v.Close(), wide.Close()))
	})
}

// TestSparseBlockGradient multiplies a dense matrix by a sparse one into whole columns.
func TestSparseBlockGradient(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(72)
		const m, k, n = 5, 6, 9
		x, y := random(rng, m*k), sparsely(rng, k, n)
		d := must[*dense](t)(matrix.FromSlice(dev, m, k, x))
		want := must[*dense](t)(matrix.FromSlice(dev, k, n, y))
		exact := must[[]float32](t)(matrix.Mul(d, want).Read(background))
		for _, f := range formats {
			values, indices, pointers := pack(y, k, n, f)
			s := must[*sparse](t)(matrix.NewSparse(dev, f, k, n, values, indices, pointers))
			g := must[*sparse](t)(matrix.MulBlockColumn(d, s))
			_, _, ids := pack(y, k, n, matrix.CSC)
			filled := 0
			for j := range n {
				if ids[j+1] > ids[j] {
					filled++
				}
			}
			if g.Format() != matrix.BlockColumn || g.NNZ() != filled*m {
				t.Errorf("%v: %v with %d values, want %d columns", f, g.Format(), g.NNZ(), filled)
			}
			alikeTo(t, name(f), must[[]float32](t)(g.Expr().Read(background)), exact, 1e-6)
			if _, err := matrix.MulBlockColumn(want, s); !errors.Is(err, buffer.ErrShape) {
				t.Errorf("shape: error %v", err)
			}
			check(t, errors.Join(g.Close(), s.Close()))
		}
		check(t, errors.Join(d.Close(), want.Close()))
		nothingLeft(t, dev)
	})
}

// TestSparseVast has matrices of which there is no dense form: all that stays sparse works.
func TestSparseVast(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n = 1 << 21
		pointers := make([]int32, n+1)
		for i := range pointers {
			pointers[i] = int32(min(i, 5))
		}
		indices := []int32{7, 1 << 20, 3, n - 1, 0}
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, n, n, []float32{1, 2, 3, 4, 5}, indices, pointers))
		g := must[*sparse](t)(matrix.Mul(s, matrix.Transpose(s)).Sparse())
		sum := must[*sparse](t)(matrix.Add(g, s).Sparse())
		if g.NNZ() != 5 || sum.NNZ() != 10 {
			t.Errorf("%d and %d entries", g.NNZ(), sum.NNZ())
		}
		if got := must[float32](t)(matrix.Sum(sum).Value(background)); got != 1+4+9+16+25+15 {
			t.Errorf("the sum is %v", got)
		}
		rows := must[[]float32](t)(matrix.SumRows(s).Read(background))
		same(t, "rows", rows[:6], []float32{1, 2, 3, 4, 5, 0})
		cols := must[[]float32](t)(matrix.SumCols(s).Read(background))
		same(t, "columns", []float32{cols[7], cols[1<<20], cols[n-1]}, []float32{1, 2, 4})
		if _, err := s.ToDense(); err == nil {
			t.Error("a dense matrix of 2^42 elements")
		}
		check(t, errors.Join(s.Close(), g.Close(), sum.Close()))
	})
}

// TestSparseDispatches counts launches: products and sums read the entries alone.
func TestSparseDispatches(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(73)
		values, indices, pointers := pack(sparsely(rng, 40, 30), 40, 30, matrix.CSR)
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 40, 30, values, indices, pointers))
		x := must[*dense](t)(matrix.FromSlice(dev, 30, 2, random(rng, 60)))
		d := new(dense)
		for what, c := range map[string]struct {
			e *expr
			n uint64
		}{
			"product":        {matrix.Mul(s, x), 1},
			"turned":         {matrix.Mul(matrix.Transpose(x), matrix.Transpose(s)), 1},
			"sum of columns": {matrix.SumCols(s), 1},
			"sum":            {matrix.Sum(s), 1},
			"scaled":         {matrix.Mul(matrix.Scale(2, s), x), 2},
			"dense":          {s.Expr(), 2},
		} {
			check(t, d.Close())
			d = new(dense)
			start := dev.Stats().Dispatches
			check(t, d.Assign(c.e))
			if n := dev.Stats().Dispatches - start; n != c.n {
				t.Errorf("%s: %d launches, want %d", what, n, c.n)
			}
		}
		check(t, errors.Join(s.Close(), x.Close(), d.Close()))
	})
}

// TestSparseTexts evaluates texts of sparse and dense matrices.
func TestSparseTexts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		s := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSR, 2, 3, []float32{1, 2, 3}, []int32{0, 2, 1}, []int32{0, 2, 3}))
		a := must[*dense](t)(matrix.FromSlice(dev, 3, 2, []float32{1, 2, 3, 4, 5, 6}))
		vars := map[string]arg{"S": s, "A": a}
		for text, want := range map[string][]float32{
			"S*A": {11, 14, 9, 12}, "A*S": {1, 6, 2, 3, 12, 6, 5, 18, 10}, "S.T*S": {1, 0, 2, 0, 9, 0, 2, 0, 4}, "2*S": {2, 0, 4, 0, 6, 0},
			"S + S": {2, 0, 4, 0, 6, 0}, "S % T(A)": {1, 0, 10, 0, 12, 0}, "sumrows(S)": {3, 3}, "sum(S)": {6}, "S - 1": {0, -1, 1, -1, 2, -1},
			"S[1]": {0, 3, 0}, "tanh(S*A - 11)": {0, float32(math.Tanh(3)), float32(math.Tanh(-2)), float32(math.Tanh(1))},
		} {
			near(t, text, must[[]float32](t)(matrix.Eval(text, vars).Read(background)), float64s(want), 4)
		}
		results := must[[]matrix.Named[float32]](t)(matrix.EvalAll(background, dev, "G = S*S.T; D = G + A[:2]; G % G", vars))
		for i, stays := range []bool{true, false, true} {
			if r := results[i]; (r.Sparse != nil) != stays || (r.Matrix == nil) != stays {
				t.Errorf("result %d: %+v", i, r)
			}
		}
		same(t, "G % G", must[[]float32](t)(results[2].Sparse.Expr().Read(background)), []float32{25, 0, 0, 81})
		same(t, "D", must[[]float32](t)(results[1].Matrix.Read(background)), []float32{6, 2, 3, 13})
		for _, r := range results {
			check(t, r.Close())
		}
		check(t, errors.Join(s.Close(), a.Close()))
		nothingLeft(t, dev)
	})
}
