// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Reduce is a sum or the like, for programs that decode expressions. number is that of the reductions that take one.
func Reduce[T Elem](what fuse.Reduction, along fuse.Axis, number float64, a Operand[T]) *Expr[T] {
	const op = "Reduce"
	if !what.Valid() || along > fuse.AxisCols {
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, "no such reduction"))}
	}
	return &Expr[T]{reduceNode(op, what, along, from(op, a), number)}
}

// ddofOf is the number of a variance that is called with ddof or without, and NaN, which no variance takes, of several.
func ddofOf(ddof []int) float64 {
	switch len(ddof) {
	case 0:
		return 0
	case 1:
		return float64(ddof[0])
	}
	return math.NaN()
}

// numberIn is the number behind an operand of Eval, 0 where it is left out, and NaN, which no reduction takes, where it is none.
func numberIn(args []*node) float64 {
	switch {
	case len(args) < 2:
		return 0
	case args[1].Kind == expr.Scalar && args[1].Rows == 1 && args[1].Cols == 1:
		return args[1].Value
	}
	return math.NaN()
}

// reduceNode is a reduction with what it does to each element first. number is the ddof of a variance and the power of a norm.
func reduceNode(op string, what fuse.Reduction, axis fuse.Axis, x *node, number float64) *node {
	if x.Err != nil {
		return x
	}
	results := 1
	switch axis {
	case fuse.AxisRows:
		results = x.Rows
	case fuse.AxisCols:
		results = x.Cols
	}
	if norm := what >= fuse.ReduceNorm1 && what <= fuse.ReduceNormP; norm && x.Kind == expr.Complex {
		x = expr.NewMap(op, fuse.OpAbs, x)
	}
	count := float64(x.Rows*x.Cols) / float64(results) // NaN where there are no results
	switch what {
	case fuse.ReduceMean:
		number = 1 / count
	case fuse.ReduceVar, fuse.ReduceStd:
		if number != math.Trunc(number) || number < 0 {
			return expr.Failed(fail(op, gpu.ErrInvalid, "ddof is not one natural number"))
		}
		number = 1 / max(count-number, 0)
	case fuse.ReduceNorm1, fuse.ReduceNormInf:
		x = expr.NewMap(op, fuse.OpAbs, x)
	case fuse.ReduceNorm2:
		x, number = expr.NewMap(op, fuse.OpSquare, x), 1
	case fuse.ReduceNormP:
		return normNode(op, axis, x, number)
	case fuse.ReduceAnyNonzero, fuse.ReduceAllNonzero:
		x = expr.NewMap(op, fuse.OpNe, x, expr.Number(x.Type, 1, 1, 0))
	}
	return expr.NewReduction(op, what, axis, number, x)
}

// normNode is the norm of a power, for some of which there is another way.
func normNode(op string, axis fuse.Axis, x *node, power float64) *node {
	if math.IsNaN(power) || power == 0 {
		return expr.Failed(fail(op, gpu.ErrInvalid, "the norm's power is 0 or not a number"))
	}
	what := fuse.ReduceNormP
	switch power {
	case 1:
		what = fuse.ReduceNorm1
	case 2:
		what = fuse.ReduceNorm2
	case math.Inf(1):
		what = fuse.ReduceNormInf
	}
	if what != fuse.ReduceNormP && what.Takes(x.Type) {
		return reduceNode(op, what, axis, x, 0)
	}
	x = expr.NewMap(op, fuse.OpAbs, x)
	if math.IsInf(power, -1) {
		return expr.NewReduction(op, fuse.ReduceMin, axis, 0, x)
	}
	return expr.NewReduction(op, fuse.ReduceNormP, axis, 1/power, powNode(op, x, numberNode(x.Type, power)))
}

// The forms of a softmax.
const (
	softmaxPlain = iota
	softmaxLog
	softmaxHard
	softmaxForms
)

// Normalise is a softmax or the like, for programs that decode expressions: [Softmax] is form 0, [LogSoftmax] 1, [Hardmax] 2.
func Normalise[T Elem](form int, along fuse.Axis, a Operand[T]) *Expr[T] {
	const op = "Normalise"
	if form < 0 || form >= softmaxForms || along > fuse.AxisCols {
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, "no such softmax"))}
	}
	return &Expr[T]{softmaxNode(op, form, along, from(op, a))}
}

// softmaxNode is a softmax or the like. One of all elements is put together of reductions: a single row would occupy one workgroup.
func softmaxNode(op string, form int, axis fuse.Axis, x *node) *node {
	switch {
	case x.Err != nil:
		return x
	case axis == fuse.AxisCols:
		return expr.NewTranspose(op, softmaxNode(op, form, fuse.AxisRows, expr.NewTranspose(op, x)))
	case form == softmaxHard:
		return expr.NewHardmax(op, axis, x)
	case axis == fuse.AxisRows:
		return expr.NewSoftmax(op, form == softmaxLog, x)
	}
	less := expr.NewMap(op, fuse.OpSub, x, reduceNode(op, fuse.ReduceMax, axis, x, 0))
	powers := expr.NewMap(op, fuse.OpExp, less)
	sum := expr.NewReduction(op, fuse.ReduceSum, axis, 0, powers)
	if form == softmaxLog {
		return expr.NewMap(op, fuse.OpSub, less, expr.NewMap(op, fuse.OpLog, sum))
	}
	return expr.NewMap(op, fuse.OpDiv, powers, sum)
}
