// SPDX-License-Identifier: Apache-2.0

package ops

// shapings are in the order of their numbers.
var shapings = section(Shaping, "making and shaping", []Operation{
	{
		Name: "Eye", Params: "rows, cols, k int", Least: 1, JS: "-", Doc: "is a rows x cols matrix with 1 on a diagonal and 0 elsewhere",
		Note: "The diagonal k is that many columns to the right of the main one.", Text: []string{"eye"},
	},
	{
		Name: "Arange", Params: "start, stop, step float64", Least: 1, Text: []string{"arange"},
		Doc: "is a row of start, start + step, and so on, up to but without stop", Note: "Each element is rounded once or twice.",
		Shape: "1, Math.max(0, Math.ceil(((stop ?? start) - (stop === undefined ? 0 : start)) / (step ?? 1)))",
	},
	{
		Name: "Linspace", Params: "start, stop float64, count int", Least: 2, Text: []string{"linspace"},
		Doc: "is a row of count numbers at equal distances, from start to stop, which are exact", Shape: "1, count ?? 50",
	},
	{
		Name: "Diag", Params: "a Operand[T], k int",
		Doc: "is a square matrix with the row or the column a on the diagonal k and 0 elsewhere", Note: "Of another matrix it is Diagonal.",
		Shape: "a.rows === 1 || a.cols === 1 ? a.rows * a.cols + Math.abs(k ?? 0) : 1, " +
			"a.rows === 1 || a.cols === 1 ? a.rows * a.cols + Math.abs(k ?? 0) : Math.max(0, Math.min(a.rows + Math.min(k ?? 0, 0), a.cols - Math.max(k ?? 0, 0)))",
	},
	{
		Name: "Diagonal", Params: "a Operand[T], k int", Doc: "is the diagonal k of a as a row, the main one for 0",
		Shape: "1, Math.max(0, Math.min(a.rows + Math.min(k ?? 0, 0), a.cols - Math.max(k ?? 0, 0)))",
	},
	{Name: "Tril", Params: "a Operand[T], k int", Doc: "is a with 0 above the diagonal k", Shape: "a.rows, a.cols"},
	{Name: "Triu", Params: "a Operand[T], k int", Doc: "is a with 0 below the diagonal k", Shape: "a.rows, a.cols"},
	{
		Name: "Band", Params: "a Operand[T], lower, upper int", Least: 2, Shape: "a.rows, a.cols",
		Doc: "is a with 0 outside of lower diagonals below the main one and upper above it", Note: "A negative number keeps all of its side.",
	},
	{
		Name: "OneHot", Params: "labels Operand[int32], classes int", Least: 1,
		Doc: "has 1 in the column that a column of labels names for each row, and 0 elsewhere", JS: "oneHot",
		Note:  "Of a row of labels it has 1 in the row that they name for each column. A label that is no class is all 0.",
		Shape: "labels.rows === 1 && labels.cols !== 1 ? classes : labels.rows, labels.rows === 1 && labels.cols !== 1 ? labels.cols : classes",
	},
	{Name: "RepeatRows", Params: "a Operand[T], n int", Least: 1, Doc: "has each row of a n times, one below the other", Shape: "a.rows * n, a.cols"},
	{Name: "RepeatCols", Params: "a Operand[T], n int", Least: 1, Doc: "has each column of a n times, one beside the other", Shape: "a.rows, a.cols * n"},
	{Name: "Tile", Params: "a Operand[T], rows, cols int", Least: 2, Doc: "is a rows times below itself and cols times beside", Shape: "a.rows * rows, a.cols * cols"},
	{
		Name: "VStack", Params: "a ...Operand[T]", JS: "vstack", Doc: "is matrices of as many columns, one below the other", Text: []string{"vstack"},
		Shape: "a.reduce((/** @type {any} */ n, /** @type {any} */ x) => n + x.rows, 0), a[0].cols",
	},
	{
		Name: "HStack", Params: "a ...Operand[T]", JS: "hstack", Doc: "is matrices of as many rows, one beside the other", Text: []string{"hstack"},
		Shape: "a[0].rows, a.reduce((/** @type {any} */ n, /** @type {any} */ x) => n + x.cols, 0)",
	},
	{Name: "FlipRows", Params: "a Operand[T]", NumPy: "flipud", Text: []string{"fliprows", "flipud"}, Doc: "has the rows of a in reverse order", Shape: "a.rows, a.cols"},
	{Name: "FlipCols", Params: "a Operand[T]", NumPy: "fliplr", Text: []string{"flipcols", "fliplr"}, Doc: "has the columns of a in reverse order", Shape: "a.rows, a.cols"},
	{
		Name: "Roll", Params: "a Operand[T], rows, cols int", Least: 2, Doc: "is a moved down by rows and to the right by cols, what leaves it coming in at the other end",
		Shape: "a.rows, a.cols",
	},
	{
		Name: "Pad", Params: "a Operand[T], top, bottom, left, right int, value float64", Least: 4, Doc: "is a with a margin of a value",
		Shape: "a.rows + top + bottom, a.cols + left + right",
	},
	{
		Name: "Reshape", Params: "a Operand[T], rows, cols int", Least: 2, JS: "-", Doc: "is the elements of a, read row by row, as rows x cols",
		Note: "One of the sizes may be -1, for what is left.", Text: []string{"reshape"},
	},
	{
		Name: "TakeRows", Params: "a Operand[T], rows Operand[int32]", Doc: "is rows of a, those that a row or a column of numbers names",
		Note: "Where a has no such row, it is 0.", Shape: "rows.rows * rows.cols, a.cols",
	},
	{
		Name: "TakeCols", Params: "a Operand[T], cols Operand[int32]", Doc: "is columns of a, those that a row or a column of numbers names",
		Note: "Where a has no such column, it is 0.", Shape: "a.rows, cols.rows * cols.cols",
	},
	{Name: "Kron", Params: "a, b Operand[T]", Doc: "is the Kronecker product: b times each element of a", Shape: "a.rows * b.rows, a.cols * b.cols"},
	{
		Name: "KhatriRao", Params: "a, b Operand[T]", Doc: "is the Kronecker product of each two columns, a's row number running faster, as in CNTK",
		Shape: "a.rows * b.rows, a.cols",
	},
	{
		Name: "Outer", Params: "a, b Operand[T]", Doc: "is the product of each element of a, a row or a column, with each of b",
		Shape: "a.rows * a.cols, b.rows * b.cols",
	},
	{Name: "Cross", Params: "a, b Operand[T]", Doc: "is the cross product of each two rows of three elements", Shape: "a.rows, 3"},
	{Name: "BroadcastTo", Params: "a Operand[T], rows, cols int", Least: 2, NumPy: "broadcast_to", Doc: "is a stretched to rows x cols where it has one row or column", Shape: "rows, cols"},
})
