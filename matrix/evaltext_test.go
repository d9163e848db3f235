// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestEvalBrackets takes elements, rows, columns and ranges of anything, counted from either end.
func TestEvalBrackets(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := owned(t, dev, 3, 2, 1, 2, 3, 4, 5, 6)
		vars := map[string]arg{"A": a}
		for text, want := range map[string][]float32{
			"A[1]": {3, 4}, "A[-1]": {5, 6}, "A[:, 1]": {2, 4, 6}, "A[:, -2]": {1, 3, 5}, "A[2, 0]": {5}, "A[-1, -1]": {6}, "A[0:2, 1:2]": {2, 4},
			"A[1:]": {3, 4, 5, 6}, "A[:-1]": {1, 2, 3, 4}, "A[-2:, :]": {3, 4, 5, 6}, "A[:]": {1, 2, 3, 4, 5, 6}, "(A+1)[1]": {4, 5}, "A.T[1]": {2, 4, 6},
			"A.T[0:1, 1:].T": {3, 5}, "(A*A.T)[0:2, 1:3]": {11, 17, 25, 39}, "A[1:][0]": {3, 4}, "A[1+1, 2-2]": {5}, "A[0:0]": {}, "A[3:]": {}, "-A[0]**2": {-1, -4},
			"row(A*2, -1)": {10, 12}, "col(A, -1)": {2, 4, 6}, "col(A+A, 0)": {2, 6, 10}, "slice(A, -2, 3, 0, 1)": {3, 5}, "slice(A+0, 0, -1, -1, 2)": {2, 4},
			"fill(3, 3, 7)[1:, 2]": {7, 7}, "A[::2]": {1, 2, 5, 6}, "A[::-1, ::-1]": {6, 5, 4, 3, 2, 1}, "A[1::2, 0]": {3},
			"(A*2)[-1:0:-2]": {10, 12}, "A[2:-4:-1, :1]": {5, 3, 1}, "A[:0:-1, 1]": {6, 4}, "sum(A)[0]": {21}, "(2)[0, 0]": {2}, "A\n[0]": {1, 2},
		} {
			got, err := matrix.Eval(text, vars).On(dev).Read(background)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			same(t, text, got, want)
		}
		for text, want := range map[string]error{
			"A[3]": buffer.ErrIndex, "A[-4]": buffer.ErrIndex, "A[0, 2]": buffer.ErrIndex, "A[:, -3]": buffer.ErrIndex, "A[0:4]": buffer.ErrIndex,
			"A[2:1]": buffer.ErrIndex, "A[-9e18]": buffer.ErrIndex, "A[9223372036854775807]": matrix.ErrSyntax, "row(A, 3)": buffer.ErrIndex,
			"col(A+1, -3)": buffer.ErrIndex, "slice(A, -4, 3, 0, 1)": buffer.ErrIndex, "slice(A+1, 0, 9, 0, 1)": buffer.ErrIndex, "A[]": matrix.ErrSyntax,
			"A[A]": matrix.ErrSyntax, "A[0.5]": matrix.ErrSyntax, "A[::0]": matrix.ErrSyntax, "A[:::]": matrix.ErrSyntax, "A[0:4:2]": buffer.ErrIndex, "A[0, 0, 0]": matrix.ErrSyntax, "A[0,]": matrix.ErrSyntax,
			"A[1": matrix.ErrSyntax, "X[0]": matrix.ErrName, "A[X]": matrix.ErrSyntax,
		} {
			if err := matrix.Eval(text, vars).Err(); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", text, err, want)
			}
		}
		check(t, a.Close())
	})
}

