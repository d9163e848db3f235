// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestUnaligned computes with rows that lie one behind the other and begin anywhere, and watches the elements around the result. All numbers
// are small and whole, so that the results are exact.
func TestUnaligned(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, d := range [][2]int{{1, 1}, {1, 2}, {1, 7}, {1, 1027}, {3, 5}, {5, 8}, {9, 33}} {
			for at := range 5 { // up to the end of the memory, which the last one is aligned at, too
				testUnaligned(t, dev, d[0], d[1], at)
			}
		}
	})
}

func testUnaligned(t *testing.T, dev *gpu.Device, rows, cols, at int) {
	t.Helper()
	n, what := rows*cols, name(rows, "x", cols, "at", at)
	whole := func(factor int) ([]float32, *dense) {
		data := make([]float32, n+4)
		for i := range data {
			data[i] = float32(i*factor%17 - 8)
		}
		return data, must[*dense](t)(matrix.FromSlice(dev, 1, n+4, data))
	}
	part := func(m *dense, at int) *dense { return m.Slice(0, 1, at, at+n).Reshape(rows, cols) }
	x, a := whole(3)
	y, b := whole(5)
	z, c := whole(7)
	ax, ay := (at+1)%4, (at+3)%4
	for _, by := range []int{0, ay} { // an operand that is aligned, and one that is not
		want := float64s(z)
		for i := range n {
			want[at+i] = float64(x[ax+i])*float64(y[by+i]) + float64(x[ax+i]) - 2
		}
		check(t, c.SetSlice(z))
		check(t, part(c, at).Assign(matrix.MulElem(part(a, ax), part(b, by)).Add(part(a, ax)).AddScalar(-2)))
		near(t, what, must[[]float32](t)(c.Read(background)), want, 0)
		for i := range n {
			want[at+i] = want[at+i]*float64(y[by+i]) + float64(x[ax+i])
		}
		check(t, part(c, at).Assign(matrix.MulElem(part(c, at), part(b, by)).Add(part(a, ax))))
		near(t, what+" in place", must[[]float32](t)(c.Read(background)), want, 0)
	}
	want := float64s(z) // a result that overlaps what it is computed of
	for i := range n {
		want[at+i] = float64(z[ax+i]) + float64(y[ay+i])
	}
	check(t, c.SetSlice(z))
	check(t, part(c, at).Assign(matrix.Add(part(c, ax), part(b, ay))))
	near(t, what+" overlapping", must[[]float32](t)(c.Read(background)), want, 0)
	check(t, errors.Join(a.Close(), b.Close(), c.Close()))
}

// TestOddLengths computes what ends with a part of a vector: by whole vectors where the rest of the last one is nobody's, and watches
// what comes behind it.
func TestOddLengths(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, n := range []int{1, 5, 1023, 4097} {
			data := make([]float32, n+8)
			for i := range data {
				data[i] = float32(i%13 - 6)
			}
			want := float64s(data)
			for i := range n {
				want[i] = want[i]*want[i] + 3
			}
			kernel := func(what, want string, a *dense) {
				t.Helper()
				p := must[*matrix.Plan](t)(matrix.MulElem(a, a).AddScalar(3).Explain(background))
				if got := p.Launches[0].Kernel; !strings.HasPrefix(got, want) {
					t.Errorf("%s of %d elements: by %s", what, n, got)
				}
			}
			a := must[*dense](t)(matrix.Wrap(dev, 1, n, data[:n]))
			kernel("a new matrix", "elementwise/linear 0", a)
			check(t, a.Assign(matrix.MulElem(a, a).AddScalar(3)))
			check(t, a.Sync(background))
			near(t, name("wrapped", n), data, want, 0)

			b := must[*dense](t)(matrix.FromSlice(dev, 1, n+8, data))
			part := b.Slice(0, 1, 0, n)
			check(t, part.Assign(matrix.Scale(2, part)))
			for i := range n {
				want[i] *= 2
			}
			near(t, name("a part of", n+8), must[[]float32](t)(b.Read(background)), want, 0)
			check(t, errors.Join(a.Close(), b.Close()))
		}
	})
}

