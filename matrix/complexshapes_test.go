// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestComplexSolve solves complex systems and inverts matrices: what is left is as small as for real ones.
func TestComplexSolve(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(142)
		for _, n := range []int{0, 1, 2, 7, 33} {
			if sparing(dev) && (n == 1 || n == 7) {
				continue
			}
			a := must[*complexMatrix](t)(matrix.FromSlice(dev, n, n, randomComplex(rng, n*n)))
			b := must[*complexMatrix](t)(matrix.FromSlice(dev, n, 3, randomComplex(rng, n*3)))
			x := must[*complexMatrix](t)(matrix.Solve[complex64](a, b).Eval())
			left := must[complex64](t)(matrix.Norm2(matrix.Sub(matrix.Mul[complex64](a, x), b.Expr())).On(dev).Value(background))
			size := must[complex64](t)(matrix.MulElem(matrix.Norm2[complex64](a), matrix.Norm2[complex64](x)).On(dev).Value(background))
			if real(left) > float32(n)*0x1p-23*real(size) {
				t.Errorf("%d: a x - b is %v, of %v", n, left, size)
			}
			inverse := must[*complexMatrix](t)(matrix.Inverse[complex64](a).Eval())
			other := must[*complexMatrix](t)(matrix.Solve[complex64](a, matrix.Eye[complex64](n, n, 0)).Eval())
			if same := must[bool](t)(matrix.EqualAll[complex64](background, inverse, other)); !same {
				t.Errorf("%d: the inverse is not the solution of the identity", n)
			}
			for _, m := range []*complexMatrix{a, b, x, inverse, other} {
				check(t, m.Close())
			}
		}
		nothingLeft(t, dev)
	})
}

// TestComplexLayouts reads, writes and views elements as matrices of every type do.
func TestComplexLayouts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(143)
		for turn, f := range forms {
			rows, cols := 5, 7+turn
			x := randomComplex(rng, rows*cols)
			z, mem := wrappedComplex(t, dev, f, rows, cols, x)
			same(t, f.name+" read", must[[]complex64](t)(z.Read(background)), x)
			same(t, f.name+" at", []complex64{must[complex64](t)(z.At(background, 3, 4))}, []complex64{x[3*cols+4]})
			check(t, z.Set(2, 1, 5-6i))
			x[2*cols+1] = 5 - 6i
			part := z.Slice(1, 4, 2, 5)
			check(t, part.Assign(matrix.Scale[complex64](1i, part)))
			for i := 1; i < 4; i++ {
				for j := 2; j < 5; j++ {
					x[i*cols+j] *= 1i
				}
			}
			same(t, f.name+" part", must[[]complex64](t)(z.Read(background)), x)
			check(t, z.Assign(matrix.FlipRows(matrix.FlipCols[complex64](z))))
			check(t, z.Sync(background))
			for k, v := range x {
				if at := cell(z, rows-1-k/cols, cols-1-k%cols); mem[at] != v {
					t.Fatalf("%s: element %d reversed is %v, want %v", f.name, k, mem[at], v)
				}
			}
			guardedComplex(t, f.name, z, mem)
			clone := must[*complexMatrix](t)(matrix.Transpose[complex64](z).Eval())
			same(t, f.name+" equal", []bool{must[bool](t)(matrix.EqualAll[complex64](background, clone, matrix.Transpose[complex64](z)))}, []bool{true})
			check(t, clone.Fill(1+1i))
			same(t, f.name+" sum", []complex64{must[complex64](t)(matrix.Sum[complex64](clone).Value(background))}, []complex64{complex(float32(rows*cols), float32(rows*cols))})
			for _, m := range []*complexMatrix{part, clone, z} {
				check(t, m.Close())
			}
		}
		nothingLeft(t, dev)
	})
}

