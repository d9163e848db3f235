// SPDX-License-Identifier: Apache-2.0

package fuse

// Op is an operation of a Func.
type Op uint8

// The operations. Comparisons and logic yield 1 or 0 in the type of the computation; any value but 0 is true.
const (
	OpAcc    Op = iota // the kernel's own value: a product, a loaded element, a sum
	OpLoad             // operand X
	OpScalar           // scalar X
	OpCall             // user's function X of values Y, Y+1, ...

	OpCopy // X
	OpNeg
	OpAbs
	OpSign
	OpFloor
	OpCeil
	OpRound // half to even
	OpTrunc
	OpSquare
	OpRecip
	OpSqrt
	OpRsqrt
	OpExp
	OpLog
	OpSin
	OpCos
	OpTanh
	OpSigmoid
	OpRelu
	OpNot

	OpAdd
	OpSub
	OpMul
	OpDiv
	OpMin
	OpMax
	OpPow
	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpAnd
	OpOr

	OpWhere // X != 0 ? Y : Z
	OpClamp // X limited to Y..Z

	opCount
)

// opInfo describes an operation. In wgsl, x, y and z in capitals stand for the operands, T for the scalar type and V for
// the vector type.
type opInfo struct {
	name   string
	arity  int
	floats bool // only for floating point
	wgsl   string
	ints   string // the text for integers where it differs
	uints  string // the text for unsigned integers where it differs
	needs  string // helper
}

var ops = [opCount]opInfo{
	OpAcc: {name: "acc"}, OpLoad: {name: "load"}, OpScalar: {name: "scalar"}, OpCall: {name: "call"},

	OpCopy:    {name: "copy", arity: 1, wgsl: "X"},
	OpNeg:     {name: "neg", arity: 1, wgsl: "-X", uints: "V() - X"},
	OpAbs:     {name: "abs", arity: 1, wgsl: "abs(X)", uints: "X"},
	OpSign:    {name: "sign", arity: 1, wgsl: "sign(X)", ints: "select(V(), V(1), X > V()) - select(V(), V(1), X < V())", uints: "min(X, V(1u))"},
	OpFloor:   {name: "floor", arity: 1, wgsl: "floor(X)", ints: "X", uints: "X"},
	OpCeil:    {name: "ceil", arity: 1, wgsl: "ceil(X)", ints: "X", uints: "X"},
	OpRound:   {name: "round", arity: 1, wgsl: "round(X)", ints: "X", uints: "X"},
	OpTrunc:   {name: "trunc", arity: 1, wgsl: "trunc(X)", ints: "X", uints: "X"},
	OpSquare:  {name: "square", arity: 1, wgsl: "X * X"},
	OpRecip:   {name: "recip", arity: 1, floats: true, wgsl: "V(1.0) / X"},
	OpSqrt:    {name: "sqrt", arity: 1, floats: true, wgsl: "sqrt(X)"},
	OpRsqrt:   {name: "rsqrt", arity: 1, floats: true, wgsl: "V(1.0) / sqrt(X)"},
	OpExp:     {name: "exp", arity: 1, floats: true, wgsl: "exp(X)"},
	OpLog:     {name: "log", arity: 1, floats: true, wgsl: "log(X)"},
	OpSin:     {name: "sin", arity: 1, floats: true, wgsl: "sin(X)"},
	OpCos:     {name: "cos", arity: 1, floats: true, wgsl: "cos(X)"},
	OpTanh:    {name: "tanh", arity: 1, floats: true, wgsl: "tanh4(X)", needs: helperTanh},
	OpSigmoid: {name: "sigmoid", arity: 1, floats: true, wgsl: "V(1.0) / (V(1.0) + exp(-X))"},
	OpRelu:    {name: "relu", arity: 1, wgsl: "select(X, V(), X < V())", uints: "X"},
	OpNot:     {name: "not", arity: 1, wgsl: "select(V(), V(T(1)), X == V())"},

	OpAdd: {name: "add", arity: 2, wgsl: "X + Y"},
	OpSub: {name: "sub", arity: 2, wgsl: "X - Y"},
	OpMul: {name: "mul", arity: 2, wgsl: "X * Y"},
	OpDiv: {name: "div", arity: 2, wgsl: "X / Y", ints: "divide4(X, Y)", uints: "divide4(X, Y)", needs: helperDivide},
	OpMin: {name: "min", arity: 2, wgsl: "select(Y, X, (X < Y) | nan4(X))", ints: "min(X, Y)", uints: "min(X, Y)", needs: helperNaN},
	OpMax: {name: "max", arity: 2, wgsl: "select(Y, X, (X > Y) | nan4(X))", ints: "max(X, Y)", uints: "max(X, Y)", needs: helperNaN},
	OpPow: {name: "pow", arity: 2, floats: true, wgsl: "pow4(X, Y)", needs: helperPow},
	OpEq:  {name: "eq", arity: 2, wgsl: "select(V(), V(T(1)), X == Y)"},
	OpNe:  {name: "ne", arity: 2, wgsl: "select(V(), V(T(1)), X != Y)"},
	OpLt:  {name: "lt", arity: 2, wgsl: "select(V(), V(T(1)), X < Y)"},
	OpLe:  {name: "le", arity: 2, wgsl: "select(V(), V(T(1)), X <= Y)"},
	OpGt:  {name: "gt", arity: 2, wgsl: "select(V(), V(T(1)), X > Y)"},
	OpGe:  {name: "ge", arity: 2, wgsl: "select(V(), V(T(1)), X >= Y)"},
	OpAnd: {name: "and", arity: 2, wgsl: "select(V(), V(T(1)), (X != V()) & (Y != V()))"},
	OpOr:  {name: "or", arity: 2, wgsl: "select(V(), V(T(1)), (X != V()) | (Y != V()))"},

	OpWhere: {name: "where", arity: 3, wgsl: "select(Z, Y, X != V())"},
	OpClamp: {name: "clamp", arity: 3, wgsl: "select(select(X, Z, X > Z), Y, select(X, Z, X > Z) < Y)"},
}

