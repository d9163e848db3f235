// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/internal/ops"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
)

// elementWise are the rows of the table that have a code; the code of the first one is ops.FirstCode.
func elementWise() (list []ops.Operation) {
	for _, o := range ops.Table {
		if o.WGSL != "" {
			list = append(list, o)
		}
	}
	return list
}

// special are numbers that functions treat in ways of their own.
var special = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, .5, 2, -2, 3, -3.5, 40, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// operand is a matrix of the size that is laid out as a form says, with special values among random ones, and its values.
func operand(t *testing.T, dev *gpu.Device, f form, rows, cols int, seed uint64) (*dense, []float32) {
	rng := newRand(seed)
	x := random(rng, rows*cols)
	for i := range x {
		if rng.IntN(2) == 0 {
			x[i] = special[rng.IntN(len(special))]
		}
	}
	m, _ := wrapped(t, dev, f, rows, cols, x)
	return m, x
}

// fits reports whether a number is what a reference says, as far as a layout could be to blame.
func fits(got float32, want float64) bool {
	g, w := float64(got), float64(float32(want))
	return g == w || g != g && w != w || math.Abs(g-w) <= 1e-5*max(1, math.Abs(w)) && !math.IsInf(w, 0)
}

// TestEveryOperation compares the element-wise operations with their references in float64, on operands that are plain, strided,
// shifted, transposed and stretched, of odd sizes and empty, with zeros, infinities and NaN among them.
func TestEveryOperation(t *testing.T) {
	shapes := [][2]int{{5, 7}, {17, 33}, {9, 4}, {1, 1}, {3, 0}}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for i, o := range elementWise() {
			op := fuse.Op(ops.FirstCode + i)
			if !op.Takes(fuse.F32) {
				continue
			}
			for k := range devtest.Times(1) {
				d := shapes[(i+k)%len(shapes)]
				everyOperation(t, dev, op, o.Code, d[0], d[1], i+k/len(shapes))
			}
		}
	})
}

// everyOperation computes an operation whose operands are laid out in ways that the variant says.
func everyOperation(t *testing.T, dev *gpu.Device, op fuse.Op, what string, rows, cols, variant int) {
	t.Helper()
	var args []arg
	values := make([][]float64, 3)
	for k := range 3 {
		r, c, f := rows, cols, forms[(variant+k)%len(forms)]
		switch (variant + 2*k) % 5 { // one operand at most is a row and one a column
		case 3:
			r = 1
		case 4:
			c = 1
		}
		m, x := operand(t, dev, f, c, r, uint64(variant*3+k))
		defer func() { check(t, m.Close()) }()
		args = append(args, m.T())
		values[k] = make([]float64, rows*cols)
		for i := range values[k] {
			values[k][i] = float64(x[i%cols%c*r+i/cols%r])
		}
	}
	want := make([]float64, rows*cols)
	fuse.Compute(op, want, values[0], values[1], values[2])
	out, mem := wrapped(t, dev, forms[(variant+3)%len(forms)], rows, cols, make([]float32, rows*cols))
	defer func() { check(t, out.Close()) }()
	e := matrix.Elementwise(op, args[:op.Arity()]...)
	if r, c := e.Dims(); r != rows || c != cols { // of one operand that was to be stretched
		e = e.Add(matrix.Fill(rows, cols, float32(0)))
	}
	check(t, out.Assign(e))
	check(t, out.Sync(background))
	for i, g := range must[[]float32](t)(out.Read(background)) {
		if !fits(g, want[i]) {
			t.Errorf("%s of %v, %v, %v is %v, want %v", what, values[0][i], values[1][i], values[2][i], g, want[i])
			break
		}
	}
	guarded(t, what, out, mem)
}

// TestEveryOperationOnIntegers compares those that integers have with their references.
func TestEveryOperationOnIntegers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for i, o := range elementWise() {
			everyInteger[int32](t, dev, fuse.Op(ops.FirstCode+i), fuse.I32, o.Code)
			everyInteger[uint32](t, dev, fuse.Op(ops.FirstCode+i), fuse.U32, o.Code)
		}
	})
}

