// SPDX-License-Identifier: Apache-2.0

//go:build !js

package matrix_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// roomBytes is the budget of devices for evaluations in ranges.
const roomBytes = 40 << 10

// side is the size of matrices that do not fit there.
const side = 180

// withRoom runs a test on every driver with a device that may take few bytes, beside one that may take as many as it likes. The former
// keeps its budget and gives everything back.
func withRoom(t *testing.T, test func(t *testing.T, tight, dev *gpu.Device)) {
	t.Helper()
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		tight := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMemory(roomBytes)))
		test(t, tight, dev)
		if s := tight.Stats(); s.LiveBytes != 0 || s.PeakBytes > roomBytes || s.PooledBytes > roomBytes {
			t.Errorf("%d bytes are live, %d were, %d are kept", s.LiveBytes, s.PeakBytes, s.PooledBytes)
		}
		check(t, tight.Close())
	})
}

// TestStream computes with matrices of four times the device's memory what a device with room does. All numbers are small integers,
// but for softmax, whose rows are computed alike.
func TestStream(t *testing.T) {
	exprs := maps.Clone(blockExprs)
	exprs["a*b"] = func(a, b, _ *dense) *expr { return matrix.Mul(a, b) }
	exprs["shared"] = func(a, b, _ *dense) *expr {
		s := matrix.Add(a, b)
		return matrix.MulElem(s, s).Add(matrix.SumRows(s)).Sub(matrix.Sum(s))
	}
	delete(exprs, "outer") // of rows, which are small
	withRoom(t, func(t *testing.T, tight, dev *gpu.Device) {
		rng := newRand(7)
		a, b := newPair(t, tight, dev, rng, 200, 200), newPair(t, tight, dev, rng, 200, 200, matrix.Options{Stride: 210, Offset: 3})
		s := newPair(t, tight, dev, rng, 1, 200)
		for i, name := range slices.Sorted(maps.Keys(exprs)) {
			if sparing(dev) && i%6 != 0 {
				continue
			}
			want := must[[]float32](t)(exprs[name](a.whole, b.whole, s.whole).Read(t.Context()))
			if got, err := intoWrapped(t, tight, exprs[name](a.small, b.small, s.small)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: wrong, %v", name, err)
			}
		}
		got, err := intoWrapped(t, tight, matrix.Softmax(a.small))
		if want := must[[]float32](t)(matrix.Softmax(a.whole).Read(t.Context())); !slices.Equal(got, want) {
			t.Error("softmax: wrong")
		}
		check(t, err)
		a.close(t)
		b.close(t)
		s.close(t)
	})
}

// stopAfter is a context that ends after so many calls for progress, which it counts.
func stopAfter(t *testing.T, calls int, counted *int) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	*counted = 0
	return matrix.WithProgress(ctx, func(done, total int) {
		if *counted++; *counted != done || done > total {
			t.Errorf("call %d: %d of %d", *counted, done, total)
		}
		if *counted == calls {
			cancel()
		}
	})
}

// stopEverywhere has an assignment to c end after some numbers of launches, with c full of a number that only the device has yet. c is then
// what it was, or incomplete until it is assigned anew or touched; it returns how often it was that.
func stopEverywhere(t *testing.T, name string, c *dense, places int, x func() *expr) (incomplete int) {
	t.Helper()
	rows, cols := c.Dims()
	total, n := 0, 0
	check(t, c.AssignContext(stopAfter(t, 0, &total), x()))
	for calls := 1; calls < total; calls += max(total/places, 1) {
		check(t, c.Assign(matrix.Fill[float32](rows, cols, 7)))
		err := c.AssignContext(stopAfter(t, calls, &n), x())
		isError(t, err, context.Canceled)
		if errors.Is(err, buffer.ErrIncomplete) {
			isError(t, c.Sync(t.Context()), buffer.ErrIncomplete)
			isError(t, c.Assign(matrix.Add(c, c)), buffer.ErrIncomplete)
			if incomplete++; incomplete%2 == 0 {
				check(t, c.Touch())
			}
			continue
		}
		got, err := c.Read(t.Context())
		if err != nil || slices.Max(got) != 7 || slices.Min(got) != 7 {
			t.Errorf("%s after %d of %d: %v to %v, want 7; %v", name, calls, total, slices.Min(got), slices.Max(got), err)
		}
	}
	check(t, errors.Join(c.Assign(matrix.Fill[float32](rows, cols, 7)), c.Assign(x())))
	return incomplete
}

