// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// reference multiplies in float64 and returns the bound k * 2^-24 * sum|a||b| for each element.
func reference(a, b []float32, m, k, n int) (c, bound []float64) {
	c, bound = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for l := range k {
			x := float64(a[i*k+l])
			for j := range n {
				p := x * float64(b[l*n+j])
				c[i*n+j] += p
				bound[i*n+j] += math.Abs(p) * float64(k) * 0x1p-24
			}
		}
	}
	return c, bound
}

func within(t testing.TB, what string, got []float32, want, bound []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= bound[i]) {
			t.Fatalf("%s: element %d is %v, want %v: off by %g, allowed %g", what, i, got[i], w, d, bound[i])
		}
	}
}

// TestProductSizes goes through all the sizes at which kernels change, each dimension against a few of the others.
func TestProductSizes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(3)
		for _, s := range productShapes() {
			m, k, n := s[0], s[1], s[2]
			x, y := random(rng, m*k), random(rng, k*n)
			a := must[*dense](t)(matrix.FromSlice(dev, m, k, x))
			b := must[*dense](t)(matrix.FromSlice(dev, k, n, y))
			want, bound := reference(x, y, m, k, n)
			within(t, name(s), must[[]float32](t)(matrix.Mul(a, b).Read(background)), want, bound)
			check(t, a.Close())
			check(t, b.Close())
		}
	})
}

// few is set where kernels take long to compile, in a page on a software adapter: every size and every layout is tested
// there too, but not next to every other one.
var few = runtime.GOARCH == "wasm"

// productShapes pairs every size with every other in a cyclic way, so that each of m, n and k meets each size next to
// all others; long tests take all triples.
func productShapes() [][3]int {
	var out [][3]int
	all := devtest.Long()
	if few {
		for i, m := range sizes {
			out = append(out, [3]int{m, sizes[(i+8)%len(sizes)], sizes[(2*i+3)%len(sizes)]})
		}
		return append(out, [3]int{1, 2048, 300}, [3]int{300, 2048, 1}, [3]int{3, 70001, 2})
	}
	for i, m := range sizes {
		for j, k := range sizes {
			if all {
				for _, n := range sizes {
					out = append(out, [3]int{m, k, n})
				}
				continue
			}
			out = append(out, [3]int{m, k, sizes[(i+j)%len(sizes)]}, [3]int{m, k, sizes[(i+2*j+7)%len(sizes)]})
		}
	}
	return append(out, [3]int{1, 2048, 2048}, [3]int{2048, 2048, 1}, [3]int{1, 70001, 3}, [3]int{3, 70001, 1}, [3]int{5, 70001, 6}, [3]int{1, 1, 70001}, [3]int{70001, 2, 1}, [3]int{1, 5000, 1})
}

// TestProductLayouts multiplies operands of all layouts, plain and transposed, into results of all layouts.
func TestProductLayouts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(4)
		for si, s := range [][3]int{{5, 7, 6}, {16, 16, 16}, {33, 20, 41}, {1, 37, 19}, {19, 37, 1}, {64, 3, 65}} {
			m, k, n := s[0], s[1], s[2]
			x, y, z := random(rng, m*k), random(rng, k*n), random(rng, m*n)
			want, bound := reference(x, y, m, k, n)
			for i := range want {
				want[i] = want[i]*2 + float64(z[i])
				bound[i] = bound[i]*2 + 4*ulp(want[i]) + 4*ulp(float64(z[i]))
			}
			for fi, fa := range forms {
				for fj, fb := range forms {
					if sparing(dev) && fj != (fi+si)%len(forms) { // all pairs, each at one of the sizes
						continue
					}
					fc := forms[(fi+fj)%len(forms)]
					a, _ := wrapped(t, dev, fa, m, k, x)
					b, _ := wrapped(t, dev, fb, n, k, transposed(y, k, n))
					d, _ := wrapped(t, dev, forms[(fi+2*fj)%len(forms)], m, n, z)
					c, mem := wrapped(t, dev, fc, m, n, make([]float32, m*n))
					what := name(s, fa.name, fb.name, fc.name)
					check(t, c.Assign(matrix.Mul(a, b.T()).Scale(2).Add(d)))
					check(t, c.Sync(background))
					within(t, what, must[[]float32](t)(c.Read(background)), want, bound)
					guarded(t, what, c, mem)
					for _, x := range []*dense{a, b, c, d} {
						check(t, x.Close())
					}
				}
			}
		}
	})
}

