// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// judged is an expression, and what it is in float64.
type judged struct {
	e *expr
	known
}

// known is a matrix with the sums of the absolute values that its elements are sums of, and how many roundings each is at most.
type known struct {
	rows, cols int
	v, size    []float64
	roundings  int
}

func newReference(rows, cols, roundings int, at func(i, j int) (v, size float64)) known {
	r := known{rows, cols, make([]float64, rows*cols), make([]float64, rows*cols), roundings}
	for i := range rows {
		for j := range cols {
			r.v[i*cols+j], r.size[i*cols+j] = at(i, j)
		}
	}
	return r
}

func (r *known) at(i, j int) (v, size float64) { return r.v[i*r.cols+j], r.size[i*r.cols+j] }

func (x judged) times(y judged) judged {
	return judged{matrix.Mul(x.e, y.e), newReference(x.rows, y.cols, x.roundings+y.roundings+x.cols, func(i, j int) (v, size float64) {
		for k := range x.cols {
			a, sa := x.at(i, k)
			b, sb := y.at(k, j)
			v, size = v+a*b, size+sa*sb
		}
		return v, size
	})}
}

func (x judged) plus(y judged) judged {
	return judged{matrix.Add(x.e, y.e), newReference(x.rows, x.cols, max(x.roundings, y.roundings)+1, func(i, j int) (v, size float64) {
		a, sa := x.at(i, j)
		b, sb := y.at(i, j)
		return a + b, sa + sb
	})}
}

// each is x with a number applied to each element by e.
func (x judged) each(e *expr, f func(v float64) float64) judged {
	return judged{e, newReference(x.rows, x.cols, x.roundings+1, func(i, j int) (v, size float64) {
		a, sa := x.at(i, j)
		return f(a), math.Abs(f(sa))
	})}
}

func (x judged) scaled(by float32) judged {
	return x.each(matrix.Scale(by, x.e), func(v float64) float64 { return v * float64(by) })
}

func (x judged) divided(by float32) judged {
	return x.each(matrix.DivElem(x.e, matrix.Fill(1, 1, by)), func(v float64) float64 { return v / float64(by) })
}

func (x judged) negated() judged {
	return x.each(matrix.Neg(x.e), func(v float64) float64 { return -v })
}

func (x judged) turned() judged {
	return judged{matrix.Transpose(x.e), newReference(x.cols, x.rows, x.roundings, func(i, j int) (v, size float64) { return x.at(j, i) })}
}

func (x judged) part(i, k, j, l int) judged {
	return judged{matrix.Slice(x.e, i, k, j, l), newReference(k-i, l-j, x.roundings, func(a, b int) (v, size float64) { return x.at(i+a, j+b) })}
}

func (x judged) diagonal(off int) judged {
	n := min(x.rows+min(off, 0), x.cols-max(off, 0))
	return judged{matrix.Diagonal(x.e, off), newReference(1, n, x.roundings, func(_, j int) (v, size float64) {
		return x.at(j-min(off, 0), j+max(off, 0))
	})}
}

// summed is the sum of the columns, the rows or everything, divided by a number.
func (x judged) summed(e *expr, rows, cols int, by float64) judged {
	return judged{e, newReference(rows, cols, x.roundings+x.rows*x.cols+1, func(i, j int) (v, size float64) {
		for k := range x.rows {
			for l := range x.cols {
				if (rows == 1 || k == i) && (cols == 1 || l == j) {
					a, sa := x.at(k, l)
					v, size = v+a/by, size+sa/by
				}
			}
		}
		return v, size
	})}
}

func (x judged) sumCols() judged { return x.summed(matrix.SumCols(x.e), 1, x.cols, 1) }
func (x judged) sumRows() judged { return x.summed(matrix.SumRows(x.e), x.rows, 1, 1) }
func (x judged) sum() judged     { return x.summed(matrix.Sum(x.e), 1, 1, 1) }
func (x judged) mean() judged    { return x.summed(matrix.Mean(x.e), 1, 1, float64(x.rows*x.cols)) }
func (x judged) meanCols() judged {
	return x.summed(matrix.MeanCols(x.e), 1, x.cols, float64(x.rows))
}

func (x judged) trace() judged {
	d := x.diagonal(0)
	s := d.sum()
	s.e = matrix.Trace(x.e)
	return s
}

