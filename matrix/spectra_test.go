// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestSpectra decomposes symmetric matrices with eigenvalues that are known and awkward, of sizes around those of blocks of rotations.
func TestSpectra(t *testing.T) {
	sizes := []int{8, 41}
	if devtest.Long() {
		sizes = append(sizes, 1, 2, 4, 7, 9, 15, 16, 17, 24, 128, 300)
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) { testSpectra(t, dev, sizes) })
}

func TestHardwareSpectra(t *testing.T) {
	onHardwareKernels(t, func(t *testing.T, dev *gpu.Device) { testSpectra(t, dev, []int{9}) })
}

func testSpectra(t *testing.T, dev *gpu.Device, sizes []int) {
	t.Helper()
	for what, value := range map[string]func(i, n int) float64{
		"equal":          func(int, int) float64 { return 3 },
		"two":            func(i, n int) float64 { return float64(2*i/n) - 0.25 },
		"of both signs":  func(i, n int) float64 { return float64(i) - float64(n-1)/2 },
		"graded":         func(i, n int) float64 { return math.Pow(1e-7, 1-float64(i+1)/float64(n)) },
		"of rank 2":      func(i, n int) float64 { return float64(max(i+3-n, 0)) },
		"zero":           func(int, int) float64 { return 0 },
		"large and tiny": func(i, n int) float64 { return math.Pow(1e30, float64(i/(n-n/3))) },
	} {
		for _, n := range sizes {
			what := fmt.Sprintf("%s: %d", what, n)
			want := make([]float64, n)
			for i := range want {
				want[i] = value(i, n)
			}
			_, g := sampled(t, dev, newRand(48), 0, n, n)
			var qr mat.QR
			qr.Factorize(g)
			var q mat.Dense
			qr.QTo(&q)
			ref := product(&q, mat.NewDiagDense(n, want), q.T())
			values, rounded := make([]float32, n*n), mat.NewDense(n, n, nil)
			for i := range n {
				for j := range i + 1 {
					v := float32(ref.At(i, j))
					values[i*n+j], values[j*n+i] = v, v
					rounded.Set(i, j, float64(v))
					rounded.Set(j, i, float64(v))
				}
			}
			a := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, n, n, values))
			spectrum(t, dev, what, a, rounded, want)
		}
	}
}

// spectrum checks both decompositions of a symmetric matrix whose eigenvalues are known.
func spectrum(t *testing.T, dev *gpu.Device, what string, a *matrix.Dense[float32], ref mat.Matrix, want []float64) {
	t.Helper()
	n := len(want)
	scale, bound := max(mat.Norm(ref, 2), 1e-30), float64(2*n+16)
	var own matrix.EigenSym[float32]
	check(t, own.Factorize(t.Context(), a))
	v, lambda := wide(t, dev, what, own.Vectors()), own.Values()
	check(t, own.Close())
	orthonormal(t, what+": eigenvectors", v, bound)
	residual(t, what+": eigenvectors", product(v, mat.NewDiagDense(n, lambda)), product(ref, v), scale, bound)
	residual(t, what+": eigenvalues", mat.NewDense(1, n, lambda), mat.NewDense(1, n, want), scale, bound)
	var svd matrix.SVD[float32]
	check(t, svd.Factorize(t.Context(), a))
	u, s, w := wide(t, dev, what, svd.U()), svd.Values(), wide(t, dev, what, svd.V())
	check(t, svd.Close())
	orthonormal(t, what+": left vectors", u, bound)
	orthonormal(t, what+": right vectors", w, bound)
	residual(t, what+": singular vectors", product(u, mat.NewDiagDense(n, s), w.T()), ref, scale, float64(4*n+16))
	for i, x := range want {
		want[i] = -math.Abs(x)
	}
	slices.Sort(want)
	for i := range want {
		want[i] = -want[i]
	}
	residual(t, what+": singular values", mat.NewDense(1, n, s), mat.NewDense(1, n, want), scale, bound)
}

// TestSmallSingularValues holds singular values of columns of very different lengths to their own sizes.
func TestSmallSingularValues(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(49)
		for turn, n := range []int{9, 40} {
			_, g := sampled(t, dev, rng, 0, n+3, n)
			values, ref := make([]float32, (n+3)*n), mat.NewDense(n+3, n, nil)
			for k := range values {
				column := k % n
				if turn == 1 {
					column = column * 7 % n // in no order
				}
				values[k] = float32(g.At(k/n, k%n) * math.Pow(1e-12, float64(column)/float64(n)))
				ref.Set(k/n, k%n, float64(values[k]))
			}
			a := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, n+3, n, values))
			got := wide(t, dev, "graded", matrix.SingularValues[float32](a))
			var svd mat.SVD
			svd.Factorize(ref, mat.SVDNone)
			for i, want := range svd.Values(nil) {
				if x := got.At(0, i); math.Abs(x-want) > float64(8*n)*roundoff*want {
					t.Errorf("%d columns: singular value %d is %v, want %v", n, i, x, want)
				}
			}
		}
	})
}