// TestProductTail checks that the element-wise tail runs in the product's own kernel.
func TestProductTail(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		matrix.UseOneLaunch(dev)
		rng := newRand(5)
		x, y, r := random(rng, 40*30), random(rng, 30*50), random(rng, 50)
		a := must[*dense](t)(matrix.FromSlice(dev, 40, 30, x))
		b := must[*dense](t)(matrix.FromSlice(dev, 30, 50, y))
		bias := must[*dense](t)(matrix.FromSlice(dev, 1, 50, r))
		c := must[*dense](t)(matrix.New[float32](dev, 40, 50))
		check(t, dev.Sync(background))
		before := dev.Stats()
		check(t, c.Assign(matrix.Mul(a, b).Add(bias).Tanh()))
		if n := dev.Stats().Dispatches - before.Dispatches; n != 1 {
			t.Errorf("%d dispatches, want 1", n)
		}
		want, bound := reference(x, y, 40, 30, 50)
		for i := range want {
			want[i] = math.Tanh(want[i] + float64(r[i%50]))
			bound[i] += 8 * ulp(1)
		}
		within(t, "tail", must[[]float32](t)(c.Read(background)), want, bound)

		check(t, c.Assign(matrix.Mul(a, b).Sub(matrix.Mul(a, b).Scale(.5))))
		want, bound = reference(x, y, 40, 30, 50)
		for i := range want {
			want[i] *= .5
			bound[i] *= 2
		}
		within(t, "two products", must[[]float32](t)(c.Read(background)), want, bound)
		check(t, c.Assign(matrix.Mul(matrix.Mul(a, b), c.T()).Mul(a).Mul(b)))
	})
}

// TestProductIgnoresBeyond puts NaN around the operands: what lies outside must not reach the result.
func TestProductIgnoresBeyond(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		nan := float32(math.NaN())
		for _, s := range [][3]int{{3, 5, 7}, {8, 6, 8}, {1, 9, 6}, {6, 9, 1}, {17, 33, 9}} {
			m, k, n := s[0], s[1], s[2]
			big := make([]float32, 64*64)
			for i := range big {
				big[i] = nan
			}
			a := must[*dense](t)(matrix.FromSlice(dev, 64, 64, big))
			b := must[*dense](t)(matrix.FromSlice(dev, 64, 64, big))
			for _, at := range []int{4, 5} {
				va, vb := a.Slice(at, at+m, at, at+k), b.Slice(at, at+k, at, at+n)
				check(t, va.Fill(1))
				check(t, vb.Fill(2))
				got := must[[]float32](t)(matrix.Mul(va, vb).Read(background))
				for i, v := range got {
					if v != float32(2*k) {
						t.Fatalf("%v at %d: element %d is %v, want %d", s, at, i, v, 2*k)
					}
				}
				got = must[[]float32](t)(matrix.Mul(vb.T(), va.T()).Read(background))
				for i, v := range got {
					if v != float32(2*k) {
						t.Fatalf("%v transposed at %d: element %d is %v, want %d", s, at, i, v, 2*k)
					}
				}
				check(t, va.Fill(nan))
				check(t, vb.Fill(nan))
			}
			check(t, a.Close())
			check(t, b.Close())
		}
	})
}

func TestProductIntegersAndHalf(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(6)
		for _, s := range [][3]int{{1, 1, 1}, {5, 6, 7}, {32, 17, 33}, {1, 40, 12}, {12, 40, 1}} {
			m, k, n := s[0], s[1], s[2]
			xi, yi := make([]int32, m*k), make([]int32, k*n)
			xh, yh := make([]matrix.Half, m*k), make([]matrix.Half, k*n)
			xf, yf := make([]float32, m*k), make([]float32, k*n)
			for i := range xi {
				xi[i] = int32(rng.IntN(2001) - 1000)
				xf[i] = float32(xi[i]) / 64
				xh[i] = matrix.ToHalf(xf[i])
				xf[i] = xh[i].Float32()
			}
			for i := range yi {
				yi[i] = int32(rng.IntN(2001) - 1000)
				yf[i] = float32(yi[i]) / 64
				yh[i] = matrix.ToHalf(yf[i])
				yf[i] = yh[i].Float32()
			}
			want := make([]int32, m*n)
			for i := range m {
				for j := range n {
					for l := range k {
						want[i*n+j] += xi[i*k+l] * yi[l*n+j]
					}
				}
			}
			ai := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, m, k, xi))
			bi := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, k, n, yi))
			same(t, name(s, "int32"), must[[]int32](t)(matrix.Mul(ai, bi).Read(background)), want)
			ah := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, m, k, xh))
			bh := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, k, n, yh))
			ref, bound := reference(xf, yf, m, k, n)
			within(t, name(s, "half"), must[[]float32](t)(matrix.Convert[float32](matrix.Mul(ah, bh)).Read(background)), ref, bound)
			got := must[[]matrix.Half](t)(matrix.Mul(ah, bh).Read(background))
			for i, h := range got {
				if d := math.Abs(float64(h.Float32()) - ref[i]); d > math.Abs(ref[i])*0x1p-10+0x1p-14 && math.Abs(ref[i]) < 65000 {
					t.Fatalf("%v: half element %d is %v, want %v", s, i, h.Float32(), ref[i])
				}
			}
		}
	})
}