// TestComplexShapes has sums, what is made and shaped, and parts as float32.
func TestComplexShapes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		matrix.UseOneLaunch(dev)
		rng := newRand(144)
		const rows, cols = 6, 9
		x := randomComplex(rng, rows*cols)
		w := widened(x)
		z := must[*complexMatrix](t)(matrix.FromSlice(dev, rows, cols, x))
		read := func(e *matrix.Expr[complex64]) []complex64 { return must[[]complex64](t)(e.Read(background)) }
		var sum, squares complex128
		columns := make([]complex128, cols)
		running := make([]complex128, rows*cols)
		for k, v := range w {
			sum += v
			squares += v * cmplx.Conj(v)
			columns[k%cols] += v
			if running[k] = v; k%cols > 0 {
				running[k] += running[k-1]
			}
		}
		mean := sum / (rows * cols)
		variance := squares/(rows*cols) - mean*cmplx.Conj(mean)
		closeTo(t, "sum", read(matrix.Sum[complex64](z)), []complex128{sum}, 1e-5)
		closeTo(t, "mean", read(matrix.Mean[complex64](z)), []complex128{mean}, 1e-5)
		closeTo(t, "var", read(matrix.Var[complex64](z)), []complex128{variance}, 1e-5)
		closeTo(t, "std", read(matrix.Std[complex64](z)), []complex128{cmplx.Sqrt(variance)}, 1e-5)
		closeTo(t, "norm", read(matrix.Norm2[complex64](z)), []complex128{cmplx.Sqrt(squares)}, 1e-5)
		closeTo(t, "sums of columns", read(matrix.SumCols[complex64](z)), columns, 1e-5)
		closeTo(t, "running", read(matrix.CumSumRows[complex64](z)), running, 1e-5)
		closeTo(t, "reshape", read(matrix.Reshape[complex64](z, cols, rows)), w, 0)
		closeTo(t, "stacked", read(matrix.VStack[complex64](z, matrix.Fill[complex64](1, cols, 2i))), append(append([]complex128{}, w...), widened(slicesOf(2i, cols))...), 0)
		closeTo(t, "trace", read(matrix.Trace[complex64](matrix.Eye[complex64](4, 4, 0)).On(dev)), []complex128{4}, 0)
		closeTo(t, "gathered", read(matrix.Slice(matrix.FlipRows(matrix.Exp[complex64](z)), rows-1, rows, 0, cols)), expOf(w[:cols]), 1e-5)
		re, im := matrix.Real[complex64](z), matrix.Imag[complex64](z)
		closeTo(t, "parts", read(matrix.Complex(re, im)), w, 0)
		angles := must[[]float32](t)(matrix.Angle[complex64](z).Read(background))
		for k, v := range w {
			if math.Abs(float64(angles[k])-cmplx.Phase(v)) > 1e-6 {
				t.Errorf("the angle of %v is %v", v, angles[k])
			}
		}
		p := must[*matrix.Plan](t)(matrix.Exp(matrix.MulElem[complex64](z, matrix.AddScalar[complex64](z, 1i))).Explain(background))
		if len(p.Launches) != 1 {
			t.Errorf("an element-wise expression is %d launches", len(p.Launches))
		}
		if p = must[*matrix.Plan](t)(matrix.Mul[complex64](z, matrix.Transpose[complex64](z)).Explain(background)); len(p.Launches) != 2 {
			t.Errorf("a product is %d launches: %v", len(p.Launches), p)
		}
		check(t, z.Close())
		nothingLeft(t, dev)
	})
}

func slicesOf(v complex64, n int) []complex64 {
	s := make([]complex64, n)
	for i := range s {
		s[i] = v
	}
	return s
}

func expOf(z []complex128) []complex128 {
	out := make([]complex128, len(z))
	for i, v := range z {
		out[i] = cmplx.Exp(v)
	}
	return out
}

// TestComplexErrors refuses what complex numbers have not.
func TestComplexErrors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		z := must[*complexMatrix](t)(matrix.FromSlice(dev, 2, 2, []complex64{1, 2i, 3, 4}))
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
		k := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 2, 2, []int32{1, 2, 3, 4}))
		vars := map[string]matrix.Operand[matrix.Any]{
			"z": must[*matrix.Dense[matrix.Any]](t)(matrix.As[matrix.Any](z)), "a": must[*matrix.Dense[matrix.Any]](t)(matrix.As[matrix.Any](a)),
			"k": must[*matrix.Dense[matrix.Any]](t)(matrix.As[matrix.Any](k)),
		}
		for _, c := range []struct {
			text string
			want error
			part string
		}{
			{"z < a", gpu.ErrUnsupported, "not defined for complex64"},
			{"sortrows(z)", gpu.ErrUnsupported, "not defined for complex64"},
			{"maxall(z)", gpu.ErrUnsupported, "not defined for complex64"},
			{"prod(z)", gpu.ErrUnsupported, "not defined for complex64"},
			{"gelu(z)", gpu.ErrUnsupported, "not defined for complex64"},
			{"softmax(z)", gpu.ErrUnsupported, "not defined for complex64"},
			{"svdvals(z)", gpu.ErrUnsupported, "not defined for complex64"},
			{"det(z)", gpu.ErrUnsupported, "not defined for complex64"},
			{"float32(z)", gpu.ErrInvalid, "the real part, the imaginary part or the absolute value?"},
			{"z + k", gpu.ErrInvalid, "int32 with complex64"},
			{"z + fill(3, 2, 1)", buffer.ErrShape, "2x2 by 3x2"},
			{"z * fill(3, 2, 1)", buffer.ErrShape, "2x2 by 3x2"},
			{"solve(z, fill(3, 2, 1))", buffer.ErrShape, "2x2 by 3x2"},
			{"inverse(z[0])", matrix.ErrNotSquare, "1x2"},
			{"complex(k, k)", gpu.ErrInvalid, "the parts of complex numbers are float32, not int32"},
			{"complex(z, a)", gpu.ErrUnsupported, "not defined for complex64"},
			{"takerows(a, z)", gpu.ErrInvalid, "complex64"},
		} {
			err := matrix.Eval(c.text, vars).Err()
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.part) {
				t.Errorf("%s: %v", c.text, err)
			}
		}
		for what, x := range map[string]*matrix.Expr[complex64]{
			"normal": matrix.Normal[complex64](2, 2, 0, 1, 1, 1), "gumbel": matrix.Gumbel[complex64](2, 2, 0, 1, 1, 1), "uniform": matrix.Uniform[complex64](2, 2, 0, 1, 1, 1),
		} {
			if err := z.Assign(x); !errors.Is(err, gpu.ErrUnsupported) {
				t.Errorf("%s of complex numbers: %v", what, err)
			}
		}
		if err := a.Assign(matrix.Convert[float32](z)); !errors.Is(err, gpu.ErrInvalid) {
			t.Error("a matrix of float32 takes complex numbers:", err)
		}
		if _, err := vars["z"].(*matrix.Dense[matrix.Any]).Read(background); !errors.Is(err, gpu.ErrUnsupported) {
			t.Error("numbers of type Any hold complex ones:", err)
		}
		if err := new(matrix.LU[complex64]).Factorize(background, z); !errors.Is(err, gpu.ErrUnsupported) {
			t.Error("LU of complex numbers:", err)
		}
		same(t, "the matrix", must[[]complex64](t)(z.Read(background)), []complex64{1, 2i, 3, 4})
		for _, m := range []interface{ Close() error }{z, a, k} {
			check(t, m.Close())
		}
		nothingLeft(t, dev)
	})
}

