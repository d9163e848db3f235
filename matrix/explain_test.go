// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestExplain compares plans with what is launched: fusion can be seen.
func TestExplain(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		matrix.UseOneLaunch(dev)
		a, b := owned(t, dev, 8, 8, random(newRand(1), 64)...), owned(t, dev, 8, 8, random(newRand(2), 64)...)
		bias := owned(t, dev, 1, 8, random(newRand(3), 8)...)
		vars := map[string]arg{"A": a, "B": b, "bias": bias}
		for text, launches := range map[string]int{
			"exp(-abs(sin(A)*2 + B/3 - bias)) + max(A, B)*0.5 + tanh(A)**2": 1, "tanh(A*B + bias)": 1, "sum((A-B)%(A-B))": 2, "softmax(A)": 1,
			"varcols(A)": 1, "A": 1, "eye(8) + A": 1, "int32(A) - int32(B)": 1,
		} {
			e := matrix.Eval(text, vars)
			p := must[*matrix.Plan](t)(e.Explain(background))
			if len(p.Launches) > launches {
				t.Errorf("%s takes %d launches, want %d:\n%s", text, len(p.Launches), launches, p)
			}
			if strings.HasPrefix(text, "int32") {
				continue
			}
			before := dev.Stats().Dispatches
			m := must[*dense](t)(e.Eval())
			if n := dev.Stats().Dispatches - before; n != uint64(len(p.Launches)) {
				t.Errorf("%s took %d launches, the plan says %d", text, n, len(p.Launches))
			}
			check(t, m.Close())
			for _, l := range p.Launches {
				if l.BytesWritten == 0 || !strings.Contains(l.WGSL, "fn main") || l.Kernel == "" {
					t.Errorf("%s: launch %+v", text, l)
				}
			}
		}
		p := must[*matrix.Plan](t)(matrix.Eval("solve(A, B)", vars).Explain(background))
		if p.Temporaries == 0 || p.TemporaryBytes == 0 || strings.Count(p.String(), "\n") != len(p.Launches) {
			t.Errorf("%s", p)
		}
		for what, c := range map[string]struct {
			e    *matrix.Expr[float32]
			want error
		}{
			"nowhere": {matrix.Fill[float32](1, 1, 1), gpu.ErrInvalid}, "wrong": {matrix.Eval("A +", vars), matrix.ErrSyntax},
		} {
			if _, err := c.e.Explain(background); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		ended, cancel := context.WithCancel(background)
		cancel()
		_, err := matrix.Eval("A", vars).Explain(ended)
		isError(t, err, context.Canceled)
		if (*matrix.Plan)(nil).String() == "" {
			t.Error("no plan has no text")
		}
		check(t, errors.Join(a.Close(), b.Close(), bias.Close()))
	})
}

