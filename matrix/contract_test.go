// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestMovement counts bytes: wrapped operands go up once, nothing comes down until asked, and then only the result.
func TestMovement(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(10)
		const n = 24
		x, y, z := random(rng, n*n), random(rng, n*n), make([]float32, n*n)
		a := must[*dense](t)(matrix.Wrap(dev, n, n, x))
		b := must[*dense](t)(matrix.Wrap(dev, n, n, y))
		c := must[*dense](t)(matrix.Wrap(dev, n, n, z))
		if s := dev.Stats(); s.BytesUp != 0 {
			t.Errorf("wrapping moved %d bytes", s.BytesUp)
		}
		for range 5 {
			check(t, c.Mul(a, b))
		}
		check(t, dev.Sync(background))
		if s := dev.Stats(); s.BytesUp != 2*4*n*n || s.BytesDown != 0 {
			t.Errorf("%d bytes up and %d down, want %d and 0", s.BytesUp, s.BytesDown, 2*4*n*n)
		}
		if z[0] != 0 {
			t.Error("the result reached the slice before Sync")
		}
		check(t, c.Sync(background))
		check(t, c.Sync(background))
		if s := dev.Stats(); s.BytesDown != 4*n*n {
			t.Errorf("%d bytes down, want %d", s.BytesDown, 4*n*n)
		}
		want, bound := reference(x, y, n, n, n)
		within(t, "product", z, want, bound)
		x[0] += 1
		check(t, a.Touch())
		check(t, c.Mul(a, b))
		check(t, c.Sync(background))
		want, bound = reference(x, y, n, n, n)
		within(t, "product after Touch", z, want, bound)
		if s := dev.Stats(); s.BytesUp != 3*4*n*n {
			t.Errorf("%d bytes up after Touch, want %d", s.BytesUp, 3*4*n*n)
		}
		if l := c.Buffer().Location(); l != buffer.Both {
			t.Errorf("location after Sync is %v", l)
		}
	})
}

// TestSyncMovesOnlyWhatWasWritten writes one column of a wrapped matrix.
func TestSyncMovesOnlyWhatWasWritten(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := make([]float32, 10*20)
		m := must[*dense](t)(matrix.Wrap(dev, 10, 20, x))
		check(t, m.Slice(2, 5, 3, 7).Fill(7))
		before := dev.Stats().BytesDown
		check(t, m.Sync(background))
		if n := dev.Stats().BytesDown - before; n != 3*4*4 {
			t.Errorf("%d bytes down, want %d", n, 3*4*4)
		}
		for i := range 10 {
			for j := range 20 {
				want := float32(0)
				if i >= 2 && i < 5 && j >= 3 && j < 7 {
					want = 7
				}
				if x[i*20+j] != want {
					t.Fatalf("(%d,%d) is %v, want %v", i, j, x[i*20+j], want)
				}
			}
		}
	})
}

// TestSameShapeCompilesNothing evaluates one expression with other matrices, sizes and numbers.
func TestSameShapeCompilesNothing(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(11)
		eval := func(m, k, n int, s float32) {
			a := must[*dense](t)(matrix.FromSlice(dev, m, k, random(rng, m*k)))
			b := must[*dense](t)(matrix.FromSlice(dev, k, n, random(rng, k*n)))
			c := must[*dense](t)(matrix.New[float32](dev, m, n))
			check(t, c.Assign(matrix.Mul(a, b).Scale(s).Exp()))
			check(t, c.Assign(matrix.Add(c, c).AddScalar(s)))
			check(t, errors.Join(a.Close(), b.Close(), c.Close()))
		}
		eval(64, 64, 64, 1)
		check(t, dev.Sync(background))
		first := dev.Stats()
		eval(64, 64, 64, 2)
		eval(64, 68, 64, 3)
		check(t, dev.Sync(background))
		s := dev.Stats()
		if s.Compilations != first.Compilations {
			t.Errorf("%d more compilations", s.Compilations-first.Compilations)
		}
		if s.CacheHits <= first.CacheHits {
			t.Error("no cache hits")
		}
	})
}

