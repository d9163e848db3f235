// SPDX-License-Identifier: Apache-2.0

package ops

// The numbers that reductions and sorts take beside their operand.
const (
	Ddof  = "ddof"
	Power = "p"
	Most  = "k"
)

// reductions are in the order of their numbers.
var reductions = section(Reduction, "reductions", []Operation{
	{Name: "Sum", Doc: "sum", Note: "What comes before element by element is computed in the same kernel. Of nothing it is 0. A sum of integers wraps in their type: convert smaller ones first.", Gradient: "1"},
	{
		Name: "Max", Every: "MaxAll", Doc: "maximum",
		Note: "NaN wins. Of nothing it is minus infinity or the type's smallest value.", Gradient: "a == y",
	},
	{
		Name: "Min", Every: "MinAll", Doc: "minimum", Note: "NaN wins. Of nothing it is infinity or the type's largest value.",
		Gradient: "a == y",
	},
	{Name: "Prod", Doc: "product", Note: "Of nothing it is 1.", Gradient: "y / a"},
	{Name: "Mean", Doc: "mean", Note: "Of nothing it is NaN.", Real: true},
	{
		Name: "Var", Doc: "variance", Real: true, Takes: Ddof,
		Note: "The squares of the differences from the mean are summed and divided by their number, " +
			"less ddof where that is given: 1 for a sample.",
	},
	{Name: "Std", Doc: "standard deviation", Real: true, Takes: Ddof, Note: "The square root of Var."},
	{Name: "Norm1", Doc: "sum of the absolute values", Gradient: "sign(a)"},
	{Name: "Norm2", Doc: "Euclidean norm", Note: "Of all elements it is the Frobenius norm.", Real: true, Gradient: "a / y"},
	{Name: "NormInf", Doc: "largest absolute value", Note: "NaN wins. Of nothing it is 0."},
	{
		Name: "NormP", Doc: "p-norm", Real: true, Takes: Power,
		Note: "The sum of the absolute values to the power p, to the power 1/p; p may be an infinity.",
	},
	{
		Name: "LogSumExp", Doc: "logarithm of the sum of the exponentials", Real: true,
		Note: "Computed without overflow. Of nothing it is minus infinity.", Gradient: "exp(a - y)",
	},
	{
		Name: "CountNonzero", Doc: "number of elements that are not 0", Note: "As int32. NaN is not 0.", NumPy: "count_nonzero", Makes: "int32",
	},
	{
		Name: "AnyNonzero", JS: "any", Text: []string{"any", "anynonzero"}, Doc: "logical or",
		Note: "It is 1 or 0. NaN counts as true. Of nothing it is 0.",
	},
	{
		Name: "AllNonzero", JS: "all", Text: []string{"all", "allnonzero"}, Doc: "logical and",
		Note: "It is 1 or 0. NaN counts as true. Of nothing it is 1.",
	},
	{
		Name: "ArgMax", Doc: "index of the largest element", Makes: "int32", NumPy: "argmax",
		Note: "The first of several, or of the NaN, as int32: counted row by row, or along the row or the column. Of nothing it is an error.",
	},
	{
		Name: "ArgMin", Doc: "index of the smallest element", Makes: "int32", NumPy: "argmin",
		Note: "The first of several, or of the NaN, as int32: counted row by row, or along the row or the column. Of nothing it is an error.",
	},
	{Name: "Trace", Doc: "sum of the diagonal", Alone: true},
})

// sorts are in the order of their numbers.
var sorts = section(Order, "order", []Operation{
	{Name: "Sort", Doc: "sorted in ascending order", Note: "NaN comes last, and equal elements keep their order."},
	{
		Name: "ArgSort", Doc: "the indices, as int32, of its elements in ascending order", Makes: "int32", NumPy: "argsort",
		Note: "NaN comes last, and equal elements keep their order.",
	},
	{
		Name: "TopK", Doc: "its k largest elements, the largest first", Takes: Most,
		Note: "NaN is the largest, and of equal elements the first one comes first.",
	},
	{
		Name: "ArgTopK", Doc: "the indices, as int32, of its k largest elements, the largest first", Takes: Most, Makes: "int32",
		Note: "NaN is the largest, and of equal elements the first one comes first.",
	},
	{Name: "CumSum", Doc: "its running sums", NumPy: "cumsum"},
	{Name: "CumProd", Doc: "its running products", NumPy: "cumprod"},
})
