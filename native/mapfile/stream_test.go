// SPDX-License-Identifier: Apache-2.0

package mapfile_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/native/mapfile"
)

// TestLargerThanTheBudget multiplies matrices in mapped files on a device that may take a fraction of them: 20,000 x 20,000 in 256 MiB
// in long tests, and as much of smaller ones otherwise. Elements of the result are compared with sums of float64.
func TestLargerThanTheBudget(t *testing.T) {
	n, driver := 400, ""
	if devtest.Long() {
		n, driver = 20000, "simd"
	}
	budget := uint64(256<<20) * uint64(n*n) / 400e6
	dev := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(driver), gpu.WithMemory(budget)))
	dir := t.TempDir()
	a, b := numbers(t, filepath.Join(dir, "a"), n, 1), numbers(t, filepath.Join(dir, "b"), n, 2)
	c := filepath.Join(dir, "c")
	check(t, errors.Join(os.WriteFile(c, nil, 0o600), os.Truncate(c, int64(4*n*n))))
	var files []*mapfile.File
	wrap := func(path string, open func(string) (*mapfile.File, error)) *dense {
		f := must[*mapfile.File](t)(open(path))
		files = append(files, f)
		return must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, n, n))
	}
	x, y, z := wrap(a, mapfile.Open), wrap(b, mapfile.Open), wrap(c, mapfile.OpenWritable)
	start, last := time.Now(), 0
	ctx, cancel := context.WithCancel(t.Context())
	stopped := z.AssignContext(matrix.WithProgress(ctx, func(done, total int) {
		if done > total/20 {
			cancel()
		}
	}), matrix.Mul(x, y))
	for _, want := range []error{context.Canceled, buffer.ErrIncomplete} {
		if !errors.Is(stopped, want) {
			t.Errorf("%v, want %v", stopped, want)
		}
	}
	t.Logf("cancelled after %v", time.Since(start))
	start = time.Now()
	check(t, z.AssignContext(matrix.WithProgress(t.Context(), func(done, total int) {
		if 20*done/total > 20*last/total {
			t.Logf("%v: %d of %d", time.Since(start).Round(time.Millisecond), done, total)
		}
		last = done
	}), matrix.Mul(x, y)))
	check(t, z.Sync(t.Context()))
	s := dev.Stats()
	t.Logf("%v; %d bytes of device memory at most, %d up, %d down", time.Since(start), s.PeakBytes, s.BytesUp, s.BytesDown)
	if last == 0 || s.PeakBytes > budget || s.LiveBytes > 0 {
		t.Errorf("progress until %d, %d bytes were live, %d are, the budget is %d", last, s.PeakBytes, s.LiveBytes, budget)
	}
	isError(t, x.Assign(matrix.Mul(x, y)), gpu.ErrReadOnly)
	check(t, errors.Join(x.Close(), y.Close(), z.Close(), dev.Close()))
	for _, f := range files {
		check(t, f.Close())
	}
	sampled(t, a, b, c, n)
}

func isError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// numbers makes a file of random numbers from -1 to 1.
func numbers(t *testing.T, path string, n int, seed uint64) string {
	f := must[*os.File](t)(os.Create(path))
	rng, row := rand.New(rand.NewPCG(seed, 0)), make([]byte, 4*n)
	for range n {
		for j := 0; j < len(row); j += 4 {
			binary.NativeEndian.PutUint32(row[j:], math.Float32bits(2*rng.Float32()-1))
		}
		must[int](t)(f.Write(row))
	}
	check(t, f.Close())
	return path
}