// TestNothingLeaks opens and closes matrices and views of all sorts.
func TestNothingLeaks(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := make([]float32, 64)
		released := 0
		const rounds = 2000
		for range rounds {
			w := must[*dense](t)(matrix.Wrap(dev, 8, 8, x, matrix.Options{Release: func() { released++ }}))
			v := w.Slice(1, 5, 2, 6)
			tr := v.T()
			al := tr.Alias()
			o := must[*dense](t)(al.Clone())
			check(t, errors.Join(w.Close(), v.Close(), o.Assign(matrix.Add(al, al)), tr.Close(), al.Close(), o.Close(), o.Close()))
		}
		if released != rounds {
			t.Errorf("released %d times, want %d", released, rounds)
		}
		if s := dev.Stats(); s.LiveBytes != 0 || s.Buffers != 0 {
			t.Errorf("%d bytes in %d buffers are live", s.LiveBytes, s.Buffers)
		}
	})
}

func TestMapped(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		m := must[*dense](t)(matrix.Map[float32](dev, 3, 5))
		check(t, m.Access(background, buffer.Writes, func(d []float32) error {
			for i := range d {
				d[i] = float32(i)
			}
			return nil
		}))
		check(t, m.Assign(matrix.Scale(2, m)))
		before := dev.Stats()
		var got []float32
		check(t, m.Access(background, buffer.Reads, func(d []float32) error {
			got = append(got, d...)
			return nil
		}))
		for i, v := range got {
			if v != float32(2*i) {
				t.Fatalf("element %d is %v", i, v)
			}
		}
		if s := dev.Stats(); dev.Info().Features.Has(driver.FeatureMappable) && (s.BytesDown != before.BytesDown || s.BytesUp != 0) {
			t.Errorf("mapping in place moved %d bytes up and %d down", s.BytesUp, s.BytesDown)
		}
		if m.Buffer().Mode() != buffer.Mapped {
			t.Errorf("mode is %v", m.Buffer().Mode())
		}
		isError(t, m.Assign(matrix.Fill(2, 5, float32(1))), buffer.ErrShape)
		check(t, m.Resize(2, 5))
		check(t, m.Resize(40, 50)) // beyond its memory
		check(t, m.Fill(3))
		check(t, m.Access(background, buffer.Reads, func(d []float32) error {
			if len(d) != 2000 || d[1999] != 3 {
				t.Errorf("%d elements", len(d))
			}
			return nil
		}))
		if m.Buffer().Mode() != buffer.Mapped {
			t.Errorf("once resized its mode is %v", m.Buffer().Mode())
		}
		check(t, m.Close())
	})
}

// TestTouchOfView has a view whose elements the caller wrote, between views with results.
func TestTouchOfView(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		host := make([]float32, 8*8)
		m := must[*dense](t)(matrix.Wrap(dev, 8, 8, host))
		column, middle := m.Col(0), m.Slice(2, 5, 3, 6)
		check(t, m.Fill(7))
		for i := 2; i < 5; i++ {
			copy(host[8*i+3:8*i+6], []float32{1, 2, 3})
		}
		check(t, middle.Touch())
		check(t, column.Fill(9))
		check(t, m.Sync(background))
		for i := range 8 {
			for j := range 8 {
				want := float32(7)
				switch {
				case j == 0:
					want = 9
				case i >= 2 && i < 5 && j >= 3 && j < 6:
					want = float32(j - 2)
				}
				if got := host[8*i+j]; got != want {
					t.Errorf("element %d, %d is %v, want %v", i, j, got, want)
				}
			}
		}
		check(t, m.Close())
	})
}

// TestWrapBuffer wraps the device's own buffer of another matrix, as a stranger would.
func TestWrapBuffer(t *testing.T) {
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		theirs := must[*gpu.Buffer](t)(dev.NewBuffer(4 * 15))
		check(t, theirs.Write(0, gpu.HostBytes(make([]byte, 60))))
		before := dev.Stats()
		m := must[*dense](t)(matrix.WrapBuffer[float32](dev, 3, 5, theirs.Handle()))
		a := must[*dense](t)(matrix.Fill(3, 5, float32(2)).On(dev).Eval())
		check(t, m.Assign(matrix.Add(m, a)))
		check(t, m.Assign(matrix.Scale(3, m.T()).T()))
		check(t, dev.Sync(background))
		if s := dev.Stats(); s.BytesUp != before.BytesUp || s.BytesDown != before.BytesDown {
			t.Errorf("moved %d bytes up, %d down", s.BytesUp-before.BytesUp, s.BytesDown-before.BytesDown)
		}
		check(t, m.Close())
		raw := make([]byte, 60)
		check(t, theirs.Read(background, gpu.Transfer{Host: gpu.HostBytes(raw), Width: 60, Count: 1}))
		if v := math.Float32frombits(uint32(raw[56]) | uint32(raw[57])<<8 | uint32(raw[58])<<16 | uint32(raw[59])<<24); v != 6 {
			t.Errorf("the stranger's buffer holds %v, want 6", v)
		}
		check(t, theirs.Close())
	})
}

