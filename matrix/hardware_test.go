// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// onHardwareKernels runs a test on devices that take the kernels meant for hardware. Software adapters run them too, only
// slowly, so that they are tested wherever the tests run, on the driver simd in long tests.
func onHardwareKernels(t *testing.T, test func(t *testing.T, dev *gpu.Device)) {
	t.Helper()
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		if some && dev.Info().Driver == "simd" {
			return
		}
		matrix.UseHardwareKernels(dev)
		test(t, dev)
	})
}

func someForms() []form {
	if few {
		return []form{forms[0]}
	}
	return []form{forms[0], forms[3], forms[4]}
}

func TestHardwareProduct(t *testing.T) { onHardwareKernels(t, testProducts) }

// TestSIMDProduct multiplies by the kernels meant for SIMD on the CPU, in long tests on GPUs too.
func TestSIMDProduct(t *testing.T) {
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		if some && dev.Info().Driver != "simd" {
			return
		}
		matrix.UseSIMDKernels(dev)
		testProducts(t, dev)
	})
}

func testProducts(t *testing.T, dev *gpu.Device) {
	rng := newRand(20)
	for _, s := range [][3]int{
		{1, 1, 1},
		{2, 3, 4},
		{5, 7, 6},
		{17, 33, 31},
		{63, 65, 64},
		{64, 64, 64},
		{129, 70, 131},
		{257, 20, 260},
		{1, 300, 257},
		{257, 300, 1},
		{1, 5000, 3},
		{3, 5000, 2},
		{128, 0, 64},
	} {
		m, k, n := s[0], s[1], s[2]
		if few && s != [3]int{5, 7, 6} && s != [3]int{1, 300, 257} {
			continue
		}
		x, y, z := random(rng, m*k), random(rng, k*n), random(rng, n)
		want, bound := reference(x, y, m, k, n)
		for i := range want {
			want[i] += float64(z[i%n])
			bound[i] += 4*ulp(want[i]) + 4*ulp(4)
		}
		bias := must[*dense](t)(matrix.FromSlice(dev, 1, n, z))
		for _, form := range someForms() {
			a, _ := wrapped(t, dev, form, m, k, x)
			b, _ := wrapped(t, dev, form, n, k, transposed(y, k, n))
			c, mem := wrapped(t, dev, forms[1], m, n, make([]float32, m*n))
			what := name(s, form.name)
			check(t, c.Assign(matrix.Mul(a, b.T()).Add(bias)))
			check(t, c.Sync(background))
			within(t, what, must[[]float32](t)(c.Read(background)), want, bound)
			guarded(t, what, c, mem)
			for _, x := range []*dense{a, b, c} {
				check(t, x.Close())
			}
		}
		check(t, bias.Close())
	}
}

func TestHardwareStacks(t *testing.T) {
	onHardwareKernels(t, func(t *testing.T, dev *gpu.Device) { testStacks(t, dev, 1) })
}

func TestHardwareFolds(t *testing.T) {
	onHardwareKernels(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(21)
		for _, d := range [][2]int{{1, 1}, {3, 5}, {1, 70001}, {2001, 1}, {300, 1030}, {4, 100003}} {
			rows, cols := d[0], d[1]
			if few && d != [2]int{3, 5} || some && rows*cols > 100_000 {
				continue
			}
			x := random(rng, rows*cols)
			for _, form := range someForms() {
				a, _ := wrapped(t, dev, form, rows, cols, x)
				folded(t, name(d, form.name), a, x)
				check(t, a.Close())
			}
		}
	})
}

func TestHardwareSoftmax(t *testing.T) {
	onHardwareKernels(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(22)
		for _, d := range [][2]int{{1, 1}, {3, 5}, {7, 1023}, {2, 5003}, {300, 8}} {
			rows, cols := d[0], d[1]
			if few && d != [2]int{3, 5} {
				continue
			}
			x := random(rng, rows*cols)
			want, _ := softmaxes(x, rows, cols)
			for _, form := range someForms() {
				a, mem := wrapped(t, dev, form, rows, cols, x)
				close64(t, name(d, form.name), must[[]float32](t)(matrix.Softmax(a).Read(background)), want, 2e-6)
				check(t, a.Assign(matrix.Softmax(a)))
				check(t, a.Sync(background))
				close64(t, name(d, form.name, "in place"), must[[]float32](t)(a.Read(background)), want, 2e-6)
				guarded(t, name(d, form.name), a, mem)
				check(t, a.Close())
			}
		}
	})
}
