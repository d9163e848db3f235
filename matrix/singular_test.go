// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestUnsolved reads expressions of systems that have no solution, and of some whose operands are not finite themselves.
func TestUnsolved(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		of := func(rows, cols int, v ...float32) *dense {
			return must[*dense](t)(matrix.FromSlice(dev, rows, cols, v))
		}
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		singular, regular, b := of(2, 2, 1, 2, 2, 4), of(2, 2, 0, 1, 1, 0), of(2, 1, 1, 2)
		zero := of(2, 2, 0, 0, 0, 0)
		for _, c := range []struct {
			what string
			x    *matrix.Expr[float32]
			want error
			says string
		}{
			{"solve", matrix.Solve[float32](singular, b), matrix.ErrSingular, "Solve: 2x2"},
			{"inverse", matrix.Inverse[float32](singular), matrix.ErrSingular, "Inverse: 2x2"},
			{"product with an inverse", matrix.Mul[float32](matrix.Inverse[float32](singular), b), matrix.ErrSingular, "Inverse: 2x2"},
			{"power", matrix.MatrixPower[float32](singular, -2), matrix.ErrSingular, "MatrixPower: 2x2"},
			{"sum", matrix.Sum[float32](matrix.Solve[float32](singular, b).Abs()), matrix.ErrSingular, "Solve: 2x2"},
			{"lower triangle", matrix.SolveLower[float32](of(2, 2, 1, 0, 1, 0), b), matrix.ErrSingular, "SolveLower: 2x2"},
			{"upper triangle", matrix.SolveUpper[float32](of(2, 2, 0, 1, 0, 1), b), matrix.ErrSingular, "SolveUpper: 2x2"},
			{"stack", matrix.SolveStack[float32](matrix.VStack[float32](regular, singular), of(4, 1, 1, 2, 3, 4)), matrix.ErrSingular, "SolveStack: 4x2"},
			{"least squares", matrix.LeastSquares[float32](of(3, 2, 1, 0, 1, 0, 1, 0), of(3, 1, 1, 2, 3)), matrix.ErrSingular, "LeastSquares: 3x2"},
			{"Cholesky", matrix.CholeskyFactor[float32](of(2, 2, 1, 2, 2, 1)), matrix.ErrNotPosDef, "CholeskyFactor: 2x2"},
			{"Cholesky, semidefinite", matrix.CholeskyFactor[float32](singular), matrix.ErrNotPosDef, "CholeskyFactor: 2x2"},
			{"Cholesky of zeros", matrix.CholeskyFactor[float32](zero), matrix.ErrNotPosDef, "CholeskyFactor: 2x2"},
			{"the second of two", matrix.Solve[float32](singular, matrix.Solve[float32](regular, b)), matrix.ErrSingular, "Solve: 2x2"},
			{"regular", matrix.Solve[float32](regular, b), nil, ""},
			{"nothing", matrix.Inverse[float32](matrix.Fill[float32](0, 0, 1).On(dev)), nil, ""},
			{"NaN", matrix.Solve[float32](of(2, 2, nan, 1, 1, 1), b), nil, ""},
			{"an infinite right side", matrix.Solve[float32](regular, of(2, 1, inf, 1)), nil, ""},
			{"infinite behind the solution", matrix.Solve[float32](regular, b).DivElem(matrix.Fill[float32](1, 1, 0)), nil, ""},
			{"of a singular matrix, not solved", matrix.Det[float32](singular), nil, ""},
		} {
			_, err := c.x.Read(background)
			if !errors.Is(err, c.want) || err != nil && err.Error() != "matrix: "+c.says+": "+c.want.Error() {
				t.Errorf("%s: %v, want %s: %v", c.what, err, c.says, c.want)
			}
			result := must[*dense](t)(c.x.Eval()) // only queued, it is what it is
			if err := c.x.Solved(background, result); !errors.Is(err, c.want) {
				t.Errorf("%s, evaluated before: %v, want %v", c.what, err, c.want)
			}
			check(t, result.Close())
		}
		if _, err := matrix.Solve(matrix.Convert[matrix.Half](singular), matrix.Convert[matrix.Half](b)).Read(background); !errors.Is(err, matrix.ErrSingular) {
			t.Error("float16:", err)
		}
		z := matrix.Complex[float32](singular, zero)
		if _, err := matrix.Inverse(z).Read(background); !errors.Is(err, matrix.ErrSingular) || !strings.Contains(err.Error(), "Inverse: 2x2") {
			t.Error("complex64:", err)
		}
		if _, err := matrix.Convert[int32](matrix.Inverse[float32](singular)).Read(background); !errors.Is(err, matrix.ErrSingular) {
			t.Error("int32:", err)
		}
		if v, err := matrix.Inverse[float32](singular).Explain(background); err != nil || len(v.Launches) == 0 {
			t.Error("a plan that is only explained:", err)
		}
		if err := (*matrix.Expr[float32])(nil).Solved(background, b); err == nil {
			t.Error("no expression is solved")
		}
		if err := matrix.Inverse[float32](singular).Solved(background, nil); err == nil {
			t.Error("no result is solved")
		}
		vars := map[string]matrix.Operand[float32]{"A": singular, "b": b}
		if _, err := matrix.EvalAll(background, dev, "x = solve(A, b); x + 1", vars); !errors.Is(err, matrix.ErrSingular) || !strings.Contains(err.Error(), "Solve: 2x2") {
			t.Error("a text:", err)
		}
		for _, m := range []*dense{singular, regular, b, zero} {
			check(t, m.Close())
		}
	})
}
