// SPDX-License-Identifier: Apache-2.0

// Package ops is the table of operations. A row says everything about an operation: its names, its text in WGSL and in Go,
// its gradient and its documentation. `go generate ./internal/ops` writes from it what package fuse computes with, the
// functions and methods of package matrix, the functions of matrix.Eval, the methods in JavaScript with their declarations,
// and the lists in FEATURES.md and in the help of `sublet eval`. Nothing but the generator and tests imports this package.
package ops

import "slices"

//go:generate go run ./gen

// Groups are the rows of FEATURES.md, by the Group of the operations.
var Groups = []Group{
	{"arithmetic", "*", "TestBinaryAndComparisons, TestUnary, TestScalars, TestPow, TestIntegers"},
	{"functions", "*", "TestUnary, TestFunctionsOfTwo, TestSpecialValues, TestGamma"},
	{"guarded", "*", "TestGuarded"},
	{"gradients", "*", "TestGradientFunctions"},
	{"comparing whole matrices", "EqualAll EqualApprox", "TestEqual, TestEqualErrors"},
	{"whole numbers", "*", "TestWholeNumbers"},
	{"choice", "*", "TestBinaryAndComparisons, TestScalars, TestSpecialValues"},
	{"products", "* (matrix, row, column, any layout), with its element-wise tail", "TestProductSizes, TestProductLayouts, TestProductTail, TestProductIgnoresBeyond, TestProductOverwrites, TestProductIntegersAndHalf, TestHardwareProduct"},
	{"reductions", "*; with their element-wise head", "TestReduce, TestReduceHeadAndTail, TestLargeSum, TestReduceIntegersAndNaN, TestHardwareFolds, TestReductions, TestReductionsOfSpecials, TestReductionPasses, TestReductionsInBlocks, TestReductionErrors"},
	{"order", "*", "TestSort, TestTopK, TestCumulative"},
	{"making and shaping", "* RowIndex ColIndex", "TestMaking, TestShaping, TestShapingErrors, TestIndex, TestGather"},
	{"decompositions", "* LU Cholesky QR EigenSym SVD", "TestLU, TestSolve, TestSolveStack, TestCholesky, TestQR, TestEigen, TestSVD, TestDecompositions, TestSingular, TestConditions, TestDecompositionErrors, TestDevicesOfResults, TestMatrixExp, TestFactorNames"},
	{"random numbers", "* NewRandom Random", "TestPhilox, TestRandom, TestRandomDistributions, TestRandomErrors, TestRandomSource, " +
		"TestRandomIntegers, TestRandomValues, TestRandomExtremes, TestRandomRanges, TestRandomGoroutines, TestLongPermutation"},
	{"parts, stacks and counts", "*", "TestParts, TestAddToMany, TestMulStack, TestSymmetric, TestCounts, TestUnique, TestManyNumbers, TestSearchLengths, TestPartsErrors"},
	{"complex numbers", "*; and all that is defined for them", "TestComplexElementwise, TestComplexSpecials, TestComplexProducts, TestComplexSolve, TestComplexShapes, TestComplexErrors, TestComplexText"},
	{"softmax", "*", "TestSoftmax, TestSoftmaxOfColumns, TestHardwareSoftmax, TestNormalise"},
	{"layout", "T Slice Row Col ColumnSlice RowSlice Reshape * Clone Convert Fill", "TestLayouts, TestBroadcast, TestAliasing, TestLargeDimensions, TestHalf, TestColumns, TestReduce, TestScalars, TestShare, TestBlocks"},
	{"functions of the user's, with names of their own; complaints name their lines", "NewFunc Apply", "TestUserFunction, TestFuncNames, TestFuncComplaints; internal/shaders/wgsl: FuzzQualify"},
	{"text", "Eval EvalAll", "TestEval, TestEvalBrackets, TestEvalOperators, TestEvalAdvice, TestEvalAny, TestEvalOtherNames, TestEvalAll, TestEvalHostile, FuzzEval, FuzzEvalAll"},
}

// wholeQuotient divides integers: by zero WGSL yields the dividend, and of -2147483648 / -1 itself; spelled out so that no driver traps.
const wholeQuotient = "(X / select(Y, V(T(1)), Y == V()))"

