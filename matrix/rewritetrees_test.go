// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
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

// TestRandomTreesOfIntegers wants the same bits: whole numbers wrap, in any order.
func TestRandomTreesOfIntegers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(64)
		leaf := func(rows, cols int) *matrix.Expr[int32] {
			v := make([]int32, rows*cols)
			for i := range v {
				v[i] = int32(rng.Uint32())
			}
			m := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, rows, cols, v))
			t.Cleanup(func() { check(t, m.Close()) })
			return m.Expr()
		}
		a, b, x := leaf(7, 9), leaf(9, 8), leaf(8, 1)
		for what, e := range map[string]*matrix.Expr[int32]{
			"chain": matrix.Mul(matrix.Mul(a, b), x), "scaled": matrix.Mul(matrix.Scale(3, a), matrix.Neg(b)), "sum": matrix.Sum(matrix.Mul(a, b)),
			"divided": matrix.Mul(matrix.DivElem(a, matrix.Fill[int32](1, 1, 3)), b), "trace": matrix.Trace(matrix.Mul(a, b)),
			"part": matrix.Slice(matrix.Mul(a, b), 2, 5, 1, 4), "abs": matrix.Mul(matrix.Abs(matrix.Abs(a)), b), "floor": matrix.Mul(matrix.Floor(a), b),
			"columns": matrix.SumCols(matrix.Mul(a, b)), "diagonal": matrix.Diagonal(matrix.Mul(a, b), 1),
		} {
			got := must[[]int32](t)(e.Read(background))
			matrix.ComputeAsWritten(dev, true)
			same(t, what, got, must[[]int32](t)(e.Read(background)))
			matrix.ComputeAsWritten(dev, false)
		}
	})
}
