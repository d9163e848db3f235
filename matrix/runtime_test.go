// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

type (
	number = matrix.Any
	anyOne = matrix.Dense[matrix.Any]
)

// TestAny stores and computes numbers of type Any in matrices of each element type.
func TestAny(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		big := number(math.MaxFloat32)
		for typ, want := range map[matrix.DType][]number{
			matrix.Float32: {-1.5, 0, 2.5, big, 70000}, matrix.Int32: {-1, 0, 2, math.MaxInt32, 70000},
			matrix.Uint32: {0, 0, 2, math.MaxUint32, 70000}, matrix.Float16: {-1.5, 0, 2.5, number(math.Inf(1)), number(math.Inf(1))},
		} {
			t.Run(typ.String(), func(t *testing.T) {
				m := must[*anyOne](t)(matrix.FromSlice(dev, 1, 5, []number{-1.5, 0, 2.5, big, 70000}, matrix.Options{Type: typ}))
				same := func(what string, got, want []number) {
					t.Helper()
					if !slices.Equal(got, want) || m.DType() != typ {
						t.Errorf("%s: %v, want %v; type %v", what, got, want, m.DType())
					}
				}
				same("read", must[[]number](t)(m.Read(background)), want)
				same("element", []number{must[number](t)(m.At(background, 0, 2))}, want[2:3])
				check(t, m.Set(0, 1, 3))
				check(t, m.Assign(matrix.Add(m, matrix.Fill(1, 1, number(1)))))
				same("sum", must[[]number](t)(matrix.AddScalar(m.Slice(0, 1, 1, 3), 1).Read(background)), []number{5, want[2] + 2})
				isError(t, m.Access(background, buffer.Writes, func([]number) error { return nil }), gpu.ErrUnsupported)
				x := matrix.Fill(2, 2, number(3)).ConvertTo(typ).On(dev)
				if x.DType() != typ {
					t.Errorf("a number of type %v", x.DType())
				}
				same("number", must[[]number](t)(x.Read(background)), []number{3, 3, 3, 3})
				check(t, m.Close())
			})
		}
	})
}

// TestAs: one matrix as two types of Go's.
func TestAs(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		m := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 2, []int32{1, 2}))
		a := must[*anyOne](t)(matrix.As[number](m))
		check(t, a.Assign(matrix.Scale(2, a)))
		if v := must[[]int32](t)(m.Read(background)); !slices.Equal(v, []int32{2, 4}) || a.Buffer() != m.Buffer() {
			t.Error(v)
		}
		back := must[*matrix.Dense[int32]](t)(matrix.As[int32](a))
		if back != m {
			t.Error("another matrix")
		}
		other := must[*anyOne](t)(matrix.New[number](dev, 1, 2))
		for name, c := range map[string]struct{ got, want error }{
			"another type":       {second(matrix.As[float32](a)), gpu.ErrInvalid},
			"nil":                {second(matrix.As[float32]((*anyOne)(nil))), buffer.ErrNil},
			"option":             {second(matrix.New[float32](dev, 1, 1, matrix.Options{Type: matrix.Int32})), gpu.ErrInvalid},
			"no type":            {second(matrix.New[number](dev, 1, 1, matrix.Options{Type: 99})), gpu.ErrInvalid},
			"wrapped":            {second(matrix.Wrap(dev, 1, 1, []number{1})), gpu.ErrUnsupported},
			"wrapped host":       {second(matrix.FromBuffer[number](dev, 1, 1, matrix.Host([]number{1}), buffer.DontOwnBuffer)), buffer.ErrNil},
			"wrapped buffer":     {other.SetValueFrom(1, 1, []number{1}, buffer.DontOwnBuffer), gpu.ErrUnsupported},
			"operands":           {matrix.Add(a, other).Err(), gpu.ErrInvalid},
			"product":            {matrix.Mul(a, matrix.Transpose(other)).Err(), gpu.ErrInvalid},
			"destination":        {other.Assign(a), gpu.ErrInvalid},
			"value":              {other.SetValueFrom(1, 1, []number{1}, 0, matrix.Options{Type: matrix.Int32}), gpu.ErrInvalid},
			"conversion":         {matrix.Fill[float32](1, 1, 1).ConvertTo(matrix.Int32).Err(), gpu.ErrInvalid},
			"operation":          {matrix.Elementwise[number](0, a).Err(), gpu.ErrInvalid},
			"reduction":          {matrix.Reduce(99, 0, 0, a).Err(), gpu.ErrInvalid},
			"released":           {second(matrix.New[float32](dev, 1, 1, matrix.Options{Release: func() {}})), gpu.ErrInvalid},
			"released copy":      {second(matrix.FromSlice(dev, 1, 1, []float32{1}, matrix.Options{Release: func() {}})), gpu.ErrInvalid},
			"released mapped":    {second(matrix.Map[float32](dev, 1, 1, matrix.Options{Release: func() {}})), gpu.ErrInvalid},
			"released by copies": {second(matrix.FromBuffer[float32](dev, 1, 1, []float32{1}, 0, matrix.Options{Release: func() {}})), gpu.ErrInvalid},
		} {
			if !errors.Is(c.got, c.want) {
				t.Errorf("%s: %v, want %v", name, c.got, c.want)
			}
		}
		var zero anyOne
		if zero.DType() != matrix.Float32 {
			t.Error(zero.DType())
		}
		check(t, zero.Assign(a))
		if zero.DType() != matrix.Int32 {
			t.Error(zero.DType())
		}
		check(t, errors.Join(m.Close(), a.Close(), other.Close(), zero.Close()))
	})
}

