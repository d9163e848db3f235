// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestCustomAssign has Blaze's rows of assignments to a custom matrix: elements are copied, memory and size stay.
func TestCustomAssign(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		s := of(t, dev, 1, 2, 3, 4, 9, 9)
		a := s.wrap(t, 2, 2)
		b := owned(t, dev, 2, 2, 5, 6, 7, 8)
		for _, c := range []struct {
			name string
			x    matrix.Operand[float32]
			want []float32
		}{
			{"another", b, []float32{5, 6, 7, 8}},
			{"of the other order", b.T(), []float32{5, 7, 6, 8}},
			{"+=", matrix.Add(a, b), []float32{10, 13, 13, 16}},
			{"-=", matrix.Sub(a, b), []float32{5, 7, 6, 8}},
			{"%=", matrix.MulElem(a, b), []float32{25, 42, 42, 64}},
			{"*=", matrix.Mul(a, owned(t, dev, 2, 2, 0, 1, 1, 0)), []float32{42, 25, 64, 42}},
			{"itself", a, []float32{42, 25, 64, 42}},
			{"a number", matrix.Fill[float32](2, 2, 3), []float32{3, 3, 3, 3}},
		} {
			check(t, a.Assign(c.x))
			s.holds(t, a, append(c.want, 9, 9)...)
		}
		for name, x := range map[string]matrix.Operand[float32]{
			"too many rows": owned(t, dev, 3, 2, 0, 0, 0, 0, 0, 0), "a product of another size": matrix.Mul(b, owned(t, dev, 2, 1, 0, 0)),
		} {
			isErrorNamed(t, name, a.Assign(x), matrix.ErrShape)
		}
		isError(t, a.Assign(matrix.Mul(a, owned(t, dev, 3, 2, 0, 0, 0, 0, 0, 0))), matrix.ErrShape)
		isError(t, a.SetSlice([]float32{1, 2, 3}), matrix.ErrShort)
		isError(t, a.SetSlice([]float32{1, 2, 3, 4, 5}), matrix.ErrShort)
		s.holds(t, a, 3, 3, 3, 3, 9, 9)
		check(t, a.SetSlice([]float32{1, 2, 3, 4}))
		check(t, a.Row(1).Zero())
		s.holds(t, a, 1, 2, 0, 0, 9, 9)
		if a.Stride() != 2 || a.Capacity() != 4 || a.Mode().String() != "external" {
			t.Errorf("stride %d, capacity %d, %v", a.Stride(), a.Capacity(), a.Mode())
		}
		_, err := a.At(background, 2, 0)
		isError(t, err, matrix.ErrIndex)
		_, err = a.At(background, 0, -1)
		isError(t, err, matrix.ErrIndex)
	})
}

// TestCustomAliasing has Blaze's table of a matrix that is its own operand, with the rows that Blaze computes wrongly
// because it compares objects and not memory: B is an alias of A.
func TestCustomAliasing(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		for _, c := range []struct {
			name string
			x    func(a, b *dense) matrix.Operand[float32]
			want []float32
		}{
			{"A = trans(A)", func(a, _ *dense) matrix.Operand[float32] { return a.T() }, []float32{1, 4, 7, 2, 5, 8, 3, 6, 9}},
			{"A = A*A", func(a, _ *dense) matrix.Operand[float32] { return matrix.Mul(a, a) }, []float32{30, 36, 42, 66, 81, 96, 102, 126, 150}},
			{"A += A*A", func(a, _ *dense) matrix.Operand[float32] { return matrix.Add(a, matrix.Mul(a, a)) }, []float32{31, 38, 45, 70, 86, 102, 109, 134, 159}},
			{"A = A + trans(A)", func(a, _ *dense) matrix.Operand[float32] { return matrix.Add(a, a.T()) }, []float32{2, 6, 10, 6, 10, 14, 10, 14, 18}},
			{"A %= trans(A)", func(a, _ *dense) matrix.Operand[float32] { return matrix.MulElem(a, a.T()) }, []float32{1, 8, 21, 8, 25, 48, 21, 48, 81}},
			{"A = A", func(a, _ *dense) matrix.Operand[float32] { return a }, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}},
			{"A = trans(B)", func(_, b *dense) matrix.Operand[float32] { return b.T() }, []float32{1, 4, 7, 2, 5, 8, 3, 6, 9}},
			{"A = B*B", func(_, b *dense) matrix.Operand[float32] { return matrix.Mul(b, b) }, []float32{30, 36, 42, 66, 81, 96, 102, 126, 150}},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := of(t, dev, 1, 2, 3, 4, 5, 6, 7, 8, 9)
				a := s.wrap(t, 3, 3)
				check(t, a.Assign(c.x(a, a.Alias())))
				s.holds(t, a, c.want...)
			})
		}
		a := of(t, dev, 1, 2, 3, 4, 5, 6).wrap(t, 2, 3)
		isError(t, a.Assign(a.T()), matrix.ErrShape)
		wants(t, a, 2, 3, true, 1, 2, 3, 4, 5, 6)
	})
}
