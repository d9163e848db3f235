// SPDX-License-Identifier: Apache-2.0

package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func (m Matrix) at(i, j int) float64 { return float64(m.Data[i*m.Row+j*m.Col]) }

// layouts makes matrices of random numbers in memory of their exact extent.
var layouts = []struct {
	name string
	make func(rows, cols int) Matrix
}{
	{"dense", func(r, c int) Matrix { return steps(r, c, c, 1) }},
	{"transposed", func(r, c int) Matrix { return steps(r, c, 1, r) }},
	{"view", func(r, c int) Matrix { return steps(r, c, c+5, 1) }},
	{"transposed view", func(r, c int) Matrix { return steps(r, c, 1, r+3) }},
	{"spread", func(r, c int) Matrix { return steps(r, c, 2*c+1, 2) }},
	{"spread by rows", func(r, c int) Matrix { return steps(r, c, 3, 3*r+1) }},
	{"one row", func(r, c int) Matrix { return steps(r, c, 0, 1) }},
	{"one column", func(r, c int) Matrix { return steps(r, c, 1, 0) }},
	{"one number", func(r, c int) Matrix { return steps(r, c, 0, 0) }},
}

func steps(rows, cols, row, col int) Matrix {
	if rows == 0 || cols == 0 {
		return Matrix{nil, rows, cols, row, col}
	}
	return Matrix{random((rows-1)*row + (cols-1)*col + 1), rows, cols, row, col}
}

// result is a row-major matrix with some space between its rows. All its numbers are NaN.
func result(rows, cols, space int) Matrix {
	m := steps(rows, cols, cols+space, 1)
	for i := range m.Data {
		m.Data[i] = float32(math.NaN())
	}
	return m
}

// wrong compares a product with the one in float64.
func wrong(c, a, b Matrix) error {
	for i := range c.Rows {
		for j := range c.Cols {
			var want, size float64
			for p := range a.Cols {
				x := a.at(i, p) * b.at(p, j)
				want, size = want+x, size+math.Abs(x)
			}
			if got := c.at(i, j); !(math.Abs(got-want) <= float64(a.Cols)*size*0x1p-23) {
				return fmt.Errorf("(%d, %d) is %v, want %v", i, j, got, want)
			}
		}
	}
	for i := range min(c.Rows, len(c.Data)) - 1 {
		for j, v := range c.Data[i*c.Row+c.Cols : (i+1)*c.Row] {
			if v == v {
				return fmt.Errorf("wrote %d numbers behind row %d", j+1, i)
			}
		}
	}
	return nil
}

// eachKernel runs a test with each kernel of this machine, which may share even little work.
func eachKernel(t *testing.T, test func(t *testing.T, k *kernel)) {
	old := grain
	t.Cleanup(func() { grain = old })
	grain = 1 << 12
	for i := range kernels() {
		t.Run(kernels()[i].name, func(t *testing.T) { test(t, &kernels()[i]) })
	}
}

// shapes has the edges of every kernel's tiles and blocks, and vectors.
var shapes = [][3]int{
	{0, 3, 4},
	{3, 0, 4},
	{3, 4, 0},
	{1, 1, 1},
	{1, 300, 1},
	{1, 37, 131},
	{131, 37, 1},
	{1, 2053, 67},
	{67, 2053, 1},
	{1, 5, 2100},
	{2100, 5, 1},
	{2, 3, 5},
	{5, 7, 11},
	{6, 8, 16},
	{7, 9, 17},
	{13, 31, 15},
	{14, 4, 32},
	{14, 5, 33},
	{15, 6, 31},
	{28, 3, 64},
	{29, 257, 65},
	{61, 256, 97},
	{97, 513, 40},
	{3, 600, 500},
	{500, 600, 3},
	{460, 20, 100},
	{60, 20, 1040},
	{101, 2, 103},
}

func TestMultiply(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernel) {
		for _, s := range shapes {
			for i, x := range layouts {
				if s[0]*s[1]*s[2] > 200_000 && i%3 > 0 {
					continue // the reference is slow
				}
				y := layouts[rand.IntN(len(layouts))]
				a, b, c := x.make(s[0], s[1]), y.make(s[1], s[2]), result(s[0], s[2], rand.IntN(3))
				multiply(k, c, a, b, 1+rand.IntN(3))
				if err := wrong(c, a, b); err != nil {
					t.Errorf("%v, %s times %s: %v", s, x.name, y.name, err)
				}
			}
		}
	})
}

// TestSmall has all small shapes, so that each loop of the kernels runs.
func TestSmall(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernel) {
		for m := range k.rows + 2 {
			for n := range k.cols + 2 {
				for _, deep := range []int{1, 2, 3, 4, 5, 9} {
					a, b, c := dense(m, deep), dense(deep, n), result(m, n, 1)
					if n%2 > 0 {
						a = steps(m, deep, 1, m)
					}
					multiply(k, c, a, b, 1)
					if err := wrong(c, a, b); err != nil {
						t.Fatalf("%dx%dx%d: %v", m, deep, n, err)
					}
				}
			}
		}
	})
}

