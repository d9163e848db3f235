// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestEvalSuggestions reads errors of texts.
func TestEvalSuggestions(t *testing.T) {
	for text, want := range map[string]string{
		"mean_cols(A)": "did you mean meancols?", "power(A, 2)": "pow or A ** s", "sofmax(A)": "did you mean softmax?", "zeros(2, 2)": "fill(rows, cols, 0)",
		"A ^ 2": "A ** 2 is the power", "A // 2": "floordiv(A, B)", "1 + A & 2": "bitand(A, B)", "exp": "a function, without arguments",
		"Alpha = A; Alhpa": "did you mean Alpha?", "0 < A < 1": "(a < b) && (b < c)", "A' * A": "A.T is the transpose", "row_sums(A)": "\"row_sums\"",
		"A[3]": "rows 3, columns : of 2x2", "A[0:5:2, -1]": "rows 0:5:2, columns -1 of 2x2",
	} {
		onDevice(t, func(dev *gpu.Device) {
			a := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 2, 2))
			if err := matrix.Eval(text, map[string]*matrix.Dense[float32]{"A": a}).Err(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", text, err, want)
			}
		})
	}
}

// onDevice runs a test that needs no particular device.
func onDevice(t *testing.T, run func(dev *gpu.Device)) {
	t.Helper()
	dev := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver("cpu")))
	run(dev)
	check(t, dev.Close())
}

// TestEvalAll evaluates statements, each once.
func TestEvalAll(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
		vars := map[string]*matrix.Dense[float32]{"A": a}
		before := dev.Stats().Dispatches
		list, err := matrix.EvalAll(nil, "B = A*A; C = B + 1\n C - B", vars, "B", "", "C")
		if err != nil {
			t.Fatal(err)
		}
		if n := dev.Stats().Dispatches - before; n != 3 {
			t.Errorf("%d kernels for three results", n)
		}
		for i, want := range [][]float32{{7, 10, 15, 22}, {1, 1, 1, 1}, {8, 11, 16, 23}} {
			same(t, "result", readAll[float32](t, list[i]), want)
			check(t, list[i].Close())
		}
		for text, want := range map[string][]float32{
			"fill(1, 2, 3)": {3, 3}, "2 + 3": {5}, "eye(2)*2": {2, 0, 0, 2}, "n = 3; arange(n)": {0, 1, 2}, "rowindex(2, 2) - colindex(2, 2)": {0, -1, 1, 0},
			"gather(arange(5), 0, arange(3) + 1)": {1, 2, 3}, "float32(int32(2.75*eye(1)))": {2},
		} {
			list, err := matrix.EvalAll[float32](dev, text, nil, "")
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			same(t, text, readAll[float32](t, list[0]), want)
			check(t, list[0].Close())
		}
		for text, want := range map[string]error{"A +": matrix.ErrSyntax, "B = A": matrix.ErrName, "C = A*T(A)[0:1]": nil} {
			if _, err := matrix.EvalAll(dev, text, vars, "C"); want != nil && !errors.Is(err, want) || err == nil {
				t.Errorf("%s: %v, want %v", text, err, want)
			}
		}
		if _, err := matrix.EvalAll[float32](nil, "eye(2)", nil, ""); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("nowhere to compute: %v", err)
		}
	})
}
