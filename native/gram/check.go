// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// check compares a product computed in float32 with the same in float64, element by element. k products are summed, so
// an element c may be off by k * 2^-24 times the sum of the products' magnitudes.
func check(xPath, cPath string) error {
	x, err := load(xPath)
	if err != nil {
		return err
	}
	c, err := load(cPath)
	if err != nil {
		return err
	}
	worst, err := compare(x, c)
	if err != nil {
		return fmt.Errorf("%s: %w", cPath, err)
	}
	fmt.Printf("check: X is %dx%d, X'X is %dx%d; against gonum in float64 every element is within k*2^-24*sum|x||x|, "+
		"the worst at %.2g of it\n", x.rows, x.cols, c.rows, c.cols, worst)
	return nil
}

// compare returns the largest error as a share of what is allowed.
func compare(x, c *matrix) (float64, error) {
	if c.rows != x.cols || c.cols != x.cols {
		return 0, fmt.Errorf("%dx%d, want %dx%d", c.rows, c.cols, x.cols, x.cols)
	}
	ref := gram(x, func(v float32) float64 { return float64(v) })
	abs := gram(x, func(v float32) float64 { return math.Abs(float64(v)) })
	unit := float64(x.rows) * 0x1p-24
	worst := 0.0
	for i := range c.rows {
		for j := range c.cols {
			got, want := float64(c.data[i*c.cols+j]), ref.At(i, j)
			bound := unit * abs.At(i, j)
			diff := math.Abs(got - want)
			if !(diff <= bound) { // catches NaN
				return 0, fmt.Errorf("element %d, %d is %v, want %v within %.3g", i, j, got, want, bound)
			}
			if bound > 0 {
				worst = max(worst, diff/bound)
			}
		}
	}
	return worst, nil
}

// gram returns the product of the transpose of x and x, each element first passed through f.
func gram(x *matrix, f func(float32) float64) *mat.SymDense {
	d := mat.NewDense(x.rows, x.cols, nil)
	raw := d.RawMatrix().Data
	for i, v := range x.data {
		raw[i] = f(v)
	}
	var g mat.SymDense
	g.SymOuterK(1, d.T())
	return &g
}