// agrees wants an expression's value to be within its bound of the reference, and infinite or NaN where that is.
func (x judged) agrees(t *testing.T, what string) {
	t.Helper()
	got, err := x.e.Read(background)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if len(got) != len(x.v) {
		t.Fatalf("%s: %d elements, want %dx%d", what, len(got), x.rows, x.cols)
	}
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	for i, w := range x.v {
		g := float64(got[i])
		if finite(g) != finite(w) || finite(w) && !(math.Abs(g-w) <= float64(x.roundings+2)*0x1p-24*x.size[i]) {
			t.Fatalf("%s: element %d of %dx%d is %v, want %v within %g", what, i, x.rows, x.cols, g, w, float64(x.roundings+2)*0x1p-24*x.size[i])
		}
	}
}

// operands makes matrices of random numbers, views among them, and some with an infinity or a NaN.
type operands struct {
	t        *testing.T
	dev      *gpu.Device
	rng      *rand.Rand
	specials bool
}

func (o *operands) matrix(rows, cols int) judged {
	values := random(o.rng, rows*cols)
	if o.specials && o.rng.IntN(3) == 0 && len(values) > 0 {
		values[o.rng.IntN(len(values))] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[o.rng.IntN(3)]
	}
	var m *dense
	if f := forms[o.rng.IntN(len(forms))]; o.rng.IntN(2) == 0 {
		m, _ = wrapped(o.t, o.dev, f, rows, cols, values)
	} else {
		whole, _ := wrapped(o.t, o.dev, f, cols, rows, transposed(values, rows, cols))
		o.t.Cleanup(func() { check(o.t, whole.Close()) })
		m = whole.T()
	}
	o.t.Cleanup(func() { check(o.t, m.Close()) })
	return judged{m.Expr(), newReference(rows, cols, 0, func(i, j int) (v, size float64) {
		x := float64(values[i*cols+j])
		return x, math.Abs(x)
	})}
}

// rewrites are expressions, what they are rewritten to, and how.
func rewrites(o *operands) map[string][2]judged {
	const n = 19
	a, b, c := o.matrix(n, n), o.matrix(n, n), o.matrix(n, n)
	x, y := o.matrix(n, 1), o.matrix(1, n)
	tall, wide := o.matrix(n, 3), o.matrix(3, n)
	ab := func() judged { return a.times(b) } // anew each time: what is used twice stays
	return map[string][2]judged{
		"A*B*x":            {ab().times(x), a.times(b.times(x))},
		"y*(A*B)":          {y.times(ab()), y.times(a).times(b)},
		"A*B*C*x":          {ab().times(c).times(x), a.times(b.times(c.times(x)))},
		"(A*B)*(C*x)":      {ab().times(c.times(x)), a.times(b.times(c.times(x)))},
		"tall*wide*tall":   {tall.times(wide).times(tall), tall.times(wide.times(tall))},
		"x*y*A":            {x.times(y).times(a), x.times(y.times(a))},
		"T(A*B)*x":         {ab().turned().times(x), b.turned().times(a.turned().times(x))},
		"T(T(x)*(A*B))":    {x.turned().times(ab()).turned(), x.turned().times(a).times(b).turned()},
		"(A*2)*x":          {a.scaled(2).times(x), a.times(x).scaled(2)},
		"(A*3)*(B/7)*x":    {a.scaled(3).times(b.divided(7)).times(x), a.times(b.times(x)).divided(7).scaled(3)},
		"(-A)*B":           {a.negated().times(b), ab().negated()},
		"T(A*3)*(B*C*2)*x": {a.scaled(3).turned().times(b.times(c).scaled(2)).times(x), a.turned().times(b.times(c.times(x))).scaled(2).scaled(3)},
		"(A*B)[2:7, 3:5]":  {ab().part(2, 7, 3, 5), a.part(2, 7, 0, n).times(b.part(0, n, 3, 5))},
		"(A*B*C)[2:7]":     {ab().times(c).part(2, 7, 0, n), a.part(2, 7, 0, n).times(b).times(c)},
		"(A*B+C)[1:2]":     {ab().plus(c).part(1, 2, 0, n), a.part(1, 2, 0, n).times(b).plus(c.part(1, 2, 0, n))},
		"T(A*B)[1:4]":      {ab().turned().part(1, 4, 0, n), a.times(b.part(0, n, 1, 4)).turned()},
		"(A+B)[3:9][2:4]":  {a.plus(b).part(3, 9, 0, n).part(2, 4, 1, n), a.part(5, 7, 1, n).plus(b.part(5, 7, 1, n))},
		"sumrows(A)[3:9]":  {a.plus(b).sumRows().part(3, 9, 0, 1), a.part(3, 9, 0, n).plus(b.part(3, 9, 0, n)).sumRows()},
		"sumcols(A*B)":     {ab().sumCols(), a.sumCols().times(b)},
		"sumcols(A*B*2)":   {ab().scaled(2).sumCols(), a.sumCols().times(b).scaled(2)},
		"sumrows(A*B)":     {ab().sumRows(), a.times(b.sumRows())},
		"sumcols(A*B)[2]":  {ab().sumCols().part(0, 1, 2, 3), a.sumCols().times(b.part(0, n, 2, 3))},
		"sum(A*B)":         {ab().sum(), a.sumCols().times(b.sumRows())},
		"sum(tall*wide)":   {tall.times(wide).sum(), tall.sumCols().times(wide.sumRows())},
		"mean(A*B)":        {ab().mean(), a.sumCols().times(b.sumRows()).scaled(1. / n / n)},
		"meancols(T(A*B))": {ab().turned().meanCols(), b.turned().sumCols().times(a.turned()).scaled(1. / n)},
		"trace(A*B)":       {ab().trace(), elementwise(a, b.turned()).sum()},
		"trace(tall*wide)": {tall.times(wide).trace(), elementwise(tall, wide.turned()).sum()},
		"trace(x*y*A)":     {x.times(y).times(a).trace(), elementwise(x, y.times(a).turned()).sum()},
		"diagonal(A*B)":    {ab().diagonal(0), elementwise(a, b.turned()).sumRows().turned()},
		"diagonal(A*B, 2)": {ab().diagonal(2), elementwise(a.part(0, n-2, 0, n), b.part(0, n, 2, n).turned()).sumRows().turned()},
		"diagonal(A*B,-3)": {ab().diagonal(-3), elementwise(a.part(3, n, 0, n), b.part(0, n, 0, n-3).turned()).sumRows().turned()},
		"A*B":              {ab(), ab()},
		"A*B+C":            {ab().plus(c), ab().plus(c)},
	}
}

