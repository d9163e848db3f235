// SPDX-License-Identifier: Apache-2.0

package matrix

import "math"

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
		v := f(a[0].base, at)
		x := &Expr[T]{v.expr("Eval")}
		return x
	}}
}

// textFunctions lists the functions by their names in lower case.
func textFunctions[T Elem]() map[string]textFunction[T] {
	return map[string]textFunction[T]{
		"neg": text1(Neg[T]), "abs": text1(Abs[T]), "sign": text1(Sign[T]), "not": text1(Not[T]),
		"floor": text1(Floor[T]), "ceil": text1(Ceil[T]), "round": text1(Round[T]), "trunc": text1(Trunc[T]),
		"square": text1(Square[T]), "sqrt": text1(Sqrt[T]), "exp": text1(Exp[T]), "log": text1(Log[T]),
		"sin": text1(Sin[T]), "cos": text1(Cos[T]), "tanh": text1(Tanh[T]), "sigmoid": text1(Sigmoid[T]),
		"relu": text1(Relu[T]), "recip": text1(Recip[T]),
		"t": text1(Transpose[T]), "transpose": text1(Transpose[T]),
		"sum": text1(Sum[T]), "sumrows": text1(SumRows[T]), "sumcols": text1(SumCols[T]),
		"maxall": text1(MaxAll[T]), "maxrows": text1(MaxRows[T]), "maxcols": text1(MaxCols[T]),
		"minall": text1(MinAll[T]), "minrows": text1(MinRows[T]), "mincols": text1(MinCols[T]),
		"prod": text1(Prod[T]), "mean": text1(Mean[T]),
		"softmax": text1(Softmax[T]), "logsoftmax": text1(LogSoftmax[T]),

		"matmul": text2(Mul[T]), "multiply": text2(MulElem[T]), "add": text2(Add[T]), "subtract": text2(Sub[T]),
		"divide": text2(DivElem[T]), "sub": text2(Sub[T]), "div": text2(DivElem[T]),
		"min": text2(Min[T]), "max": text2(Max[T]), "and": text2(And[T]), "or": text2(Or[T]),
		"equal": text2(Equal[T]), "notequal": text2(NotEqual[T]), "less": text2(Less[T]),
		"lessequal": text2(LessEqual[T]), "greater": text2(Greater[T]), "greaterequal": text2(GreaterEqual[T]),

		"pow": {2, func(a []textValue[T]) *Expr[T] {
			if a[1].expr == nil {
				return PowScalar(a[0].operand(), fromFloat[T](a[1].number))
			}
			return Pow(a[0].operand(), a[1].operand())
		}},
		"where": {3, func(a []textValue[T]) *Expr[T] { return Where(a[0].operand(), a[1].operand(), a[2].operand()) }},
		"clamp": {3, func(a []textValue[T]) *Expr[T] {
			if a[1].expr != nil || a[2].expr != nil {
				return nil
			}
			return Clamp(a[0].operand(), fromFloat[T](a[1].number), fromFloat[T](a[2].number))
		}},
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
