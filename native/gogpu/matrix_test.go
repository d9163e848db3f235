// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openDevice(t testing.TB) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(t.Context(), gpu.WithDriver(name))
	check(t, err)
	t.Cleanup(func() { check(t, dev.Close()) })
	return dev
}

// random is a matrix of numbers between -1 and 1.
func random(t testing.TB, dev *gpu.Device, rows, cols int) (*matrix.Dense[float32], []float32) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = 2*r.Float32() - 1
	}
	m, err := matrix.FromSlice(dev, rows, cols, v)
	check(t, err)
	t.Cleanup(func() { check(t, m.Close()) })
	return m, v
}

// near compares an expression with numbers in float64, up to so much of 1 + the largest of them.
func near(t *testing.T, what string, x *matrix.Expr[float32], want []float64, tolerance float64) {
	t.Helper()
	got, err := x.Read(t.Context())
	check(t, err)
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	largest := 1.0
	for _, w := range want {
		largest = max(largest, math.Abs(w))
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= tolerance*largest) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// multiply is the product in float64.
func multiply(m, k, n int, a, b []float32) []float64 {
	c := make([]float64, m*n)
	for i := range m {
		for l := range k {
			for j := range n {
				c[i*n+j] += float64(a[i*k+l]) * float64(b[l*n+j])
			}
		}
	}
	return c
}

const ulp = 1.0 / (1 << 24)

func TestProducts(t *testing.T) {
	dev := openDevice(t)
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {64, 64, 64}, {1, 300, 65}, {130, 257, 1}, {255, 129, 200}, {512, 512, 512}} {
		a, av := random(t, dev, s[0], s[1])
		b, bv := random(t, dev, s[1], s[2])
		near(t, "product", matrix.Mul(a, b), multiply(s[0], s[1], s[2], av, bv), ulp*float64(s[1]))
	}
}

func TestSoftmax(t *testing.T) {
	const rows, cols = 200, 333
	m, v := random(t, openDevice(t), rows, cols)
	want := make([]float64, len(v))
	for r := range rows {
		sum := 0.0
		for c := range cols {
			sum += math.Exp(float64(v[r*cols+c]))
		}
		for c := range cols {
			want[r*cols+c] = math.Exp(float64(v[r*cols+c])) / sum
		}
	}
	near(t, "softmax", matrix.Softmax(m), want, 16*ulp)
}

// TestChain reads after each of several assignments, whose kernels have parameters of their own.
func TestChain(t *testing.T) {
	const rows, cols = 100, 77
	dev := openDevice(t)
	m, v := random(t, dev, rows, cols)
	want := make([]float64, len(v))
	for i := range v {
		want[i] = float64(v[i])
	}
	for round := range 10 {
		f := float32(round)/4 - 1
		check(t, m.Assign(matrix.Scale(f, m).AddScalar(f).Tanh()))
		for i := range want {
			want[i] = math.Tanh(float64(f)*want[i] + float64(f))
		}
		near(t, "chain", matrix.Scale(1, m), want, 64*ulp)
	}
}

func TestReductions(t *testing.T) {
	dev := openDevice(t)
	for _, s := range [][2]int{{1, 1}, {3, 1000}, {1000, 3}, {700, 801}} {
		m, v := random(t, dev, s[0], s[1])
		var sum, abs, largest float64
		rows := make([]float64, s[0])
		largest = math.Inf(-1)
		for i, x := range v {
			sum += float64(x)
			abs += math.Abs(float64(x))
			largest = max(largest, float64(x))
			rows[i/s[1]] += float64(x)
		}
		near(t, "sum", matrix.Sum(m), []float64{sum}, ulp*abs)
		near(t, "maximum", matrix.MaxAll(m), []float64{largest}, 0)
		near(t, "sums of rows", matrix.SumRows(m), rows, ulp*float64(s[1]))
	}
}
