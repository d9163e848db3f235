// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestSparsePrograms runs programs again whose expressions are of sparse matrices: without entries in common, and such that turn out to
// be one of them.
func TestSparsePrograms(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		newSparse := func(cols int, values []float32, indices ...int32) *matrix.Sparse[float32] {
			return must[*matrix.Sparse[float32]](t)(matrix.NewSparse(dev, matrix.CSR, 1, cols, values, indices, []int32{0, int32(len(indices))}))
		}
		a, b, s := newSparse(2, []float32{2}, 0), newSparse(2, []float32{3}, 1), newSparse(3, []float32{2, 3}, 1, 2)
		var d, f, g, h dense
		both := matrix.HStack[float32](matrix.Max[float32](s, s))
		bytes := matrix.Convert[int8](s)
		twice := matrix.Transpose[int8](matrix.Max[int8](bytes, bytes))
		p := must[*matrix.Program](t)(matrix.NewProgram(
			t.Context(), matrix.Into[float32](&d, matrix.MulElem[float32](a, b)), matrix.Into[float32](&f, both),
			matrix.Into[float32](&g, matrix.Transpose[float32](both)), matrix.Into[float32](&h, matrix.Convert[float32](twice)),
		))
		for range 3 {
			check(t, p.Run(t.Context()))
			same(t, "nothing in common", readAll[float32](t, &d), []float32{0, 0})
			for what, m := range map[string]*dense{"one of two": &f, "transposed": &g, "in bytes": &h} {
				same(t, what, readAll[float32](t, m), []float32{0, 2, 3})
			}
		}
		check(t, p.Close())
	})
}

// TestSparseShared builds and evaluates expressions that use each part several times, whose parts have 2^60 ways to the matrix at the end.
func TestSparseShared(t *testing.T) {
	onDevice(t, func(dev *gpu.Device) {
		const depth = 60
		s := must[*matrix.Sparse[float32]](t)(matrix.NewSparse(dev, matrix.CSR, 2, 2, []float32{1, 1}, []int32{0, 1}, []int32{0, 1, 2}))
		for what, next := range map[string]func(z *expr) *expr{
			"squares":    func(z *expr) *expr { return matrix.Mul[float32](z, z) },
			"transposes": func(z *expr) *expr { return matrix.Max[float32](z, matrix.Transpose[float32](z)) },
			"functions":  func(z *expr) *expr { return matrix.MulElem[float32](z.Relu(), z.Abs()) },
			"powers":     func(z *expr) *expr { return matrix.Max[float32](matrix.MatrixPower[float32](z, 3), z) },
		} {
			z := s.Expr()
			for range depth {
				z = next(z)
			}
			if got := readAll[float32](t, z); !slices.Equal(got, []float32{1, 0, 0, 1}) {
				t.Error(what, got)
			}
		}
		// What is derived of it knows that the matrix changed.
		one := must[*matrix.Sparse[float32]](t)(matrix.NewSparse(dev, matrix.CSR, 2, 2, []float32{1}, []int32{0}, []int32{0, 1, 1}))
		z := matrix.Mul[float32](matrix.Mul[float32](one, one), matrix.Add[float32](one, s))
		check(t, one.Append(1, 1, 1))
		if _, err := z.Read(t.Context()); !errors.Is(err, buffer.ErrShape) && !errors.Is(err, matrix.ErrSparse) {
			t.Error(err)
		}
	})
}
