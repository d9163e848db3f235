// SPDX-License-Identifier: Apache-2.0

package fuse

import "math"

// compute applies one operation to whole registers.
func compute[N Num](op Op, r, x, y, z []N) {
	if unaryFloat(op, r, x) || arithmetic(op, r, x, y) || compare(op, r, x, y) {
		return
	}
	var zero N
	for i := range r {
		switch op {
		case OpNeg:
			r[i] = -x[i]
		case OpAbs:
			r[i] = x[i]
			if x[i] < zero {
				r[i] = -x[i]
			} else if x[i] == zero { // -0
				r[i] = zero
			}
		case OpSign:
			r[i] = sign(x[i])
		case OpSquare:
			r[i] = x[i] * x[i]
		case OpRelu:
			r[i] = x[i]
			if x[i] < zero {
				r[i] = zero
			}
		case OpNot:
			r[i] = truth[N](x[i] == zero)
		case OpWhere:
			r[i] = z[i]
			if x[i] != zero {
				r[i] = y[i]
			}
		case OpClamp:
			r[i] = clamp(x[i], y[i], z[i])
		case OpCopy, OpFloor, OpCeil, OpRound, OpTrunc: // the last four of integers
			r[i] = x[i]
		}
	}
}

func truth[N Num](b bool) N {
	if b {
		return 1
	}
	return 0
}

func sign[N Num](x N) N {
	var zero N
	switch {
	case x > zero:
		return 1
	case x < zero:
		return zero - 1
	}
	return x // zero, or NaN
}

func clamp[N Num](x, lo, hi N) N {
	if x > hi {
		x = hi
	}
	if x < lo {
		x = lo
	}
	return x
}

// unaryFloat computes functions of floating point in float64, to be a reference. It reports whether op is one.
func unaryFloat[N Num](op Op, r, x []N) bool {
	rf, ok := any(r).([]float32)
	if !ok {
		return false
	}
	fn := unaryTable[op]
	if fn == nil {
		return false
	}
	xf := any(x).([]float32)
	for i, v := range xf {
		rf[i] = float32(fn(float64(v)))
	}
	return true
}

var unaryTable = [opCount]func(float64) float64{
	OpFloor: math.Floor, OpCeil: math.Ceil, OpRound: math.RoundToEven, OpTrunc: math.Trunc,
	OpSqrt: math.Sqrt, OpExp: math.Exp, OpLog: math.Log, OpSin: math.Sin, OpCos: math.Cos, OpTanh: math.Tanh,
	OpRecip:   func(x float64) float64 { return 1 / x },
	OpRsqrt:   func(x float64) float64 { return 1 / math.Sqrt(x) },
	OpSigmoid: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
}

func arithmetic[N Num](op Op, r, x, y []N) bool {
	switch op {
	case OpAdd:
		for i := range r {
			r[i] = x[i] + y[i]
		}
	case OpSub:
		for i := range r {
			r[i] = x[i] - y[i]
		}
	case OpMul:
		for i := range r {
			r[i] = x[i] * y[i]
		}
	case OpDiv:
		for i := range r {
			r[i] = divide(x[i], y[i])
		}
	case OpMin:
		for i := range r {
			r[i] = y[i]
			if x[i] < y[i] || x[i] != x[i] {
				r[i] = x[i]
			}
		}
	case OpMax:
		for i := range r {
			r[i] = y[i]
			if x[i] > y[i] || x[i] != x[i] {
				r[i] = x[i]
			}
		}
	case OpPow:
		for i := range r {
			r[i] = convert[N](math.Pow(float64(x[i]), float64(y[i])))
		}
	default:
		return false
	}
	return true
}

// divide divides as WGSL does: integers by zero yield the dividend.
func divide[N Num](x, y N) N {
	if y == 0 {
		if _, float := any(x).(float32); !float {
			return x
		}
	}
	return x / y
}

func compare[N Num](op Op, r, x, y []N) bool {
	var test func(a, b N) bool
	switch op {
	case OpEq:
		test = func(a, b N) bool { return a == b }
	case OpNe:
		test = func(a, b N) bool { return a != b }
	case OpLt:
		test = func(a, b N) bool { return a < b }
	case OpLe:
		test = func(a, b N) bool { return a <= b }
	case OpGt:
		test = func(a, b N) bool { return a > b }
	case OpGe:
		test = func(a, b N) bool { return a >= b }
	case OpAnd:
		test = func(a, b N) bool { return a != 0 && b != 0 }
	case OpOr:
		test = func(a, b N) bool { return a != 0 || b != 0 }
	default:
		return false
	}
	for i := range r {
		r[i] = truth[N](test(x[i], y[i]))
	}
	return true
}
