// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"math"

	"github.com/sublet-gpu/sublet/matrix"
)

// number is an element type as its model sees it. Elements are whole numbers, which all devices compute exactly: integers wrap, and
// results that a float has no exact number for are not asked for.
type number[T matrix.Elem] struct {
	name     string
	to       func(int64) T
	from     func(T) int64
	norm     func(int64) int64
	limit    int64 // of floats: the whole numbers up to this one are exact; 0 for integers
	unsigned bool
}

func same64(v int64) int64 { return v }

var (
	float32s = number[float32]{
		name: "float32", limit: 1 << 24, norm: same64,
		to: func(v int64) float32 { return float32(v) }, from: func(v float32) int64 { return whole(v) },
	}
	halves = number[matrix.Half]{
		name: "float16", limit: 1 << 11, norm: same64,
		to:   func(v int64) matrix.Half { return matrix.ToHalf(float32(v)) },
		from: func(v matrix.Half) int64 { return whole(v.Float32()) },
	}
	int32s = number[int32]{
		name: "int32", norm: func(v int64) int64 { return int64(int32(v)) },
		to: func(v int64) int32 { return int32(v) }, from: func(v int32) int64 { return int64(v) },
	}
	uint32s = number[uint32]{
		name: "uint32", norm: func(v int64) int64 { return int64(uint32(v)) }, unsigned: true,
		to: func(v int64) uint32 { return uint32(v) }, from: func(v uint32) int64 { return int64(v) },
	}
)

// whole returns a number that no model has in place of a fraction.
func whole(v float32) int64 {
	if v != float32(math.Trunc(float64(v))) || math.Abs(float64(v)) > 1<<40 {
		return math.MinInt64
	}
	return int64(v)
}

func (n *number[T]) slice(v []int64) []T {
	out := make([]T, len(v))
	for i, x := range v {
		out[i] = n.to(x)
	}
	return out
}

func (n *number[T]) model(v []T) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = n.from(x)
	}
	return out
}

// term is an expression and its elements, row by row. It is inexact if the model cannot say what its elements are.
type term[T matrix.Elem] struct {
	e          matrix.Operand[T]
	rows, cols int
	v          []int64
	inexact    bool
}

func (n *number[T]) term(e matrix.Operand[T], rows, cols int, at func(i, j int) int64, from ...term[T]) term[T] {
	t := term[T]{e: e, rows: rows, cols: cols, v: make([]int64, rows*cols)}
	for i := range rows {
		for j := range cols {
			x := n.norm(at(i, j))
			t.v[i*cols+j] = x
			t.inexact = t.inexact || n.limit > 0 && (x > n.limit || x < -n.limit)
		}
	}
	for _, f := range from {
		t.inexact = t.inexact || f.inexact
	}
	return t
}

// at returns an element of a matrix or of a row, a column or a number that is stretched to it.
func (t *term[T]) at(i, j int) int64 {
	if t.rows == 1 {
		i = 0
	}
	if t.cols == 1 {
		j = 0
	}
	return t.v[i*t.cols+j]
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

type twoOf[T matrix.Elem] struct {
	call func(a, b matrix.Operand[T]) *matrix.Expr[T]
	f    func(x, y int64) int64
}

func binaries[T matrix.Elem]() []twoOf[T] {
	return []twoOf[T]{
		{matrix.Add[T], func(x, y int64) int64 { return x + y }},
		{matrix.Sub[T], func(x, y int64) int64 { return x - y }},
		{matrix.MulElem[T], func(x, y int64) int64 { return x * y }},
		{matrix.Min[T], func(x, y int64) int64 { return min(x, y) }},
		{matrix.Max[T], func(x, y int64) int64 { return max(x, y) }},
		{matrix.Equal[T], func(x, y int64) int64 { return truth(x == y) }},
		{matrix.NotEqual[T], func(x, y int64) int64 { return truth(x != y) }},
		{matrix.Less[T], func(x, y int64) int64 { return truth(x < y) }},
		{matrix.LessEqual[T], func(x, y int64) int64 { return truth(x <= y) }},
		{matrix.Greater[T], func(x, y int64) int64 { return truth(x > y) }},
		{matrix.And[T], func(x, y int64) int64 { return truth(x != 0 && y != 0) }},
		{matrix.Or[T], func(x, y int64) int64 { return truth(x != 0 || y != 0) }},
	}
}

type oneOf[T matrix.Elem] struct {
	call func(a matrix.Operand[T]) *matrix.Expr[T]
	f    func(x int64) int64
}

func unaries[T matrix.Elem](n *number[T], s int64) []oneOf[T] {
	k := n.to(s)
	lo, hi := n.to(1), n.to(3)
	return []oneOf[T]{
		{matrix.Neg[T], func(x int64) int64 { return -x }},
		{matrix.Abs[T], func(x int64) int64 { return max(x, -x) }},
		{matrix.Sign[T], func(x int64) int64 { return truth(x > 0) - truth(x < 0) }},
		{matrix.Square[T], func(x int64) int64 { return x * x }},
		{matrix.Relu[T], func(x int64) int64 { return max(x, 0) }},
		{matrix.Not[T], func(x int64) int64 { return truth(x == 0) }},
		{matrix.Floor[T], same64},
		{matrix.Round[T], same64},
		{func(a matrix.Operand[T]) *matrix.Expr[T] { return matrix.Scale(k, a) }, func(x int64) int64 { return s * x }},
		{func(a matrix.Operand[T]) *matrix.Expr[T] { return matrix.AddScalar(a, k) }, func(x int64) int64 { return x + s }},
		{func(a matrix.Operand[T]) *matrix.Expr[T] { return matrix.ScalarSub(k, a) }, func(x int64) int64 { return s - x }},
		{func(a matrix.Operand[T]) *matrix.Expr[T] { return matrix.MinScalar(a, k) }, func(x int64) int64 { return min(x, s) }},
		{func(a matrix.Operand[T]) *matrix.Expr[T] { return matrix.MaxScalar(a, k) }, func(x int64) int64 { return max(x, s) }},
		{func(a matrix.Operand[T]) *matrix.Expr[T] { return matrix.Clamp(a, lo, hi) }, func(x int64) int64 { return min(max(x, 1), 3) }},
	}
}

type fold[T matrix.Elem] struct {
	all, rows, cols func(a matrix.Operand[T]) *matrix.Expr[T]
	f               func(x, y int64) int64
}

func folds[T matrix.Elem]() []fold[T] {
	return []fold[T]{
		{matrix.Sum[T], matrix.SumRows[T], matrix.SumCols[T], func(x, y int64) int64 { return x + y }},
		{matrix.MaxAll[T], matrix.MaxRows[T], matrix.MaxCols[T], func(x, y int64) int64 { return max(x, y) }},
		{matrix.MinAll[T], matrix.MinRows[T], matrix.MinCols[T], func(x, y int64) int64 { return min(x, y) }},
	}
}

// real are functions of real numbers, which are compared within a tolerance and never stored.
type real[T matrix.Elem] struct {
	call func(a matrix.Operand[T]) *matrix.Expr[T]
	f    func(x float64) float64
}

func reals[T matrix.Elem]() []real[T] {
	return []real[T]{
		{matrix.Exp[T], math.Exp},
		{matrix.Tanh[T], math.Tanh},
		{matrix.Sin[T], math.Sin},
		{matrix.Cos[T], math.Cos},
		{matrix.Sigmoid[T], func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	}
}
