// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestPhilox compares with the vectors that Random123 publishes for philox4x32-10.
func TestPhilox(t *testing.T) {
	for _, v := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			[4]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32},
			[2]uint32{math.MaxUint32, math.MaxUint32},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := fuse.Philox(v.counter, v.key); got != v.want {
			t.Errorf("counter %x, key %x: %x, want %x", v.counter, v.key, got, v.want)
		}
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		first := must[[]uint32](t)(matrix.RandomBits[uint32](1, 4, 0, 0).On(dev).Read(t.Context()))
		same(t, "the first vector", first, []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8})
	})
}

// TestRandom compares bits with the reference in every layout, whole and in parts.
func TestRandom(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const seed, stream = 1<<52 + 12345, 1<<40 + 7
		for _, size := range [][2]int{{1, 1}, {3, 5}, {7, 64}, {65, 33}, {300, 1}, {0, 4}} {
			rows, cols := size[0], size[1]
			want := make([]uint32, rows*cols)
			for i := range want {
				want[i] = fuse.Random(uint64(i/cols), uint64(i%cols), uint64(cols), seed, stream)
			}
			for _, f := range forms {
				m := must[*matrix.Dense[uint32]](t)(matrix.Wrap(dev, rows, cols, make([]uint32, 16+(rows+8)*(cols+8)*2), f.opts(rows, cols)))
				check(t, m.Assign(matrix.RandomBits[uint32](rows, cols, seed, stream)))
				same(t, "bits "+f.name, must[[]uint32](t)(m.Read(t.Context())), want)
				check(t, m.Close())
			}
			turned := must[[]uint32](t)(matrix.Transpose[uint32](matrix.Transpose[uint32](matrix.RandomBits[uint32](rows, cols, seed, stream))).On(dev).Read(t.Context()))
			same(t, "turned twice", turned, want)
			if rows > 1 {
				part := matrix.TakeRows[uint32](matrix.RandomBits[uint32](rows, cols, seed, stream), matrix.Fill[int32](1, 1, int32(rows-1)))
				same(t, "the last row", must[[]uint32](t)(part.On(dev).Read(t.Context())), want[(rows-1)*cols:])
			}
		}
		far := must[[]uint32](t)(matrix.RandomBits[uint32](1, 70000, 3, 0).On(dev).Read(t.Context()))
		if far[69999] != fuse.Random(0, 69999, 70000, 3, 0) {
			t.Error("the end of a long row")
		}
		compiled := dev.Stats().Compilations
		for k := range 20 {
			_ = must[[]uint32](t)(matrix.RandomBits[uint32](3, 5, 1000+k, 5000+k).On(dev).Read(t.Context()))
		}
		if n := dev.Stats().Compilations - compiled; n > 1 {
			t.Errorf("%d kernels for 20 seeds", n)
		}
		order := must[[]int32](t)(matrix.Permutation[int32](1000, 5, 0).On(dev).Read(t.Context()))
		if slices.IsSorted(order) {
			t.Error("a permutation in order")
		}
		slices.Sort(order)
		for i, v := range order {
			if int(v) != i {
				t.Fatalf("a permutation without %d", i)
			}
		}
	})
}

// normalCDF is the distribution function of the standard normal distribution.
func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// TestRandomDistributions compares numbers of fixed seeds with their distributions, by Kolmogorov and Smirnov. A right generator
// fails at this bound for one seed in a million.
func TestRandomDistributions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const rows, cols = 100, 200
		for what, c := range map[string]struct {
			e         *matrix.Expr[float32]
			cdf       func(x float64) float64
			low, high float64
		}{
			"uniform": {matrix.Uniform[float32](rows, cols, -1, 3, 1, 0), func(x float64) float64 { return (x + 1) / 4 }, -1, math.Nextafter(3, 0)},
			"normal":  {matrix.Normal[float32](rows, cols, 2, 3, 2, 0), func(x float64) float64 { return normalCDF((x - 2) / 3) }, -18, 22},
			"truncated": {matrix.TruncatedNormal[float32](rows, cols, 0, 1, 3, 0), func(x float64) float64 {
				return (normalCDF(x) - normalCDF(-2)) / (1 - 2*normalCDF(-2))
			}, -2, 2},
			"Gumbel": {matrix.Gumbel[float32](rows, cols, 1, 2, 4, 0), func(x float64) float64 { return math.Exp(-math.Exp(-(x - 1) / 2)) }, -6, 40},
		} {
			v := must[[]float32](t)(c.e.On(dev).Read(t.Context()))
			slices.Sort(v)
			if float64(v[0]) < c.low || float64(v[len(v)-1]) > c.high {
				t.Errorf("%s: from %v to %v", what, v[0], v[len(v)-1])
			}
			worst := 0.0
			for i, x := range v {
				p := c.cdf(float64(x))
				worst = max(worst, math.Abs(p-float64(i)/float64(len(v))), math.Abs(p-float64(i+1)/float64(len(v))))
			}
			if bound := 2.7 / math.Sqrt(float64(len(v))); worst > bound {
				t.Errorf("%s: distance %.4f, at most %.4f", what, worst, bound)
			}
		}
		dice := must[[]int32](t)(matrix.RandomIntegers[int32](100, 60, -3, 3, 9, 0).On(dev).Read(t.Context()))
		counts := map[int32]int{}
		for _, v := range dice {
			counts[v]++
		}
		for v := int32(-3); v < 3; v++ {
			if n := counts[v]; n < 850 || n > 1150 {
				t.Errorf("%d of 6000 are %d", n, v)
			}
		}
		if len(counts) != 6 {
			t.Errorf("%d different numbers", len(counts))
		}
		mask := must[[]float32](t)(matrix.RandomMask[float32](100, 100, 0.25, 4, 9, 1).On(dev).Read(t.Context()))
		dropped := 0
		for _, v := range mask {
			if v == 0 {
				dropped++
			} else if v != 4 {
				t.Fatalf("a mask with %v", v)
			}
		}
		if dropped < 2300 || dropped > 2700 {
			t.Errorf("%d of 10000 are dropped", dropped)
		}
		one := must[[]matrix.Half](t)(matrix.Uniform[matrix.Half](100, 100, 0, 1, 9, 1).On(dev).Read(t.Context()))
		for _, v := range one {
			if v.Float32() >= 1 || v.Float32() < 0 {
				t.Fatalf("%v is not below 1", v.Float32())
			}
		}
	})
}