// TestOneBufferTwice has several matrices in one GPU buffer, each wrapped by itself: they are the same memory all the same.
func TestOneBufferTwice(t *testing.T) {
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		const n = 8
		theirs := must[*gpu.Buffer](t)(dev.NewBuffer(4 * 3 * n * n))
		at := func(offset int) *dense {
			return must[*dense](t)(matrix.WrapBuffer[float32](dev, n, n, theirs.Handle(), matrix.Options{Offset: offset}))
		}
		a, b, mid := at(0), at(n*n), at(n*n/2)
		bits := must[*matrix.Dense[int32]](t)(matrix.WrapBuffer[int32](dev, n, n, theirs.Handle(), matrix.Options{Offset: n * n / 2}))
		all := make([]float32, 2*n*n) // what a, b and mid should hold
		mirror := func(offset int) *dense {
			return must[*dense](t)(matrix.FromSlice(dev, n, n, all[offset:offset+n*n]))
		}
		for i := range all {
			all[i] = float32(i%7 - 3)
		}
		check(t, errors.Join(a.SetSlice(all[:n*n]), b.SetSlice(all[n*n:])))
		for _, step := range []struct {
			name string
			do   func(a, b, mid *dense) error
			into int
		}{
			{"a = a+b", func(a, b, _ *dense) error { return a.Assign(matrix.Add(a, b)) }, 0},
			{"b = a*b", func(a, b, _ *dense) error { return b.Assign(matrix.Mul(a, b)) }, n * n},
			{"a = mid", func(a, _, mid *dense) error { return a.Assign(mid) }, 0},
			{"mid = a'-b", func(a, b, mid *dense) error { return mid.Assign(matrix.Sub(matrix.Transpose(a), b)) }, n * n / 2},
			{"b = row sums", func(a, b, mid *dense) error { return b.Assign(matrix.Add(matrix.SumRows(mid), a)) }, n * n},
			{"mid = softmax", func(a, _, mid *dense) error { return mid.Assign(matrix.Softmax(a)) }, n * n / 2},
		} {
			x, y, z := mirror(0), mirror(n*n), mirror(n*n/2)
			check(t, step.do(a, b, mid))
			check(t, step.do(x, y, z))
			copy(all[step.into:], must[[]float32](t)([]*dense{x, z, y}[step.into/(n*n/2)].Read(t.Context())))
			got := append(must[[]float32](t)(a.Read(t.Context())), must[[]float32](t)(b.Read(t.Context()))...)
			if !slices.Equal(got, all) {
				t.Errorf("%s: wrong", step.name)
			}
			check(t, errors.Join(x.Close(), y.Close(), z.Close()))
		}
		check(t, a.Fill(2))
		check(t, a.Assign(matrix.Add(a, matrix.Convert[float32](matrix.Scale(0, bits)))))
		same := must[[]float32](t)(a.Read(t.Context()))
		if !slices.Equal(same, must[[]float32](t)(matrix.Fill(n, n, float32(2)).On(dev).Read(t.Context()))) {
			t.Error("with an operand of another type: wrong")
		}
		check(t, errors.Join(a.Close(), b.Close(), mid.Close(), bits.Close(), theirs.Close()))
		if s := dev.Stats(); s.Buffers != 0 {
			t.Errorf("%d buffers are live", s.Buffers)
		}
	})
}

