// SPDX-License-Identifier: Apache-2.0

package ops

// Groups are the rows of FEATURES.md, by the Group of the operations.
var Groups = []Group{
	{"arithmetic", "*", "TestBinaryAndComparisons, TestUnary, TestScalars, TestPow, TestIntegers"},
	{"functions", "*", "TestUnary, TestSpecialValues"},
	{"comparing whole matrices", "EqualAll EqualApprox", "TestEqual, TestEqualErrors"},
	{"choice", "*", "TestBinaryAndComparisons, TestScalars, TestSpecialValues"},
	{"products", "* (matrix, row, column, any layout), with its element-wise tail", "TestProductSizes, TestProductLayouts, TestProductTail, TestProductIgnoresBeyond, TestProductIntegersAndHalf, TestHardwareProduct"},
	{"reductions", "*; with their element-wise head", "TestReduce, TestReduceHeadAndTail, TestLargeSum, TestReduceIntegersAndNaN, TestHardwareFolds"},
	{"softmax", "*", "TestSoftmax, TestHardwareSoftmax"},
	{"layout", "T Slice Row Col ColumnSlice RowSlice Reshape * Clone Convert Fill", "TestLayouts, TestBroadcast, TestAliasing, TestLargeDimensions, TestHalf, TestColumns, TestReduce, TestScalars, TestShare, TestBlocks"},
	{"functions of the user's, with names of their own; complaints name their lines", "NewFunc Apply", "TestUserFunction, TestFuncNames, TestFuncComplaints; internal/shaders/wgsl: FuzzQualify"},
	{"text", "Eval", "TestEval, FuzzEval"},
}