// Table lists the operations. The order of the element-wise ones is that of their codes, in Go and in the page, which are
// built together.
var Table = slices.Concat(
	section(Unary, "", []Operation{
		{Code: "Copy", WGSL: "X", Go: "x"},
	}),
	section(Unary, "arithmetic", []Operation{
		{
			Name: "Neg", Doc: "is -a", NumPy: "negative", WGSL: "negated4(X)", Ints: "-X", Uints: "V() - X", Go: "-x", Gradient: "-1",
		},
		{Name: "Abs", NumPy: "absolute", Doc: "is the absolute value", WGSL: "abs(X)", Uints: "X", Go: "absolute(x)", Gradient: "sign(a)"},
		{
			Name: "Sign", Doc: "is -1, 0 or 1, and NaN of NaN", WGSL: "select(sign(X), X, nan4(X))", Ints: "select(V(), V(1), X > V()) - select(V(), V(1), X < V())",
			Uints: "min(X, V(1u))", Go: "sign(x)",
		},
		{Name: "Square", Doc: "is a * a, element by element", WGSL: "X * X", Go: "x * x", Gradient: "2 * a"},
		{Name: "Recip", Doc: "is 1 / a", Ulp: 3, Real: true, JS: "reciprocal", WGSL: "V(1.0) / X", Go: "1 / x", Gradient: "-square(y)"},
	}),
	section(Unary, "functions", []Operation{
		{Name: "Floor", Doc: "rounds down", WGSL: "floor(X)", Ints: "X", Uints: "X", Go: "math.Floor(x)"},
		{Name: "Ceil", Doc: "rounds up", WGSL: "ceil(X)", Ints: "X", Uints: "X", Go: "math.Ceil(x)"},
		{
			Name: "Round", Doc: "rounds to the nearest whole number, halves to even", WGSL: "round(X)", Ints: "X", Uints: "X",
			Go: "math.RoundToEven(x)",
		},
		{Name: "Trunc", Doc: "rounds towards zero", WGSL: "trunc(X)", Ints: "X", Uints: "X", Go: "math.Trunc(x)"},
		{
			Name: "Sqrt", Doc: "is the square root", Ulp: 3, Real: true,
			// A compiler may take the square of a root for the absolute value.
			WGSL: "nan_where4(sqrt(X), X < V())", Go: "math.Sqrt(x)", Gradient: "0.5 / y",
		},
		{Name: "Exp", Doc: "is e to the power a", Ulp: 3, Real: true, WGSL: "exp4(X)", Go: "math.Exp(x)", Gradient: "y"},
		{Name: "Log", Doc: "is the natural logarithm", Ulp: 3, Real: true, WGSL: "log4(X)", Go: "math.Log(x)", Gradient: "1 / a"},
		{Name: "Sin", Doc: "is the sine", Ulp: 4, Real: true, WGSL: "sincos4(X, false)", Go: "math.Sin(x)", Gradient: "cos(a)"},
		{Name: "Cos", Doc: "is the cosine", Ulp: 4, Real: true, WGSL: "sincos4(X, true)", Go: "math.Cos(x)", Gradient: "-sin(a)"},
		{Name: "Tan", Doc: "is the tangent", Ulp: 6, Real: true, WGSL: "tan4(X)", Go: "math.Tan(x)", Gradient: "1 + square(y)"},
		{
			Name: "Asin", Doc: "is the arcsine", Ulp: 4, Real: true, NumPy: "arcsin", Text: []string{"asin", "arcsin"}, WGSL: "asin4(X)",
			Go: "math.Asin(x)", Gradient: "recip(sqrt(1 - square(a)))",
		},
		{
			Name: "Acos", Doc: "is the arccosine", Ulp: 4, Real: true, NumPy: "arccos", Text: []string{"acos", "arccos"}, WGSL: "acos4(X)",
			Go: "math.Acos(x)", Gradient: "-recip(sqrt(1 - square(a)))",
		},
		{
			Name: "Atan", Doc: "is the arctangent", Ulp: 4, Real: true, NumPy: "arctan", Text: []string{"atan", "arctan"}, WGSL: "atan4(X)",
			Go: "math.Atan(x)", Gradient: "recip(1 + square(a))",
		},
		{Name: "Sinh", Doc: "is the hyperbolic sine", Ulp: 4, Real: true, WGSL: "sinh4(X)", Go: "math.Sinh(x)", Gradient: "cosh(a)"},
		{Name: "Cosh", Doc: "is the hyperbolic cosine", Ulp: 4, Real: true, WGSL: "cosh4(X)", Go: "math.Cosh(x)", Gradient: "sinh(a)"},
		{
			Name: "Tanh", Doc: "is the hyperbolic tangent", Ulp: 4, Real: true, WGSL: "tanh4(X)", Go: "math.Tanh(x)",
			Gradient: "1 - square(y)",
		},
		{
			Name: "Asinh", Doc: "is the inverse hyperbolic sine", Ulp: 4, Real: true, NumPy: "arcsinh", Text: []string{"asinh", "arcsinh"},
			WGSL: "asinh4(X)", Go: "math.Asinh(x)", Gradient: "recip(sqrt(square(a) + 1))",
		},
		{
			Name: "Acosh", Doc: "is the inverse hyperbolic cosine", Ulp: 4, Real: true, NumPy: "arccosh", Text: []string{"acosh", "arccosh"},
			WGSL: "acosh4(X)", Go: "math.Acosh(x)", Gradient: "recip(sqrt(square(a) - 1))",
		},
		{
			Name: "Atanh", Doc: "is the inverse hyperbolic tangent", Ulp: 4, Real: true, NumPy: "arctanh", Text: []string{"atanh", "arctanh"},
			WGSL: "atanh4(X)", Go: "math.Atanh(x)", Gradient: "recip(1 - square(a))",
		},
		{Name: "Exp2", Doc: "is 2 to the power a", Ulp: 4, Real: true, WGSL: "exp2_4(X)", Go: "math.Exp2(x)", Gradient: "y * 0.6931471805599453"},
		{
			Name: "Exp10", Doc: "is 10 to the power a", Ulp: 4, Real: true, WGSL: "exp10_4(X)", Go: "math.Pow(10, x)",
			Gradient: "y * 2.302585092994046",
		},
		{
			Name: "Expm1", Doc: "is exp(a) - 1, accurate near 0", Ulp: 4, Real: true, WGSL: "expm1_4(X)", Go: "math.Expm1(x)", Gradient: "y + 1",
		},
		{Name: "Log2", Doc: "is the logarithm to base 2", Ulp: 4, Real: true, WGSL: "log2_4(X)", Go: "math.Log2(x)", Gradient: "1.4426950408889634 / a"},
		{
			Name: "Log10", Doc: "is the logarithm to base 10", Ulp: 4, Real: true, WGSL: "log10_4(X)", Go: "math.Log10(x)",
			Gradient: "0.4342944819032518 / a",
		},
		{Name: "Log1p", Doc: "is log(1 + a), accurate near 0", Ulp: 4, Real: true, WGSL: "log1p4(X)", Go: "math.Log1p(x)", Gradient: "recip(1 + a)"},
		{Name: "Cbrt", Doc: "is the cube root", Ulp: 4, Real: true, WGSL: "cbrt4(X)", Go: "math.Cbrt(x)", Gradient: "recip(3 * square(y))"},
		{
			Name: "Rsqrt", Doc: "is 1 / sqrt(a)", Ulp: 4, Real: true, WGSL: "V(1.0) / sqrt(X)", Go: "1 / math.Sqrt(x)", Gradient: "-0.5 * y / a",
		},
		{
			Name: "Rcbrt", Doc: "is 1 / cbrt(a)", Real: true, Ulp: 8, WGSL: "V(1.0) / cbrt4(X)", Go: "1 / math.Cbrt(x)",
			Gradient: "-0.3333333333333333 * y / a",
		},
		{
			Name: "Lgamma", Doc: "is the logarithm of the absolute value of the gamma function", Real: true, Ulp: 16,
			Note: "Infinity at 0 and below it at whole numbers. Between those the error is at most 1e-6 of the larger of 1 and the result.",
			WGSL: "lgamma4(X)", Go: "lgamma(x)", Gradient: "digamma(a)",
		},
		{
			Name: "Digamma", Doc: "is the derivative of Lgamma", Real: true, Ulp: 16,
			Note: "NaN at negative whole numbers. Between those the error is at most 1e-6 of the larger of 1 and the square of the result.",
			WGSL: "digamma4(X)", Go: "digamma(x)",
		},
		{
			Name: "Erf", Doc: "is the error function", Ulp: 4, Real: true, WGSL: "erf4(X)", Go: "math.Erf(x)",
			Gradient: "1.1283791670955126 * exp(-square(a))",
		},
		{
			Name: "Erfc", Doc: "is 1 - erf(a), accurate where that is small", Ulp: 8, Real: true, WGSL: "erfc4(X)", Go: "math.Erfc(x)",
			Gradient: "-1.1283791670955126 * exp(-square(a))",
		},
		{
			Name: "Sigmoid", Doc: "is 1 / (1 + exp(-a))", Ulp: 5, Real: true, WGSL: "V(1.0) / (V(1.0) + exp4(-X))",
			Go: "1 / (1 + math.Exp(-x))", Gradient: "y % (1 - y)",
		},
		{
			Name: "Relu", Doc: "is a where it is positive, 0 where it is negative, and NaN where it is NaN", WGSL: "select(X, V(), X < V())", Uints: "X",
			Go: "pick(x < 0, 0, x)", Gradient: "a > 0",
		},
		{
			Name: "Softplus", Doc: "is log(1 + exp(a))", Ulp: 4, Real: true, WGSL: "softplus4(X)",
			Go: "math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))", Gradient: "sigmoid(a)",
		},
		{
			Name: "Elu", Doc: "is a where it is positive and exp(a) - 1 elsewhere", Ulp: 4, Real: true, WGSL: "select(X, expm1_4(X), X < V())",
			Go: "elu(x)", Gradient: "where(a > 0, 1, y + 1)",
		},
		{
			Name: "Gelu", Doc: "is a times the normal distribution's share below a", Real: true, Ulp: 32,
			Note: "Below -5, where it is less than 2e-6, the relative error grows.",
			WGSL: "0.5 * X * erfc4(X * -0.70710678)", Go: "0.5 * x * math.Erfc(-x / math.Sqrt2)",
			Gradient: "0.5 * erfc(-0.7071067811865476 * a) + 0.3989422804014327 * a % exp(-0.5 * square(a))",
		},
		{
			Name: "Silu", Doc: "is a / (1 + exp(-a))", Ulp: 4, Real: true, WGSL: "silu4(X)", Go: "x / (1 + math.Exp(-x))",
			Gradient: "sigmoid(a) % (1 + a - y)",
		},
	}),
	section(Unary, "guarded", []Operation{
		{
			Name: "ClippedLog", Doc: "is log(max(a, 1e-37)): -85.2 where a is 0 or negative", Real: true, Ulp: 4,
			WGSL: "log4(select(X, V(1e-37), X < V(1e-37)))", Go: "math.Log(math.Max(x, 1e-37))", Gradient: "where(a >= 1e-37, 1 / a, 0)",
		},
		{
			Name: "ClippedSqrt", Doc: "is sqrt(max(a, 0))", Real: true, Ulp: 3, WGSL: "sqrt(select(X, V(), X < V()))",
			Go: "math.Sqrt(math.Max(x, 0))", Gradient: "where(a > 0, 0.5 / y, 0)",
		},
		{
			Name: "ClippedRecip", Doc: "is 1 / a; a counts as 1e-30 or -1e-30 where it is nearer to 0", Note: "0 counts as 1e-30.",
			Real: true, Ulp: 3, WGSL: "V(1.0) / clipped4(X)", Go: "1 / clipped(x)", Gradient: "where(abs(a) >= 1e-30, -square(y), 0)",
		},
		{
			Name: "RecipOrZero", Doc: "is 1 / a, and 0 where a is 0", Real: true, Ulp: 3, WGSL: "select(V(1.0) / X, V(), X == V())",
			Go: "recipOrZero(x)", Gradient: "-square(y)",
		},
	}),
	section(Unary, "choice", []Operation{
		{
			Name: "Not", Doc: "is 1 where a is 0", JS: "logicalNot", NumPy: "logical_not", WGSL: "select(V(), V(T(1)), X == V())",
			Go: "truth[N](x == 0)",
		},
		{
			Name: "IsNaN", Doc: "is 1 where a is NaN", Text: []string{"isnan"}, NumPy: "isnan", WGSL: "select(V(), V(T(1)), nan4(X))",
			Ints: "V()", Uints: "V()", Go: "truth[N](x != x)",
		},
		{
			Name: "IsInf", Doc: "is 1 where a is infinite", NumPy: "isinf", WGSL: "select(V(), V(T(1)), infinite4(X))", Ints: "V()", Uints: "V()",
			Go: "truth[N](x - x != 0 && x == x)",
		},
		{
			Name: "IsFinite", Doc: "is 1 where a is a number, and not infinite", NumPy: "isfinite",
			WGSL: "select(V(), V(T(1)), !(infinite4(X) | nan4(X)))", Ints: "V(T(1))", Uints: "V(T(1))", Go: "truth[N](x - x == 0)",
		},
	}),
	section(Unary, "whole numbers", []Operation{
		{
			Name: "BitNot", Doc: "has all bits turned over", Whole: true, NumPy: "bitwise_not", JS: "bitwiseNot", WGSL: "~X",
			Go: "bitwise(x, x, '~')",
		},
	}),
	section(Binary, "arithmetic", []Operation{
		{Name: "Add", Doc: "is a + b", Store: true, WGSL: "X + Y", Go: "x + y", Gradient: "1; 1"},
		{
			Name: "Sub", Doc: "is a - b", Store: true, NumPy: "subtract", Text: []string{"subtract", "sub"},
			WGSL: "X + negated4(Y)", Ints: "X - Y", Uints: "X - Y", Go: "x - y", Gradient: "1; -1",
		},
		{
			Name: "MulElem", Code: "Mul", Doc: "is the element-wise product of a and b", Store: true, JS: "mul", NumPy: "multiply",
			Text: []string{"multiply"}, WGSL: "X * Y", Go: "x * y", Gradient: "b; a",
		},
		{
			Name: "DivElem", Code: "Div", Doc: "is the element-wise quotient of a and b", Ulp: 3,
			Note: "Integers divided by zero yield the dividend.", Store: true, JS: "div", NumPy: "divide",
			Text: []string{"divide", "div"}, WGSL: "X / Y", Ints: wholeQuotient, Uints: wholeQuotient, Go: "divide(x, y)",
			Gradient: "1 / b; -y / b",
		},
		{
			Name: "Pow", Doc: "is a to the power b, element by element", Ulp: 4,
			Note: "A negative base with a whole exponent is real. Negative powers of integers are 0 but for those of 1 and -1.",
			Ints: "signed_power4(X, Y)", Uints: "whole_power4(X, Y)", JSCall: "power", NumPy: "power", Call: "powNode", WGSL: "pow4(X, Y)", Go: "power(x, y)",
			Gradient: "b % pow(a, b - 1); y % log(a)",
		},
	}),
	section(Binary, "functions", []Operation{
		{
			Name: "Hypot", Doc: "is the root of the sum of the squares, without overflow in between", Ulp: 4, Real: true, WGSL: "hypot4(X, Y)",
			Go: "math.Hypot(x, y)", Gradient: "a / y; b / y",
		},
		{
			Name: "Atan2", Doc: "is the angle of the point whose coordinates are b and a", Ulp: 4, Real: true, NumPy: "arctan2",
			Text: []string{"atan2", "arctan2"}, WGSL: "angle4(X, Y)", Go: "math.Atan2(x, y)",
			Gradient: "b / (square(a) + square(b)); -a / (square(a) + square(b))",
		},
		{
			Name: "LogAddExp", Doc: "is log(exp(a) + exp(b)), without overflow in between", Ulp: 8,
			Note: "Below 0 the error is relative to the larger of the operands.", Real: true, JS: "logAddExp", NumPy: "logaddexp",
			WGSL: "logaddexp4(X, Y)", Go: "logAddExp(x, y)", Gradient: "exp(a - y); exp(b - y)",
		},
		{
			Name: "Mod", Doc: "is the remainder of a / b with the sign of a", Note: "It is exact. Integers divided by zero leave 0.",
			JS: "fmod", NumPy: "fmod", Text: []string{"fmod"}, WGSL: "fmod4(X, Y)", Ints: "rest4(X, Y)", Uints: "X % select(Y, V(1u), Y == V())",
			Go:       "remainder(x, y)",
			Gradient: "1; -trunc(a / b)",
		},
		{
			Name: "FloorMod", Doc: "is the remainder of a / b with the sign of b", Note: "It is exact. Integers divided by zero leave 0.",
			JS: "mod", NumPy: "remainder", Text: []string{"mod", "remainder"}, WGSL: "floor_mod4(X, Y)",
			Ints: "floor_rest4(X, Y)", Uints: "X % select(Y, V(1u), Y == V())", Go: "floorMod(x, y)",
			Gradient: "1; -floor(a / b)",
		},
		{
			Name: "FloorDiv", Doc: "is the quotient of a and b, rounded down", Ulp: 2,
			Note: "It is exact up to 2^22. Integers divided by zero yield the dividend.", NumPy: "floor_divide",
			WGSL: "floor_divide4(X, Y)", Ints: wholeQuotient + " - select(V(), V(1), floor_rest4(X, Y) != rest4(X, Y))", Uints: wholeQuotient,
			Go: "floorDiv(x, y)", Gradient: "0; 0",
		},
	}),
	section(Binary, "guarded", []Operation{
		{
			Name: "ClippedDiv", Doc: "is a / b; b counts as 1e-30 or -1e-30 where it is nearer to 0", Note: "0 counts as 1e-30.",
			Real: true, Ulp: 3, WGSL: "X / clipped4(Y)", Go: "x / clipped(y)",
			Gradient: "clippedrecip(b); where(abs(b) >= 1e-30, -y % clippedrecip(b), 0)",
		},
		{
			Name: "SoftThreshold", Doc: "is a moved towards 0 by b, and 0 where it would get beyond", Real: true,
			WGSL: "select(select(V(), X + Y, (X < -Y) | nan4(X) | nan4(Y)), X - Y, X > Y)", Go: "softThreshold(x, y)",
			Gradient: "(a > b) || (a < -b); (a <= b) % (a < -b) - (a > b)",
		},
		{
			Name: "HardThreshold", Doc: "is a, and 0 where its absolute value is less than b", WGSL: "select(X, V(), abs(X) < Y)",
			Go: "pick(absolute(x) < y, 0, x)", Gradient: "abs(a) >= b; 0",
		},
	}),
	section(Binary, "gradients", []Operation{
		{Name: "SigmoidGrad", Doc: "is d * y * (1 - y), where y is a result of Sigmoid", Args: "d, y", Both: "X * (Y * (1.0 - Y))"},
		{Name: "TanhGrad", Doc: "is d * (1 - y * y), where y is a result of Tanh", Args: "d, y", Both: "X * ((1.0 - Y) * (1.0 + Y))"},
		{
			Name: "ReluGrad", Doc: "is d where y is positive and 0 elsewhere, where y is a result or an argument of Relu", Args: "d, y",
			WGSL: "select(V(), X, Y > V())", Go: "pick(y > 0, x, 0)",
		},
		{
			Name: "EluGrad", Doc: "is d where y is positive and d * (1 + y) elsewhere, where y is a result of Elu", Args: "d, y",
			WGSL: "select(X * (1.0 + Y), X, Y >= V())", Go: "pick(y >= 0, x, x * (1 + y))",
		},
		{Name: "LogGrad", Doc: "is d * exp(-y), where y is a result of Log", Args: "d, y", WGSL: "X * exp4(-Y)", Go: "x * math.Exp(-y)"},
		{Name: "SqrtGrad", Doc: "is d / (2 * y), where y is a result of Sqrt", Args: "d, y", Both: "X / (Y + Y)"},
		{Name: "RecipGrad", Doc: "is -d * y * y, where y is a result of Recip", Args: "d, y", Both: "-X * (Y * Y)"},
		{Name: "AbsGrad", Doc: "is d * sign(a)", Args: "d, a", WGSL: "X * select(sign(Y), Y, nan4(Y))", Go: "x * sign(y)"},
		{Name: "SinGrad", Doc: "is d * cos(a)", Args: "d, a", WGSL: "X * sincos4(Y, true)", Go: "x * math.Cos(y)"},
		{Name: "CosGrad", Doc: "is -d * sin(a)", Args: "d, a", WGSL: "-X * sincos4(Y, false)", Go: "-x * math.Sin(y)"},
		{
			Name: "AsinGrad", Doc: "is d / sqrt(1 - a * a)", Args: "d, a", WGSL: "X / sqrt((1.0 - Y) * (1.0 + Y))",
			Go: "x / math.Sqrt((1-y)*(1+y))",
		},
		{
			Name: "AcosGrad", Doc: "is -d / sqrt(1 - a * a)", Args: "d, a", WGSL: "-X / sqrt((1.0 - Y) * (1.0 + Y))",
			Go: "-x / math.Sqrt((1-y)*(1+y))",
		},
		{Name: "SinhGrad", Doc: "is d * cosh(a)", Args: "d, a", WGSL: "X * cosh4(Y)", Go: "x * math.Cosh(y)"},
		{Name: "CoshGrad", Doc: "is d * sinh(a)", Args: "d, a", WGSL: "X * sinh4(Y)", Go: "x * math.Sinh(y)"},
		{Name: "AsinhGrad", Doc: "is d / sqrt(1 + a * a)", Args: "d, a", WGSL: "X / hypot4(Y, V(1.0))", Go: "x / math.Hypot(1, y)"},
		{Name: "AtanhGrad", Doc: "is d / (1 - a * a)", Args: "d, a", Both: "X / ((1.0 - Y) * (1.0 + Y))"},
	}),
	section(Ternary, "gradients", []Operation{
		{
			Name: "LogAddExpGrad", Doc: "is d * sigmoid(b - a): the part of b in the gradient of LogAddExp", Args: "d, a, b",
			WGSL: "X / (1.0 + exp4(Y - Z))", Go: "x / (1 + math.Exp(y-z))",
		},
		{Name: "MulExpDiff", Doc: "is d * exp(a - b)", Args: "d, a, b", WGSL: "X * exp4(Y - Z)", Go: "x * math.Exp(y-z)"},
		{Name: "MulDiv", Doc: "is d * a / b", Args: "d, a, b", Both: "X * Y / Z"},
		{
			Name: "PowBaseGrad", Doc: "is d * b * pow(a, b - 1): the part of a in the gradient of Pow", Args: "d, a, b",
			WGSL: "X * Z * pow4(Y, Z - 1.0)", Go: "x * z * math.Pow(y, z-1)",
		},
		{
			Name: "PowExponentGrad", Doc: "is d * y * log(a), and 0 where a is not positive: the part of the exponent in the gradient of Pow",
			Note: "y is a result of Pow.", Args: "d, y, a", WGSL: "select(X * Y * log4(Z), V(), Z <= V())", Go: "powExponentGrad(x, y, z)",
		},
	}),
	section(Binary, "whole numbers", []Operation{
		{
			Name: "BitAnd", Doc: "has the bits that both have", Whole: true, NumPy: "bitwise_and", JS: "bitwiseAnd", WGSL: "X & Y",
			Go: "bitwise(x, y, '&')",
		},
		{
			Name: "BitOr", Doc: "has the bits that one has", Whole: true, NumPy: "bitwise_or", JS: "bitwiseOr", WGSL: "X | Y",
			Go: "bitwise(x, y, '|')",
		},
		{
			Name: "BitXor", Doc: "has the bits that only one has", Whole: true, NumPy: "bitwise_xor", JS: "bitwiseXor", WGSL: "X ^ Y",
			Go: "bitwise(x, y, '^')",
		},
		{
			Name: "ShiftLeft", Doc: "has the bits moved up by b places", Note: "Beyond 31 places, and below 0, nothing is left.", Whole: true,
			NumPy: "left_shift", JS: "leftShift", WGSL: "select(X << (vec4<u32>(Y) & vec4<u32>(31u)), V(), vec4<u32>(Y) > vec4<u32>(31u))",
			Go: "bitwise(x, y, '<')",
		},
		{
			Name: "ShiftRight", Doc: "has the bits moved down by b places, the sign following", Note: "Beyond 31 places, and below 0, only the sign is left.",
			Whole: true, NumPy: "right_shift", JS: "rightShift", WGSL: "X >> min(vec4<u32>(Y), vec4<u32>(31u))",
			Uints: "select(X >> (Y & vec4<u32>(31u)), V(), Y > vec4<u32>(31u))", Go: "shiftRight(x, y)",
		},
	}),
	section(Binary, "choice", []Operation{
		{
			Name: "Min", Doc: "is the element-wise minimum; NaN wins", JS: "minimum", WGSL: "select(Y, X, (X < Y) | nan4(X))",
			Ints: "min(X, Y)", Uints: "min(X, Y)", Go: "pick(x < y || x != x, x, y)", Gradient: "a <= b; a > b",
		},
		{
			Name: "Max", Doc: "is the element-wise maximum; NaN wins", JS: "maximum", WGSL: "select(Y, X, (X > Y) | nan4(X))",
			Ints: "max(X, Y)", Uints: "max(X, Y)", Go: "pick(x > y || x != x, x, y)", Gradient: "a >= b; a < b",
		},
		{Name: "SquaredDiff", Doc: "is the square of a - b", Both: "(X - Y) * (X - Y)", Gradient: "2 * (a - b); 2 * (b - a)"},
		{
			Name: "MaskNegative", Doc: "is a where b is not negative and 0 elsewhere", WGSL: "select(V(), X, Y >= V())", Go: "pick(y >= 0, x, 0)",
			Gradient: "b >= 0; 0",
		},
		{
			Name: "CopyIf", Doc: "is a where cond is not 0 and 0 elsewhere", Args: "cond, a", WGSL: "select(Y, V(), X == V())",
			Go: "pick(x != 0, y, 0)", Gradient: "0; a != 0",
		},
		{
			Name: "CopyIfNot", Doc: "is a where cond is 0 and 0 elsewhere", Args: "cond, a", WGSL: "select(V(), Y, X == V())",
			Go: "pick(x != 0, 0, y)", Gradient: "0; a == 0",
		},
		{Name: "Equal", Code: "Eq", Doc: "is 1 where a == b and 0 elsewhere", True: "X == Y"},
		{
			Name: "NotEqual", Code: "Ne", Doc: "is 1 where a != b and 0 elsewhere", NumPy: "not_equal",
			WGSL: "select(V(T(1)), V(), X == Y)", Go: "truth[N](x != y)",
		},
		{Name: "Less", Code: "Lt", Doc: "is 1 where a < b and 0 elsewhere", True: "X < Y"},
		{Name: "LessEqual", Code: "Le", Doc: "is 1 where a <= b and 0 elsewhere", NumPy: "less_equal", True: "X <= Y"},
		{Name: "Greater", Code: "Gt", Doc: "is 1 where a > b and 0 elsewhere", True: "X > Y"},
		{Name: "GreaterEqual", Code: "Ge", Doc: "is 1 where a >= b and 0 elsewhere", NumPy: "greater_equal", True: "X >= Y"},
		{
			Name: "And", Doc: "is 1 where both are not 0", JS: "logicalAnd", NumPy: "logical_and",
			WGSL: "select(V(T(1)), V(), (X == V()) | (Y == V()))", Go: "truth[N](x != 0 && y != 0)",
		},
		{
			Name: "Or", Doc: "is 1 where one is not 0", JS: "logicalOr", NumPy: "logical_or",
			WGSL: "select(V(T(1)), V(), (X == V()) & (Y == V()))", Go: "truth[N](x != 0 || y != 0)",
		},
		{
			Name: "Xor", Doc: "is 1 where just one is not 0", JS: "logicalXor", NumPy: "logical_xor",
			WGSL: "select(V(), V(T(1)), (X == V()) != (Y == V()))", Go: "truth[N]((x != 0) != (y != 0))",
		},
	}),
	section(Ternary, "choice", []Operation{
		{
			Name: "Where", Doc: "takes a where cond is not 0, and b elsewhere", WGSL: "select(Y, Z, X == V())",
			Go: "pick(x != 0, y, z)", Gradient: "0; a != 0; a == 0",
		},
		{
			Name: "CopyIfEqual", Doc: "is c where a == b and 0 elsewhere", Args: "a, b, c", WGSL: "select(V(), Z, X == Y)",
			Go: "pick(x == y, z, 0)", Gradient: "0; 0; a == b",
		},
	}),
	section(Limits, "choice", []Operation{
		{
			Name: "Clamp", Doc: "limits a to lo..hi", NumPy: "clip",
			WGSL: "select(select(X, Y, X < Y), Z, select(X, Y, X < Y) > Z)", Go: "clamp(x, y, z)", Note: "Of limits in the wrong order the upper one counts.",
			Gradient: "(a >= b) && (a <= c); (a < b) && (b <= c); max(a, b) > c",
		},
	}),
	section(ScalarFirst, "arithmetic", []Operation{
		{Name: "Scale", Code: "Mul", Doc: "is s * a", Store: true},
		{Name: "ScalarSub", Code: "Sub", Doc: "is s - a"},
		{Name: "ScalarDiv", Code: "Div", Doc: "is s / a"},
	}),
	section(ScalarLast, "arithmetic", []Operation{
		{Name: "AddScalar", Code: "Add", Doc: "is a + s"},
		{Name: "DivScalar", Code: "Div", Doc: "is a / s"},
		{
			Name: "PowScalar", Code: "Pow", Doc: "is a to the power s",
			Note: "Small whole and half powers are computed without logarithms: to the power 1/2 it is Sqrt, as in NumPy.", Call: "powNode",
		},
	}),
	section(ScalarLast, "choice", []Operation{
		{Name: "MinScalar", Code: "Min", Doc: "is the smaller of each element and s"},
		{Name: "MaxScalar", Code: "Max", Doc: "is the larger of each element and s"},
	}),
	section(ScalarLast, "guarded", []Operation{
		{Name: "SoftThresholdScalar", Code: "SoftThreshold", Doc: "is a moved towards 0 by s, and 0 where it would get beyond"},
		{Name: "HardThresholdScalar", Code: "HardThreshold", Doc: "is a, and 0 where its absolute value is less than s"},
	}),
	section(MatrixLimits, "choice", []Operation{
		{Name: "Clip", Code: "Clamp", Doc: "limits a to low..high, element by element"},
	}),
	section(Product, "products", []Operation{
		{
			Name: "Mul", Code: "MatMul", Doc: "is the matrix product of a and b",
			Note: "What follows element by element in the expression is computed in the same kernel.", Store: true, JS: "matmul",
			Text: []string{"matmul"},
		},
	}),
	section(Transpose, "layout", []Operation{
		{Name: "Transpose", Doc: "is the transpose", JS: "-", Text: []string{"transpose", "t"}},
	}),
	reductions,
	sorts,
	shapings,
	decompositions,
	randoms,
	parts,
	complexNumbers,
	section(RowMap, "softmax", []Operation{
		{Name: "Softmax", Doc: "is exp(a) divided by its sum, row by row, computed without overflow", Real: true},
		{Name: "LogSoftmax", Doc: "is the logarithm of Softmax", Real: true, JS: "logSoftmax"},
		{
			Name: "Hardmax", Doc: "is 1 at the largest element of each row and 0 elsewhere",
			Note: "The first of several is the largest, and NaN before all others.",
		},
	}),
)
