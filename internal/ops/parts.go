// SPDX-License-Identifier: Apache-2.0

package ops

// parts are shapings by their numbers: after those of the lists before.
var parts = section(Shaping, "parts, stacks and counts", []Operation{
	{
		Name: "Slice", Params: "a Operand[T], i, k, j, l int", Least: 4, JS: "-", Text: []string{"part"}, Doc: "is rows i to k-1 and columns j to l-1 of a",
		Note: "A matrix has a view of that name, which costs nothing; of another expression only what the part needs is computed.",
	},
	{
		Name: "PutRows", Params: "a Operand[T], rows Operand[int32], b Operand[T]", Shape: "a.rows, a.cols",
		Doc: "is a with the rows that a row or a column of numbers names replaced by those of b, in their order", Note: "Of a row that is named twice " +
			"the last one counts; a number that is no row is passed over. Many numbers are sorted first.",
	},
	{
		Name: "PutCols", Params: "a Operand[T], cols Operand[int32], b Operand[T]", Shape: "a.rows, a.cols",
		Doc: "is a with the columns that a row or a column of numbers names replaced by those of b, in their order", Note: "It is as PutRows.",
	},
	{
		Name: "AddToRows", Params: "a Operand[T], rows Operand[int32], b Operand[T]", Shape: "a.rows, a.cols",
		Doc: "is a with rows of b added to those that a row or a column of numbers names", Note: "To a row that is named several times all are added; " +
			"a number that is no row is passed over. Many rows or numbers are sorted first.",
	},
	{
		Name: "AddToCols", Params: "a Operand[T], cols Operand[int32], b Operand[T]", Shape: "a.rows, a.cols",
		Doc: "is a with columns of b added to those that a row or a column of numbers names", Note: "It is as AddToRows.",
	},
	{
		Name: "PutDiag", Params: "a, d Operand[T], k int", Shape: "a.rows, a.cols",
		Doc: "is a with its diagonal k replaced by the elements of d, a row, a column or a 1x1 matrix, which is stretched",
	},
	{
		Name: "AddToDiag", Params: "a, d Operand[T], k int", Shape: "a.rows, a.cols",
		Doc: "is a with the elements of d, a row, a column or a 1x1 matrix, which is stretched, added to its diagonal k",
	},
	{
		Name: "Put", Params: "a, b Operand[T], i, j int", Least: 2, Shape: "a.rows, a.cols", Text: []string{"put", "setblock"},
		Doc: "is a with its elements from row i and column j on replaced by b", Note: "A b that is larger than a is ErrShape, one that does not fit in there ErrIndex.",
	},
	{
		Name: "AddTo", Params: "a, b Operand[T], i, j int", Least: 2, Shape: "a.rows, a.cols", Text: []string{"addto", "addblock"},
		Doc: "is a with b added to its elements from row i and column j on", Note: "It is as Put.",
	},
	{
		Name: "Gather", Params: "a Operand[T], rows, cols Operand[int32]",
		Doc: "is the elements of a at rows and columns, which stretch as operands of element-wise operations do: element (i, j) is a(rows(i, j), cols(i, j))",
		Note: "Where a has no such row or column it is 0. A kernel reads elements where it needs them, so that rows, columns and what is done with the " +
			"result may be any expressions; a is evaluated first unless it is a matrix.",
		Shape: "rows.rows === 1 ? cols.rows : rows.rows, rows.cols === 1 ? cols.cols : rows.cols",
	},
	{Name: "DotRows", Params: "a, b Operand[T]", Doc: "is the products of each two rows, a column", Shape: "Math.max(a.rows, b.rows), 1"},
	{Name: "DotCols", Params: "a, b Operand[T]", Doc: "is the products of each two columns, a row", Shape: "1, Math.max(a.cols, b.cols)"},
	{
		Name: "MulStack", Params: "a, b Operand[T], count int", Least: 1, Doc: "is the products of the matrices of two stacks: a and b are count matrices below each other",
		Note: "All but large ones are multiplied in one launch, and TransposeStack of an operand costs nothing. Matrices that lie further apart than " +
			"they have elements are rows of a matrix with such a stride: Reshape of a Slice of those.",
		Shape: "a.rows, b.cols",
	},
	{
		Name: "Histogram", Params: "a Operand[T], bins int, low, high float64", Real: true, Least: 3, Shape: "1, bins", Makes: "int32",
		Doc: "is how many elements of a are in each of the bins between low and high, a row", Note: "a has floats, the counts are int32. The last bin has high, too; what is outside is " +
			"passed over. It takes as many comparisons as elements and bins; many are sorted instead.",
	},
	{
		Name: "BinCount", Params: "a Operand[T], classes int", Least: 1, JS: "bincount", Shape: "1, classes", Makes: "int32",
		Doc: "is how many elements of a are each of the numbers from 0 to classes-1, a row", Note: "As int32. Others are passed over.",
	},
	{
		Name: "SearchSorted", NumPy: "searchsorted", Params: "a, b Operand[T]", Doc: "is how many elements of a, a sorted row, are less than each element of b: where it would be inserted. NaN comes after all numbers",
		Note: "As int32.", Shape: "b.rows, b.cols", Makes: "int32",
	},
	{
		Name: "PutElements", Params: "a Operand[T], rows, cols Operand[int32], b Operand[T]", Shape: "a.rows, a.cols",
		Doc: "is a with the elements at rows and columns replaced by those of b, of the same size, or by its one element", Note: "Of a place that is named " +
			"twice the last one counts, row by row; what is outside is passed over. The places are sorted first.",
	},
	{
		Name: "AddToElements", Params: "a Operand[T], rows, cols Operand[int32], b Operand[T]", Shape: "a.rows, a.cols",
		Doc: "is a with the elements of b added to those at rows and columns, of the same size, or its one element to each", Note: "To a place that is named " +
			"several times all are added; what is outside is passed over. The places are sorted first.",
	},
	{
		Name: "TransposeStack", Params: "a Operand[T], count int", Least: 1, Doc: "is the transposes of the matrices of a stack, below each other: a is count matrices below each other",
		Shape: "count * a.cols, count === 0 ? 0 : a.rows / count",
	},
	{
		Name: "SymmetricLower", Params: "a Operand[T]", Shape: "a.rows, a.cols", Doc: "is the symmetric matrix of the lower triangle of a",
		Note: "What is above the diagonal is not used.",
	},
	{
		Name: "SymmetricUpper", Params: "a Operand[T]", Shape: "a.rows, a.cols", Doc: "is the symmetric matrix of the upper triangle of a",
		Note: "What is below the diagonal is not used.",
	},
	{
		Name: "CountUnique", Params: "a Operand[T]", Shape: "1, 1", Makes: "int32", Doc: "is how many different elements a has, 1x1",
		Note: "As int32. All NaN are one.",
	},
	{
		Name: "Unique", Params: "a Operand[T], k int", Shape: "1, k ?? a.rows * a.cols", Doc: "is the k smallest different elements of a in ascending order, a row",
		Note: "All NaN are one, the last. Where there are fewer, 0 follows; CountUnique says how many there are.",
	},
	{
		Name: "UniqueCounts", Params: "a Operand[T], k int", Shape: "1, k ?? a.rows * a.cols", Makes: "int32",
		Doc: "is how many elements of a are each of those of Unique, a row", Note: "As int32. Where there are fewer, 0 follows.",
	},
})