// TestErrors goes through the mistakes a caller can make: each is typed, and leaves what was there.
func TestErrors(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := []float32{1, 2, 3, 4, 5, 6}
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 3, x))
		w := must[*dense](t)(matrix.Wrap(dev, 2, 3, append([]float32(nil), x...)))
		closed := must[*dense](t)(matrix.FromSlice(dev, 2, 3, x))
		check(t, closed.Close())
		other := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver("cpu")))
		defer other.Close()
		foreign := must[*dense](t)(matrix.FromSlice(other, 2, 3, x))
		var null *dense
		makeErr := func(_ *dense, err error) error { return err }
		readErr := func(_ []float32, err error) error { return err }
		cases := []struct {
			name string
			err  error
			want error
		}{
			{"add shapes", a.Assign(matrix.Add(a, a.T())), buffer.ErrShape},
			{"product shapes", a.Assign(matrix.Mul(a, a)), buffer.ErrShape},
			{"first error wins", matrix.Mul(a, a).Add(closed).Err(), buffer.ErrShape},
			{"wrapped does not resize", w.Assign(matrix.Mul(a, a.T())), buffer.ErrShape},
			{"view does not resize", a.Slice(0, 1, 0, 1).Assign(a), matrix.ErrView},
			{"closed operand", a.Assign(matrix.Add(a, closed)), gpu.ErrClosed},
			{"closed destination", closed.Assign(a), gpu.ErrClosed},
			{"closed read", readErr(closed.Read(background)), gpu.ErrClosed},
			{"nil operand", a.Assign(matrix.Add(a, null)), buffer.ErrNil},
			{"nil interface", a.Assign(matrix.Add[float32](a, nil)), buffer.ErrNil},
			{"nil expression", a.Assign((*expr)(nil)), buffer.ErrNil},
			{"nil destination", null.Assign(a), buffer.ErrNil},
			{"nil receiver", null.Sync(background), buffer.ErrNil},
			{"nil device", makeErr(matrix.New[float32](nil, 1, 1)), gpu.ErrInvalid},
			{"foreign operands", a.Assign(matrix.Add(a, foreign)), gpu.ErrForeign},
			{"negative rows", makeErr(matrix.New[float32](dev, -1, 3)), buffer.ErrSize},
			{"overflow", makeErr(matrix.New[float32](dev, math.MaxInt, math.MaxInt)), gpu.ErrLimit},
			{"more than memory", makeErr(matrix.New[float32](dev, 1<<31, 1<<20)), gpu.ErrLimit},
			{"short slice", makeErr(matrix.Wrap(dev, 2, 4, x)), buffer.ErrShort},
			{"nil slice", makeErr(matrix.Wrap[float32](dev, 2, 3, nil)), buffer.ErrNil},
			{"short with stride", makeErr(matrix.Wrap(dev, 2, 3, x, matrix.Options{Stride: 4})), buffer.ErrShort},
			{"stride below the row", makeErr(matrix.Wrap(dev, 2, 3, x, matrix.Options{Stride: 2})), buffer.ErrStride},
			{"negative stride", makeErr(matrix.Wrap(dev, 2, 3, x, matrix.Options{Stride: -3})), buffer.ErrStride},
			{"negative offset", makeErr(matrix.Wrap(dev, 2, 3, x, matrix.Options{Offset: -1})), buffer.ErrStride},
			{"huge offset", makeErr(matrix.Wrap(dev, 2, 3, x, matrix.Options{Offset: math.MaxInt})), gpu.ErrLimit},
			{"huge stride", makeErr(matrix.Wrap(dev, 2, 3, x, matrix.Options{Stride: math.MaxInt})), gpu.ErrLimit},
			{"misaligned", makeErr(matrix.Wrap(dev, 2, 3, x, matrix.Options{Aligned: true})), matrix.ErrAlignment},
			{"slice out of range", a.Slice(0, 3, 0, 1).Err(), buffer.ErrIndex},
			{"slice backwards", a.Slice(1, 0, 0, 1).Err(), buffer.ErrIndex},
			{"bad slice in an expression", a.Assign(matrix.Add(a, a.Slice(0, 9, 0, 3))), buffer.ErrIndex},
			{"row out of range", a.Row(2).Err(), buffer.ErrIndex},
			{"column out of range", a.Col(-1).Err(), buffer.ErrIndex},
			{"column slice", a.ColumnSlice(2, 2).Err(), buffer.ErrIndex},
			{"column slice overflow", a.ColumnSlice(1, math.MaxInt).Err(), buffer.ErrIndex},
			{"reshape", a.Reshape(4, 2).Err(), buffer.ErrShape},
			{"reshape with gaps", a.Slice(0, 2, 0, 2).Reshape(4, 1).Err(), buffer.ErrStride},
			{"fill of another size", matrix.Add(a, matrix.Fill(3, 3, float32(1))).Err(), buffer.ErrShape},
			{"negative fill", matrix.Fill(-1, 2, float32(1)).Err(), buffer.ErrSize},
			{"set slice", a.SetSlice(x[:5]), buffer.ErrShort},
			{"set out of range", a.Set(2, 0, 1), buffer.ErrIndex},
			{"read to short", a.ReadTo(background, make([]float32, 5)), buffer.ErrShort},
			{"value of a matrix", func() error { _, err := matrix.Add(a, a).Value(background); return err }(), buffer.ErrShape},
			{"wrap no buffer", makeErr(matrix.WrapBuffer[float32](dev, 1, 1, nil)), buffer.ErrNil},
			{"resize with views", func() error {
				b := must[*dense](t)(matrix.FromSlice(dev, 2, 3, x))
				v := b.Row(0)
				defer v.Close()
				return b.Assign(a.T())
			}(), matrix.ErrView},
			{"function without name", a.Assign(matrix.Apply(matrix.NewFunc("let x = 1;"), a)), matrix.ErrSyntax},
			{"function with wrong arity", matrix.Apply(matrix.NewFunc("fn f(x: f32, y: f32) -> f32 { return x; }"), a).Err(), gpu.ErrInvalid},
			{"nil function", matrix.Apply(nil, a).Err(), buffer.ErrNil},
			{"zero function", matrix.Apply[float32](new(matrix.Func)).Err(), buffer.ErrNil},
			{"zero value destination", (&dense{}).Assign(matrix.Fill(1, 1, float32(1))), gpu.ErrInvalid},
		}
		for _, c := range cases {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
			}
		}
		same(t, "a unchanged", must[[]float32](t)(a.Read(background)), x)
		same(t, "w unchanged", must[[]float32](t)(w.Read(background)), x)
		check(t, closed.Close())
		dev.Close()
		if err := a.Assign(a); !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("after the device was closed: %v", err)
		}
		if _, err := w.Read(background); err != nil && !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("read after the device was closed: %v", err)
		}
		check(t, w.Close())
		check(t, a.Close())
	})
}

