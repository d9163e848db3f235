// SPDX-License-Identifier: Apache-2.0

package gonum_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/gonum"
)

var check = devtest.Check

// onDevices fails if a test leaves memory in use.
func onDevices(t *testing.T, test func(t *testing.T, dev *gpu.Device)) {
	t.Helper()
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		test(t, dev)
		if s := dev.Stats(); s.LiveBytes != 0 {
			t.Errorf("%d bytes live", s.LiveBytes)
		}
	})
}

// integers are exact in every type.
func integers(rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows {
		for j := range cols {
			m.Set(i, j, float64(i*cols+j))
		}
	}
	return m
}

// wide is a matrix of another maker: two methods and a transpose.
type wide struct{}

func (wide) Dims() (int, int)    { return 2, 3 }
func (wide) At(i, j int) float64 { return float64(10*i + j) }
func (w wide) T() mat.Matrix     { return mat.Transpose{Matrix: w} }

// TestRoundTrip takes matrices of every kind there and back.
func TestRoundTrip(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		big := integers(7, 9)
		sym := mat.NewSymDense(3, []float64{1, 2, 3, 2, 4, 5, 3, 5, 6})
		tri := mat.NewTriDense(3, mat.Upper, []float64{1, 2, 3, 0, 4, 5, 0, 0, 6})
		for name, m := range map[string]mat.Matrix{
			"dense": big, "transpose": big.T(), "transpose twice": mat.Transpose{Matrix: big.T()}, "slice": big.Slice(1, 4, 2, 7),
			"transposed slice": big.Slice(1, 4, 2, 7).T(), "last rows and columns": big.Slice(5, 7, 6, 9), "row": big.RowView(3), "column": big.ColView(4),
			"row of a transpose": big.RowView(2).T(), "symmetric": sym, "triangle": tri, "triangle transposed": tri.TTri(), "triangle, T": tri.T(),
			"banded": mat.NewBandDense(4, 4, 1, 1, []float64{-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -1}), "diagonal": mat.NewDiagDense(3, []float64{1, 2, 3}),
			"of another maker": wide{}, "of another maker, transposed": wide{}.T(), "1x1": integers(1, 1),
		} {
			for options, opts := range map[string]matrix.Options{
				"": {}, " padded": {Padded: true}, " by columns": {ColMajor: true}, " with stride": {Stride: 16, Offset: 3},
			} {
				d, err := gonum.From[float32](dev, m, opts)
				if err != nil {
					t.Fatalf("%s%s: %v", name, options, err)
				}
				back, err := gonum.ToDense(t.Context(), d)
				check(t, err)
				if !mat.Equal(m, back) {
					t.Errorf("%s%s:\n%v\nwant\n%v", name, options, mat.Formatted(back), mat.Formatted(m))
				}
				check(t, d.Close())
			}
		}
	})
}

// TestTransposeStays does not carry a transpose out.
func TestTransposeStays(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		d, err := gonum.From[float32](dev, integers(3, 5).T())
		check(t, err)
		if !d.ColMajor() || dev.Stats().Dispatches != 0 || dev.Stats().BytesUp != 60 {
			t.Errorf("%v, %d kernels, %d bytes", d.ColMajor(), dev.Stats().Dispatches, dev.Stats().BytesUp)
		}
		check(t, d.Close())
	})
}

// TestTypes converts to every element type, there and back.
func TestTypes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		trip[float32](t, dev)
		trip[int32](t, dev)
		trip[uint32](t, dev)
		trip[matrix.Half](t, dev)
	})
}

func trip[T matrix.Elem](t *testing.T, dev *gpu.Device) {
	t.Helper()
	m := integers(4, 3)
	d, err := gonum.From[T](dev, m.T())
	check(t, err)
	back, err := gonum.ToDense(t.Context(), d)
	check(t, err)
	if !mat.Equal(m.T(), back) {
		t.Errorf("%v: %v", d.DType(), mat.Formatted(back))
	}
	check(t, d.Close())
}

// TestChange reports how much rounding changed.
func TestChange(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		exact := mat.NewDense(2, 2, []float64{1, -0.5, 0, math.Inf(-1)})
		d, change, err := gonum.Convert(dev, exact)
		check(t, err)
		if change != 0 {
			t.Errorf("exact numbers changed by %g", change)
		}
		check(t, d.Close())
		rng := rand.New(rand.NewPCG(5, 6))
		m := mat.NewDense(20, 30, nil)
		want := 0.0
		m.Apply(func(_, _ int, _ float64) float64 {
			x := math.Exp(rng.NormFloat64() * 10)
			want = max(want, math.Abs(float64(float32(x))-x)/x)
			return x
		}, m)
		d, change, err = gonum.Convert(dev, m.Slice(0, 20, 0, 30).T())
		check(t, err)
		if change != want || change > 0x1p-24 || change == 0 {
			t.Errorf("changed by %g, want %g", change, want)
		}
		check(t, d.Close())
		d, change, err = gonum.Convert(dev, mat.NewDense(1, 2, []float64{1e-60, math.NaN()}))
		check(t, err)
		if change != 1 {
			t.Errorf("a number that vanished changed by %g", change)
		}
		check(t, d.Close())
	})
}

// TestHalfRoundsOnce compares with rounding in one step: float32 on the way must not make a tie of what is none.
func TestHalfRoundsOnce(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for x, want := range map[float64]float64{
			1 + 0x1p-11:             1,
			1 + 0x1p-11 + 0x1p-40:   1 + 0x1p-10,
			-1 - 0x1p-11 - 0x1p-40:  -1 - 0x1p-10,
			1 + 3*0x1p-11:           1 + 0x1p-9,
			1 + 3*0x1p-11 - 0x1p-40: 1 + 0x1p-10,
			65519.999999:            65504,
			0x1p-25 + 0x1p-60:       0x1p-24,
		} {
			d, err := gonum.From[matrix.Half](dev, mat.NewDense(1, 1, []float64{x}))
			check(t, err)
			back, err := gonum.ToDense(t.Context(), d)
			check(t, err)
			if got := back.At(0, 0); got != want {
				t.Errorf("%v: %v, want %v", x, got, want)
			}
			check(t, d.Close())
		}
	})
}

