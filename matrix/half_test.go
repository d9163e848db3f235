// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"

	"github.com/x448/float16"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

func halves(v ...float32) []matrix.Half {
	h := make([]matrix.Half, len(v))
	for i, x := range v {
		h[i] = matrix.ToHalf(x)
	}
	return h
}

// TestHalfScalars takes scalars of float16 wherever there are any.
func TestHalfScalars(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		h := matrix.ToHalf
		a := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, 1, 3, halves(-1, 0.5, 4)))
		vars := map[string]matrix.Operand[matrix.Half]{"A": a}
		for _, c := range []struct {
			what string
			x    *matrix.Expr[matrix.Half]
			want []matrix.Half
		}{
			{"Scale", matrix.Scale(h(2), a), halves(-2, 1, 8)},
			{"AddScalar", matrix.AddScalar(a, h(1)), halves(0, 1.5, 5)},
			{"MinScalar", matrix.MinScalar(a, h(1)), halves(-1, 0.5, 1)},
			{"MaxScalar", matrix.MaxScalar(a, h(1)), halves(1, 1, 4)},
			{"DivScalar", matrix.DivScalar(a, h(2)), halves(-0.5, 0.25, 2)},
			{"ScalarSub", matrix.ScalarSub(h(1), a), halves(2, 0.5, -3)},
			{"ScalarDiv", matrix.ScalarDiv(h(2), a), halves(-2, 4, 0.5)},
			{"Clamp", matrix.Clamp(a, h(0), h(1)), halves(0, 0.5, 1)},
			{"PowScalar 2", matrix.PowScalar(a, h(2)), halves(1, 0.25, 16)},
			{"PowScalar 3", matrix.PowScalar(a, h(3)), halves(-1, 0.125, 64)},
			{"PowScalar -1", matrix.PowScalar(a, h(-1)), halves(-1, 2, 0.25)},
			{"PowScalar 0.5", matrix.PowScalar(matrix.Abs(a), h(0.5)), halves(1, 0.70710678, 2)},
			{"Fill", matrix.Add(a, matrix.Fill(1, 3, h(1.5))), halves(0.5, 2, 5.5)},
			{"Convert", matrix.Convert[matrix.Half](matrix.AddScalar(matrix.Convert[float32](a), 1)), halves(0, 1.5, 5)},
			{"Eval", matrix.Eval("2*A + 0.5", vars), halves(-1.5, 1.5, 8.5)},
			{"Eval, rounded once", matrix.Eval("fill(1, 1, 1.000488281250001)", vars).On(dev), []matrix.Half{dtype.HalfFromBits(0x3c01)}},
		} {
			v, err := c.x.Read(background)
			check(t, err)
			same(t, c.what, v, c.want)
		}
		check(t, a.Set(0, 1, h(7)))
		if v := must[matrix.Half](t)(a.At(background, 0, 1)); v != h(7) {
			t.Errorf("At: %v", v)
		}
		check(t, a.Fill(h(9)))
		same(t, "Fill", must[[]matrix.Half](t)(a.Read(background)), halves(9, 9, 9))
		check(t, a.Zero())
		same(t, "Zero", must[[]matrix.Half](t)(a.Read(background)), halves(0, 0, 0))
		check(t, a.Close())
	})
}

// TestHalfSlice computes in integers of the caller's that hold float16, without a copy on the host.
func TestHalfSlice(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		bits := []uint16{0x3c00, 0x4000, 0x4200, 0x4400, 0xffff} // 1 2 3 4, and what is not the matrix's
		theirs := []float16.Float16{float16.Fromfloat32(10), float16.Fromfloat32(20)}
		a := must[*matrix.Dense[matrix.Half]](t)(matrix.Wrap(dev, 2, 2, matrix.HalfSlice(bits)))
		b := must[*matrix.Dense[matrix.Half]](t)(matrix.FromBuffer[matrix.Half](dev, 1, 2, matrix.HalfSlice(theirs), buffer.DontOwnBuffer))
		check(t, a.Add(a, b))
		check(t, b.Assign(matrix.SumCols(a)))
		check(t, a.Sync(background))
		check(t, b.Sync(background))
		same(t, "integers", bits, []uint16{0x4980, 0x4d80, 0x4a80, 0x4e00, 0xffff}) // 11 22 13 24
		if theirs[0].Float32() != 24 || theirs[1].Float32() != 46 {
			t.Errorf("theirs are %v", theirs)
		}
		bits[0] = 0xc000 // -2
		check(t, a.Touch())
		same(t, "touched", must[[]matrix.Half](t)(a.Read(background)), halves(-2, 22, 13, 24))
		check(t, a.Access(background, buffer.Writes, func(data []matrix.Half) error {
			own := matrix.HalfBits[uint16](data)
			own[1] |= 0x8000
			if data[1] != matrix.ToHalf(-22) {
				t.Errorf("%v after a write to its bits", data[1])
			}
			return nil
		}))
		same(t, "accessed", must[[]matrix.Half](t)(a.Read(background)), halves(-2, -22, 13, 24))
		dst := make([]uint16, 4)
		check(t, a.ReadTo(background, matrix.HalfSlice(dst)))
		same(t, "read", dst, []uint16{0xc000, 0xcd80, 0x4a80, 0x4e00})
		if _, err := matrix.FromBuffer[matrix.Half](dev, 2, 2, bits, buffer.DontOwnBuffer); err == nil {
			t.Error("integers were taken for float16")
		}
		if _, err := matrix.Wrap(dev, 2, 3, matrix.HalfSlice(bits)); !errors.Is(err, buffer.ErrShort) {
			t.Errorf("too short: %v", err)
		}
		if _, err := matrix.Wrap(dev, 1, 1, matrix.HalfSlice([]uint16(nil))); !errors.Is(err, buffer.ErrNil) {
			t.Errorf("nil: %v", err)
		}
		check(t, a.Close())
		check(t, b.Close())
		if s := dev.Stats(); s.LiveBytes != 0 {
			t.Errorf("%d bytes live", s.LiveBytes)
		}
	})
}