// TestStreamCancelled ends evaluations in between. A result that the device has memory for is as it was, one that it has none for may be
// incomplete.
func TestStreamCancelled(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, dev *gpu.Device) {
		places := 12
		if sparing(dev) {
			places = 3
		}
		mem := make([]float32, side*side)
		for i := range mem {
			mem[i] = 1
		}
		wrap := func(rows, cols int) *dense {
			return must[*dense](t)(matrix.Wrap(tight, rows, cols, make([]float32, rows*cols)))
		}
		a := must[*dense](t)(matrix.Wrap(tight, side, side, mem))
		row, c, third := wrap(1, side), wrap(side, side), wrap(side, roomBytes/3/4/side)
		own := must[*dense](t)(matrix.New[float32](tight, side, 4))
		part := c.Slice(0, side, 3, 20)
		for _, to := range []*dense{row, third, own, part} {
			rows, cols := to.Dims()
			for name, x := range map[string]func() *expr{
				"product, sum": func() *expr {
					if to == row {
						return matrix.SumCols(a)
					}
					return matrix.Mul(a, matrix.Transpose(a.Slice(0, cols, 0, side)))
				},
				"in place": func() *expr { return matrix.Add(matrix.Scale(3, to), a.Slice(0, rows, 0, cols)).Add(matrix.Sum(a)) },
			} {
				if n := stopEverywhere(t, name, to, places, x); n > 0 && to != part { // which is memory of many rows
					t.Errorf("%s of %dx%d: incomplete %d times", name, rows, cols, n)
				}
			}
		}
		if n := stopEverywhere(t, "a*a", c, places, func() *expr { return matrix.Mul(a, a) }); n == 0 {
			t.Error("a result larger than the memory was never incomplete")
		}
		if v := must[float32](t)(c.At(t.Context(), side-1, side-1)); v != side {
			t.Errorf("%v, want 180", v)
		}
		check(t, errors.Join(part.Close(), a.Close(), c.Close(), row.Close(), third.Close(), own.Close()))
	})
}

// TestStreamHeld does so on a device that has memory for everything, but not in one buffer: the matrices are always what they were.
func TestStreamHeld(t *testing.T) {
	onSmall(t, func(t *testing.T, small, dev *gpu.Device) {
		places := 12
		if sparing(dev) {
			places = 3
		}
		rng := newRand(3)
		a, b := newPair(t, small, dev, rng, 64, 64), newPair(t, small, dev, rng, 64, 64)
		c := must[*dense](t)(matrix.Wrap(small, 64, 64, make([]float32, 64*64)))
		for name, x := range map[string]func() *expr{
			"a*b":      func() *expr { return matrix.Mul(a.small, b.small) },
			"a+b":      func() *expr { return matrix.Add(a.small, b.small) },
			"in place": func() *expr { return matrix.Add(matrix.Scale(2, c), a.small) },
		} {
			if n := stopEverywhere(t, name, c, places, x); n > 0 {
				t.Errorf("%s: incomplete %d times", name, n)
			}
		}
		check(t, c.Assign(matrix.Mul(a.small, b.small)))
		want := must[[]float32](t)(matrix.Mul(a.whole, b.whole).Read(t.Context()))
		if got := must[[]float32](t)(c.Read(t.Context())); !slices.Equal(got, want) {
			t.Error("the product is wrong")
		}
		check(t, c.Close())
		a.close(t)
		b.close(t)
	})
}