// elementwise is the product element by element.
func elementwise(x, y judged) judged {
	return judged{matrix.MulElem(x.e, y.e), newReference(x.rows, x.cols, x.roundings+y.roundings+1, func(i, j int) (v, size float64) {
		a, sa := x.at(i, j)
		b, sb := y.at(i, j)
		return a * b, sa * sb
	})}
}

// TestRewrites wants expressions to have the plans of those that they are rewritten to, and their own values.
func TestRewrites(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, specials := range []bool{false, true} {
			o := &operands{t, dev, newRand(61), specials}
			for what, c := range rewrites(o) {
				if few && (len(what)%2 == 1) != specials { // compiling takes most of the time
					continue
				}
				written, made := c[0], c[1]
				p := must[*matrix.Plan](t)(written.e.Explain(background))
				written.agrees(t, what)
				if specials {
					continue
				}
				matrix.ComputeAsWritten(dev, true)
				if want := must[*matrix.Plan](t)(made.e.Explain(background)); p.String() != want.String() {
					t.Errorf("%s has the plan\n%s\nwant\n%s", what, p, want)
				}
				written.agrees(t, what+" as written")
				matrix.ComputeAsWritten(dev, false)
			}
		}
	})
}

// moved are the launches and the bytes of a plan.
func moved(p *matrix.Plan) (launches, bytes int) {
	for _, l := range p.Launches {
		bytes += l.BytesRead + l.BytesWritten
	}
	return len(p.Launches), bytes
}