// TestBehindTheEnd computes from matrices behind whose last element there is NaN in the last vector of their memory, and wants what
// the same elements give where there are zeros.
func TestBehindTheEnd(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, d := range [][2]int{{1, 1}, {5, 7}, {33, 31}, {7, 129}, {65, 67}, {129, 3}, {1, 1023}, {1023, 1}, {301, 299}} {
			rows, cols := d[0], d[1]
			x := random(newRand(43), rows*cols)
			for i := range x {
				x[i] += 2
			}
			clean := must[*dense](t)(matrix.FromSlice(dev, rows, cols, x))
			one := must[*dense](t)(matrix.FromSlice(dev, rows, cols, slices.Repeat([]float32{1}, rows*cols)))
			poisoned := must[*dense](t)(matrix.New[float32](dev, rows, cols))
			check(t, poisoned.Assign(matrix.DivElem(clean, one))) // 0 / 0 behind the end
			side := must[*dense](t)(matrix.FromSlice(dev, cols, 9, random(newRand(44), 9*cols)))
			for what, f := range map[string]func(a *dense) *expr{
				"sum": func(a *dense) *expr { return matrix.Sum(a) }, "rows": func(a *dense) *expr { return matrix.SumRows(a) },
				"columns": func(a *dense) *expr { return matrix.SumCols(a) }, "variance": func(a *dense) *expr { return matrix.VarRows(a, 0) },
				"largest": func(a *dense) *expr { return matrix.MaxAll(a) }, "least": func(a *dense) *expr { return matrix.MinRows(a) },
				"norm": func(a *dense) *expr { return matrix.Norm2(a) }, "logsumexp": func(a *dense) *expr { return matrix.LogSumExpRows(a) },
				"place": func(a *dense) *expr { return floats(matrix.ArgMax[float32])(a) }, "place of columns": func(a *dense) *expr { return floats(matrix.ArgMaxCols[float32])(a) },
				"softmax": func(a *dense) *expr { return matrix.Softmax(a) }, "softmax of columns": func(a *dense) *expr { return matrix.SoftmaxCols(a) },
				"softmax of all": func(a *dense) *expr { return matrix.SoftmaxAll(a) }, "sorted": func(a *dense) *expr { return matrix.SortRows(a) },
				"sorted columns": func(a *dense) *expr { return matrix.SortCols(a) }, "first": func(a *dense) *expr { return matrix.TopKRows(a, 1) },
				"running sums": func(a *dense) *expr { return matrix.CumSumRows(a) }, "transposed": func(a *dense) *expr { return matrix.Scale(2, matrix.Transpose(a)) },
				"product": func(a *dense) *expr { return matrix.Mul(a, side) }, "product from the right": func(a *dense) *expr { return matrix.Mul(matrix.Transpose(side), matrix.Transpose(a)) },
				"square": func(a *dense) *expr { return matrix.Mul(matrix.Transpose(a), a) }, "other square": func(a *dense) *expr { return matrix.Mul(a, matrix.Transpose(a)) },
				"bias": func(a *dense) *expr { return matrix.Add(a, matrix.MeanCols(a)).Tanh() }, "reshaped": func(a *dense) *expr { return matrix.Scale(2, a).Reshape(cols, rows) },
				"beside": func(a *dense) *expr { return matrix.HStack[float32](a, a) }, "below": func(a *dense) *expr { return matrix.VStack[float32](a, a) },
			} {
				want := must[[]float32](t)(f(clean).Read(background))
				if got := must[[]float32](t)(f(poisoned).Read(background)); !slices.Equal(got, want) {
					t.Errorf("%s of %dx%d: %v, want %v", what, rows, cols, got[:min(len(got), 8)], want[:min(len(want), 8)])
				}
			}
			check(t, errors.Join(clean.Close(), one.Close(), poisoned.Close(), side.Close()))
		}
	})
}

// BenchmarkUnaligned compares chains over operands whose rows begin anywhere with chains over as many elements whose rows begin at multiples of
// four. Both are timed in each turn, so that what else runs on the machine slows both; "of-aligned" is the quotient of the medians.
func BenchmarkUnaligned(b *testing.B) {
	const rows, cols, n = 1024, 1024, 1 << 20
	chain := func(x, y, z *dense) *expr { return matrix.MulElem(x, y).Add(x).Abs().Sqrt().Add(z).MulElem(x).Sub(y) }
	type layout struct{ rows, cols, stride, at, zRows, zCols int }
	for what, l := range map[string]layout{
		"whole rows of 1023":      {rows, cols - 1, cols - 1, 0, rows, cols - 1},
		"row of 1023 stretched":   {rows, cols - 1, cols - 1, 0, 1, cols - 1},
		"column of 1023 rows":     {rows, cols - 1, cols - 1, 0, rows, 1},
		"offset of 1":             {1, n, n + 1, 1, 1, n},
		"parts of rows of 1027":   {rows, cols, cols + 3, 1, rows, cols},
		"parts of rows of 1028":   {rows, cols, cols + 4, 3, rows, cols},
		"parts with a column":     {rows, cols, cols + 3, 1, rows, 1},
		"parts with a row":        {rows, cols, cols + 3, 1, 1, cols},
		"short rows of 7 and row": {n / 8, 7, 7, 0, 1, 7},
	} {
		b.Run(what, func(b *testing.B) {
			dev := benchDevice(b)
			part := func(rows, cols, stride, at int) *dense {
				whole := resident(b, dev, rows, stride)
				return whole.Slice(0, rows, at, at+cols)
			}
			even := l
			even.cols = (l.cols + 3) &^ 3
			if even.stride, even.at = even.cols, 0; l.at > 0 {
				even.stride, even.at = even.cols+4, 4
			}
			if even.zCols > 1 {
				even.zCols = even.cols
			}
			sides := [2][4]*dense{}
			for i, l := range [2]layout{even, l} {
				for k := range sides[i] {
					if k == 2 && (l.zRows != l.rows || l.zCols != l.cols) {
						sides[i][k] = resident(b, dev, l.zRows, l.zCols)
					} else {
						sides[i][k] = part(l.rows, l.cols, l.stride, l.at)
					}
				}
			}
			times := [2][]time.Duration{}
			once := func(side int) {
				s := &sides[side]
				at := time.Now()
				check(b, s[3].Assign(chain(s[0], s[1], s[2])))
				check(b, dev.Sync(b.Context()))
				times[side] = append(times[side], time.Since(at))
			}
			once(0)
			once(1)
			times = [2][]time.Duration{}
			for turn := 0; b.Loop(); turn++ {
				once(turn & 1)
				once(1 - turn&1)
			}
			median := func(t []time.Duration) float64 { slices.Sort(t); return float64(t[len(t)/2]) }
			aligned, unaligned := median(times[0]), median(times[1])
			b.ReportMetric(aligned/1e6, "aligned-ms")
			b.ReportMetric(unaligned/1e6, "unaligned-ms")
			b.ReportMetric(unaligned/aligned, "of-aligned")
			b.ReportMetric(0, "ns/op")
		})
	}
}
