// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// trees makes random expressions of products, sums, transposes, parts and numbers, some parts of which are used several times.
type trees struct {
	operands
	made []judged
	text strings.Builder
}

var treeSizes = []int{1, 1, 2, 3, 5, 8}

func (o *trees) size() int { return treeSizes[o.rng.IntN(len(treeSizes))] }

func (o *trees) make(rows, cols, depth int) judged {
	for _, m := range o.made {
		if m.rows == rows && m.cols == cols && o.rng.IntN(8) == 0 {
			o.text.WriteString("again")
			return m
		}
	}
	x := o.grow(rows, cols, depth)
	o.made = append(o.made, x)
	return x
}

func (o *trees) grow(rows, cols, depth int) judged {
	if depth == 0 {
		o.text.WriteString(name(rows, "x", cols))
		return o.matrix(rows, cols)
	}
	sub := func(name string, r, c int) judged {
		o.text.WriteString(name + "(")
		x := o.make(r, c, depth-1)
		o.text.WriteString(")")
		return x
	}
	extra := o.rng.IntN(4)
	switch at := o.rng.IntN(16); {
	case at < 6:
		k := o.size()
		return sub("mul", rows, k).times(sub("by", k, cols))
	case at < 8:
		return sub("T", cols, rows).turned()
	case at == 8:
		return sub("scale", rows, cols).scaled(1.5)
	case at == 9:
		return sub("neg", rows, cols).negated()
	case at == 10:
		return sub("add", rows, cols).plus(sub("to", rows, cols))
	case at == 11 && rows == 1 && cols > 1:
		return sub("diagonal", cols+extra, cols+2).diagonal(max(extra-2, 0)).part(0, 1, 0, cols)
	case rows == 1 && cols == 1 && at < 14:
		return sub("trace", 3, 3+extra).trace()
	case rows == 1 && cols == 1:
		return sub("sum", o.size(), o.size()).sum()
	case cols == 1 && at < 14:
		return sub("sumrows", rows, o.size()).sumRows()
	case rows == 1 && at < 14:
		return sub("meancols", o.size(), cols).meanCols()
	}
	i, j := o.rng.IntN(3), o.rng.IntN(3)
	return sub("part", rows+i+extra, cols+j).part(i, i+rows, j, j+cols)
}

// TestRandomTrees compares random expressions with float64, rewritten and as they are written.
func TestRandomTrees(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		count := uint64(20)
		switch {
		case few:
			count = 4
		case devtest.Long():
			count = 2000
		case dev.Info().Driver == "cpu":
			count = 1000
		}
		for seed := range count {
			o := &trees{operands: operands{t, dev, newRand(1000 + seed), seed%2 == 1}}
			x := o.make(o.size(), o.size(), 4+int(seed%3))
			x.agrees(t, name(seed, o.text.String()))
			matrix.ComputeAsWritten(dev, true)
			x.agrees(t, name(seed, o.text.String(), " as written"))
			matrix.ComputeAsWritten(dev, false)
		}
	})
}

// TestRewritesOfOtherTypes wants whole numbers to have the same bits, which wrap in any order, and float16 to be near.
func TestRewritesOfOtherTypes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		sameAsWritten(t, dev, func(rng *rand.Rand) int32 { return int32(rng.Uint32()) }, func(x, y int32) bool { return x == y })
		sameAsWritten(t, dev, func(rng *rand.Rand) uint8 { return uint8(rng.Uint32()) }, func(x, y uint8) bool { return x == y })
		if !sparing(dev) { // packed like those of 8 bits
			sameAsWritten(t, dev, func(rng *rand.Rand) int16 { return int16(rng.Uint32()) }, func(x, y int16) bool { return x == y })
		}
		sameAsWritten(t, dev, func(rng *rand.Rand) matrix.Half { return matrix.ToHalf(rng.Float32() - .5) }, func(x, y matrix.Half) bool {
			return math.Abs(float64(x.Float32()-y.Float32())) <= 0x1p-9*(1+math.Abs(float64(x.Float32())))
		})
	})
}

// sameAsWritten compares expressions that are rewritten with what they are as they are written.
func sameAsWritten[T matrix.Elem](t *testing.T, dev *gpu.Device, value func(rng *rand.Rand) T, equal func(x, y T) bool) {
	t.Helper()
	rng := newRand(64)
	leaf := func(rows, cols int) *matrix.Expr[T] {
		v := make([]T, rows*cols)
		for i := range v {
			v[i] = value(rng)
		}
		m := must[*matrix.Dense[T]](t)(matrix.FromSlice(dev, rows, cols, v))
		t.Cleanup(func() { check(t, m.Close()) })
		return m.Expr()
	}
	a, b, x := leaf(7, 9), leaf(9, 8), leaf(8, 1)
	s := value(rng)
	ab := func() *matrix.Expr[T] { return matrix.Mul(a, b) }
	for what, e := range map[string]*matrix.Expr[T]{
		"chain": ab().Mul(x), "scaled": matrix.Mul(matrix.Scale(s, a), matrix.Neg(b)), "sum": matrix.Sum(ab()),
		"divided": matrix.Mul(matrix.DivElem(a, matrix.Fill(1, 1, s)), b), "trace": matrix.Trace(ab()), "part": matrix.Slice(ab(), 2, 5, 1, 4),
		"abs": matrix.Mul(matrix.Abs(matrix.Abs(a)), b), "floor": matrix.Mul(matrix.Floor(a), b), "columns": matrix.SumCols(ab()),
		"diagonal": matrix.Diagonal(ab(), 1), "turned": matrix.Mul(matrix.Transpose(x), matrix.Transpose(ab())),
	} {
		got := must[[]T](t)(e.Read(background))
		matrix.ComputeAsWritten(dev, true)
		want := must[[]T](t)(e.Read(background))
		matrix.ComputeAsWritten(dev, false)
		if !slices.EqualFunc(got, want, equal) {
			t.Fatalf("%s of %s: %v, as written %v", what, e.DType(), got, want)
		}
	}
}
