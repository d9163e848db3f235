// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestRandomIntegers compares whole numbers with the upper parts of products of 64 and of 128 bits.
func TestRandomIntegers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const rows, cols, seed, stream = 13, 37, 1 << 50, 6
		for _, n := range []uint32{1, 2, 3, 6, 4096, 4097, 65535, 65536, 65537, 1 << 31, 1<<31 + 1, 3 << 30, math.MaxUint32} {
			got := must[[]uint32](t)(matrix.RandomIntegers[uint32](rows, cols, 0, float64(n), seed, stream).On(dev).Read(t.Context()))
			want := make([]uint32, len(got))
			for i := range want {
				first := fuse.Random(uint64(i/cols), uint64(i%cols), cols, seed, stream)
				second := fuse.Random(uint64(i/cols), uint64(i%cols), cols, seed, stream|1<<62)
				if n <= 4096 || n&(n-1) == 0 {
					want[i], _ = bits.Mul32(first, n)
				} else {
					upper, _ := bits.Mul64(uint64(first)<<32|uint64(second), uint64(n))
					want[i] = uint32(upper)
				}
			}
			same(t, "below "+name(n), got, want)
		}
		all := must[[]uint32](t)(matrix.RandomIntegers[uint32](rows, cols, 0, 1<<32, seed, stream).On(dev).Read(t.Context()))
		same(t, "all numbers", all, must[[]uint32](t)(matrix.RandomBits[uint32](rows, cols, seed, stream).On(dev).Read(t.Context())))
		thirds := [3]int{}
		for _, v := range must[[]uint32](t)(matrix.RandomIntegers[uint32](100, 300, 0, 3<<30, 9, 0).On(dev).Read(t.Context())) {
			thirds[v>>30]++
		}
		for _, n := range thirds { // by modulo the first third would have half of them; this is 6 standard deviations
			if n < 9500 || n > 10500 {
				t.Errorf("thirds of %v", thirds)
			}
		}
		bytes := must[[]int8](t)(matrix.RandomIntegers[int8](50, 50, -128, 128, 9, 0).On(dev).Read(t.Context()))
		if slices.Min(bytes) != math.MinInt8 || slices.Max(bytes) != math.MaxInt8 {
			t.Errorf("bytes from %d to %d", slices.Min(bytes), slices.Max(bytes))
		}
		wide := must[[]int32](t)(matrix.RandomIntegers[int32](50, 50, math.MinInt32, math.MaxInt32, 9, 1).On(dev).Read(t.Context()))
		if low, high := slices.Min(wide), slices.Max(wide); low > math.MinInt32+1<<25 || high < math.MaxInt32-1<<25 {
			t.Errorf("from %d to %d", low, high)
		}
	})
}

// TestRandomValues compares numbers with what the same bits give in float64.
func TestRandomValues(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const rows, cols, seed = 50, 401, 5
		z := readAll[float32](t, matrix.Normal[float32](rows, cols, 0, 1, seed, 0).On(dev))
		c := readAll[float32](t, matrix.TruncatedNormal[float32](rows, cols, 0, 1, seed, 0).On(dev))
		g := readAll[float32](t, matrix.Gumbel[float32](rows, cols, 0, 1, seed, 0).On(dev))
		near := func(what string, i int, got float32, want float64) {
			if d := math.Abs(float64(got) - want); !(d <= 1e-6*max(1, math.Abs(want))) {
				t.Fatalf("%s %d: %v, want %v", what, i, got, want)
			}
		}
		inverse := func(p float64, upper bool) float64 { // of the normal distribution
			x := -math.Sqrt2 * math.Erfinv(2*p-1)
			if upper {
				x = -x
			}
			return x
		}
		for i := range z {
			b := fuse.Random(uint64(i/cols), uint64(i%cols), cols, seed, 0)
			p := (float64(b&math.MaxInt32) + 0.5) / (1 << 32)
			near("normal", i, z[i], inverse(p, b>>31 != 0))
			tail := math.Erfc(math.Sqrt2) / 2
			near("truncated", i, c[i], inverse(tail+p*(1-2*tail), b>>31 != 0))
			near("Gumbel", i, g[i], -math.Log(-math.Log((float64(b>>9)+0.5)/(1<<23))))
		}
	})
}

// streamOf is a stream whose first bits are the highest or the lowest there are: the upper 23 of them.
func streamOf(seed uint64, all uint32) int {
	s := 0
	for fuse.Random(0, 0, 1, seed, uint64(s))>>9 != all>>9 {
		s++
	}
	return s
}

