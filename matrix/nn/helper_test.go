// SPDX-License-Identifier: Apache-2.0

package nn_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/nn"
)

func TestMain(m *testing.M) { devtest.Main(m) }

var check = devtest.Check

func must[V any](t testing.TB) func(V, error) V { return devtest.Must[V](t) }

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func random(rng *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = rng.Float32()*4 - 2
	}
	return s
}

// load makes a matrix that the test closes.
func load[T matrix.Elem](t testing.TB, dev *gpu.Device, rows, cols int, data []T, opts ...matrix.Options) *matrix.Dense[T] {
	t.Helper()
	m := must[*matrix.Dense[T]](t)(matrix.New[T](dev, rows, cols, opts...))
	plain := must[*matrix.Dense[T]](t)(matrix.FromSlice(dev, rows, cols, data))
	check(t, m.Assign(plain))
	check(t, plain.Close())
	t.Cleanup(func() { check(t, m.Close()) })
	return m
}

// layouts are ways to store an operand.
func layout(i, rows, cols int) matrix.Options {
	return []matrix.Options{{}, {Stride: cols + 3, Offset: 5}, {ColMajor: true}, {ColMajor: true, Stride: rows + 2, Offset: 1}}[i%4]
}

// near fails unless all elements are within tol of the reference, relative to the largest one.
func near(t testing.TB, what string, x *nn.Expr, dev *gpu.Device, want []float64, tol float64) {
	t.Helper()
	got, err := x.On(dev).Read(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	nearSlice(t, what, got, want, tol)
}

func nearSlice(t testing.TB, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	size := 1.0
	for _, w := range want {
		if !math.IsInf(w, 0) && !math.IsNaN(w) {
			size = max(size, math.Abs(w))
		}
	}
	for i, w := range want {
		g := float64(got[i])
		if !(g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= tol*size) {
			t.Fatalf("%s: element %d of %d is %v, want %v", what, i, len(want), g, w)
		}
	}
}

func float64s(s []float32) []float64 {
	d := make([]float64, len(s))
	for i, v := range s {
		d[i] = float64(v)
	}
	return d
}

// differences is the gradient of loss by v by central differences.
func differences(v []float64, loss func() float64) []float64 {
	const h = 1e-5
	grad := make([]float64, len(v))
	for i, old := range v {
		v[i] = old + h
		up := loss()
		v[i] = old - h
		grad[i] = (up - loss()) / (2 * h)
		v[i] = old
	}
	return grad
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// saysShape reports whether an error is of sizes that do not go together, has them, and says which would.
func saysShape(err error) bool {
	var op *gpu.OpError
	return errors.Is(err, buffer.ErrShape) && errors.As(err, &op) && len(op.Shapes) > 1 && op.Detail != ""
}