// TestRewritesMoveLess counts launches and bytes, of plans and as they run.
func TestRewritesMoveLess(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		matrix.UseOneLaunch(dev)
		const n = 64
		vars := map[string]arg{}
		for i, name := range []string{"A", "B", "C"} {
			vars[name] = owned(t, dev, n, n, random(newRand(uint64(i)), n*n)...)
		}
		vars["x"] = owned(t, dev, n, 1, random(newRand(9), n)...)
		for text, launches := range map[string]int{
			"A*B*x": 2, "(A*2)*x": 1, "(2*A)*(-B)": 1, "(A*B)[0:5, 1:3]": 1, "tanh(A*B+C)[0:4, 0:4]": 1, "tanh(A)[0:5]": 1, "softmax(A)[1:3]": 1,
			"(A*B)[3] + C[3]": 1, "sumrows(A)[0:3]": 1, "vstack(A,B)[60:70]": 2, "(A*B)[0:20] + (A*B)[20:40]": 2, "solve(A, B)[:, 0:1]": 0, "cumsumrows(A)[1:2]": 0,
		} {
			e := matrix.Eval(text, vars)
			matrix.ComputeAsWritten(dev, true)
			_, before := moved(must[*matrix.Plan](t)(e.Explain(background)))
			matrix.ComputeAsWritten(dev, false)
			p := must[*matrix.Plan](t)(e.Explain(background))
			got, after := moved(p)
			if launches > 0 && got > launches || after >= before {
				t.Errorf("%s: %d bytes by %d launches, want fewer than %d bytes by %d:\n%s", text, after, got, before, launches, p)
			}
			ran := dev.Stats().Dispatches
			m := must[*dense](t)(e.Eval())
			if ran = dev.Stats().Dispatches - ran; ran != uint64(got) {
				t.Errorf("%s took %d launches, the plan says %d", text, ran, got)
			}
			check(t, m.Close())
		}
		for text, want := range map[string]string{ // the kernels of which are the same
			"abs(abs(A))": "abs(A)", "floor(ceil(A))": "ceil(A)", "trunc(round(A))": "round(A)", "max(A, A)": "A", "min(tanh(A), B)": "min(tanh(A), B)",
			"-(-A)": "A", "T(T(A))": "A", "sign(sign(A))": "sign(A)", "relu(relu(A))": "relu(A)", "float32(A) * x": "A*x", "abs(T(abs(A)))": "T(abs(A))",
			"sqrt(square(A))": "sqrt(square(A))", "log(exp(A))": "log(exp(A))",
		} {
			p, q := must[*matrix.Plan](t)(matrix.Eval(text, vars).Explain(background)), must[*matrix.Plan](t)(matrix.Eval(want, vars).Explain(background))
			if p.String() != q.String() || p.Launches[0].WGSL != q.Launches[0].WGSL {
				t.Errorf("%s is not %s", text, want)
			}
		}
		for _, m := range vars {
			check(t, m.(*dense).Close())
		}
	})
}

// TestNotRewritten has expressions in which a part is used twice, a user's own order, and empty operands.
func TestNotRewritten(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		matrix.UseOneLaunch(dev)
		o := &operands{t, dev, newRand(62), false}
		a, b, x := o.matrix(9, 9), o.matrix(9, 9), o.matrix(9, 1)
		ab := a.times(b)
		twice := judged{matrix.Add(ab.times(x).e, ab.sumRows().e), ab.times(x).plus(ab.sumRows()).known}
		twice.agrees(t, "used twice")
		if n, _ := moved(must[*matrix.Plan](t)(twice.e.Explain(background))); n != 3 {
			t.Errorf("a product that is used twice takes %d launches", n)
		}
		own := must[*dense](t)(ab.e.Eval())
		mine := judged{matrix.Mul(own, x.e), ab.times(x).known}
		mine.agrees(t, "evaluated before")
		if n, _ := moved(must[*matrix.Plan](t)(mine.e.Explain(background))); n != 1 {
			t.Errorf("a matrix takes %d launches", n)
		}
		c := owned(t, dev, 9, 9, random(o.rng, 81)...)
		sum := ab.plus(o.matrix(9, 9))
		if n, _ := moved(must[*matrix.Plan](t)(sum.e.Explain(background))); n != 1 {
			t.Errorf("a product and a sum take %d launches", n)
		}
		before := dev.Stats().Dispatches
		check(t, c.Assign(matrix.Add(ab.e, c)))
		if n := dev.Stats().Dispatches - before; n != 1 {
			t.Errorf("a product that is added to a matrix takes %d launches", n)
		}
		check(t, c.Close())
		infinite := owned(t, dev, 2, 1, float32(math.Inf(1)), 0)
		e := must[*dense](t)(matrix.New[float32](dev, 1, 0))
		f := must[*dense](t)(matrix.New[float32](dev, 0, 1))
		near(t, "of nothing", must[[]float32](t)(matrix.Mul(matrix.Mul(infinite, e), f).Read(background)), []float64{0, 0}, 0)
		near(t, "the sum of nothing", must[[]float32](t)(matrix.SumCols(matrix.Mul(e, f)).Read(background)), []float64{0}, 0)
		check(t, errors.Join(own.Close(), infinite.Close(), e.Close(), f.Close()))
	})
}