// TestEvalOperators has powers, another product, conversions and numbers of rows and columns.
func TestEvalOperators(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := owned(t, dev, 2, 2, 1, 2, 3, 4)
		vars := map[string]arg{"A": a}
		for text, want := range map[string][]float32{
			"A**2": {1, 4, 9, 16}, "-A**2": {-1, -4, -9, -16}, "2**3**2": {512}, "2**-1 * A": {.5, 1, 1.5, 2}, "2 * A**2 + 1": {3, 9, 19, 33}, "A.T**2": {1, 9, 4, 16},
			"A @ A": {7, 10, 15, 22}, "A@A.T - A*A.T": {0, 0, 0, 0}, "(A < 3) && (A > 1)": {0, 1, 0, 0}, "(A < 3) == (A < 2)": {1, 0, 1, 1},
			"float32(rowindex(2, 2)) + A": {1, 2, 4, 5}, "float32(10 * rowindex(2, 2) + colindex(2, 2))": {0, 1, 10, 11},
			"gather(A, 1 - rowindex(2, 1), colindex(1, 2))": {3, 4, 1, 2}, "gather(A, A, 0)": {3, 0, 0, 0}, "gather(A, 5, 5)": {0},
			"float32(int32(A + 0.75))": {1, 2, 3, 4}, "float32(uint8(A - 2)) - 1": {-1, -1, 0, 1}, "float32(bool(A - 1))": {0, 1, 1, 1},
			"float32(argmaxrows(A) + 1)": {2, 2}, "Float32(A)": {1, 2, 3, 4},
		} {
			got, err := matrix.Eval(text, vars).On(dev).Read(background)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			same(t, text, got, want)
		}
		half := must[*matrix.Dense[matrix.Any]](t)(matrix.Eval("float16(A)", map[string]matrix.Operand[matrix.Any]{"A": must[*matrix.Dense[matrix.Any]](t)(matrix.As[matrix.Any](a))}).Eval())
		if half.DType() != matrix.Float16 {
			t.Errorf("%v", half.DType())
		}
		check(t, errors.Join(half.Close(), a.Close()))
	})
}

// TestEvalAdvice wants errors to name the place and what may have been meant.
func TestEvalAdvice(t *testing.T) {
	a := evalMatrices(t)["A"]
	vars := map[string]arg{"A": a, "Weights": a}
	for text, want := range map[string][]string{
		"A // 2": {"column 3", "floordiv"}, "A /* x */": {"column 3", "no comments"}, "A ^ 2": {"column 3", "pow(A, B)", "bitxor"}, "A & A": {"&&", "bitand"},
		"A | A": {"||", "bitor"}, "A << 2": {"shiftleft"}, "A = 2": {"A == B"}, "A; A": {"statement"}, "1 < A < 3": {"column 7", "(a < b) && (b < c)"},
		"A == A == A": {"(a < b) && (b < c)"}, "A'": {"A.T"}, "mean_cols(A)": {"did you mean meancols?"}, "power(A, 2)": {"did you mean pow?"},
		"softmax_rows(A)": {"did you mean softmax?"}, "np.exp(A)": {"column 4", "no prefix"}, "maximum(A, 1)": {"max?"}, "1 + sqr(A)": {"column 5", "mean square?"},
		"Sigmiod(A)": {"sigmoid?"}, "weights + 1": {"Weights?"}, "Weightz": {"Weights?"}, "a": {"did you mean A?"}, "exp + 1": {"parentheses"},
		"zeros(2, 2)": {"fill?"}, "concatenate(A, A)": {"mean vstack or hstack?"}, "A\n+ B": {"line 2, column 3"}, "A +\n row(A, 9)": {"line 2, column 2", "Row"},
		"A[7]": {"column 1", "7 of 2x2"}, "A[0:9:2]": {"0:9:2 of 2x2"}, "slice(A, 0, 1)": {"5 arguments"}, "fill(1.5, 1, 1)": {"whole number as its argument 1"},
		"int32(A) + A": {"column 1", "Add", "int32 with float32; convert one, as in float32(A)"}, "int32(A) + 0.5": {"0.5 in a computation of int32"},
		"sum(A, 0)": {"sum takes 1 argument: sumrows(A) makes a column, sumcols(A) a row"}, "any(A, 1)": {"anyrows(A)"}, "std(A, 0, 1)": {"1 or 2 arguments: stdrows(A)"},
		"exp(A, A)": {"exp takes 1 argument"}, "int8(A, A)": {"int8 takes 1 argument"}, "sum(A, axis=0)": {"column 12", "sumcols"}, "topkrows(A, 3)": {"2x2: invalid argument: 3 of 2 elements"},
		"topkcols(vstack(A, A), 5)": {"4x2: invalid argument: 5 of 4 elements"}, "A and A": {"column 3", "A && B"}, "A or A": {"column 3", "A || B"}, "not A": {"column 1", "!A"},
		"A if A else A": {"column 3", "where(C, A, B)"}, "if A > 0": {"column 1", "where(C, A, B)"}, "if(A, A, A)": {"where?"}, "A ? A : A": {"where(C, A, B)"},
		"A .* A": {"A % B"}, "A \\ A": {"solve(A, B)"}, "Set_Rows(A, A, A)": {"mean putrows?"}, "qr(A)": {"mean qfactor and rfactor?"}, "cumsum(A)": {"mean cumsumrows or cumsumcols?"},
		"row_max(A)": {"mean maxrows?"}, "colSums(A)": {"mean sumcols?"}, "rownorm(A)": {"mean norm2rows?"}, "linf_norm(A)": {"mean norminf?"}, "reverse(A)": {"fliprows or flipcols?"},
	} {
		err := matrix.Eval(text, vars).Err()
		typedError(t, text, err)
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v does not say %q", text, err, part)
			}
		}
	}
	for _, text := range []string{"frobnicate(A)", "Q", "zz(A)", strings.Repeat("x", 5000) + "(A)", "é(A)", "median(A)", "size(A)", "rowcol(A)"} {
		if err := matrix.Eval(text, vars).Err(); !errors.Is(err, matrix.ErrName) || strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%.20q: %.200v", text, err)
		}
	}
}

