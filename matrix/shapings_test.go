// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// table is a matrix of tests: rows of numbers.
type table [][]float32

func (x table) flat() []float32 { return slices.Concat(x...) }

// tableOf is the table of a function of row and column.
func tableOf(rows, cols int, f func(i, j int) float32) table {
	x := make(table, rows)
	for i := range x {
		x[i] = make([]float32, cols)
		for j := range x[i] {
			x[i][j] = f(i, j)
		}
	}
	return x
}

// shows fails unless an expression has the elements and the size of a table, in one kernel, or none where it has no elements.
func shows(t *testing.T, dev *gpu.Device, what string, e *matrix.Expr[float32], kernels uint64, rows, cols int, want table) {
	t.Helper()
	if r, c := e.Dims(); e.Err() != nil || r != rows || c != cols {
		t.Fatalf("%s: %dx%d, %v", what, r, c, e.Err())
	}
	m := must[*matrix.Dense[float32]](t)(e.On(dev).Eval())
	before := dev.Stats().Dispatches
	check(t, m.Assign(e))
	if n := dev.Stats().Dispatches - before; rows*cols > 0 && n != kernels {
		t.Errorf("%s: %d kernels, want %d", what, n, kernels)
	}
	same(t, what, readAll[float32](t, m), want.flat())
	check(t, m.Close())
}

// TestMaking makes matrices of numbers.
func TestMaking(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		one := func(b bool) float32 {
			if b {
				return 1
			}
			return 0
		}
		for _, size := range [][2]int{{0, 0}, {1, 1}, {3, 5}, {5, 3}, {1, 7}, {70, 33}} {
			rows, cols := size[0], size[1]
			for _, k := range []int{0, 2, -1, 100, -100} {
				shows(t, dev, "eye", matrix.Eye[float32](rows, cols, k), 1, rows, cols, tableOf(rows, cols, func(i, j int) float32 { return one(j-i == k) }))
			}
		}
		for _, r := range []struct{ start, stop, step float64 }{{0, 5, 1}, {1, 2, 0.25}, {3, -4, -2}, {0, 1, 0.3}, {5, 5, 1}, {5, 0, 1}} {
			n := max(int(math.Ceil((r.stop-r.start)/r.step)), 0)
			want := tableOf(1, n, func(_, j int) float32 { return float32(float32(j)*float32(r.step)) + float32(r.start) })
			shows(t, dev, "arange", matrix.Arange[float32](r.start, r.stop, r.step), 1, 1, n, want)
		}
		for _, n := range []int{0, 1, 2, 5, 300} {
			got := readAll[float32](t, matrix.Linspace[float32](-1, 0.3, n).On(dev))
			for j, v := range got {
				want := -1 + 1.3*float64(j)/float64(max(n-1, 1))
				if math.Abs(float64(v)-want) > 1e-6 || j == n-1 && n > 1 && v != 0.3 || j == 0 && v != -1 {
					t.Errorf("linspace: element %d of %d is %v", j, n, v)
				}
			}
		}
		whole := must[[]int32](t)(matrix.Arange[int32](16777216, 16777220, 1).On(dev).Read(t.Context()))
		same(t, "whole numbers", whole, []int32{16777216, 16777217, 16777218, 16777219})
		labels := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 4, 1, []int32{2, 0, -1, 5}))
		hot := tableOf(4, 3, func(i, j int) float32 { return one(i == 0 && j == 2 || i == 1 && j == 0) })
		shows(t, dev, "one-hot", matrix.OneHot[float32](labels, 3), 1, 4, 3, hot)
		shows(t, dev, "one-hot of a row", matrix.OneHot[float32](labels.T(), 3), 1, 3, 4, tableOf(3, 4, func(i, j int) float32 { return hot[j][i] }))
		check(t, labels.Close())
	})
}