// Table lists the operations. The order of the element-wise ones is that of their codes, in Go and in the page, which are
// built together.
var Table = []Operation{
	{Code: "Copy", Class: Unary, WGSL: "X", Go: "x"},

	{
		Name: "Neg", Class: Unary, Group: "arithmetic", Doc: "is -a", NumPy: "negative",
		WGSL: "-X", Uints: "V() - X", Go: "-x", Gradient: []string{"-1"},
	},
	{
		Name: "Abs", Class: Unary, Group: "arithmetic", Doc: "is the absolute value",
		WGSL: "abs(X)", Uints: "X", Go: "absolute(x)", Gradient: []string{"sign(a)"},
	},
	{
		Name: "Sign", Class: Unary, Group: "arithmetic", Doc: "is -1, 0 or 1",
		WGSL: "sign(X)", Ints: "select(V(), V(1), X > V()) - select(V(), V(1), X < V())", Uints: "min(X, V(1u))", Go: "sign(x)",
	},
	{
		Name: "Floor", Class: Unary, Group: "functions", Doc: "rounds down",
		WGSL: "floor(X)", Ints: "X", Uints: "X", Go: "math.Floor(x)",
	},
	{
		Name: "Ceil", Class: Unary, Group: "functions", Doc: "rounds up",
		WGSL: "ceil(X)", Ints: "X", Uints: "X", Go: "math.Ceil(x)",
	},
	{
		Name: "Round", Class: Unary, Group: "functions", Doc: "rounds to the nearest whole number, halves to even",
		WGSL: "round(X)", Ints: "X", Uints: "X", Go: "math.RoundToEven(x)",
	},
	{
		Name: "Trunc", Class: Unary, Group: "functions", Doc: "rounds towards zero",
		WGSL: "trunc(X)", Ints: "X", Uints: "X", Go: "math.Trunc(x)",
	},
	{
		Name: "Square", Class: Unary, Group: "arithmetic", Doc: "is a * a, element by element",
		WGSL: "X * X", Go: "x * x", Gradient: []string{"2 * a"},
	},
	{
		Name: "Sqrt", Class: Unary, Group: "functions", Doc: "is the square root", Real: true,
		WGSL: "sqrt(X)", Go: "math.Sqrt(x)", Gradient: []string{"0.5 / y"},
	},
	{
		Name: "Exp", Class: Unary, Group: "functions", Doc: "is e to the power a", Real: true,
		WGSL: "exp4(X)", Go: "math.Exp(x)", Gradient: []string{"y"},
	},
	{
		Name: "Log", Class: Unary, Group: "functions", Doc: "is the natural logarithm", Real: true,
		WGSL: "log4(X)", Go: "math.Log(x)", Gradient: []string{"1 / a"},
	},
	{
		Name: "Sin", Class: Unary, Group: "functions", Doc: "is the sine", Real: true,
		WGSL: "sincos4(X, false)", Go: "math.Sin(x)", Gradient: []string{"cos(a)"},
	},
	{
		Name: "Cos", Class: Unary, Group: "functions", Doc: "is the cosine", Real: true,
		WGSL: "sincos4(X, true)", Go: "math.Cos(x)", Gradient: []string{"-sin(a)"},
	},
	{
		Name: "Tanh", Class: Unary, Group: "functions", Doc: "is the hyperbolic tangent", Real: true,
		WGSL: "tanh4(X)", Go: "math.Tanh(x)", Gradient: []string{"1 - square(y)"},
	},
	{
		Name: "Sigmoid", Class: Unary, Group: "functions", Doc: "is 1 / (1 + exp(-a))", Real: true,
		WGSL: "V(1.0) / (V(1.0) + exp4(-X))", Go: "1 / (1 + math.Exp(-x))", Gradient: []string{"y % (1 - y)"},
	},
	{
		Name: "Relu", Class: Unary, Group: "functions", Doc: "is a where it is positive and 0 elsewhere",
		WGSL: "select(X, V(), X < V())", Uints: "X", Go: "pick(x < 0, 0, x)", Gradient: []string{"a > 0"},
	},
	{
		Name: "Recip", Class: Unary, Group: "arithmetic", Doc: "is 1 / a", Real: true, JS: "reciprocal",
		WGSL: "V(1.0) / X", Go: "1 / x", Gradient: []string{"-square(y)"},
	},
	{
		Name: "Not", Class: Unary, Group: "choice", Doc: "is 1 where a is 0", JS: "logicalNot", NumPy: "logical_not",
		WGSL: "select(V(), V(T(1)), X == V())", Go: "truth[N](x == 0)",
	},

	{
		Name: "Add", Class: Binary, Group: "arithmetic", Doc: "is a + b", Store: true,
		WGSL: "X + Y", Go: "x + y", Gradient: []string{"1", "1"},
	},
	{
		Name: "Sub", Class: Binary, Group: "arithmetic", Doc: "is a - b", Store: true, NumPy: "subtract", Text: []string{"subtract", "sub"},
		WGSL: "X - Y", Go: "x - y", Gradient: []string{"1", "-1"},
	},
	{
		Name: "MulElem", Code: "Mul", Class: Binary, Group: "arithmetic", Doc: "is the element-wise product of a and b", Store: true,
		JS: "mul", NumPy: "multiply", Text: []string{"multiply"},
		WGSL: "X * Y", Go: "x * y", Gradient: []string{"b", "a"},
	},
	{
		Name: "DivElem", Code: "Div", Class: Binary, Group: "arithmetic", Doc: "is the element-wise quotient of a and b", Store: true,
		Note: "Integers divided by zero yield the dividend.", JS: "div", NumPy: "divide", Text: []string{"divide", "div"},
		WGSL: "X / Y", Ints: "divide4(X, Y)", Uints: "divide4(X, Y)", Go: "divide(x, y)", Gradient: []string{"1 / b", "-y / b"},
	},
	{
		Name: "Min", Class: Binary, Group: "choice", Doc: "is the element-wise minimum; NaN wins", JS: "minimum",
		WGSL: "select(Y, X, (X < Y) | nan4(X))", Ints: "min(X, Y)", Uints: "min(X, Y)", Go: "pick(x < y || x != x, x, y)",
		Gradient: []string{"a <= b", "a > b"},
	},
	{
		Name: "Max", Class: Binary, Group: "choice", Doc: "is the element-wise maximum; NaN wins", JS: "maximum",
		WGSL: "select(Y, X, (X > Y) | nan4(X))", Ints: "max(X, Y)", Uints: "max(X, Y)", Go: "pick(x > y || x != x, x, y)",
		Gradient: []string{"a >= b", "a < b"},
	},
	{
		Name: "Pow", Class: Binary, Group: "arithmetic", Doc: "is a to the power b, element by element", Real: true,
		Note: "A negative base with a whole exponent is real.", JSCall: "power", NumPy: "power", Call: "powNode",
		WGSL: "pow4(X, Y)", Go: "math.Pow(x, y)", Gradient: []string{"b % pow(a, b - 1)", "y % log(a)"},
	},
	{
		Name: "Equal", Code: "Eq", Class: Binary, Group: "choice", Doc: "is 1 where a == b and 0 elsewhere",
		WGSL: "select(V(), V(T(1)), X == Y)", Go: "truth[N](x == y)",
	},
	{
		Name: "NotEqual", Code: "Ne", Class: Binary, Group: "choice", Doc: "is 1 where a != b and 0 elsewhere", NumPy: "not_equal",
		WGSL: "select(V(T(1)), V(), X == Y)", Go: "truth[N](x != y)",
	},
	{
		Name: "Less", Code: "Lt", Class: Binary, Group: "choice", Doc: "is 1 where a < b and 0 elsewhere",
		WGSL: "select(V(), V(T(1)), X < Y)", Go: "truth[N](x < y)",
	},
	{
		Name: "LessEqual", Code: "Le", Class: Binary, Group: "choice", Doc: "is 1 where a <= b and 0 elsewhere", NumPy: "less_equal",
		WGSL: "select(V(), V(T(1)), X <= Y)", Go: "truth[N](x <= y)",
	},
	{
		Name: "Greater", Code: "Gt", Class: Binary, Group: "choice", Doc: "is 1 where a > b and 0 elsewhere",
		WGSL: "select(V(), V(T(1)), X > Y)", Go: "truth[N](x > y)",
	},
	{
		Name: "GreaterEqual", Code: "Ge", Class: Binary, Group: "choice", Doc: "is 1 where a >= b and 0 elsewhere", NumPy: "greater_equal",
		WGSL: "select(V(), V(T(1)), X >= Y)", Go: "truth[N](x >= y)",
	},
	{
		Name: "And", Class: Binary, Group: "choice", Doc: "is 1 where both are not 0", JS: "logicalAnd", NumPy: "logical_and",
		WGSL: "select(V(T(1)), V(), (X == V()) | (Y == V()))", Go: "truth[N](x != 0 && y != 0)",
	},
	{
		Name: "Or", Class: Binary, Group: "choice", Doc: "is 1 where one is not 0", JS: "logicalOr", NumPy: "logical_or",
		WGSL: "select(V(T(1)), V(), (X == V()) & (Y == V()))", Go: "truth[N](x != 0 || y != 0)",
	},

	{
		Name: "Where", Class: Ternary, Group: "choice", Doc: "takes a where cond is not 0, and b elsewhere",
		WGSL: "select(Y, Z, X == V())", Go: "pick(x != 0, y, z)", Gradient: []string{"", "a != 0", "a == 0"},
	},
	{
		Name: "Clamp", Class: Limits, Group: "choice", Doc: "limits a to lo..hi", NumPy: "clip",
		WGSL: "select(select(X, Z, X > Z), Y, select(X, Z, X > Z) < Y)", Go: "clamp(x, y, z)",
		Gradient: []string{"(a >= b) && (a <= c)", "min(a, c) < b", "(a > c) && (b <= c)"},
	},

	{Name: "Scale", Code: "Mul", Class: ScalarFirst, Group: "arithmetic", Doc: "is s * a", Store: true},
	{Name: "AddScalar", Code: "Add", Class: ScalarLast, Group: "arithmetic", Doc: "is a + s"},
	{Name: "DivScalar", Code: "Div", Class: ScalarLast, Group: "arithmetic", Doc: "is a / s"},
	{Name: "ScalarSub", Code: "Sub", Class: ScalarFirst, Group: "arithmetic", Doc: "is s - a"},
	{Name: "ScalarDiv", Code: "Div", Class: ScalarFirst, Group: "arithmetic", Doc: "is s / a"},
	{
		Name: "PowScalar", Code: "Pow", Class: ScalarLast, Group: "arithmetic", Doc: "is a to the power s", Call: "powNode",
		Note: "Small whole and half powers are computed without logarithms.",
	},
	{Name: "MinScalar", Code: "Min", Class: ScalarLast, Group: "choice", Doc: "is the smaller of each element and s"},
	{Name: "MaxScalar", Code: "Max", Class: ScalarLast, Group: "choice", Doc: "is the larger of each element and s"},

	{
		Name: "Mul", Code: "MatMul", Class: Product, Group: "products", Doc: "is the matrix product of a and b", Store: true,
		Note: "What follows element by element in the expression is computed in the same kernel.",
		JS:   "matmul", Text: []string{"matmul"},
	},
	{
		Name: "Transpose", Class: Transpose, Group: "layout", Doc: "is the transpose", JS: "-",
		Text: []string{"transpose", "t"},
	},

	// The order of the reductions is that of fuse.Reduction.
	{
		Name: "Sum", Class: Reduction, Group: "reductions", Doc: "sum",
		Note: "What comes before element by element is computed in the same kernel. Of nothing it is 0.",
	},
	{
		Name: "Max", Every: "MaxAll", Class: Reduction, Group: "reductions", Doc: "maximum",
		Note: "NaN wins. Of nothing it is minus infinity or the type's smallest value.",
	},
	{
		Name: "Min", Every: "MinAll", Class: Reduction, Group: "reductions", Doc: "minimum",
		Note: "NaN wins. Of nothing it is infinity or the type's largest value.",
	},
	{Name: "Prod", Class: Reduction, Group: "reductions", Doc: "product", Note: "Of nothing it is 1."},
	{Name: "Mean", Class: Reduction, Group: "reductions", Doc: "mean", Real: true, Call: "meanNode", JSCall: "mean", Note: "Of nothing it is NaN."},

	{
		Name: "Softmax", Class: RowMap, Group: "softmax", Doc: "is exp(a) divided by its sum, row by row, computed without overflow", Real: true,
	},
	{
		Name: "LogSoftmax", Class: RowMap, Group: "softmax", Doc: "is the logarithm of Softmax", Real: true,
		JS: "logSoftmax",
	},
}
