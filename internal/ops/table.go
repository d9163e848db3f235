// SPDX-License-Identifier: Apache-2.0

// Package ops is the table of operations. A row says everything about an operation: its names, its text in WGSL and in Go,
// its gradient and its documentation. `go generate ./internal/ops` writes from it what package fuse computes with, the
// functions and methods of package matrix, the functions of matrix.Eval, the methods in JavaScript with their declarations,
// and the lists in FEATURES.md and in the help of `sublet eval`. Nothing but the generator and tests imports this package.
package ops

import (
	"cmp"
	"slices"
	"strings"
)

//go:generate go run ./gen

// FirstCode is the code of the first element-wise operation. Package fuse and the encoded programs of a page use these codes;
// each has smaller ones for instructions of its own.
const FirstCode = 32

// Class says what an operation is called with.
type Class uint8

// The classes. a, b and c are matrices, s, lo and hi are numbers. The element-wise ones have a code.
const (
	Unary       Class = 1 + iota // f(a)
	Binary                       // f(a, b)
	Ternary                      // f(a, b, c)
	Limits                       // f(a, lo, hi); in JavaScript, lo and hi may be matrices
	ScalarLast                   // f(a, s): the operation Code with a number as its second operand
	ScalarFirst                  // f(s, a): the same with a number as its first
	Product                      // the matrix product of a and b
	Transpose                    // f(a); of a matrix in JavaScript it is a view
	Reduction                    // f(a) of all elements, of each row and of each column
	Order                        // f(a) of each row and of each column, sorted
	RowMap                       // f(a) of each row, of each column and of all elements, a matrix
)

// Operation is a row of the table. Fields that are not set get the value that their comments name.
type Operation struct {
	Name  string // of the function in Go. Without one the operation is for package fuse alone
	Code  string // after "Op" in package fuse, and of JavaScript's Op. Name
	Class Class
	Group string // in FEATURES.md

	Real     bool     // float32 and float16 only; otherwise all element types
	WGSL     string   // of vectors X, Y and Z; V is the vector type, T the scalar type. Helpers are in package fuse
	Ints     string   // for int32. WGSL
	Uints    string   // for uint32. WGSL
	Go       string   // the reference, of elements x, y and z. What uses package math computes in float64
	True     string   // in place of both, of an operation that yields 1 and 0: when it is 1, of X and Y
	Call     string   // of Go's function, where the class alone does not say it
	Gradient string   // the derivatives by the operands, separated by "; ", as texts of matrix.Eval: of a, b, c and the result y
	Store    bool     // whether a *Dense has a method that stores the result
	Doc      string   // follows the name: "is a + b". Of a reduction, the noun
	Note     string   // further sentences
	JS       string   // Name with a small first letter; "-" for none. Operations with a scalar have none
	JSCall   string   // the function that makes it in JavaScript, where the class alone does not say it
	NumPy    string   // where it is another name than in JavaScript
	Text     []string // in matrix.Eval. Every in small letters; operations with a scalar have none
	Takes    string   // of a reduction, what number it takes: Ddof or Power
	Int32    bool     // of a reduction: its results are int32
	Alone    bool     // of a reduction: there is only the one of all elements
	Every    string   // of a reduction: Go's name of the one of all elements. Name
}

// Group is a row of the table of operations in FEATURES.md. In Names, * stands for the names of its operations.
type Group struct{ Title, Names, Tests string }

// Arity returns how many operands the operation has.
func (o *Operation) Arity() int {
	switch o.Class {
	case Binary, Product, ScalarLast, ScalarFirst:
		return 2
	case Ternary, Limits:
		return 3
	}
	return 1
}

