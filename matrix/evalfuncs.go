// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"
)

// textFunction is a function of Eval's language. call returns nil for arguments of the wrong sort.
type textFunction[T Elem] struct {
	arity int
	call  func(args []textValue[T]) *Expr[T]
}

// operand makes a number a 1x1 constant.
func (v textValue[T]) operand() Operand[T] {
	if v.expr == nil {
		return &Expr[T]{scalarNode(fromFloat[T](v.number))}
	}
	return v.expr
}

// index returns a number as an index.
func (v textValue[T]) index() (int, bool) {
	ok := v.expr == nil && v.number == math.Trunc(v.number) && math.Abs(v.number) <= 1<<40
	return int(v.number), ok
}

func text1[T Elem](f func(Operand[T]) *Expr[T]) textFunction[T] {
	return textFunction[T]{1, func(a []textValue[T]) *Expr[T] { return f(a[0].operand()) }}
}

func text2[T Elem](f func(a, b Operand[T]) *Expr[T]) textFunction[T] {
	return textFunction[T]{2, func(a []textValue[T]) *Expr[T] { return f(a[0].operand(), a[1].operand()) }}
}

func text3[T Elem](f func(a, b, c Operand[T]) *Expr[T]) textFunction[T] {
	return textFunction[T]{3, func(a []textValue[T]) *Expr[T] { return f(a[0].operand(), a[1].operand(), a[2].operand()) }}
}

// textLimits is a function of a matrix and two numbers.
func textLimits[T Elem](f func(a Operand[T], lo, hi T) *Expr[T]) textFunction[T] {
	return textFunction[T]{3, func(a []textValue[T]) *Expr[T] {
		if a[1].expr != nil || a[2].expr != nil {
			return nil
		}
		return f(a[0].operand(), fromFloat[T](a[1].number), fromFloat[T](a[2].number))
	}}
}

// textPow raises to the power of a number or a matrix.
func textPow[T Elem]() textFunction[T] {
	return textFunction[T]{2, func(a []textValue[T]) *Expr[T] {
		if a[1].expr == nil {
			return PowScalar(a[0].operand(), fromFloat[T](a[1].number))
		}
		return Pow(a[0].operand(), a[1].operand())
	}}
}

// textView is a function of a matrix's name and whole numbers.
func textView[T Elem](indices int, f func(m *Dense[T], i []int) *Dense[T]) textFunction[T] {
	return textFunction[T]{1 + indices, func(a []textValue[T]) *Expr[T] {
		if a[0].base == nil {
			return nil
		}
		at := make([]int, indices)
		for k := range at {
			var ok bool
			if at[k], ok = a[k+1].index(); !ok {
				return nil
			}
		}
		return &Expr[T]{f(a[0].base, at).expr("Eval")}
	}}
}

// textForms lists the functions that are no operations.
func textForms[T Elem]() map[string]textFunction[T] {
	return map[string]textFunction[T]{
		"fill": {3, func(a []textValue[T]) *Expr[T] {
			r, ok := a[0].index()
			c, ok2 := a[1].index()
			if !ok || !ok2 || a[2].expr != nil {
				return nil
			}
			return Fill(r, c, fromFloat[T](a[2].number))
		}},
		"slice": textView(4, func(m *Dense[T], i []int) *Dense[T] { return m.Slice(i[0], i[1], i[2], i[3]) }),
		"row":   textView(1, func(m *Dense[T], i []int) *Dense[T] { return m.Row(i[0]) }),
		"col":   textView(1, func(m *Dense[T], i []int) *Dense[T] { return m.Col(i[0]) }),
	}
}