// sampled compares elements of a product.
func sampled(t *testing.T, a, b, c string, n int) {
	read := func(path string) func(i, j int) float64 {
		f := must[*os.File](t)(os.Open(path))
		t.Cleanup(func() { check(t, f.Close()) })
		return func(i, j int) float64 {
			var bits [4]byte
			must[int](t)(f.ReadAt(bits[:], 4*(int64(i)*int64(n)+int64(j))))
			return float64(math.Float32frombits(binary.NativeEndian.Uint32(bits[:])))
		}
	}
	x, y, z := read(a), read(b), read(c)
	rng, worst := rand.New(rand.NewPCG(3, 0)), 0.0
	for s := range 40 {
		i, j := rng.IntN(n), rng.IntN(n)
		if s < 4 { // the corners
			i, j = s/2*(n-1), s%2*(n-1)
		}
		sum, size := 0.0, 0.0
		for k := range n {
			v := x(i, k) * y(k, j)
			sum, size = sum+v, size+math.Abs(v)
		}
		worst = max(worst, math.Abs(z(i, j)-sum)/size)
	}
	t.Logf("the largest error is %.2g of the sum of magnitudes", worst)
	if worst > 1e-6 {
		t.Errorf("the largest error is %g of the sum of magnitudes", worst)
	}
}

// TestSolveLargerThanTheBudget solves with a matrix in a mapped file on a device that may take a fraction of it: 8,000 x 8,000, which are 256
// MB, in 48 MiB in long tests, and as much of a smaller one otherwise. The residual is computed in float64.
func TestSolveLargerThanTheBudget(t *testing.T) {
	n, driver := 400, ""
	if devtest.Long() {
		n, driver = 8000, "simd"
	}
	budget := uint64(48<<20) * uint64(n*n) / 64e6
	if !devtest.Long() {
		budget = 160 << 10 // four columns of a smaller one are more of it
	}
	dev := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(driver), gpu.WithMemory(budget)))
	path := filepath.Join(t.TempDir(), "a")
	f := must[*mapfile.File](t)(mapfile.Open(numbers(t, path, n, 1)))
	a := must[*dense](t)(mapfile.Wrap[float32](dev, f, 0, n, n))
	right := make([]float32, n)
	for i := range right {
		right[i] = float32(i%7) - 3
	}
	b := must[*dense](t)(matrix.Wrap(dev, n, 1, right))
	x := must[*dense](t)(matrix.New[float32](dev, n, 1))
	start, last := time.Now(), 0
	check(t, x.AssignContext(matrix.WithProgress(t.Context(), func(done, total int) {
		if 20*done/total > 20*last/total {
			t.Logf("%v: %d of %d", time.Since(start).Round(time.Millisecond), done, total)
		}
		last = done
	}), matrix.Solve(a, b)))
	got := must[[]float32](t)(x.Read(t.Context()))
	s := dev.Stats()
	t.Logf("%v; %d bytes of device memory at most, %d up, %d down", time.Since(start), s.PeakBytes, s.BytesUp, s.BytesDown)
	if last == 0 || s.PeakBytes > budget {
		t.Errorf("progress until %d, %d bytes were live, the budget is %d", last, s.PeakBytes, budget)
	}
	check(t, errors.Join(x.Close(), b.Close(), a.Close(), dev.Close(), f.Close()))
	solved(t, path, got, right)
}

// solved compares a * x with the right side, relative to the magnitudes of what is added up.
func solved(t *testing.T, path string, x, b []float32) {
	t.Helper()
	f := must[*os.File](t)(os.Open(path))
	row, worst := make([]byte, 4*len(x)), 0.0
	for i := range b {
		must[int](t)(f.ReadAt(row, int64(i)*int64(len(row))))
		sum, size := -float64(b[i]), math.Abs(float64(b[i]))
		for j, v := range x {
			p := float64(math.Float32frombits(binary.NativeEndian.Uint32(row[4*j:]))) * float64(v)
			sum, size = sum+p, size+math.Abs(p)
		}
		worst = max(worst, math.Abs(sum)/size)
	}
	check(t, f.Close())
	t.Logf("the largest residual is %.2g of the sum of magnitudes", worst)
	if !(worst < 2e-4) {
		t.Errorf("the largest residual is %g of the sum of magnitudes", worst)
	}
}