// TestStreamRefused asks for what cannot be done in ranges, and for results in memory that is read-only. It is refused before anything
// goes up or is written.
func TestStreamRefused(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, _ *gpu.Device) {
		mem, out := make([]float32, side*side), make([]float32, side*side)
		a, c := must[*dense](t)(matrix.Wrap(tight, side, side, mem)), must[*dense](t)(matrix.Wrap(tight, side, side, out))
		fixed := gpu.HostBytes(make([]byte, 4*side*side))
		fixed.ReadOnly = true
		r := must[*dense](t)(matrix.FromBuffer[float32](tight, side, side, fixed, buffer.DontOwnBuffer))
		isError(t, r.Assign(matrix.Mul(a, a)), gpu.ErrReadOnly)
		ones := matrix.Fill[float32](1, side, 1)
		for name, x := range map[string]*expr{
			"in place":            matrix.Transpose(c),
			"product":             matrix.Mul(c, a),
			"eigenvalues":         matrix.VStack(ones, matrix.Eigenvectors(a)).Slice(1, side+1, 0, side),
			"singular values":     matrix.LeftVectors(a),
			"sum along columns":   matrix.CumSumRows(matrix.Transpose(a)),
			"sorted columns":      matrix.Transpose(matrix.SortRows(matrix.Transpose(a))),
			"below what would do": matrix.VStack(ones, matrix.CumSumRows(matrix.Transpose(a)).Slice(1, side, 0, side)),
		} {
			if err := c.Assign(x); !errors.Is(err, gpu.ErrLimit) || errors.Is(err, buffer.ErrIncomplete) {
				t.Errorf("%s: %v, want %v", name, err, gpu.ErrLimit)
			}
		}
		if n := tight.Stats().BytesUp; n > 0 {
			t.Errorf("%d bytes went up", n)
		}
		check(t, errors.Join(c.Sync(t.Context()), a.Close(), c.Close(), r.Close()))
		if slices.Max(out) != 0 {
			t.Error("something was written")
		}
	})
}

// TestStreamWholeOrNot assigns what is written by several kernels, of which later ones find no memory: results that are small beside the budget
// stay what they were.
func TestStreamWholeOrNot(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, _ *gpu.Device) {
		refused := 0
		for n := 30; n <= 60; n += 2 {
			a, dst := make([]float32, n*n), slices.Repeat([]float32{77}, 2*n)
			x := must[*dense](t)(matrix.Wrap(tight, n, n, a))
			y := must[*dense](t)(matrix.Wrap(tight, 2, n, dst))
			err := y.Assign(matrix.VStack(matrix.SumCols(x), matrix.Slice(matrix.SortCols(x), 0, 1, 0, n)))
			want := float32(0)
			if err != nil {
				refused, want = refused+1, 77
			}
			check(t, y.Sync(t.Context()))
			if !slices.Equal(dst, slices.Repeat([]float32{want}, 2*n)) {
				t.Errorf("%d: %v, and then %v", n, err, dst)
			}
			check(t, errors.Join(x.Close(), y.Close()))
		}
		if refused == 0 || refused == 16 {
			t.Errorf("%d of 16 were refused", refused)
		}
	})
}

// TestStreamProgram runs programs that find no memory in the middle of an assignment: their destinations are whole, or nobody gets them.
func TestStreamProgram(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		halves := 0
		for budget := uint64(18 << 10); budget < 34<<10; budget += 1 << 10 {
			tight := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(8<<10), gpu.WithMemory(budget)))
			a, dst := make([]float32, 5*260), slices.Repeat([]float32{-1}, 5*260)
			for i := range a {
				a[i] = float32(i % 11)
			}
			x, y := must[*dense](t)(matrix.Wrap(tight, 5, 260, a)), must[*dense](t)(matrix.Wrap(tight, 5, 260, dst))
			p, err := matrix.NewProgram(t.Context(), matrix.Into(y, matrix.SortRows(x)))
			if err == nil {
				err = errors.Join(p.Run(t.Context()), p.Close())
			}
			synced := y.Sync(t.Context())
			if errors.Is(err, buffer.ErrIncomplete) {
				halves++
				isError(t, synced, buffer.ErrIncomplete)
			} else {
				check(t, synced)
			}
			if old := slices.Contains(dst, -1); old != (err != nil) || old && slices.Max(dst) >= 0 {
				t.Errorf("%d: %v, and some of the result is there", budget, err)
			}
			check(t, errors.Join(x.Close(), y.Close(), tight.Close()))
		}
		if halves == 0 {
			t.Error("no program failed in the middle")
		}
	})
}