func TestZeroSizes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, d := range [][2]int{{0, 0}, {0, 3}, {3, 0}} {
			a := must[*dense](t)(matrix.New[float32](dev, d[0], d[1]))
			c := &dense{}
			check(t, c.Assign(matrix.Add(a, a).Exp()))
			if r, k := c.Dims(); r != d[0] || k != d[1] {
				t.Errorf("%v: result is %dx%d", d, r, k)
			}
			check(t, c.Assign(matrix.Mul(a, a.T())))
			for _, v := range must[[]float32](t)(c.Read(background)) {
				if v != 0 {
					t.Errorf("product over nothing is %v", v)
				}
			}
			if v := must[float32](t)(matrix.Sum(a).Value(background)); v != 0 {
				t.Errorf("sum of nothing is %v", v)
			}
			check(t, errors.Join(a.Close(), c.Close()))
		}
	})
}

func TestEval(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
		b := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{5, 6, 7, 8}))
		vars := map[string]arg{"A": a, "B": b, "mul": b}
		for text, want := range map[string][]float32{
			"A*B":                                {19, 22, 43, 50},
			"matmul(A, B)":                       {19, 22, 43, 50},
			"multiply(A, B)":                     {5, 12, 21, 32},
			"Multiply(2, A)":                     {2, 4, 6, 8},
			"A*mul + A%mul":                      {24, 34, 64, 82},
			"divide(subtract(B,A),4)":            {1, 1, 1, 1},
			"add(A, div(sub(B,A),4))":            {2, 3, 4, 5},
			"A%B - 1":                            {4, 11, 20, 31},
			"2*A + B/2":                          {4.5, 7, 9.5, 12},
			"T(A)*B":                             {26, 30, 38, 44},
			"A.T + -B":                           {-4, -3, -5, -4},
			"sum(A%B)":                           {70},
			"sumrows(A)":                         {3, 7},
			"relu(A - 2.5)":                      {0, 0, .5, 1.5},
			"where(A > 2, B, 0)":                 {0, 0, 7, 8},
			"max(A, 2) * 1":                      {2, 2, 3, 4},
			"clamp(A, 2, 3)":                     {2, 2, 3, 3},
			"clamp(A, 3, 2)":                     {2, 2, 2, 2},
			"pow(A, 2) - A%A":                    {0, 0, 0, 0},
			"slice(B, 0, 2, 1, 2)":               {6, 8},
			"row(A, 1) + col(B, 0).T":            {8, 11},
			"fill(2, 2, 1) + A":                  {2, 3, 4, 5},
			"(1+2)*4 - 2":                        {10},
			"A >= B || A == 1":                   {1, 0, 0, 0},
			"-A.T + .5e1 - 0x1":                  {3, 1, 2, 0},
			"A < B && !(A != 2)":                 {0, 1, 0, 0},
			"1 - 2 - 3 + 8/2/2":                  {-2},
			"max(slice((A),0,2,0,1),B.T%1,)\n%A": {5, 14, 18, 32},
		} {
			got, err := matrix.Eval(text, vars).On(dev).Read(background)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			same(t, text, got, want)
		}
		for text, want := range map[string]error{
			"":          matrix.ErrSyntax,
			"A +":       matrix.ErrSyntax,
			"C +":       matrix.ErrSyntax,
			"A B":       matrix.ErrSyntax,
			"(A":        matrix.ErrSyntax,
			"max(A B)":  matrix.ErrSyntax,
			"max(,)":    matrix.ErrSyntax,
			"A = B":     matrix.ErrSyntax,
			"A + 1.2.3": matrix.ErrSyntax,
			"1 < 2":     matrix.ErrSyntax,
			"A + ._5":   matrix.ErrSyntax,
			strings.Repeat("(", 1100) + "A" + strings.Repeat(")", 1100): matrix.ErrSyntax,
			"A" + strings.Repeat("+A", 1100):                            matrix.ErrSyntax,
			"A[0.5]":                                                    matrix.ErrSyntax,
			"func() {}":                                                 matrix.ErrSyntax,
			`"text"`:                                                    matrix.ErrSyntax,
			"A << 2":                                                    matrix.ErrSyntax,
			"tanh(A, B)":                                                matrix.ErrSyntax,
			"slice(A+B, 0, 1, 0, B)":                                    matrix.ErrSyntax,
			"C":                                                         matrix.ErrName,
			"frobnicate(A)":                                             matrix.ErrName,
			"mul(A, B)":                                                 matrix.ErrName,
			"A + Mul(2, A)":                                             matrix.ErrName,
			"mul()":                                                     matrix.ErrName,
			"A * row(B, 0)":                                             buffer.ErrShape,
			"row(A, 7)":                                                 buffer.ErrIndex,
			"A + x.y":                                                   matrix.ErrSyntax,
		} {
			if err := matrix.Eval(text, vars).Err(); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", text, err, want)
			}
		}
		err := matrix.Eval("A + mul(A, B)", vars).Err()
		if text := err.Error(); !strings.Contains(text, "column 5") || !strings.Contains(text, "matmul(") || !strings.Contains(text, "multiply(") {
			t.Errorf("%q does not name both products", text)
		}
	})
}

// TestReusedMemoryKeepsOrder closes a matrix that queued work still reads, and makes one that gets its memory.
func TestReusedMemoryKeepsOrder(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, 4, []float32{1, 2, 3, 4}))
		c := must[*dense](t)(matrix.New[float32](dev, 1, 4))
		check(t, c.Assign(matrix.Scale(2, a)))
		check(t, a.Close())
		b := must[*dense](t)(matrix.FromSlice(dev, 1, 4, []float32{9, 9, 9, 9}))
		for m, want := range map[*dense][]float32{c: {2, 4, 6, 8}, b: {9, 9, 9, 9}} {
			got, err := m.Read(background)
			check(t, err)
			same(t, "elements", got, want)
		}
	})
}