func everyInteger[T int32 | uint32](t *testing.T, dev *gpu.Device, op fuse.Op, typ fuse.Type, what string) {
	t.Helper()
	if !op.Takes(typ) {
		return
	}
	rng := newRand(uint64(op))
	v := make([][]T, 3)
	var args []matrix.Operand[T]
	for k := range v {
		for range 7 * 9 {
			v[k] = append(v[k], T([]uint32{0, 1, math.MaxUint32, 2, 0x80000000, 0x7fffffff, rng.Uint32(), rng.Uint32N(9)}[rng.IntN(8)]))
		}
		args = append(args, must[*matrix.Dense[T]](t)(matrix.FromSlice(dev, 7, 9, v[k])))
	}
	want := make([]T, 7*9)
	fuse.Compute(op, want, v[0], v[1], v[2])
	got := must[[]T](t)(matrix.Elementwise(op, args[:op.Arity()]...).Read(background))
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s of %d, %d, %d is %d, want %d", what, v[0][i], v[1][i], v[2][i], got[i], want[i])
			break
		}
	}
	for _, a := range args {
		check(t, a.(*matrix.Dense[T]).Close())
	}
}

// bound is how many units in the last place the table allows a function.
func bound(t *testing.T, function string) float64 {
	t.Helper()
	for _, o := range ops.Table {
		if strings.EqualFold(o.Name, function) {
			return float64(o.Ulp)
		}
	}
	t.Fatalf("no function %s", function)
	return 0
}

// spread are random numbers of any size up to a limit.
func spread(seed uint64, n int, limit float64) []float32 {
	rng := newRand(seed)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((rng.Float64()*2 - 1) * limit * math.Exp2(-rng.Float64()*20))
	}
	return x
}

// pairs appends all pairs of some numbers to two slices.
func pairs(x, y, of []float32) (all, others []float32) {
	for _, a := range of {
		for _, b := range of {
			x, y = append(x, a), append(y, b)
		}
	}
	return x, y
}

// TestPowIsAccurate holds pow to its bound wherever the result is a normal number, and to C's Annex F at all pairs of special values.
func TestPowIsAccurate(t *testing.T) {
	rng := newRand(5)
	var x, y []float32
	for len(x) < devtest.Times(50_000) {
		a := math.Exp2(rng.Float64()*252 - 126)
		if rng.IntN(2) == 0 {
			a = 1 + (rng.Float64()*2-1)*math.Exp2(-rng.Float64()*23)
		}
		x, y = append(x, float32(a)), append(y, float32((rng.Float64()*2-1)*127/math.Log2(a)))
	}
	for i := range 20 {
		for j := range 8 {
			x, y = append(x, float32(i-10)), append(y, float32(j-3))
		}
	}
	x, y = pairs(x, y, append(slices.Clone(special), 1e30, -1e30, 1e-30, math.MaxFloat32, 5, 1<<24, 1<<24+1, 1.0000001, .9999999))
	want := make([]float64, len(x))
	for i := range x {
		want[i] = math.Pow(float64(x[i]), float64(y[i]))
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, b := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x)), must[*dense](t)(matrix.FromSlice(dev, 1, len(y), y))
		got := must[[]float32](t)(matrix.Pow(a, b).Read(background))
		near(t, "pow", got, want, bound(t, "Pow"))
	})
}

// TestGamma has lgamma and digamma where they are accurate to the last places, and near 0 and below it, where they have poles and zeros.
func TestGamma(t *testing.T) {
	x := append(spread(6, 4000, 1e6), 1, 2, .5, 1e-20, 1e30, 1e37, 3e38, 1.4616321, 2.5, 2.4999998, 1.5, 1.4999999)
	for i := range 2000 {
		x = append(x, float32(i)/400+1e-3)
	}
	x = append(x, special...)
	for i, v := range x {
		x[i] = float32(math.Abs(float64(v)))
	}
	var below []float32
	for i := range 4000 {
		below = append(below, -float32(i)/400-1e-3)
	}
	reference := func(op fuse.Op, x []float32) []float64 {
		want := make([]float64, len(x))
		fuse.Compute(op, want, float64s(x), nil, nil)
		return want
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, b := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x)), must[*dense](t)(matrix.FromSlice(dev, 1, len(below), below))
		near(t, "lgamma", must[[]float32](t)(matrix.Lgamma(a).Read(background)), reference(fuse.OpLgamma, x), bound(t, "Lgamma"))
		near(t, "digamma", must[[]float32](t)(matrix.Digamma(a).Read(background)), reference(fuse.OpDigamma, x), bound(t, "Digamma"))
		want := reference(fuse.OpLgamma, below)
		for i, g := range must[[]float32](t)(matrix.Lgamma(b).Read(background)) {
			if math.Abs(float64(g)-want[i]) > 1e-6*max(1, math.Abs(want[i])) {
				t.Fatalf("lgamma of %v is %v, want %v", below[i], g, want[i])
			}
		}
		want = reference(fuse.OpDigamma, below)
		for i, g := range must[[]float32](t)(matrix.Digamma(b).Read(background)) {
			if math.Abs(float64(g)-want[i]) > 1e-6*max(1, want[i]*want[i]) {
				t.Fatalf("digamma of %v is %v, want %v", below[i], g, want[i])
			}
		}
		poles := must[*dense](t)(matrix.FromSlice(dev, 1, 5, []float32{-1, -2, -3e7, float32(math.Inf(-1)), float32(math.NaN())}))
		inf, nan := math.Inf(1), math.NaN()
		near(t, "lgamma", must[[]float32](t)(matrix.Lgamma(poles).Read(background)), []float64{inf, inf, inf, inf, nan}, 0)
		near(t, "digamma", must[[]float32](t)(matrix.Digamma(poles).Read(background)), []float64{nan, nan, nan, nan, nan}, 0)
	})
}