// TestHalfUnaligned writes float16 where rows begin within words, of operands whose rows do not.
func TestHalfUnaligned(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const rows, room = 3, 8
		for cols := 1; cols <= 6; cols++ {
			for at := 0; at <= 2; at++ {
				x, y := make([]matrix.Half, rows*room), make([]float32, cols)
				for i := range x {
					x[i] = matrix.ToHalf(float32(i))
				}
				for j := range y {
					y[j] = float32(100 * (j + 1))
				}
				a := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, rows, room, x))
				part := a.Slice(0, rows, 0, cols)
				row := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, cols, y))
				half := matrix.Convert[matrix.Half](row)
				whole := must[*matrix.Dense[matrix.Half]](t)(matrix.New[matrix.Half](dev, rows, room+1))
				to := whole.Slice(0, rows, at, at+cols)
				check(t, to.Assign(matrix.Add(part, half)))
				check(t, whole.Slice(0, 1, at, at+cols).Assign(half))
				want := make([]matrix.Half, rows*(room+1))
				for i := range rows {
					for j := range cols {
						v := y[j]
						if i > 0 {
							v += float32(i*room + j)
						}
						want[i*(room+1)+at+j] = matrix.ToHalf(v)
					}
				}
				same(t, name(cols, "at", at), must[[]matrix.Half](t)(whole.Read(background)), want)
				for _, m := range []*matrix.Dense[matrix.Half]{a, part, whole, to} {
					check(t, m.Close())
				}
				check(t, row.Close())
			}
		}
	})
}

func ExampleScale_float16() {
	dev := oracle(background)
	defer dev.Close()

	a, err := matrix.FromSlice(dev, 1, 3, []matrix.Half{matrix.ToHalf(1), matrix.ToHalf(0.5), matrix.ToHalf(-4)})
	if err != nil {
		log.Fatal(err)
	}
	v, err := matrix.Scale(matrix.ToHalf(2), a).Read(background)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v, v[0].Float32()+v[1].Float32())
	// Output: [2 1 -8] 3
}

func ExampleHalfSlice() {
	dev := oracle(background)
	defer dev.Close()

	bits := []uint16{0x3c00, 0x4000} // 1 and 2
	m, err := matrix.Wrap(dev, 1, 2, matrix.HalfSlice(bits))
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Assign(matrix.Scale(matrix.ToHalf(-0.5), m)); err != nil {
		log.Fatal(err)
	}
	if err := m.Sync(background); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%#04x %v\n", bits, matrix.HalfSlice(bits))
	// Output: [0xb800 0xbc00] [-0.5 -1]
}

// TestHalfSliceShares writes through either slice and looks through the other.
func TestHalfSliceShares(t *testing.T) {
	bits := make([]uint16, 3, 5)
	bits[1] = 0x4000
	h := matrix.HalfSlice(bits)
	if len(h) != 3 || cap(h) != 5 || h[1].Float32() != 2 {
		t.Fatalf("%v, capacity %d", h, cap(h))
	}
	h[2] = matrix.ToHalf(-0.5)
	_ = append(h, matrix.ToHalf(1))
	if bits[2] != 0xb800 || bits[:4][3] != 0x3c00 {
		t.Errorf("%04x", bits[:4])
	}
	back := matrix.HalfBits[uint16](h)
	if &back[0] != &bits[0] || len(back) != 3 || cap(back) != 5 {
		t.Errorf("%d, capacity %d", len(back), cap(back))
	}
	theirs := []float16.Float16{float16.Fromfloat32(7)}
	if h := matrix.HalfSlice(theirs); h[0].Float32() != 7 || &matrix.HalfBits[float16.Float16](h)[0] != &theirs[0] {
		t.Errorf("%v", h)
	}
	var none []uint16
	if matrix.HalfSlice(none) != nil || matrix.HalfBits[uint16](nil) != nil {
		t.Error("nil is not nil any more")
	}
	if h := matrix.HalfSlice([]uint16{}); h == nil || len(h) != 0 || matrix.HalfBits[uint16](h) == nil {
		t.Error("empty became nil")
	}
	var b bytes.Buffer
	err := binary.Write(&b, binary.BigEndian, matrix.HalfBits[uint16](h))
	if err != nil || !bytes.Equal(b.Bytes(), []byte{0, 0, 0x40, 0, 0xb8, 0}) {
		t.Errorf("%x, %v", b.Bytes(), err)
	}
}