func TestRandomErrors(t *testing.T) {
	nan := math.NaN()
	for what, c := range map[string]struct{ err, want error }{
		"low above high":   {matrix.Uniform[float32](1, 1, 2, 1, 0, 0).Err(), gpu.ErrInvalid},
		"no number":        {matrix.Uniform[float32](1, 1, nan, 1, 0, 0).Err(), gpu.ErrInvalid},
		"all numbers":      {matrix.Uniform[float32](1, 1, -1e308, 1e308, 0, 0).Err(), gpu.ErrInvalid},
		"negative sigma":   {matrix.Normal[float32](1, 1, 0, -1, 0, 0).Err(), gpu.ErrInvalid},
		"infinite mean":    {matrix.Normal[float32](1, 1, math.Inf(1), 1, 0, 0).Err(), gpu.ErrInvalid},
		"whole numbers":    {matrix.Normal[int32](1, 1, 0, 1, 0, 0).Err(), gpu.ErrUnsupported},
		"rate":             {matrix.RandomMask[float32](1, 1, 1.5, 1, 0, 0).Err(), gpu.ErrInvalid},
		"no integers":      {matrix.RandomIntegers[int32](1, 1, 3, 3, 0, 0).Err(), gpu.ErrInvalid},
		"too many":         {matrix.RandomIntegers[int32](1, 1, -5, 1<<32, 0, 0).Err(), gpu.ErrInvalid},
		"negative size":    {matrix.Normal[float32](-1, 1, 0, 1, 0, 0).Err(), buffer.ErrSize},
		"large seed":       {matrix.RandomBits[uint32](1, 1, 1<<60, 0).Err(), gpu.ErrInvalid},
		"seed 2^53":        {matrix.RandomBits[uint32](1, 1, 1<<53, 0).Err(), gpu.ErrInvalid},
		"negative seed":    {matrix.Uniform[float32](1, 1, 0, 1, -1, 0).Err(), gpu.ErrInvalid},
		"stream 2^53":      {matrix.Normal[float32](1, 1, 0, 1, 0, 1<<53).Err(), gpu.ErrInvalid},
		"negative stream":  {matrix.Permutation[int32](3, 0, -1).Err(), gpu.ErrInvalid},
		"lowest seed":      {matrix.RandomIntegers[int32](1, 1, 0, 1<<20, math.MinInt, 0).Err(), gpu.ErrInvalid},
		"largest seed":     {matrix.RandomIntegers[int32](1, 1, 0, 1<<20, 1<<53-1, 1<<53-1).Err(), nil},
		"source 2^53":      {matrix.NewRandom(1<<53).Uniform(1, 1, 0, 1).Err(), gpu.ErrInvalid},
		"source -1":        {matrix.NewRandom(-1).Integers(1, 1, 0, 5).Err(), gpu.ErrInvalid},
		"text 2^53":        {matrix.Eval[float32]("uniform(1, 1, 0, 1, 9007199254740992)", nil).Err(), gpu.ErrInvalid},
		"negative in text": {matrix.Eval[float32]("randn(1, 1, 0, 1, 0, -1)", nil).Err(), gpu.ErrInvalid},
		"a huge matrix":    {matrix.RandomBits[uint32](1<<40, 1<<40, 0, 0).Err(), gpu.ErrLimit},
		"a source of none": {(*matrix.Random)(nil).Uniform(1, 1, 0, 1).Err(), buffer.ErrNil},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
}

// TestRandomSource takes numbers of a source, each of a stream of their own.
func TestRandomSource(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		r := matrix.NewRandom(42)
		first, second := r.Normal(2, 3, 0, 1), r.Normal(2, 3, 0, 1)
		a, b := must[[]float32](t)(first.On(dev).Read(t.Context())), must[[]float32](t)(second.On(dev).Read(t.Context()))
		if slices.Equal(a, b) {
			t.Error("the same numbers twice")
		}
		same(t, "the first stream", a, must[[]float32](t)(matrix.Normal[float32](2, 3, 0, 1, 42, 0).On(dev).Read(t.Context())))
		for _, e := range []*matrix.Expr[float32]{r.Uniform(1, 1, 0, 1), r.TruncatedNormal(1, 1, 0, 1), r.Gumbel(1, 1, 0, 1), r.Mask(1, 1, 0.5, 2)} {
			_ = must[[]float32](t)(e.On(dev).Read(t.Context()))
		}
		if n := len(must[[]int32](t)(r.Permutation(9).On(dev).Read(t.Context()))) + len(must[[]int32](t)(r.Integers(1, 2, 0, 5).On(dev).Read(t.Context()))); n != 11 {
			t.Errorf("%d numbers", n)
		}
	})
}