func TestRandomShapes(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernel) {
		for range 80 {
			size := func() int { return int(math.Exp(rand.Float64() * 5.5)) }
			m, deep, n := size(), size(), size()
			x, y := layouts[rand.IntN(len(layouts))], layouts[rand.IntN(len(layouts))]
			a, b, c := x.make(m, deep), y.make(deep, n), result(m, n, rand.IntN(2))
			multiply(k, c, a, b, 1+rand.IntN(4))
			if err := wrong(c, a, b); err != nil {
				t.Errorf("%dx%dx%d, %s times %s: %v", m, deep, n, x.name, y.name, err)
			}
		}
	})
}

// TestPacked has operands so large, or rows so far from each other, that blocks of A or B are copied.
func TestPacked(t *testing.T) {
	const m, deep, n = 260, 510, 270
	eachKernel(t, func(t *testing.T, k *kernel) {
		for _, c := range []struct{ a, b Matrix }{
			{steps(m, deep, 1, m), dense(deep, n)},
			{steps(m, deep, 1024, 1), steps(deep, n, 1, deep)},
		} {
			if packA, packB := worthPacking(k, c.a, c.b); !packA || !packB {
				t.Errorf("packs A: %v, B: %v", packA, packB)
			}
			d := result(m, n, 0)
			multiply(k, d, c.a, c.b, 1)
			if err := wrong(d, c.a, c.b); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestThreads compares the bits of products that different numbers of goroutines make.
func TestThreads(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernel) {
		for _, s := range [][3]int{{151, 290, 97}, {700, 600, 5}, {5, 600, 700}, {1, 1024, 2099}, {2099, 2049, 1}} {
			for _, x := range layouts[:4] {
				a, b := x.make(s[0], s[1]), x.make(s[1], s[2])
				want, got := result(s[0], s[2], 0), result(s[0], s[2], 0)
				multiply(k, want, a, b, 1)
				for _, threads := range []int{-1, 2, 3, 7, 16} {
					multiply(k, got, a, b, threads)
					for i := range want.Data {
						if math.Float32bits(got.Data[i]) != math.Float32bits(want.Data[i]) {
							t.Fatalf("%v, %s, %d threads: number %d is %v, with one thread %v", s, x.name, threads, i, got.Data[i], want.Data[i])
						}
					}
				}
			}
		}
	})
}

// TestNaN has zeros meet NaN and infinity, and numbers overflow.
func TestNaN(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	eachKernel(t, func(t *testing.T, k *kernel) {
		for _, s := range [][3]int{{1, 40, 50}, {50, 40, 1}, {40, 300, 70}, {3, 5, 7}} {
			for _, c := range []struct{ a, b, want float32 }{{0, inf, nan}, {0, nan, nan}, {nan, 0, nan}, {-1, inf, -inf}, {3e38, 3e38, inf}, {0, 0, 0}} {
				a, b, d := dense(s[0], s[1]), dense(s[1], s[2]), result(s[0], s[2], 0)
				clear(a.Data)
				clear(b.Data)
				i, p, j := rand.IntN(s[0]), rand.IntN(s[1]), rand.IntN(s[2])
				a.Data[i*a.Row+p], b.Data[p*b.Row+j] = c.a, c.b
				multiply(k, d, a, b, 1)
				if got := d.Data[i*d.Row+j]; got != c.want && (got == got || c.want == c.want) {
					t.Errorf("%v: %v times %v is %v, want %v", s, c.a, c.b, got, c.want)
				}
			}
		}
	})
}

func TestRefused(t *testing.T) {
	d, big := dense(4, 4), math.MaxInt/2
	for name, m := range map[string][3]Matrix{
		"shapes":        {d, dense(4, 3), d},
		"result":        {dense(4, 5), d, d},
		"short data":    {d, Matrix{d.Data[:15], 4, 4, 4, 1}, d},
		"no data":       {d, d, Matrix{nil, 4, 4, 4, 1}},
		"huge step":     {d, Matrix{d.Data, 4, 4, big, 1}, d},
		"huge columns":  {d, d, Matrix{d.Data, 4, 4, 1, big}},
		"huge":          {d, Matrix{d.Data, big, big, 2, 2}, d},
		"negative":      {d, Matrix{d.Data, -1, 4, 4, 1}, d},
		"negative step": {d, Matrix{d.Data, 4, 4, -4, 1}, d},
		"transposed":    {d.T(), d, d},
		"rows overlap":  {Matrix{d.Data, 4, 4, 3, 1}, d, d},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			Multiply(m[0], m[1], m[2], 1)
		})
	}
}

func TestKernel(t *testing.T) {
	if Kernel() != kernels()[0].name || kernels()[len(kernels())-1].name != portable.name {
		t.Error(Kernel(), kernels())
	}
	a, b, c := dense(3, 4), dense(4, 5), result(3, 5, 0)
	Multiply(c, a, b, 1)
	if err := wrong(c, a, b); err != nil {
		t.Error(err)
	}
}