// TestComplexText has texts over matrices of several types: what is real is float32.
func TestComplexText(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		z := must[*complexMatrix](t)(matrix.FromSlice(dev, 1, 2, []complex64{3 + 4i, -2i}))
		a := must[*dense](t)(matrix.FromSlice(dev, 1, 2, []float32{2, 3}))
		vars := map[string]matrix.Operand[matrix.Any]{
			"z": must[*matrix.Dense[matrix.Any]](t)(matrix.As[matrix.Any](z)), "a": must[*matrix.Dense[matrix.Any]](t)(matrix.As[matrix.Any](a)),
		}
		for text, want := range map[string][]complex64{
			"z % a + 1":                {7 + 8i, 1 - 6i},
			"a - z":                    {-1 - 4i, 3 + 2i},
			"complex(a, 1) % z":        {2 + 11i, 2 - 6i},
			"z * 2i":                   {-8 + 6i, 4},
			"(1 + 2.5j) * a":           {2 + 5i, 3 + 7.5i},
			"-1i ** 2 * z":             {3 + 4i, -2i},
			"complex64(a) + (2i) / 1j": {4, 5},
			"z.H":                      {3 - 4i, 2i},
			"z * z.H":                  {29},
			"z ** 2":                   {-7 + 24i, -4},
			"conj(z)[0, 1]":            {2i},
			"complex64(a)":             {2, 3},
			"hstack(a, z)":             {2, 3, 3 + 4i, -2i},
			"where(a == 2, z, a)":      {3 + 4i, 3},
			"complex64(fill(1, 2, 3))": {3, 3},
		} {
			x := must[*matrix.Dense[matrix.Any]](t)(matrix.Eval(text, vars).On(dev).Eval())
			if x.DType() != matrix.Complex64 {
				t.Errorf("%s is of %v", text, x.DType())
				continue
			}
			typed := must[*complexMatrix](t)(matrix.As[complex64](x))
			closeTo(t, text, must[[]complex64](t)(typed.Read(background)), widened(want), 1e-6)
			check(t, x.Close())
		}
		for text, want := range map[string][]float32{
			"abs(z)": {5, 2}, "real(z)": {3, 0}, "imag(z)": {4, -2}, "imag(a)": {0, 0}, "real(a)": {2, 3}, "conj(a)": {2, 3}, "a.H": {2, 3},
			"norm2(z) ** 2": {29}, "norminf(z)": {5}, "angle(a)": {0, 0}, "z == 3": {0, 0}, "sum(abs(z) % a)": {16},
		} {
			x := must[*matrix.Dense[matrix.Any]](t)(matrix.Eval(text, vars).Eval())
			if x.DType() != matrix.Float32 {
				t.Errorf("%s is of %v", text, x.DType())
				continue
			}
			near(t, text, must[[]float32](t)(must[*dense](t)(matrix.As[float32](x)).Read(background)), float64s(want), 4)
			check(t, x.Close())
		}
		check(t, z.Close())
		check(t, a.Close())
		nothingLeft(t, dev)
	})
}