// TestRewrittenInverses compares what is solved with products with inverses in float64.
func TestRewrittenInverses(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n = 9
		rng := newRand(63)
		values := random(rng, n*n)
		for i := range n {
			values[i*n+i] += 12
		}
		a := judged{known: newReference(n, n, 0, func(i, j int) (v, size float64) { v = float64(values[i*n+j]); return v, math.Abs(v) })}
		inv := judged{known: inverted(a.known)}
		inv.roundings = 50
		o := &operands{t, dev, rng, false}
		m := owned(t, dev, n, n, values...)
		inverse := func() judged { return judged{matrix.Inverse(m), inv.known} }
		b, x, y := o.matrix(n, n), o.matrix(n, 1), o.matrix(1, n)
		count := func(e *expr) int {
			n, _ := moved(must[*matrix.Plan](t)(e.Explain(background)))
			return n
		}
		solving := count(matrix.Solve(m, x.e))
		for what, c := range map[string]struct {
			judged
			launches int
		}{
			"inv(A)*x": {inverse().times(x), solving}, "y*inv(A)": {y.times(inverse()), solving}, "T(inv(A))*x": {inverse().turned().times(x), solving},
			"inv(A)*B*x": {inverse().times(b).times(x), solving + 1}, "2*inv(A)*x": {inverse().scaled(2).times(x), solving + 1},
			"y*B*inv(A)": {y.times(b).times(inverse()), solving + 1}, "(inv(A)*x)[2:4]": {inverse().times(x).part(2, 4, 0, 1), solving + 1},
			"sumcols(inv(A)*B)": {inverse().times(b).sumCols(), solving + 1}, "sumrows(B*inv(A))": {b.times(inverse()).sumRows(), solving + 1},
			"y*T(inv(A))": {y.times(inverse().turned()), solving}, "inv(A)[:, 3]": {inverse().part(0, n, 3, 4), solving}, "B*inv(A)": {b.times(inverse()), 1 << 10},
		} {
			c.agrees(t, what)
			if got := count(c.e); got > c.launches {
				t.Errorf("%s takes %d launches, want %d", what, got, c.launches)
			}
		}
		det := must[float32](t)(matrix.Det(m).Value(background))
		inverted := matrix.Det(matrix.Inverse(m))
		near(t, "det(inv(A))", []float32{must[float32](t)(inverted.Value(background))}, []float64{1 / float64(det)}, 4)
		if got, want := count(inverted), count(matrix.Det(m)); got > want {
			t.Errorf("det(inv(A)) takes %d launches, det(A) %d", got, want)
		}
		zero := must[*dense](t)(matrix.New[float32](dev, n, n))
		for _, e := range []*expr{matrix.Mul(matrix.Inverse(zero), x.e), matrix.Mul(y.e, matrix.Inverse(zero)), matrix.Inverse(matrix.Inverse(zero)), matrix.Det(matrix.Inverse(zero))} {
			m := must[*dense](t)(e.Eval())
			for _, v := range must[[]float32](t)(m.Read(background)) {
				if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
					t.Fatalf("of a singular matrix: %v", v)
				}
			}
			check(t, m.Close())
			_, err := e.Read(background)
			isError(t, err, matrix.ErrSingular)
		}
		h := must[*matrix.Dense[matrix.Half]](t)(matrix.Convert[matrix.Half](m).Eval())
		hx := must[*matrix.Dense[matrix.Half]](t)(matrix.Convert[matrix.Half](x.e).Eval())
		for i, v := range must[[]matrix.Half](t)(matrix.Mul(matrix.Inverse(h), hx).Read(background)) {
			if w := inverse().times(x).v[i]; math.Abs(float64(v.Float32())-w) > 0x1p-7*(1+math.Abs(w)) {
				t.Errorf("half: element %d is %v, want %v", i, v.Float32(), w)
			}
		}
		check(t, errors.Join(m.Close(), zero.Close(), h.Close(), hx.Close()))
	})
}