// TestHalfRounds has numbers that float16 rounds, in a matrix of them and where an expression goes on: those beyond it are infinite.
func TestHalfRounds(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		x := []float32{65504, 65519.99, 65520, 70000, 1e30, inf, nan, -65519.99, -65520, -inf, 2049, 2051, 0.1, 6e-8, 2e-8, -0.1, 1}
		want := make([]float32, len(x))
		for i, v := range x {
			want[i] = matrix.ToHalf(v).Float32()
		}
		for _, cols := range []int{1, len(x)} { // one by one, and in vectors
			a := must[*dense](t)(matrix.FromSlice(dev, len(x)/cols, cols, x))
			h := must[*matrix.Dense[matrix.Half]](t)(matrix.Convert[matrix.Half](a).Eval())
			near(t, "stored", must[[]float32](t)(matrix.Convert[float32](h).Read(background)), float64s(want), 0)
			inside := matrix.Convert[float32](matrix.Convert[matrix.Half](a))
			near(t, "in an expression", must[[]float32](t)(matrix.Scale(2, inside).Read(background)), float64s(twice(want)), 0)
			check(t, errors.Join(a.Close(), h.Close()))
		}
		ints := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 4, []int32{2049, 70000, -65520, 3}))
		got := must[[]float32](t)(matrix.AddScalar(matrix.Convert[float32](matrix.Convert[matrix.Half](ints)), 1).Read(background))
		near(t, "of whole numbers", got, []float64{2049, math.Inf(1), math.Inf(-1), 4}, 0)
		check(t, ints.Close())
	})
}

func twice(x []float32) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = 2 * v
	}
	return out
}

// TestHalvesAreRounded computes with elements that a conversion to float16 has to round, whether they are stored in between or not.
func TestHalvesAreRounded(t *testing.T) {
	type halves = matrix.Operand[matrix.Half]
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := must[*dense](t)(matrix.FromSlice(dev, 3, 4, []float32{0.1, 70000, 1.00001, 1, 300.7, -200.2, 127, -129, 2049, -70000, 1e-9, 0.3}))
		for name, f := range map[string]func(halves) *matrix.Expr[matrix.Half]{
			"FlipCols":   func(h halves) *matrix.Expr[matrix.Half] { return matrix.FlipCols(matrix.FlipCols(h)) },
			"Transpose":  func(h halves) *matrix.Expr[matrix.Half] { return matrix.Transpose(h) },
			"VStack":     func(h halves) *matrix.Expr[matrix.Half] { return matrix.VStack(h, h) },
			"Tile":       func(h halves) *matrix.Expr[matrix.Half] { return matrix.Tile(h, 2, 2) },
			"Pad":        func(h halves) *matrix.Expr[matrix.Half] { return matrix.Pad(h, 1, 1, 1, 1, 0) },
			"MaxAll":     func(h halves) *matrix.Expr[matrix.Half] { return matrix.MaxAll(h) },
			"MinRows":    func(h halves) *matrix.Expr[matrix.Half] { return matrix.MinRows(h) },
			"SumRows":    func(h halves) *matrix.Expr[matrix.Half] { return matrix.SumRows(h) },
			"CumSumRows": func(h halves) *matrix.Expr[matrix.Half] { return matrix.CumSumRows(h) },
			"SortRows":   func(h halves) *matrix.Expr[matrix.Half] { return matrix.SortRows(h) },
			"Softmax":    func(h halves) *matrix.Expr[matrix.Half] { return matrix.Softmax(h) },
			"Mul":        func(h halves) *matrix.Expr[matrix.Half] { return matrix.Mul(h, matrix.Transpose(h)) },
			"Kron":       func(h halves) *matrix.Expr[matrix.Half] { return matrix.Kron(h, h) },
			"Add":        func(h halves) *matrix.Expr[matrix.Half] { return matrix.Add(h, h) },
		} {
			h := matrix.Convert[matrix.Half](x)
			stored := must[*matrix.Dense[matrix.Half]](t)(h.Eval())
			got := must[[]matrix.Half](t)(f(h).Read(background))
			want := must[[]matrix.Half](t)(f(stored).Read(background))
			for i := range want {
				if g, w := got[i].Float32(), want[i].Float32(); g != w && (g == g || w == w) {
					t.Errorf("%s: element %d is %v, and %v of elements that were stored", name, i, got[i], want[i])
				}
			}
			single := must[[]float32](t)(matrix.Convert[float32](f(h)).Read(background))
			again := must[[]float32](t)(matrix.Convert[float32](f(stored)).Read(background))
			for i := range again {
				if single[i] != again[i] && !(single[i] != single[i] && again[i] != again[i]) {
					t.Errorf("%s: as float32 element %d is %v, and %v of elements that were stored", name, i, single[i], again[i])
				}
			}
			check(t, stored.Close())
		}
	})
}