// TestFirstProducts multiplies where the best kernels take long to compile. The first product takes one that compiles
// soon; the second orders the best one in the background, and products go on until it is there. All compute the same bits,
// for each sums along k in the same order.
func TestFirstProducts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		matrix.UseNarrowKernels(dev)
		const n = 160
		rng := newRand(40)
		x := must[*dense](t)(matrix.FromSlice(dev, n, n, random(rng, n*n)))
		y := must[*dense](t)(matrix.FromSlice(dev, n, n, random(rng, n*n)))
		multiply := func() []float32 {
			c := must[*dense](t)(matrix.New[float32](dev, n, n))
			check(t, c.Mul(x, y))
			values, err := c.Read(t.Context())
			check(t, err)
			check(t, c.Close())
			return values
		}
		first := multiply()
		for deadline := time.Now().Add(time.Minute); dev.Stats().Prepared < 1; {
			if time.Now().After(deadline) {
				t.Fatal("the best kernel is not compiled after a minute")
			}
			if !slices.Equal(multiply(), first) {
				t.Fatal("the product has changed")
			}
		}
		for range 3 {
			if !slices.Equal(multiply(), first) {
				t.Fatal("the best kernel computes something else")
			}
		}
		if s := dev.Stats(); s.Compilations != 1 || s.Prepared != 1 {
			t.Fatalf("products waited for %d kernels, and %d were prepared", s.Compilations, s.Prepared)
		}
	})
}

// TestProductOverwrites multiplies into memory of NaN and infinities, as BLAS does with a beta of 0: what a result was before must reach
// no element of it, and what is around it may not change.
func TestProductOverwrites(t *testing.T) {
	layouts := append(slices.Clip(forms), form{"window", func(_, c int) matrix.Options { return matrix.Options{Offset: 2*(c+6) + 3, Stride: c + 6} }})
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(41)
		for si, s := range [][3]int{{5, 7, 6}, {16, 16, 16}, {33, 300, 41}, {1, 37, 19}, {19, 37, 1}, {3, 70001, 2}, {7, 0, 5}} {
			m, k, n := s[0], s[1], s[2]
			x, y := random(rng, m*k), random(rng, k*n)
			want, bound := reference(x, y, m, k, n)
			for i := range want {
				want[i], bound[i] = want[i]*2, bound[i]*2
			}
			a, at := both(t, dev, m, k, x)
			b, bt := both(t, dev, k, n, y)
			for pi, p := range [][2]arg{{a, b}, {at.T(), b}, {a, bt.T()}, {at.T(), bt.T()}} {
				for fi, f := range layouts {
					if sparing(dev) && fi != (si+pi)%len(layouts) {
						continue
					}
					what := name(s, "transposes", pi, f.name)
					c, mem := wrapped(t, dev, f, m, n, notNumbers(m*n))
					check(t, c.Assign(matrix.Scale(2, matrix.Mul(p[0], p[1]))))
					check(t, c.Sync(background))
					within(t, what, must[[]float32](t)(c.Read(background)), want, bound)
					guarded(t, what, c, mem)
					check(t, c.Close())
				}
			}
			check(t, errors.Join(a.Close(), at.Close(), b.Close(), bt.Close()))
		}
	})
}

// notNumbers are NaN and both infinities in turn.
func notNumbers(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = [...]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[i%3]
	}
	return out
}

// both is a matrix of values, and one of its transpose.
func both(t *testing.T, dev *gpu.Device, rows, cols int, values []float32) (m, transpose *dense) {
	t.Helper()
	m = must[*dense](t)(matrix.FromSlice(dev, rows, cols, values))
	return m, must[*dense](t)(matrix.FromSlice(dev, cols, rows, transposed(values, rows, cols)))
}
