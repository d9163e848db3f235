// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// set is of expressions, as package matrix reads them, for matrices of several sizes.
type set struct {
	sizes []size
	texts []string
}

// size is that of A and B. They have the same, but the operands of a product: A has rows x inner elements then, and B inner x cols.
type size struct{ rows, inner, cols int }

// usual is what pages compute first: products and layers of networks, operations on their own, reductions, and what is made of nothing.
// C is as large as the result of A * B, or as A; r is a row of it and c a column.
var usual = []set{
	{
		[]size{
			{3, 4, 3},
			{4, 4, 4},
			{5, 7, 3},
			{16, 16, 16},
			{17, 19, 23},
			{64, 64, 64},
			{100, 100, 100},
			{256, 256, 256},
			{300, 300, 300},
			{333, 333, 333},
			{512, 512, 512},
			{300, 500, 700},
			{1, 2048, 2048},
			{1, 1001, 999},
			{2048, 2048, 1},
			{1000, 3000, 1},
			{999, 1001, 1},
			{32, 784, 128},
			{32, 128, 10},
			{1, 784, 128},
			{1, 128, 10},
			{64, 3, 64},
			{2000, 17, 31},
		},
		[]string{"A * B", "A * B + r", "relu(A * B + r)"},
	},
	{
		[]size{{rows: 3, cols: 4}, {rows: 3, cols: 5}, {rows: 1, cols: 1000}, {rows: 1, cols: 999}, {rows: 64, cols: 64}, {rows: 300, cols: 300}, {rows: 333, cols: 777}, {rows: 1000, cols: 37}},
		[]string{
			"A + B", "A - B", "A % B", "A / B", "max(A, B)", "min(A, B)", "A % B + C", "A + 1", "A * 2", "A / 2", "1 - A", "A * 2 + B", "A - B * 2",
			"-A", "abs(A)", "sqrt(A)", "square(A)", "exp(A)", "log(A)", "tanh(A)", "sigmoid(A)", "relu(A)", "sin(A)", "cos(A)", "A ** 2",
			"A + r", "A - r", "A % r", "A / r", "A + c", "A - c", "A % c", "A / c", "T(A)",
			"sum(A)", "mean(A)", "maxall(A)", "minall(A)", "norm2(A)", "sum(A % B)",
			"sumrows(A)", "sumcols(A)", "meanrows(A)", "meancols(A)", "maxrows(A)", "maxcols(A)", "minrows(A)", "mincols(A)",
			"float32(argmaxrows(A))", "softmax(A)", "softmaxcols(A)", "logsoftmax(A)",
			"fill(3, 4, 1)", "eye(4, 4, 0)", "eye(5, 5, 0)", "uniform(4, 4, 0, 1, 1, 0)", "normal(4, 4, 0, 1, 1, 0)",
		},
	},
}

// evaluateAll evaluates all of these.
func evaluateAll(ctx context.Context, dev *gpu.Device) error {
	for _, s := range usual {
		for _, z := range s.sizes {
			if err := evaluate(dev, s.texts, z); err != nil {
				return err
			}
		}
	}
	return dev.Sync(ctx)
}

func evaluate(dev *gpu.Device, texts []string, z size) error {
	vars := map[string]matrix.Operand[float32]{}
	define := func(name string, rows, cols int) {
		vars[name] = matrix.Fill[float32](rows, cols, 1).On(dev)
	}
	define("A", z.rows, z.inner)
	define("B", z.inner, z.cols)
	if z.inner == 0 {
		define("A", z.rows, z.cols)
		define("B", z.rows, z.cols)
	}
	define("C", z.rows, z.cols)
	define("r", 1, z.cols)
	define("c", z.rows, 1)
	for name, x := range vars { // matrices, and not expressions of which larger ones are made
		m, err := x.(*matrix.Expr[float32]).Eval()
		if err != nil {
			return err
		}
		defer func() { _ = m.Close() }()
		vars[name] = m
	}
	for _, text := range texts {
		m, err := matrix.Eval(text, vars).On(dev).Eval()
		if err != nil {
			return fmt.Errorf("%s of %v: %w", text, z, err)
		}
		if err := m.Close(); err != nil {
			return err
		}
	}
	return nil
}