// TestShaping shapes matrices of three layouts.
func TestShaping(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, size := range [][2]int{{3, 5}, {1, 4}, {6, 1}, {17, 9}, {0, 3}} {
			rows, cols := size[0], size[1]
			x := tableOf(rows, cols, func(i, j int) float32 { return float32(1000*i+j) + 0.5 })
			y := tableOf(2, cols, func(i, j int) float32 { return float32(-i - j) })
			b := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 2, cols, y.flat()))
			for _, o := range []matrix.Options{{}, {ColMajor: true}, {Offset: 3, Stride: cols + 2}} {
				a := must[*matrix.Dense[float32]](t)(matrix.Wrap(dev, rows, cols, make([]float32, 3+(cols+2)*max(rows, cols)+rows*cols), o))
				check(t, a.Assign(must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, rows, cols, x.flat()))))
				shapes(t, dev, a, b, x, y)
				check(t, a.Sync(t.Context()))
				check(t, a.Close())
			}
			check(t, b.Close())
		}
	})
}

func shapes(t *testing.T, dev *gpu.Device, a, b *matrix.Dense[float32], x, y table) {
	t.Helper()
	rows, cols := a.Dims()
	mod := func(i, n int) int { return (i%n + n) % n }
	show := func(what string, e *matrix.Expr[float32], m, n int, f func(i, j int) float32) {
		t.Helper()
		shows(t, dev, what, e, 1, m, n, tableOf(m, n, f))
	}
	when := func(on bool, i, j int) float32 {
		if on && i >= 0 && i < rows && j >= 0 && j < cols {
			return x[i][j]
		}
		return 0
	}
	for _, k := range []int{0, 1, -2} {
		show("tril", matrix.Tril(a, k), rows, cols, func(i, j int) float32 { return when(j-i <= k, i, j) })
		show("triu", matrix.Triu(a, k), rows, cols, func(i, j int) float32 { return when(j-i >= k, i, j) })
		n := max(min(rows+min(k, 0), cols-max(k, 0)), 0)
		show("diagonal", matrix.Diagonal(a, k), 1, n, func(_, j int) float32 { return x[j+max(-k, 0)][j+max(k, 0)] })
		if rows == 1 || cols == 1 {
			side := rows*cols + max(k, -k)
			show("diag", matrix.Diag(a, k), side, side, func(i, j int) float32 {
				if j-i != k {
					return 0
				}
				return x.flat()[min(i, j)]
			})
		}
	}
	show("band", matrix.Band(a, 1, -1), rows, cols, func(i, j int) float32 { return when(i-j <= 1, i, j) })
	show("band", matrix.Band(a, 0, 2), rows, cols, func(i, j int) float32 { return when(i <= j && j-i <= 2, i, j) })
	show("repeated rows", matrix.RepeatRows(a, 3), 3*rows, cols, func(i, j int) float32 { return x[i/3][j] })
	show("repeated columns", matrix.RepeatCols(a, 2), rows, 2*cols, func(i, j int) float32 { return x[i][j/2] })
	show("none", matrix.RepeatCols(a, 0), rows, 0, nil)
	show("tile", matrix.Tile(a, 2, 3), 2*rows, 3*cols, func(i, j int) float32 { return x[i%rows][j%cols] })
	show("flipped rows", matrix.FlipRows(a), rows, cols, func(i, j int) float32 { return x[rows-1-i][j] })
	show("flipped columns", matrix.FlipCols(a), rows, cols, func(i, j int) float32 { return x[i][cols-1-j] })
	show("roll", matrix.Roll(a, 2, -1), rows, cols, func(i, j int) float32 { return x[mod(i-2, rows)][mod(j+1, cols)] })
	show("pad", matrix.Pad(a, 1, 2, 0, 3, 0), rows+3, cols+3, func(i, j int) float32 { return when(true, i-1, j) })
	show("pad with 7", matrix.Pad(a, 0, 1, 2, 0, 7), rows+1, cols+2, func(i, j int) float32 {
		if i < rows && j >= 2 {
			return x[i][j-2]
		}
		return 7
	})
	show("reshape", matrix.Reshape(a, cols, rows), cols, rows, func(i, j int) float32 { return x.flat()[i*rows+j] })
	if rows > 0 {
		show("reshape to a row", matrix.Reshape(a, 1, -1), 1, rows*cols, func(_, j int) float32 { return x.flat()[j] })
	}
	if rows > 0 {
		top := a.Slice(0, 1, 0, cols)
		show("broadcast", matrix.BroadcastTo(top, rows, cols), rows, cols, func(_, j int) float32 { return x[0][j] })
		check(t, top.Close())
	}
	show("kron", matrix.Kron(a, b), 2*rows, cols*cols, func(i, j int) float32 { return x[i/2][j/cols] * y[i%2][j%cols] })
	show("khatri-rao", matrix.KhatriRao(b, a), 2*rows, cols, func(i, j int) float32 { return y[i%2][j] * x[i/2][j] })
	row := b.Row(1)
	show("outer", matrix.Outer(row, row), cols, cols, func(i, j int) float32 { return y[1][i] * y[1][j] })
	check(t, row.Close())
	parts := uint64(2)
	if rows == 0 {
		parts = 1
	}
	shows(t, dev, "vstack", matrix.VStack[float32](a, b), parts, rows+2, cols, slices.Concat(x, y))
	wide := matrix.HStack[float32](a, matrix.Scale(2, a))
	shows(t, dev, "hstack", wide, 2, rows, 2*cols, tableOf(rows, 2*cols, func(i, j int) float32 { return x[i][j%cols] * float32(1+j/cols) }))
	picked := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 4, []int32{int32(rows) - 1, -1, 0, 0}))
	index := func(i, n int) int { return []int{n - 1, -1, 0, 0}[i] }
	show("rows", matrix.TakeRows(a, picked), 4, cols, func(i, j int) float32 { return when(true, index(i, rows), j) })
	show("columns", matrix.TakeCols(a, picked.T()), rows, 4, func(i, j int) float32 {
		if k := []int{rows - 1, -1, 0, 0}[j]; k >= 0 && k < cols {
			return x[i][k]
		}
		return 0
	})
	check(t, picked.Close())
}