// TestEvalOtherNames wants suggestions to be functions, and what they stand for to be none.
func TestEvalOtherNames(t *testing.T) {
	known := func(name string) bool {
		return !strings.Contains(matrix.Eval[float32](name+"()", nil).Err().Error(), "unknown name")
	}
	seen := map[string]bool{}
	for entry := range strings.SplitSeq(matrix.OtherNames, "|") {
		names, here, ok := strings.Cut(entry, "=")
		for name := range strings.FieldsSeq(names) {
			if known(name) || seen[name] || !ok {
				t.Errorf("%q is a function or there twice", name)
			}
			seen[name] = true
		}
		for _, name := range strings.FieldsFunc(here, func(r rune) bool { return r == ' ' || r == ',' }) {
			if !known(name) { // and and or are
				t.Errorf("%q is no function", name)
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d names", len(seen))
	}
}

// TestEvalAny computes without matrices, and with those of several types.
func TestEvalAny(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*matrix.Dense[matrix.Any]](t)(matrix.As[matrix.Any](owned(t, dev, 2, 2, 1, 2, 3, 4)))
		made := func(text string) *matrix.Dense[matrix.Any] {
			return must[*matrix.Dense[matrix.Any]](t)(matrix.Eval(text, map[string]matrix.Operand[matrix.Any]{"A": a}).Eval())
		}
		whole, mask := made("int32(A) - 1"), made("bool(A - 1)")
		several := map[string]matrix.Operand[matrix.Any]{"A": a, "I": whole, "M": mask, "pi": a}
		for text, want := range map[string][]float32{
			"sqrt(2.25)": {1.5}, "fill(1, 2, -1.5)": {-1.5, -1.5}, "max(1.5, 2)": {2}, "0*rand(1, 2) + fill(1, 2, .5)": {.5, .5}, "e - e + inf": {float32(math.Inf(1))},
			"float32(randombits(1, 1) < 16777216)": {0}, "1 / (1 - Inf)": {0}, "cos(pi)": {-1}, "float32(isnan(nan + NaN))": {1},
		} {
			same(t, text, readAny(t, matrix.Eval[matrix.Any](text, nil).On(dev)), want)
		}
		for text, want := range map[string][]float32{
			"float32(I) + A": {1, 3, 5, 7}, "where(M, A, -A)": {-1, 2, 3, 4}, "where(A/9, float32(I), 0)": {0, 1, 2, 3}, "takerows(A, I[0])": {1, 2, 3, 4},
			"fill(2, 2, .5) + A": {1.5, 2.5, 3.5, 4.5}, "sqrt(6.25) + A": {3.5, 4.5, 5.5, 6.5}, "where(nan, A, 0)": {1, 2, 3, 4}, "pi": {1, 2, 3, 4},
			"where(I > 1, real((1+2j)*A), 0)": {0, 0, 3, 4}, "anyrows(A > 3)": {0, 1}, "allcols(A > 1)": {0, 1}, "float32(where(I, 5, 6))": {6, 5, 5, 5},
		} {
			same(t, text, readAny(t, matrix.Eval(text, several)), want)
		}
		for text, want := range map[string]string{
			"A + I": "Add: invalid argument: float32 with int32; convert one", "I*T(M)": "Mul: invalid argument: int32 with bool; convert one", "hstack(A, M)": "HStack: invalid argument: float32 with bool",
			"where(M, A, I)": "Where: invalid argument: float32 with int32", "1j*A + I": "Add: invalid argument: int32 with complex64; convert one, as in", "solve(A, I)": "Solve: invalid argument: float32 with int32; convert one",
			"solvelower(A, M)": "SolveLower: invalid argument: float32 with bool; convert one", "leastsquares(A, I)": "LeastSquares: invalid argument: float32 with int32; convert one", "I + 0.5": "0.5 in a computation of int32",
		} {
			err := matrix.Eval(text, several).Err()
			if !errors.Is(err, gpu.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
		}
		check(t, errors.Join(whole.Close(), mask.Close(), a.Close()))
	})
}