// Groups are the rows of FEATURES.md, by the Group of the operations.
var Groups = []Group{
	{"arithmetic", "*", "TestBinaryAndComparisons, TestUnary, TestScalars, TestPow, TestIntegers"},
	{"functions", "*", "TestUnary, TestSpecialValues"},
	{"comparing whole matrices", "EqualAll EqualApprox", "TestEqual, TestEqualErrors"},
	{"choice", "*", "TestBinaryAndComparisons, TestScalars, TestSpecialValues"},
	{"products", "* (matrix, row, column, any layout), with its element-wise tail", "TestProductSizes, TestProductLayouts, TestProductTail, TestProductIgnoresBeyond, TestProductIntegersAndHalf, TestHardwareProduct"},
	{"reductions", "*; with their element-wise head", "TestReduce, TestReduceHeadAndTail, TestLargeSum, TestReduceIntegersAndNaN, TestHardwareFolds, TestReductions, TestReductionsOfSpecials, TestReductionPasses, TestReductionsInBlocks, TestReductionErrors"},
	{"order", "*", "TestSort, TestTopK, TestCumulative"},
	{"softmax", "*", "TestSoftmax, TestHardwareSoftmax, TestNormalise"},
	{"layout", "T Slice Row Col ColumnSlice RowSlice Reshape * Clone Convert Fill", "TestLayouts, TestBroadcast, TestAliasing, TestLargeDimensions, TestHalf, TestColumns, TestReduce, TestScalars, TestShare, TestBlocks"},
	{"functions of the user's, with names of their own; complaints name their lines", "NewFunc Apply", "TestUserFunction, TestFuncNames, TestFuncComplaints; internal/shaders/wgsl: FuzzQualify"},
	{"text", "Eval", "TestEval, TestEvalHostile, FuzzEval"},
}