// TestStacks assigns stacks of parts of the result, and a part of a stack.
func TestStacks(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 4, 2, []float32{1, 2, 3, 4, 5, 6, 7, 8}))
		check(t, a.Assign(matrix.VStack[float32](a.Slice(2, 4, 0, 2), a.Slice(0, 2, 0, 2))))
		same(t, "turned", readAll[float32](t, a), []float32{5, 6, 7, 8, 1, 2, 3, 4})
		sum := matrix.SumCols(matrix.VStack[float32](a, matrix.Mul(a, a.T().Slice(0, 2, 0, 2)), matrix.Fill[float32](1, 2, 100)))
		same(t, "in a sum", readAll[float32](t, sum), []float32{16 + 61 + 83 + 17 + 39 + 100, 20 + 83 + 113 + 23 + 53 + 100})
		cross := matrix.Cross[float32](matrix.Eye[float32](3, 3, 0), matrix.Roll[float32](matrix.Eye[float32](3, 3, 0), 0, 1)).On(dev)
		same(t, "cross", readAll[float32](t, cross), []float32{0, 0, 1, 1, 0, 0, 0, 1, 0})
		check(t, a.Close())
	})
}

// TestShapingErrors refuses what does not fit, and says which sizes.
func TestShapingErrors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 3, 4))
		b := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 4, 3))
		var none matrix.Operand[float32]
		for name, c := range map[string]struct {
			e    *matrix.Expr[float32]
			want error
		}{
			"eye":        {matrix.Eye[float32](-1, 2, 0), buffer.ErrSize},
			"huge eye":   {matrix.Eye[float32](1<<40, 2, 0), gpu.ErrLimit},
			"arange":     {matrix.Arange[float32](0, 1, 0), gpu.ErrInvalid},
			"nan":        {matrix.Arange[float32](0, math.NaN(), 1), gpu.ErrInvalid},
			"bytes":      {matrix.Convert[float32](matrix.Arange[int8](0, 300, 100)), gpu.ErrInvalid},
			"few bytes":  {matrix.Convert[float32](matrix.Linspace[uint8](0, 300, 4)), gpu.ErrInvalid},
			"endless":    {matrix.Arange[float32](0, 1e30, 1), gpu.ErrLimit},
			"linspace":   {matrix.Linspace[float32](0, 1, -3), buffer.ErrSize},
			"vstack":     {matrix.VStack[float32](a, b), buffer.ErrShape},
			"hstack":     {matrix.HStack[float32](a, b), buffer.ErrShape},
			"no operand": {matrix.HStack[float32](), gpu.ErrInvalid},
			"nil":        {matrix.VStack(a, none), buffer.ErrNil},
			"reshape":    {matrix.Reshape(a, 5, 2), buffer.ErrShape},
			"rest":       {matrix.Reshape(a, 5, -1), buffer.ErrShape},
			"khatri-rao": {matrix.KhatriRao(a, b), buffer.ErrShape},
			"cross":      {matrix.Cross(a, b), buffer.ErrShape},
			"outer":      {matrix.Outer(a, b), buffer.ErrShape},
			"broadcast":  {matrix.BroadcastTo(a, 6, 4), buffer.ErrShape},
			"pad":        {matrix.Pad(a, -1, 0, 0, 0, 0), buffer.ErrSize},
			"tile":       {matrix.Tile(a, 1<<40, 1<<40), gpu.ErrLimit},
			"far":        {matrix.Tril(a, 1<<40), gpu.ErrLimit},
			"number":     {matrix.Shaped(1000, matrix.Float32, []matrix.Operand[float32]{a}, nil), gpu.ErrInvalid},
			"operands":   {matrix.Shaped(5, matrix.Float32, []matrix.Operand[float32]{a, a}, nil), gpu.ErrInvalid},
		} {
			if err := c.e.Err(); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		vars := map[string]matrix.Operand[float32]{"A": a, "B": b}
		for _, text := range []string{"eye()", "eye(1.5)", "tile(A)", "tile(A, B, 2)", "vstack(A, B)", "reshape(A, 2, 2)", "takerows(A, A)", "eye(1, 2, 3, 4)"} {
			if err := matrix.Eval(text, vars).Err(); err == nil {
				t.Errorf("%s: no error", text)
			}
		}
		for text, size := range map[string][2]int{
			"eye(3)": {3, 3}, "eye(2, 4, 1) * B": {2, 3}, "vstack(A, 2 * A, T(B))": {9, 4}, "reshape(A, -1, 2)": {6, 2}, "arange(5)": {1, 5},
			"takerows(A, arange(2))": {2, 4}, "onehot(arange(4), 6)": {6, 4}, "kron(A, B)": {12, 12}, "linspace(0, 1)": {1, 50}, "pad(A, 1, 1, 1, 1)": {5, 6},
		} {
			e := matrix.Eval(text, vars)
			if rows, cols := e.Dims(); e.Err() != nil || rows != size[0] || cols != size[1] {
				t.Errorf("%s: %dx%d, %v", text, rows, cols, e.Err())
			}
			check(t, must[*matrix.Dense[float32]](t)(e.On(dev).Eval()).Close())
		}
		check(t, a.Close())
		check(t, b.Close())
	})
}