// TestRandomExtremes makes numbers of the least and the most bits: none is infinite, beyond two sigma or the end of its interval.
func TestRandomExtremes(t *testing.T) {
	const seed = 77
	streams := [2]int{streamOf(seed, 0), streamOf(seed, math.MaxUint32)}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, s := range streams {
			for what, c := range map[string]struct {
				e         *matrix.Expr[float32]
				low, high float32
			}{
				"uniform":   {matrix.Uniform[float32](1, 1, -1, 3, seed, s), -1, math.Nextafter32(3, 0)},
				"far":       {matrix.Uniform[float32](1, 1, 1e6, 1e6+1, seed, s), 1e6, math.Nextafter32(1e6+1, 0)},
				"to zero":   {matrix.Uniform[float32](1, 1, -1, 0, seed, s), -1, -math.SmallestNonzeroFloat32},
				"normal":    {matrix.Normal[float32](1, 1, 0, 1, seed, s), -7, 7},
				"truncated": {matrix.TruncatedNormal[float32](1, 1, 0, 1, seed, s), -2, 2},
				"Gumbel":    {matrix.Gumbel[float32](1, 1, 0, 1, seed, s), -3, 17},
				"kept":      {matrix.RandomMask[float32](1, 1, 0, 2, seed, s), 2, 2},
				"dropped":   {matrix.RandomMask[float32](1, 1, 1, 2, seed, s), 0, 0},
			} {
				if v := readAll[float32](t, c.e.On(dev))[0]; !(v >= c.low && v <= c.high) {
					t.Errorf("%s of stream %d: %v", what, s, v)
				}
			}
		}
	})
}

// TestLongPermutation has a number of elements that takes all the launches of a long sort.
func TestLongPermutation(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		n := 1_000_000
		if sparing(dev) { // of so many numbers of 32 bits, some ten pairs are still equal
			n = 300_000
		}
		seen := make([]bool, n)
		for _, v := range must[[]int32](t)(matrix.Permutation[int32](n, 5, 0).On(dev).Read(t.Context())) {
			if v < 0 || int(v) >= n || seen[v] {
				t.Fatalf("%d twice or out of range", v)
			}
			seen[v] = true
		}
	})
}

// TestRandomRanges has numbers that the elements' type cannot hold.
func TestRandomRanges(t *testing.T) {
	for what, err := range map[string]error{
		"a distance":          matrix.Uniform[float32](1, 1, -3e38, 3e38, 0, 0).Err(),
		"a high end":          matrix.Uniform[float32](1, 1, 0, 1e300, 0, 0).Err(),
		"a half":              matrix.Uniform[matrix.Half](1, 1, 0, 1e6, 0, 0).Err(),
		"a mean":              matrix.Normal[float32](1, 1, 1e300, 1, 0, 0).Err(),
		"sigma":               matrix.TruncatedNormal[float32](1, 1, 0, 1e300, 0, 0).Err(),
		"a scale":             matrix.Gumbel[matrix.Half](1, 1, 0, 1e5, 0, 0).Err(),
		"a mask":              matrix.RandomMask[float32](1, 1, 0.5, 1e300, 0, 0).Err(),
		"bytes":               matrix.RandomIntegers[uint8](1, 1, 0, 257, 0, 0).Err(),
		"unsigned":            matrix.RandomIntegers[uint32](1, 1, -1, 5, 0, 0).Err(),
		"signed":              matrix.RandomIntegers[int32](1, 1, 0, 1<<31+1, 0, 0).Err(),
		"halves":              matrix.RandomIntegers[matrix.Half](1, 1, 0, 1<<20, 0, 0).Err(),
		"integers in float32": matrix.RandomIntegers[float32](1, 8, 67108860, 67108864, 0, 0).Err(),
		"integers in halves":  matrix.RandomIntegers[matrix.Half](1, 8, -2050, 0, 0, 0).Err(),
		"order in bytes":      matrix.Permutation[int8](129, 0, 0).Err(),
		"order in halves":     matrix.Permutation[matrix.Half](2050, 0, 0).Err(),
		"order in float32":    matrix.Permutation[float32](1<<24+2, 0, 0).Err(),
		"order of a no size":  matrix.Permutation[int32](-1, 0, 0).Err(),
	} {
		if err == nil || what != "order of a no size" && !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"all bytes":           matrix.RandomIntegers[uint8](1, 1, 0, 256, 0, 0).Err(),
		"all of int32":        matrix.RandomIntegers[int32](1, 1, math.MinInt32, 1<<31, 0, 0).Err(),
		"integers in float32": matrix.RandomIntegers[float32](1, 8, -1<<24, 1<<24+1, 0, 0).Err(),
		"a row of bytes":      matrix.Permutation[int8](128, 0, 0).Err(),
		"a row of halves":     matrix.Permutation[matrix.Half](2049, 0, 0).Err(),
		"nothing":             matrix.Permutation[int8](0, 0, 0).Err(),
		"largest":             matrix.Uniform[float32](1, 1, 0, math.MaxFloat32, 0, 0).Err(),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestRandomGoroutines takes streams of a source from several goroutines, each once.
func TestRandomGoroutines(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		r := matrix.NewRandom(3)
		made := make([]*matrix.Expr[float32], 64)
		var w sync.WaitGroup
		for g := range 8 {
			w.Go(func() {
				for k := range 8 {
					made[8*g+k] = r.Uniform(1, 4, 0, 1)
				}
			})
		}
		w.Wait()
		want, got := map[[4]float32]bool{}, map[[4]float32]bool{}
		for s, e := range made {
			got[[4]float32(readAll[float32](t, e.On(dev)))] = true
			want[[4]float32(readAll[float32](t, matrix.Uniform[float32](1, 4, 0, 1, 3, s).On(dev)))] = true
		}
		for v := range want {
			if !got[v] {
				t.Errorf("no stream gave %v", v)
			}
		}
	})
}