// TestManyOperands has chains of ten operations over as many matrices as a kernel binds, and over more.
func TestManyOperands(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		matrix.UseOneLaunch(dev)
		const n = 12
		var list []*dense
		sum := make([]float64, n*n)
		most := int(min(dev.Info().Limits.MaxStorageBuffers, 8)) - 1
		for k := range 11 {
			x := random(newRand(uint64(k)), n*n)
			m := owned(t, dev, n, n, x...)
			list = append(list, m)
			if k < most {
				for i, v := range x {
					sum[i] += float64(v)
				}
			}
		}
		chain := func(count int) *expr {
			e := list[0].Expr()
			for _, m := range list[1:count] {
				e = e.Add(m)
			}
			for range 11 - count {
				e = e.Scale(1)
			}
			return e
		}
		for what, c := range map[string]struct {
			e        *expr
			launches int
			want     func(sum []float64) []float64
		}{
			"as many":      {chain(most), 1, func(sum []float64) []float64 { return sum }},
			"reduced":      {matrix.SumRows(chain(most)), 1, func(sum []float64) []float64 { return rowSums(sum, n) }},
			"more":         {chain(11), 2, nil},
			"tail":         {matrix.Mul[float32](list[0], list[1]).Add(list[2]).Add(list[3]).Add(list[4]).Add(list[5]).Add(list[6]), 1, nil},
			"longer tail":  {matrix.Mul[float32](list[0], list[1]).Add(chain(most)), 2, nil},
			"running sums": {matrix.CumSumRows(chain(most)), 1, nil},
			"softmax":      {matrix.Softmax(chain(most)), 1, nil},
		} {
			before := dev.Stats().Dispatches
			got := must[[]float32](t)(c.e.Read(background))
			if count := dev.Stats().Dispatches - before; count > uint64(c.launches) {
				t.Errorf("%s: %d launches, want %d", what, count, c.launches)
			}
			if c.want != nil {
				for i, w := range c.want(sum) {
					if math.Abs(float64(got[i])-w) > 1e-5 {
						t.Errorf("%s: element %d is %v, want %v", what, i, got[i], w)
						break
					}
				}
			}
		}
		long := owned(t, dev, 1, 5000, make([]float32, 5000)...)
		e := long.Expr()
		for range most - 1 {
			m := owned(t, dev, 1, 5000, make([]float32, 5000)...)
			check(t, m.Fill(1))
			list, e = append(list, m), e.Add(m)
		}
		if sums := must[[]float32](t)(matrix.CumSumRows(e).Read(background)); sums[4999] != float32(5000*(most-1)) {
			t.Errorf("the last running sum of many matrices is %v", sums[4999])
		}
		for _, m := range append(list, long) {
			check(t, m.Close())
		}
	})
}

// rowSums are the sums of rows of n elements.
func rowSums(x []float64, n int) (sums []float64) {
	for row := range slices.Chunk(x, n) {
		total := 0.0
		for _, v := range row {
			total += v
		}
		sums = append(sums, total)
	}
	return sums
}

// TestLongOperands has operands of every kind of kernel that are more than one kernel holds, and what is used twice in each of many steps.
func TestLongOperands(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		n, steps := 4, 150
		if sparing(dev) {
			steps = 60
		}
		x := random(newRand(150), n*n)
		a := must[*dense](t)(matrix.FromSlice(dev, n, n, x))
		e := a.Expr()
		want := float64s(x)
		for k := range steps {
			c := float32(k%7) - 3
			e = matrix.Sub(matrix.Scale(0.75, e), matrix.MulElem(matrix.AddScalar(matrix.Scale(0.125, e), c/8), matrix.Sin(e)))
			for i, v := range want {
				want[i] = 0.75*v - (0.125*v+float64(c)/8)*math.Sin(v)
			}
		}
		product := make([]float64, n*n)
		sums := make([]float64, n)
		var sorted []float64
		for i := range n {
			row := slices.Clone(want[i*n : i*n+n])
			for j := range n {
				sums[i] += row[j]
				for k := range n {
					product[i*n+j] += want[i*n+k] * float64(x[k*n+j])
				}
			}
			slices.Sort(row)
			sorted = append(sorted, row...)
		}
		for _, c := range []struct {
			what string
			x    *matrix.Expr[float32]
			want []float64
		}{
			{"itself", e, want},
			{"product", matrix.Mul[float32](e, a), product},
			{"sums", matrix.SumRows(e), sums},
			{"sorted", matrix.SortRows(e), sorted},
			{"gathered", matrix.FlipRows(matrix.FlipRows(e)), want},
			{"transposed", matrix.Transpose(matrix.Transpose(e)), want},
			{"stacked", matrix.VStack[float32](e), want},
		} {
			got := must[[]float32](t)(c.x.Read(background))
			for i, w := range c.want {
				if math.Abs(float64(got[i])-w) > 1e-4 {
					t.Errorf("%s: element %d is %v, want %v", c.what, i, got[i], w)
				}
			}
			if p := must[*matrix.Plan](t)(c.x.Explain(background)); len(p.Launches) < 4 {
				t.Errorf("%s: %d launches for %d steps", c.what, len(p.Launches), steps)
			}
		}
		check(t, a.Close())
	})
}