// inverted is the inverse by Gauss and Jordan, of a matrix whose diagonal is large.
func inverted(a known) known {
	n := a.rows
	inv := newReference(n, n, 0, func(i, j int) (v, size float64) {
		if i == j {
			return 1, 1
		}
		return 0, 1
	})
	w := append([]float64(nil), a.v...)
	for k := range n {
		p := w[k*n+k]
		for j := range n {
			w[k*n+j] /= p
			inv.v[k*n+j] /= p
		}
		for i := range n {
			f := w[i*n+k]
			for j := range n {
				if i != k {
					w[i*n+j] -= f * w[k*n+j]
					inv.v[i*n+j] -= f * inv.v[k*n+j]
				}
			}
		}
	}
	return inv
}

// TestPartsOfAnything compares parts of expressions with the same elements of the whole.
func TestPartsOfAnything(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n = 9
		rng := newRand(65)
		square := random(rng, n*n)
		for i := range n {
			square[i*n+i] += 9
		}
		vars := map[string]arg{
			"A": owned(t, dev, n, n, square...), "B": owned(t, dev, n, n, random(rng, n*n)...), "x": owned(t, dev, n, 1, random(rng, n)...),
			"y": owned(t, dev, 1, n, random(rng, n)...),
		}
		for k, text := range []string{
			"tanh(A) + x*0.5 - y", "softmax(A)", "logsoftmax(B)", "hardmax(A)", "hardmax(A)", "sortrows(A)", "cumsumrows(A)", "float32(argsortrows(B))", "topkrows(A, 4)", "varrows(A) + B",
			"maxcols(A) % B", "float32(argmaxrows(B)) + A", "solve(A, B)", "solvelower(A, B)", "lowerlu(A)", "upperlu(A)", "permutedlu(A)", "qfactor(A)", "rfactor(A)",
			"cholesky(A*A.T)", "pinv(A, 0)", "vstack(A, B, y)", "hstack(x, A, x)", "hstack(A, B)[1:, 2:] + 0", "tile(A, 2, 2)", "pad(A, 1, 1, 2, 2, 7)", "roll(A, 2, 3)", "reshape(A, 3, 27)",
			"tril(A, 1)", "eye(9, 9, 1) + A", "kron(x[0:3], B)", "fliprows(A)", "takerows(A, x*2)", "takecols(A, y)", "uniform(9, 9, 0, 1, 3) + A", "normal(9, 9, 0, 1, 3) % A", "fill(9, 9, 2) + A*B",
			"A**3", "where(A > B, A, B)", "outer(x, y)", "A[::2, ::-1]", "matpow(A, 3)", "putrows(A, y, B)", "addtorows(A, y*2, B)", "mulstack(A, A, 1)", "softmaxcols(A)", "sortcols(A)",
			"(A*B)[1:, :8] + (A*B)[:8, 1:]", "T(softmax(A) + B)", "cumsumcols(A)",
		} {
			if k%4 != 0 && dev.Info().Driver != "cpu" && !devtest.Long() {
				continue
			}
			e := matrix.Eval(text, vars)
			if e.Err() != nil {
				t.Fatal(e.Err())
			}
			rows, cols := e.Dims()
			matrix.ComputeAsWritten(dev, true)
			whole := must[[]float32](t)(e.Read(background))
			matrix.ComputeAsWritten(dev, false)
			for _, at := range [][4]int{{1, 3, 0, 2}, {0, rows, 1, 2}, {2, 3, 0, cols}, {1, rows, 0, cols}} {
				part := matrix.Slice(e, at[0], at[1], at[2], at[3])
				got := must[[]float32](t)(part.Read(background))
				for i := range at[1] - at[0] {
					for j := range at[3] - at[2] {
						g, w := float64(got[i*(at[3]-at[2])+j]), float64(whole[(at[0]+i)*cols+at[2]+j])
						if !(math.Abs(g-w) <= 1e-5*(1+math.Abs(w))) {
							t.Fatalf("%s %v: element %d %d is %v, want %v", text, at, i, j, g, w)
						}
					}
				}
			}
		}
		for _, m := range vars {
			check(t, m.(*dense).Close())
		}
	})
}