// TestReshapeOfNothing reshapes what computes nothing, so that it is the matrix itself, which lies in other orders than row by row.
func TestReshapeOfNothing(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := random(newRand(130), 6*8)
		for turn, f := range forms {
			a, _ := wrapped(t, dev, f, 6, 8, x)
			for what, e := range map[string]*expr{
				"converted": matrix.Convert[float32](a), "twice": matrix.Abs(matrix.Abs(matrix.Convert[float32](a))).Add(matrix.Fill[float32](1, 1, 0)),
				"turned": matrix.Transpose(matrix.Convert[float32](matrix.Transpose(a))),
			} {
				want := x
				if what == "twice" {
					want = must[[]float32](t)(matrix.Abs(a).Read(background))
				}
				same(t, name(what, turn), must[[]float32](t)(matrix.Reshape(e, 3, 16).Read(background)), want)
				same(t, name(what, "used", turn), must[[]float32](t)(matrix.Reshape(e, 3, 16).Neg().Neg().Read(background)), want)
				into := must[*dense](t)(matrix.New[float32](dev, 16, 3, matrix.Options{ColMajor: true, Padded: true}))
				check(t, into.Assign(matrix.Reshape(e, 16, 3)))
				same(t, name(what, "by columns", turn), must[[]float32](t)(into.Read(background)), want)
				check(t, into.Close())
			}
			check(t, a.Assign(matrix.Reshape(matrix.Reshape(matrix.AddScalar(a, 1), 48, 1), 6, 8)))
			next := make([]float32, len(x))
			for i, v := range x {
				next[i] = v + 1
			}
			same(t, name("in place", turn), must[[]float32](t)(a.Read(background)), next)
			check(t, a.Close())
		}
		nothingLeft(t, dev)
	})
}