// TestGuarded has CNTK's variants of divisions, logarithms and roots, and its thresholds.
func TestGuarded(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	clip := func(y float64) float64 {
		switch {
		case y >= 0 && y < 1e-30:
			return 1e-30
		case y < 0 && y > -1e-30:
			return -1e-30
		}
		return y
	}
	cases := []struct {
		name string
		expr func(a, b arg) *expr
		want func(x, y float64) float64
	}{
		{"ClippedDiv", matrix.ClippedDiv[float32], func(x, y float64) float64 { return x / clip(y) }},
		{"ClippedRecip", func(_, b arg) *expr { return matrix.ClippedRecip(b) }, func(_, y float64) float64 { return 1 / clip(y) }},
		{"ClippedLog", func(_, b arg) *expr { return matrix.ClippedLog(b) }, func(_, y float64) float64 { return math.Log(math.Max(y, 1e-37)) }},
		{"ClippedSqrt", func(_, b arg) *expr { return matrix.ClippedSqrt(b) }, func(_, y float64) float64 { return math.Sqrt(math.Max(y, 0)) }},
		{"RecipOrZero", func(_, b arg) *expr { return matrix.RecipOrZero(b) }, func(_, y float64) float64 {
			if y == 0 {
				return 0
			}
			return 1 / y
		}},
		{"SoftThreshold", func(_, b arg) *expr { return matrix.SoftThresholdScalar(b, .75) }, func(_, y float64) float64 {
			return y - math.Max(-.75, math.Min(y, .75))
		}},
		{"HardThreshold", func(_, b arg) *expr { return matrix.HardThresholdScalar(b, .75) }, func(_, y float64) float64 {
			if math.Abs(y) < .75 {
				return 0
			}
			return y
		}},
	}
	x, y := pairs(nil, nil, []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, .75, -.7499, 3e-31, -3e-31, 2e-30, -1e-36, 7, float32(inf), -float32(inf), float32(nan),
	})
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, b := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x)), must[*dense](t)(matrix.FromSlice(dev, 1, len(y), y))
		for _, c := range cases {
			want := make([]float64, len(x))
			for i := range x {
				want[i] = c.want(float64(x[i]), float64(y[i]))
			}
			near(t, c.name, must[[]float32](t)(c.expr(a, b).Read(background)), want, bound(t, c.name))
		}
	})
}

// TestGradientFunctions compares the gradients with differences of the functions that they are of, in float64, and on devices.
func TestGradientFunctions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		compared := 0
		for i, o := range elementWise() {
			if base, found := strings.CutSuffix(o.Code, "Grad"); found && o.Class == ops.Binary {
				compared++
				gradientFunction(t, dev, fuse.Op(ops.FirstCode+i), o, base)
			}
		}
		if compared != 16 {
			t.Errorf("%d gradients", compared)
		}
		three := func(x ...float32) *dense { return must[*dense](t)(matrix.FromSlice(dev, 1, 4, x)) }
		d, a, b := three(2, -1, 3, .5), three(.5, 2, 1.5, 1), three(2, .25, -1, 3)
		y := matrix.Pow(a, b)
		slope := func(f func(x, y float64) float64, dx, dy float64) (want []float64) {
			for i, v := range must[[]float32](t)(a.Read(background)) {
				x, y := float64(v), float64(must[[]float32](t)(b.Read(background))[i])
				s := (f(x+dx, y+dy) - f(x-dx, y-dy)) / 2e-5
				want = append(want, s*float64(must[[]float32](t)(d.Read(background))[i]))
			}
			return want
		}
		for what, c := range map[string]struct {
			got  *expr
			want []float64
		}{
			"LogAddExpGrad":   {matrix.LogAddExpGrad(d, a, b), slope(logAddExp, 0, 1e-5)},
			"PowBaseGrad":     {matrix.PowBaseGrad(d, a, b), slope(math.Pow, 1e-5, 0)},
			"PowExponentGrad": {matrix.PowExponentGrad(d, y, a), slope(math.Pow, 0, 1e-5)},
			"MulExpDiff":      {matrix.MulExpDiff(d, a, b), []float64{2 * math.Exp(-1.5), -math.Exp(1.75), 3 * math.Exp(2.5), .5 * math.Exp(-2)}},
			"MulDiv":          {matrix.MulDiv(d, a, b), []float64{.5, -8, -4.5, 1. / 6}},
		} {
			near(t, what, must[[]float32](t)(c.got.Read(background)), c.want, 64)
		}
	})
}