// String returns the operation's name.
func (o Op) String() string {
	if o < opCount {
		return ops[o].name
	}
	return "?"
}

// Arity returns how many values the operation takes.
func (o Op) Arity() int {
	if o < opCount {
		return ops[o].arity
	}
	return 0
}

// Takes reports whether the operation is defined for a type.
func (o Op) Takes(t Type) bool { return o < opCount && (t.Compute() == F32 || !ops[o].floats) }

// text returns the expression's pattern for a type.
func (o Op) text(t Type) string {
	i := &ops[o]
	switch {
	case t == I32 && i.ints != "":
		return i.ints
	case t == U32 && i.uints != "":
		return i.uints
	}
	return i.wgsl
}

// helper returns the functions that the operation's text calls.
func (o Op) helper(t Type) string {
	i := &ops[o]
	if i.needs == helperDivide && t == F32 || i.needs == helperNaN && t != F32 {
		return ""
	}
	return i.needs
}

// A NaN test on the bits: compilers may assume that x != x never holds.
const helperNaN = `fn nan4(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
`

// The built-in tanh overflows to NaN on some drivers and loses the low bits of small arguments on others. Cephes' tanhf:
// an odd polynomial near zero, 1 - 2/(exp(2x)+1) elsewhere.
const helperTanh = `fn tanh4(x: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let z = x * x;
  let q = (((vec4<f32>(-5.70498872745e-3) * z + vec4<f32>(2.06390887954e-2)) * z - vec4<f32>(5.37397155531e-2)) * z + vec4<f32>(1.33314422036e-1)) * z - vec4<f32>(3.33332819422e-1);
  let small = q * z * x + x;
  let big = vec4<f32>(1.0) - vec4<f32>(2.0) / (exp(min(a, vec4<f32>(10.0)) * 2.0) + vec4<f32>(1.0));
  let r = select(big * sign(x), small, a < vec4<f32>(0.625));
  return select(r, x, (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));
}
`

// The built-in pow is undefined for a negative base; NumPy's is not when the exponent is whole.
const helperPow = `fn pow4(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  let a = abs(x);
  let whole = trunc(y) == y;
  let odd = abs(y - vec4<f32>(2.0) * trunc(y * 0.5)) == vec4<f32>(1.0);
  let zero = x == vec4<f32>();
  let m = select(pow(select(a, vec4<f32>(1.0), zero), y), select(vec4<f32>(), vec4<f32>(1.0) / a, y < vec4<f32>()), zero);
  let s = select(m, -m, odd & (x < vec4<f32>()));
  let bad = bitcast<vec4<f32>>(select(bitcast<vec4<u32>>(s), vec4<u32>(0x7fc00000u), (x < vec4<f32>()) & !whole));
  return select(bad, vec4<f32>(1.0), y == vec4<f32>());
}
`

// Integer division by zero yields the dividend in WGSL, and -2147483648 / -1 itself; spelled out so that no driver traps.
const helperDivide = `fn divide4(x: V, y: V) -> V {
  return x / select(y, V(T(1)), y == V());
}
`