// readAny reads the float32 elements of an expression.
func readAny(t *testing.T, e *matrix.Expr[matrix.Any]) []float32 {
	t.Helper()
	m, err := e.Eval()
	if err != nil {
		t.Error(err)
		return nil
	}
	return must[[]float32](t)(must[*matrix.Dense[float32]](t)(matrix.As[float32](m)).Read(background))
}

// TestEvalAll runs statements, of which later ones use earlier ones.
func TestEvalAll(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := owned(t, dev, 2, 2, 1, 2, 3, 4)
		vars := map[string]arg{"A": a}
		for text, want := range map[string]map[string][]float32{
			"B = A*A; C = B + 1":                          {"B": {7, 10, 15, 22}, "C": {8, 11, 16, 23}},
			"B = A + 1\nB % B":                            {"B": {2, 3, 4, 5}, "": {4, 9, 16, 25}},
			"\nB = A\n  + 1;;\n\nC = max(B,\n 3)\n":       {"B": {2, 3, 4, 5}, "C": {3, 3, 4, 5}},
			"B = A\n(B + 1)[0]":                           {"B": {1, 2, 3, 4}, "": {2, 3}},
			"E = eye(2)\nF = fill(1, 2, 3) * E; G = F[0]": {"E": {1, 0, 0, 1}, "F": {3, 3}, "G": {3, 3}},
			"exp = A + 1; exp == 2":                       {"exp": {2, 3, 4, 5}, "": {1, 0, 0, 0}},
			"n = 2 + 1; arange(n)[0, n - 1] * n":          {"n": {3}, "": {6}},
		} {
			results, err := matrix.EvalAll(background, dev, text, vars)
			if err != nil || len(results) != len(want) {
				t.Errorf("%q: %d results, %v", text, len(results), err)
				continue
			}
			for _, r := range results {
				same(t, text, must[[]float32](t)(r.Matrix.Read(background)), want[r.Name])
				check(t, r.Matrix.Close())
			}
		}
		for text, want := range map[string]error{
			"": matrix.ErrSyntax, ";;": matrix.ErrSyntax, "A = 1": matrix.ErrSyntax, "B = 1; B = 2": matrix.ErrSyntax, "B = A C": matrix.ErrSyntax,
			"B =": matrix.ErrSyntax, "B = C; C = A": matrix.ErrName, "B = A; C = B * A[0]": buffer.ErrShape, "= A": matrix.ErrSyntax, "B = (A; C = A)": matrix.ErrSyntax,
			"B = A; 1 = B": matrix.ErrSyntax, "B = argmax(A)": gpu.ErrInvalid, "B == A": matrix.ErrName, "B = A // C": matrix.ErrSyntax,
		} {
			if r, err := matrix.EvalAll(background, dev, text, vars); !errors.Is(err, want) || r != nil {
				t.Errorf("%q: %v, want %v", text, err, want)
			}
		}
		ended, cancel := context.WithCancel(background)
		cancel()
		_, err := matrix.EvalAll(ended, dev, "A", vars)
		isError(t, err, context.Canceled)
		_, err = matrix.EvalAll[float32](background, nil, "eye(2)", nil)
		isError(t, err, gpu.ErrInvalid)
		results := must[[]matrix.Named[matrix.Any]](t)(matrix.EvalAll[matrix.Any](background, dev, "I = rowindex(2, 1); F = float32(I) / 2; uint8(I)", nil))
		for i, want := range []matrix.DType{matrix.Int32, matrix.Float32, matrix.Uint8} {
			if got := results[i].Matrix.DType(); got != want {
				t.Errorf("%s is %v", results[i].Name, got)
			}
			check(t, results[i].Matrix.Close())
		}
		check(t, a.Close())
	})
}

// FuzzEvalAll wants statements to be results or a typed error.
func FuzzEvalAll(f *testing.F) {
	matrices := evalMatrices(f)
	for _, s := range append([]string{"B = A*A; C = B + 1", "B = A\n-B\n(A)", "B = fill(2, 2, 1)[0]\n;C=B.T"}, hostileTexts...) {
		if len(s) < 50 {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if large.MatchString(text) {
			return
		}
		results, err := matrix.EvalAll(background, nil, text, matrices)
		if err != nil {
			typedError(t, text, err)
		}
		for _, r := range results {
			check(t, r.Matrix.Close())
		}
	})
}
