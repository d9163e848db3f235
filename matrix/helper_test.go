// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

var (
	onDevices = devtest.Each
	onGPUs    = devtest.EachGPU
	check     = devtest.Check
)

func must[V any](t testing.TB) func(V, error) V { return devtest.Must[V](t) }

// sizes at which kernels change their ways.
var sizes = []int{0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257}

func random(rng *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = rng.Float32()*4 - 2
	}
	return s
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// ulp is the distance from |x| to the next float32.
func ulp(x float64) float64 {
	a := float32(math.Abs(x))
	if a > math.MaxFloat32/2 {
		a = math.MaxFloat32 / 2
	}
	return max(float64(math.Nextafter32(a, math.MaxFloat32)-a), math.SmallestNonzeroFloat32)
}

// near fails unless every element is within tol ulp of the reference, or of the same kind of special value.
func near(t testing.TB, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		g := float64(got[i])
		switch {
		case math.IsNaN(w) && math.IsNaN(g), g == w, float64(float32(w)) == g:
			continue
		case math.Abs(g-w) <= max(tol*ulp(w), 0x1p-126): // devices flush subnormal numbers
			continue
		}
		t.Fatalf("%s: element %d of %d is %v, want %v (%.1f ulp)", what, i, len(want), g, w, math.Abs(g-w)/ulp(w))
	}
}

// same fails unless two slices are equal.
func same[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// form is a way of laying out a matrix in memory.
type form struct {
	name string
	opts func(rows, cols int) matrix.Options
}

// forms of operands and results: contiguous, with gaps, with an odd offset, by columns, and transposed.
var forms = []form{
	{"plain", func(int, int) matrix.Options { return matrix.Options{} }},
	{"strided", func(_, c int) matrix.Options { return matrix.Options{Stride: c + 3} }},
	{"aligned", func(_, c int) matrix.Options {
		return matrix.Options{Stride: (c + 7) / 4 * 4, Offset: 8, Aligned: true}
	}},
	{"offset", func(_, c int) matrix.Options { return matrix.Options{Offset: 5, Stride: c + 1} }},
	{"columns", func(int, int) matrix.Options { return matrix.Options{ColMajor: true} }},
	{"columns-strided", func(r, _ int) matrix.Options {
		return matrix.Options{ColMajor: true, Stride: r + 5, Offset: 3}
	}},
}

// guard fills the cells of wrapped memory that do not belong to the matrix.
const guard = -12345

// wrapped lays out values (row by row) in memory of the form, with guard cells everywhere else and after the end.
func wrapped(t testing.TB, dev *gpu.Device, f form, rows, cols int, values []float32) (*matrix.Dense[float32], []float32) {
	t.Helper()
	mem := make([]float32, 16+(rows+8)*(cols+8)*2)
	for i := range mem {
		mem[i] = guard
	}
	m := must[*matrix.Dense[float32]](t)(matrix.Wrap(dev, rows, cols, mem, f.opts(rows, cols)))
	for i := range rows {
		for j := range cols {
			mem[cell(m, i, j)] = values[i*cols+j]
		}
	}
	return m, mem
}

func cell[T matrix.Elem](m *matrix.Dense[T], i, j int) int {
	if m.ColMajor() {
		return m.Offset() + j*m.Stride() + i
	}
	return m.Offset() + i*m.Stride() + j
}

// there returns the memory of a matrix as the device has it. Sync brings only what was written.
func there[T matrix.Elem](t testing.TB, m *matrix.Dense[T]) []T {
	t.Helper()
	n := m.Buffer().Size()
	mem := make([]T, n/m.DType().Size())
	check(t, m.Buffer().Read(background, buffer.Region{Width: n, Pitch: n, Count: 1}, matrix.Host(mem), 0))
	return mem
}

// guarded fails if a cell outside the matrix was changed.
func guarded(t testing.TB, what string, m *matrix.Dense[float32], mem []float32) {
	t.Helper()
	rows, cols := m.Dims()
	mine := map[int]bool{}
	for i := range rows {
		for j := range cols {
			mine[cell(m, i, j)] = true
		}
	}
	for i, v := range mem {
		if !mine[i] && v != guard {
			t.Fatalf("%s: cell %d outside the matrix is %v", what, i, v)
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

func name(parts ...any) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(parts...), "[]"), " ", "_")
}

var background = context.Background()