// gradientFunction compares one that is of a function of one argument.
func gradientFunction(t *testing.T, dev *gpu.Device, op fuse.Op, o ops.Operation, base string) {
	t.Helper()
	f := fuse.Op(ops.FirstCode + slices.IndexFunc(elementWise(), func(b ops.Operation) bool { return b.Code == base }))
	compute := func(x float64) float64 {
		r := make([]float64, 1)
		fuse.Compute(f, r, []float64{x}, nil, nil)
		return r[0]
	}
	var d, z []float32
	var want []float64
	for i, a := range spread(7, 300, 3) {
		x := float64(a)
		slope := (compute(x+1e-5) - compute(x-1e-5)) / 2e-5
		if half := (compute(x+5e-6) - compute(x-5e-6)) / 1e-5; math.IsNaN(slope) || math.Abs(slope-half) > 1e-5*max(1, math.Abs(slope)) {
			continue
		}
		d = append(d, float32(i%7)-3)
		if strings.HasSuffix(o.Args, "y") {
			x = compute(x)
		}
		z = append(z, float32(x))
		want = append(want, slope*float64(d[len(d)-1]))
	}
	if len(z) < 50 {
		t.Errorf("%s: compared at %d places", o.Name, len(z))
	}
	x, y := must[*dense](t)(matrix.FromSlice(dev, 1, len(d), d)), must[*dense](t)(matrix.FromSlice(dev, 1, len(z), z))
	for i, g := range must[[]float32](t)(matrix.Elementwise(op, arg(x), arg(y)).Read(background)) {
		if math.Abs(float64(g)-want[i]) > 2e-4*max(1, math.Abs(want[i])) {
			t.Fatalf("%s(%v, %v) is %v, want %v", o.Name, d[i], z[i], g, want[i])
		}
	}
}

// TestHeavyChains has more functions in a chain than a kernel may hold, as often as it would compute them: some are left to another.
func TestHeavyChains(t *testing.T) {
	const n = 128
	x, y := random(newRand(8), n*n), random(newRand(9), n*n)
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, b := must[*dense](t)(matrix.FromSlice(dev, n, n, x)), must[*dense](t)(matrix.FromSlice(dev, n, n, y))
		product, transposed := matrix.Mul(a, b), matrix.Add(a, b.T())
		want := float64s(must[[]float32](t)(product.Read(background)))
		sums := float64s(must[[]float32](t)(transposed.Read(background)))
		for range 40 { // errors shrink on the way
			product, transposed = product.Tanh(), transposed.Tanh()
			for i := range want {
				want[i], sums[i] = math.Tanh(want[i]), math.Tanh(sums[i])
			}
		}
		near(t, "after a product", must[[]float32](t)(product.Read(background)), want, 64)
		near(t, "of a transpose", must[[]float32](t)(transposed.Read(background)), sums, 64)
	})
}

// TestLoopsOfFunctions folds functions that loop: some adapters end an invocation that takes many turns.
func TestLoopsOfFunctions(t *testing.T) {
	const n = 1 << 24
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		x := matrix.Fill(1, n, float32(3e38)).On(dev)
		got := must[float32](t)(matrix.Sum(matrix.Mod(x, matrix.Fill(1, n, float32(7)))).Value(background))
		if want := float32(math.Mod(float64(float32(3e38)), 7) * n); got != want {
			t.Errorf("the sum of remainders is %v, want %v", got, want)
		}
		powers := matrix.Sum(matrix.Pow(matrix.Fill(1, n, int32(3)).On(dev), matrix.Fill(1, n, int32(math.MaxInt32))))
		if got, want := must[int32](t)(powers.Value(background)), power(3, int32(math.MaxInt32))<<24; got != want {
			t.Errorf("the sum of powers is %v, want %v", got, want)
		}
	})
}