// TestPlannedOnce evaluates expressions of one shape, with other numbers and matrices, and of others.
func TestPlannedOnce(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		square := func(n int, v float32) *dense {
			m := must[*dense](t)(matrix.New[float32](dev, n, n))
			check(t, m.Fill(v))
			return m
		}
		step := func(c, a, b *dense, s float32) { check(t, c.Assign(matrix.Mul(a, b).Scale(s).Add(a.Row(0)).Tanh())) }
		a, b, c := square(4, 0.25), square(4, 0.5), square(4, 0)
		planned := func(what string, want int, f func()) {
			t.Helper()
			before := matrix.Planned(dev)
			f()
			if n := matrix.Planned(dev) - before; n != want {
				t.Errorf("%s: %d plans, want %d", what, n, want)
			}
		}
		planned("first", 1, func() { step(c, a, b, 0.5) })
		first := must[[]float32](t)(c.Read(background))
		planned("again", 0, func() { step(c, a, b, 0.5) })
		same(t, "again", must[[]float32](t)(c.Read(background)), first)
		planned("other matrices and numbers", 0, func() { step(a, b, c, 2); step(b, c, a, 3) })
		planned("in place", 1, func() { step(a, a, b, 0.5); step(b, b, c, 0.5) })
		planned("one number twice", 2, func() {
			check(t, c.Assign(a.Expr().AddScalar(1).Scale(2)))
			check(t, c.Assign(a.Expr().AddScalar(2).Scale(2)))
			check(t, c.Assign(a.Expr().AddScalar(3).Scale(3)))
		})
		want := must[float32](t)(a.At(background, 0, 0))
		if got := must[float32](t)(c.At(background, 0, 0)); math.Abs(float64(got-(want+3)*3)) > 1e-5 {
			t.Errorf("%v, want %v", got, (want+3)*3)
		}
		big := square(5, 1)
		planned("another size", 1, func() { step(big, big, big, 1); step(big, big, big, 2) })
	})
}

// TestAssignContext: what a caller gave up is not begun.
func TestAssignContext(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		m := owned(t, dev, 1, 2, 1, 2)
		check(t, m.AssignContext(t.Context(), matrix.Scale(2, m)))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m.AssignContext(ctx, matrix.Scale(3, m)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		wants(t, m, 1, 2, false, 2, 4)
	})
}

// TestViewsOfResized: a view that stood in an expression does not keep its matrix from being resized, and is an error then.
func TestViewsOfResized(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for name, resize := range map[string]func(m *dense) error{
			"in place": func(m *dense) error { return m.Resize(1, 2) },
			"anew":     func(m *dense) error { return m.Resize(9, 9) },
			"assigned": func(m *dense) error { return m.Assign(owned(t, dev, 1, 3, 1, 2, 3)) },
			"set":      func(m *dense) error { return m.SetValue(owned(t, dev, 1, 2, 1, 2)) },
		} {
			t.Run(name, func(t *testing.T) {
				m := owned(t, dev, 2, 2, 1, 2, 3, 4)
				v := m.Row(1)
				w := v.Col(0)
				isError(t, resize(m), matrix.ErrView)
				x := matrix.Sum(v)
				isError(t, resize(m), matrix.ErrView) // for w
				check(t, w.Close())
				if got := must[float32](t)(x.Value(background)); got != 7 {
					t.Errorf("sum %v", got)
				}
				check(t, resize(m))
				isError(t, second(x.Value(background)), matrix.ErrView)
				isError(t, second(v.Read(background)), matrix.ErrView)
				isError(t, v.Fill(1), matrix.ErrView)
				isError(t, v.T().Err(), matrix.ErrView)
				check(t, resize(m)) // v still does not count
				check(t, v.Close())
				check(t, m.Resize(7, 7))
				if n := m.Buffer().Shares(); n != 1 {
					t.Errorf("%d shares", n)
				}
				check(t, m.Close())
			})
		}
	})
}

// TestViewsOfViews: a view that only another one was taken of, which stands in an expression, counts no more than that.
func TestViewsOfViews(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		m := owned(t, dev, 2, 2, 1, 2, 3, 4)
		if got := must[float32](t)(matrix.Sum(m.Slice(0, 1, 0, 2).T()).Value(background)); got != 3 {
			t.Errorf("sum %v", got)
		}
		check(t, m.Resize(7, 7))
		a := m.Alias()
		must[float32](t)(matrix.Sum(a.Row(0).T()).Value(background))
		isError(t, m.Resize(8, 8), matrix.ErrView) // for the alias
		check(t, a.Close())
		check(t, m.Resize(8, 8))
		check(t, m.Close())
	})
}

// TestHeldViews: reading a view and copying it does not make it one of an expression.
func TestHeldViews(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		m := owned(t, dev, 2, 2, 1, 2, 3, 4)
		check(t, m.Resize(1, 2))
		check(t, m.Resize(2, 2))
		check(t, m.SetSlice([]float32{1, 2, 3, 4}))
		v := m.Col(1)
		same(t, "read", must[[]float32](t)(v.Read(background)), []float32{2, 4})
		check(t, owned(t, dev, 2, 1, 0, 0).SetValue(v))
		isError(t, m.Resize(3, 3), matrix.ErrView)
		if m.Expr().Matrix() != m || matrix.Sum(m).Matrix() != nil {
			t.Error("another matrix")
		}
		turned := matrix.Transpose(m).Matrix()
		same(t, "transpose", must[[]float32](t)(turned.Slice(0, 1, 0, 2).Read(background)), []float32{1, 3})
		check(t, turned.Assign(matrix.Scale(2, turned)))
		wants(t, m, 2, 2, false, 2, 4, 6, 8)
		check(t, errors.Join(turned.Close(), v.Close(), m.Resize(3, 3), m.Close()))
	})
}