// Table lists the operations. The order of the element-wise ones is that of their codes, in Go and in the page, which are
// built together.
var Table = slices.Concat(
	section(Unary, "", []Operation{
		{Code: "Copy", WGSL: "X", Go: "x"},
	}),
	section(Unary, "arithmetic", []Operation{
		{Name: "Neg", Doc: "is -a", NumPy: "negative", WGSL: "-X", Uints: "V() - X", Go: "-x", Gradient: "-1"},
		{Name: "Abs", Doc: "is the absolute value", WGSL: "abs(X)", Uints: "X", Go: "absolute(x)", Gradient: "sign(a)"},
		{
			Name: "Sign", Doc: "is -1, 0 or 1, and NaN of NaN", WGSL: "select(sign(X), X, nan4(X))", Ints: "select(V(), V(1), X > V()) - select(V(), V(1), X < V())",
			Uints: "min(X, V(1u))", Go: "sign(x)",
		},
		{Name: "Square", Doc: "is a * a, element by element", WGSL: "X * X", Go: "x * x", Gradient: "2 * a"},
		{Name: "Recip", Doc: "is 1 / a", Real: true, JS: "reciprocal", WGSL: "V(1.0) / X", Go: "1 / x", Gradient: "-square(y)"},
	}),
	section(Unary, "functions", []Operation{
		{Name: "Floor", Doc: "rounds down", WGSL: "floor(X)", Ints: "X", Uints: "X", Go: "math.Floor(x)"},
		{Name: "Ceil", Doc: "rounds up", WGSL: "ceil(X)", Ints: "X", Uints: "X", Go: "math.Ceil(x)"},
		{
			Name: "Round", Doc: "rounds to the nearest whole number, halves to even", WGSL: "round(X)", Ints: "X", Uints: "X",
			Go: "math.RoundToEven(x)",
		},
		{Name: "Trunc", Doc: "rounds towards zero", WGSL: "trunc(X)", Ints: "X", Uints: "X", Go: "math.Trunc(x)"},
		{Name: "Sqrt", Doc: "is the square root", Real: true, WGSL: "sqrt(X)", Go: "math.Sqrt(x)", Gradient: "0.5 / y"},
		{Name: "Exp", Doc: "is e to the power a", Real: true, WGSL: "exp4(X)", Go: "math.Exp(x)", Gradient: "y"},
		{Name: "Log", Doc: "is the natural logarithm", Real: true, WGSL: "log4(X)", Go: "math.Log(x)", Gradient: "1 / a"},
		{Name: "Sin", Doc: "is the sine", Real: true, WGSL: "sincos4(X, false)", Go: "math.Sin(x)", Gradient: "cos(a)"},
		{Name: "Cos", Doc: "is the cosine", Real: true, WGSL: "sincos4(X, true)", Go: "math.Cos(x)", Gradient: "-sin(a)"},
		{
			Name: "Tanh", Doc: "is the hyperbolic tangent", Real: true, WGSL: "tanh4(X)", Go: "math.Tanh(x)",
			Gradient: "1 - square(y)",
		},
		{
			Name: "Sigmoid", Doc: "is 1 / (1 + exp(-a))", Real: true, WGSL: "V(1.0) / (V(1.0) + exp4(-X))",
			Go: "1 / (1 + math.Exp(-x))", Gradient: "y % (1 - y)",
		},
		{
			Name: "Relu", Doc: "is a where it is positive and 0 elsewhere", WGSL: "select(X, V(), X < V())", Uints: "X",
			Go: "pick(x < 0, 0, x)", Gradient: "a > 0",
		},
	}),
	section(Unary, "choice", []Operation{
		{
			Name: "Not", Doc: "is 1 where a is 0", JS: "logicalNot", NumPy: "logical_not", WGSL: "select(V(), V(T(1)), X == V())",
			Go: "truth[N](x == 0)",
		},
	}),
	section(Binary, "arithmetic", []Operation{
		{Name: "Add", Doc: "is a + b", Store: true, WGSL: "X + Y", Go: "x + y", Gradient: "1; 1"},
		{
			Name: "Sub", Doc: "is a - b", Store: true, NumPy: "subtract", Text: []string{"subtract", "sub"}, WGSL: "X - Y",
			Go: "x - y", Gradient: "1; -1",
		},
		{
			Name: "MulElem", Code: "Mul", Doc: "is the element-wise product of a and b", Store: true, JS: "mul", NumPy: "multiply",
			Text: []string{"multiply"}, WGSL: "X * Y", Go: "x * y", Gradient: "b; a",
		},
		{
			Name: "DivElem", Code: "Div", Doc: "is the element-wise quotient of a and b",
			Note: "Integers divided by zero yield the dividend.", Store: true, JS: "div", NumPy: "divide",
			Text: []string{"divide", "div"}, WGSL: "X / Y", Ints: "divide4(X, Y)", Uints: "divide4(X, Y)", Go: "divide(x, y)",
			Gradient: "1 / b; -y / b",
		},
		{
			Name: "Pow", Doc: "is a to the power b, element by element", Note: "A negative base with a whole exponent is real.",
			Real: true, JSCall: "power", NumPy: "power", Call: "powNode", WGSL: "pow4(X, Y)", Go: "math.Pow(x, y)",
			Gradient: "b % pow(a, b - 1); y % log(a)",
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
	}),
	section(Ternary, "choice", []Operation{
		{
			Name: "Where", Doc: "takes a where cond is not 0, and b elsewhere", WGSL: "select(Y, Z, X == V())",
			Go: "pick(x != 0, y, z)", Gradient: "0; a != 0; a == 0",
		},
	}),
	section(Limits, "choice", []Operation{
		{
			Name: "Clamp", Doc: "limits a to lo..hi", NumPy: "clip",
			WGSL: "select(select(X, Z, X > Z), Y, select(X, Z, X > Z) < Y)", Go: "clamp(x, y, z)",
			Gradient: "(a >= b) && (a <= c); min(a, c) < b; (a > c) && (b <= c)",
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
			Note: "Small whole and half powers are computed without logarithms.", Call: "powNode",
		},
	}),
	section(ScalarLast, "choice", []Operation{
		{Name: "MinScalar", Code: "Min", Doc: "is the smaller of each element and s"},
		{Name: "MaxScalar", Code: "Max", Doc: "is the larger of each element and s"},
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
	section(RowMap, "softmax", []Operation{
		{Name: "Softmax", Doc: "is exp(a) divided by its sum, row by row, computed without overflow", Real: true},
		{Name: "LogSoftmax", Doc: "is the logarithm of Softmax", Real: true, JS: "logSoftmax"},
		{
			Name: "Hardmax", Doc: "is 1 at the largest element of each row and 0 elsewhere",
			Note: "The first of several is the largest, and NaN before all others.",
		},
	}),
)

// section gives rows their class and group, and what else they leave out.
func section(class Class, group string, rows []Operation) []Operation {
	for i := range rows {
		r := &rows[i]
		r.Class, r.Group = class, group
		r.Code, r.Every = cmp.Or(r.Code, r.Name), cmp.Or(r.Every, r.Name)
		if r.True != "" {
			r.WGSL, r.Go = "select(V(), V(T(1)), "+r.True+")", "truth[N]("+strings.ToLower(r.True)+")"
		}
		scripted := r.Name != "" && class != ScalarLast && class != ScalarFirst
		if scripted && r.JS == "" {
			r.JS = strings.ToLower(r.Name[:1]) + r.Name[1:]
		}
		if scripted && r.Text == nil {
			r.Text = []string{strings.ToLower(r.Every)}
		}
		r.JS = strings.TrimPrefix(r.JS, "-")
	}
	return rows
}