// short is a matrix that lies about its memory.
type short struct{ wide }

func (short) At(i, j int) float64 { return []float64{1}[i+j] }

// endless is its own transpose's transpose for ever.
type endless struct{ wide }

func (e endless) Untranspose() mat.Matrix { return e }

// sized is a matrix of ones of any size.
type sized [2]int

func (s sized) Dims() (int, int)    { return s[0], s[1] }
func (s sized) At(int, int) float64 { return 1 }
func (s sized) T() mat.Matrix       { return mat.Transpose{Matrix: s} }

func TestMistakes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		one := integers(1, 1)
		value := func(x float64) mat.Matrix { return mat.NewDense(1, 1, []float64{x}) }
		second := func(_ any, err error) error { return err }
		for name, c := range map[string]struct{ err, want error }{
			"nil":               {second(gonum.From[float32](dev, nil)), buffer.ErrNil},
			"nil pointer":       {second(gonum.From[float32](dev, (*mat.Dense)(nil))), gpu.ErrInvalid},
			"transpose of nil":  {second(gonum.From[float32](dev, mat.Transpose{})), buffer.ErrNil},
			"a panic":           {second(gonum.From[float32](dev, short{})), gpu.ErrInvalid},
			"nil device":        {second(gonum.From[float32](nil, one)), gpu.ErrInvalid},
			"overflow":          {second(gonum.From[float32](dev, value(1e39))), gonum.ErrValue},
			"overflow of half":  {second(gonum.From[matrix.Half](dev, value(65520))), gonum.ErrValue},
			"overflow far":      {second(gonum.From[matrix.Half](dev, value(-1e300))), gonum.ErrValue},
			"fraction":          {second(gonum.From[int32](dev, value(0.5))), gonum.ErrValue},
			"too large":         {second(gonum.From[int32](dev, value(1<<31))), gonum.ErrValue},
			"negative":          {second(gonum.From[uint32](dev, value(-1))), gonum.ErrValue},
			"NaN":               {second(gonum.From[int32](dev, value(math.NaN()))), gonum.ErrValue},
			"infinite":          {second(gonum.From[uint32](dev, value(math.Inf(1)))), gonum.ErrValue},
			"stride":            {second(gonum.From[float32](dev, integers(2, 3), matrix.Options{Stride: 2})), buffer.ErrStride},
			"terabytes":         {second(gonum.From[float32](dev, mat.NewDiagDense(1<<20, nil))), gpu.ErrLimit},
			"terabytes across":  {second(gonum.From[matrix.Half](dev, mat.NewDiagDense(1<<20, nil).T())), gpu.ErrLimit},
			"overflowing":       {second(gonum.From[float32](dev, sized{math.MaxInt, math.MaxInt})), gpu.ErrLimit},
			"nothing, but wide": {second(gonum.From[float32](dev, sized{0, 1 << 40})), nil},
			"negative size":     {second(gonum.From[float32](dev, sized{-2, -3})), buffer.ErrSize},
			"nil to gonum":      {second(gonum.ToDense[float32](t.Context(), nil)), buffer.ErrNil},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", name, c.err, c.want)
			}
		}
		d, err := gonum.From[float32](dev, endless{})
		check(t, err)
		check(t, d.Close())
		empty, err := matrix.New[float32](dev, 0, 3)
		check(t, err)
		back, err := gonum.ToDense(t.Context(), empty)
		check(t, err)
		if !back.IsEmpty() {
			t.Error("not empty")
		}
		again, err := gonum.From[float32](dev, back)
		check(t, err)
		if r, c := again.Dims(); r != 0 || c != 0 {
			t.Errorf("%dx%d", r, c)
		}
		check(t, errors.Join(empty.Close(), again.Close()))
	})
}

func Example() {
	ctx := context.Background()
	dev, err := gpu.Open(ctx, gpu.WithDriver("cpu")) // leave the option out to get the best one
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()

	m := mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6.1})
	a, change, err := gonum.Convert(dev, m)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("changed by at most %.1g\n", change)
	t, err := gonum.From[float32](dev, m.T())
	if err != nil {
		fmt.Println(err)
		return
	}
	var gram matrix.Dense[float32]
	if err := gram.Mul(a, t); err != nil {
		fmt.Println(err)
		return
	}
	d, err := gonum.ToDense(ctx, &gram)
	fmt.Printf("%.2f %v\n", mat.Formatted(d), err)
	// Output:
	// changed by at most 2e-08
	// ⎡14.00  32.30⎤
	// ⎣32.30  78.21⎦ <nil>
}

// empty has so many rows and no columns.
type empty int

func (e empty) Dims() (r, c int)    { return int(e), 0 }
func (e empty) T() mat.Matrix       { return mat.Transpose{Matrix: e} }
func (e empty) At(int, int) float64 { panic("there is no element") }

// TestEmptyRows has so many rows without elements that nobody can go through them.
func TestEmptyRows(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	for _, m := range []mat.Matrix{empty(1 << 40), empty(1 << 40).T()} {
		d, err := gonum.From[float32](dev, m)
		devtest.Check(t, err)
		r, c := d.Dims()
		if wantR, wantC := m.Dims(); r != wantR || c != wantC {
			t.Errorf("%dx%d, want %dx%d", r, c, wantR, wantC)
		}
		devtest.Check(t, d.Close())
	}
}
