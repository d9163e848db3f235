// SPDX-License-Identifier: Apache-2.0

package ops

// complexNumbers are those of complex numbers alone. What others do with them, package expr says.
var complexNumbers = section(Shaping, "complex numbers", []Operation{
	{
		Name: "Complex", Params: "a, b Operand[T]", Makes: "complex64", Shape: "a.rows === 1 ? b.rows : a.rows, a.cols === 1 ? b.cols : a.cols",
		Doc: "is the complex numbers a + b i", Note: "Both are float32. Dimensions of 1 stretch.",
	},
	{
		Name: "Real", Params: "a Operand[T]", Makes: "float32", Shape: "a.rows, a.cols", Doc: "is the real parts",
		Note: "As float32; of real numbers those themselves.",
	},
	{
		Name: "Imag", Params: "a Operand[T]", Makes: "float32", Shape: "a.rows, a.cols", Doc: "is the imaginary parts",
		Note: "As float32; of real numbers 0.",
	},
	{
		Name: "Angle", Params: "a Operand[T]", Makes: "float32", Shape: "a.rows, a.cols", Text: []string{"angle", "arg"},
		Doc: "is the angles of complex numbers with the positive real axis, from -pi to pi", Note: "As float32; of real numbers 0 or pi.",
	},
	{
		Name: "Conj", NumPy: "conjugate", Params: "a Operand[T]", Shape: "a.rows, a.cols", Doc: "is the complex conjugates", Note: "Real numbers are their own.",
	},
	{
		Name: "ConjTranspose", Params: "a Operand[T]", Shape: "a.cols, a.rows", Text: []string{"conjtranspose", "h"},
		Doc: "is the transpose of the complex conjugates", Note: "Of real numbers it is the transpose. In a text it is A.H, too.",
	},
})

// ofComplex says what operations make of complex numbers: others of those, or real numbers. Those that are not here are refused.
var ofComplex = map[string]string{
	"Copy": "complex64", "Neg": "complex64", "Square": "complex64", "Recip": "complex64", "Sqrt": "complex64", "Exp": "complex64", "Log": "complex64",
	"Sin": "complex64", "Cos": "complex64", "Tan": "complex64", "Sinh": "complex64", "Cosh": "complex64", "Tanh": "complex64",
	"Add": "complex64", "Sub": "complex64", "Mul": "complex64", "Div": "complex64", "Pow": "complex64", "Where": "complex64",
	"Abs": "float32", "Eq": "float32", "Ne": "float32", "IsNaN": "float32", "IsInf": "float32", "IsFinite": "float32",

	"Sum": "complex64", "Mean": "complex64", "Trace": "complex64", "Var": "float32", "Std": "float32", "Norm1": "float32", "Norm2": "float32",
	"NormInf": "float32", "NormP": "float32", "CountNonzero": "int32", "AnyNonzero": "float32", "AllNonzero": "float32", "CumSum": "complex64",
}

// OfComplex returns the element type of what the operation makes of complex64, "" if it is not defined for that.
func (o *Operation) OfComplex() string { return ofComplex[o.Code] }
