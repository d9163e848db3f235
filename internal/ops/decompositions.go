// SPDX-License-Identifier: Apache-2.0

package ops

// decompositions are shapings by their numbers: after those of the list of that name.
var decompositions = section(Shaping, "decompositions", []Operation{
	{
		Name: "Solve", Params: "a, b Operand[T]", Doc: "is the solution x of a * x = b for a square a, by LU with partial pivoting",
		Note: "To read the expression for a singular a is ErrSingular, unless what is done to the solution leaves no infinities; " +
			"where it is only assigned, its elements are infinities or NaN. LU tells the condition.",
		Text: []string{"solve"}, Shape: "b.rows, b.cols",
	},
	{
		Name: "Inverse", Params: "a Operand[T]", JS: "inv", Text: []string{"inv", "inverse"}, Doc: "is the inverse of a square a, by LU with partial pivoting",
		Note: "A singular a is ErrSingular or gives infinities or NaN, as with Solve. Solve is faster and more accurate than a product with it.", Shape: "a.rows, a.cols",
	},
	{Name: "Det", Params: "a Operand[T]", Doc: "is the determinant of a square a, 1x1", Note: "LogDet does not overflow.", Shape: "1, 1"},
	{Name: "LogDet", Params: "a Operand[T]", Doc: "is the logarithm of the absolute value of the determinant of a square a, 1x1", Shape: "1, 1"},
	{Name: "DetSign", Params: "a Operand[T]", Doc: "is the sign of the determinant of a square a, 1x1: 1, -1 or 0", Shape: "1, 1"},
	{
		Name: "LowerLU", Params: "a Operand[T]", JS: "lowerLU", Doc: "is L of P * a = L * U, with partial pivoting: its diagonal is 1",
		Shape: "a.rows, Math.min(a.rows, a.cols)",
	},
	{Name: "UpperLU", Params: "a Operand[T]", JS: "upperLU", Doc: "is U of P * a = L * U, with partial pivoting", Shape: "Math.min(a.rows, a.cols), a.cols"},
	{
		Name: "PermutedLU", Params: "a Operand[T]", JS: "permutedLU", Doc: "is P * a of P * a = L * U: the rows of a in the order of the pivots",
		Shape: "a.rows, a.cols",
	},
	{
		Name: "CholeskyFactor", Params: "a Operand[T]", JS: "cholesky", Text: []string{"cholesky"}, Doc: "is the lower triangular L of a = L * T(L) for a symmetric positive definite a, whose lower triangle is read",
		Note: "To read it of another matrix is ErrNotPosDef; where it is only assigned, it has NaN on its diagonal.", Shape: "a.rows, a.cols",
	},
	{
		Name: "SolveLower", Params: "a, b Operand[T]", Doc: "is the solution x of a * x = b for a lower triangular a, whose lower triangle is read", Shape: "b.rows, b.cols",
	},
	{
		Name: "SolveUpper", Params: "a, b Operand[T]", Doc: "is the solution x of a * x = b for an upper triangular a, whose upper triangle is read", Shape: "b.rows, b.cols",
	},
	{
		Name: "SolveStack", Params: "a, b Operand[T]", Doc: "is the solutions of small systems: a is square matrices below each other, b their right sides",
		Note: "One launch solves them all.", Shape: "b.rows, b.cols",
	},
	{
		Name: "QFactor", Params: "a Operand[T]", Doc: "is Q of a = Q * R by Householder reflections: orthonormal columns, as many as the smaller dimension of a",
		Text: []string{"qfactor", "qr_q"}, Shape: "a.rows, Math.min(a.rows, a.cols)",
	},
	{
		Name: "RFactor", Params: "a Operand[T]", Doc: "is R of a = Q * R, upper triangular", Text: []string{"rfactor", "qr_r"},
		Shape: "Math.min(a.rows, a.cols), a.cols",
	},
	{
		Name: "LeastSquares", Params: "a, b Operand[T]", NumPy: "lstsq", JS: "lstsq", Text: []string{"lstsq", "leastsquares"},
		Doc:  "is the x of the smallest norm(a * x - b) of each column, by QR; of the smallest norm(x) itself where a has more columns than rows",
		Note: "The rank of a is its smaller dimension; PseudoInverse takes any.", Shape: "a.cols, b.cols",
	},
	{
		Name: "Eigenvalues", Params: "a Operand[T]", NumPy: "eigvalsh", Text: []string{"eigenvalues", "eigvalsh"},
		Doc: "is the eigenvalues of a symmetric a, whose lower triangle is read, as a row in ascending order, by Jacobi rotations", Shape: "1, a.cols",
	},
	{
		Name: "Eigenvectors", Params: "a Operand[T]", Text: []string{"eigenvectors", "eigh"},
		Doc: "has the eigenvectors of a symmetric a in its columns, orthonormal, in the order of Eigenvalues", Shape: "a.rows, a.cols",
	},
	{
		Name: "SingularValues", Params: "a Operand[T]", NumPy: "svdvals", Text: []string{"singularvalues", "svdvals"},
		Doc: "is the singular values of a as a row in descending order, by one-sided Jacobi rotations", Shape: "1, Math.min(a.rows, a.cols)",
	},
	{
		Name: "LeftVectors", Params: "a Operand[T]", Text: []string{"leftvectors", "svd_u"},
		Doc: "is U of the singular value decomposition a = U * diag(s) * T(V): orthonormal columns, as many as singular values", Shape: "a.rows, Math.min(a.rows, a.cols)",
	},
	{
		Name: "RightVectors", Params: "a Operand[T]", Text: []string{"rightvectors", "svd_v"},
		Doc: "is V of the singular value decomposition a = U * diag(s) * T(V): orthonormal columns, as many as singular values", Shape: "a.cols, Math.min(a.rows, a.cols)",
	},
	{
		Name: "PseudoInverse", Params: "a Operand[T], tolerance float64", NumPy: "pinv", JS: "pinv", Text: []string{"pinv"},
		Doc:  "is the Moore-Penrose inverse of a",
		Note: "Singular values of up to tolerance times the largest are taken for 0; a tolerance of 0 is the larger dimension times 2^-23.", Shape: "a.cols, a.rows",
	},
	{
		Name: "Rank", Params: "a Operand[T], tolerance float64", Doc: "is the number of singular values of a above tolerance times the largest, 1x1",
		Note: "A tolerance of 0 is the larger dimension times 2^-23.", Shape: "1, 1",
	},
	{
		Name: "Cond", Params: "a Operand[T]", Doc: "is the condition of a, its largest singular value by its smallest, 1x1: infinity for a singular matrix",
		Shape: "1, 1",
	},
	{
		Name: "MatrixExp", Params: "a Operand[T]", JS: "expm", NumPy: "expm", Text: []string{"expm", "matexp", "matrixexp"}, Shape: "a.rows, a.cols",
		Doc: "is the exponential of a square a, by scaling and squaring", Note: "Where a norm of a is beyond 2^19 or not finite it is NaN.",
	},
	{
		Name: "MatrixPower", Params: "a Operand[T], k int", Least: 1, NumPy: "matrix_power", Doc: "is the product of k square matrices a, of its inverse for negative k",
		Text: []string{"matrixpower", "matpow"}, Shape: "a.rows, a.cols",
	},
})
