// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"go/parser"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/internal/ops"
)

// TestReductionGradients compares the derivatives of reductions by their elements with differences. In their texts a is an element
// and y the result.
func TestReductionGradients(t *testing.T) {
	over := func(start float64, step func(y, x float64) float64) func([]float64) float64 {
		return func(list []float64) float64 {
			y := start
			for _, x := range list {
				y = step(y, x)
			}
			return y
		}
	}
	squares := over(0, func(y, x float64) float64 { return y + x*x })
	powers := over(0, func(y, x float64) float64 { return y + math.Exp(x) })
	functions := map[string]func([]float64) float64{
		"Sum":       over(0, func(y, x float64) float64 { return y + x }),
		"Prod":      over(1, func(y, x float64) float64 { return y * x }),
		"Max":       over(math.Inf(-1), math.Max),
		"Min":       over(math.Inf(1), math.Min),
		"Norm1":     over(0, func(y, x float64) float64 { return y + math.Abs(x) }),
		"Norm2":     func(x []float64) float64 { return math.Sqrt(squares(x)) },
		"LogSumExp": func(x []float64) float64 { return math.Log(powers(x)) },
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, o := range ops.Table {
		if o.Class != ops.Reduction || o.Gradient == "" {
			continue
		}
		f, tree := functions[o.Name], must(parser.ParseExpr(o.Gradient))
		delete(functions, o.Name)
		if f == nil {
			t.Fatalf("%s: no function to compare with", o.Name)
		}
		for range 20 {
			x := []float64{rnd.NormFloat64(), rnd.NormFloat64(), rnd.NormFloat64(), rnd.NormFloat64()}
			for k := range x {
				const h = 1e-6
				at, y := x[k], f(x)
				x[k] = at + h
				up := f(x)
				x[k] = at - h
				want := (up - f(x)) / (2 * h)
				x[k] = at
				if got := must(evaluate(tree, map[string]float64{"a": at, "y": y})); math.Abs(got-want) > 1e-4 {
					t.Fatalf("%s: the derivative by %g of %v is %g, want %g", o.Name, at, x, got, want)
				}
			}
		}
	}
	if len(functions) > 0 {
		t.Errorf("no gradients of %v", functions)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
