// SPDX-License-Identifier: Apache-2.0

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
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return matrix.WithProgress(ctx, func(done, total int) {
		if *counted++; *counted != done || done > total {
			t.Errorf("call %d: %d of %d", *counted, done, total)
		}
		if *counted == calls {
			cancel()
		}
	})
}

// TestStreamCancelled ends evaluations in between. A result that the device has room for is as it was; one that it has none for is an
// error until it is there as a whole, or is touched.
func TestStreamCancelled(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, _ *gpu.Device) {
		mem, out, few := make([]float32, side*side), make([]float32, side*side), make([]float32, side)
		few[7] = 5
		for i := range mem {
			mem[i] = 1
		}
		a, c := must[*dense](t)(matrix.Wrap(tight, side, side, mem)), must[*dense](t)(matrix.Wrap(tight, side, side, out))
		row := must[*dense](t)(matrix.Wrap(tight, 1, side, few))
		calls := 0
		isError(t, row.AssignContext(stopAfter(t, 3, &calls), matrix.SumCols(a)), context.Canceled)
		if v := must[[]float32](t)(row.Read(t.Context())); v[7] != 5 || calls != 3 {
			t.Errorf("the row has become %v after %d calls", v[7], calls)
		}
		calls = 0
		err := c.AssignContext(stopAfter(t, 20, &calls), matrix.Mul(a, a))
		isError(t, err, context.Canceled)
		isError(t, err, buffer.ErrIncomplete)
		isError(t, c.Sync(t.Context()), buffer.ErrIncomplete)
		isError(t, row.Assign(matrix.SumCols(c)), buffer.ErrIncomplete)
		isError(t, c.Assign(matrix.Add(c, a)), buffer.ErrIncomplete)
		calls = 0
		check(t, errors.Join(c.AssignContext(stopAfter(t, 0, &calls), matrix.Mul(a, a)), c.Sync(t.Context())))
		if out[0] != side || out[side*side-1] != side || calls < 20 {
			t.Errorf("%v and %v after %d calls, want 180", out[0], out[side*side-1], calls)
		}
		calls = 0
		isError(t, c.AssignContext(stopAfter(t, 20, &calls), matrix.Mul(a, a)), buffer.ErrIncomplete)
		check(t, c.Touch())
		must[float32](t)(matrix.Sum(c).Value(t.Context()))
		check(t, errors.Join(a.Close(), c.Close(), row.Close()))
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
			"inverse":             matrix.Inverse(a),
			"solve":               matrix.Solve(a, a),
			"factor":              matrix.CholeskyFactor(a),
			"sum along columns":   matrix.CumSumRows(matrix.Transpose(a)),
			"sorted columns":      matrix.Transpose(matrix.SortRows(matrix.Transpose(a))),
			"below what would do": matrix.VStack(ones, matrix.CumSumRows(matrix.Transpose(a)).Slice(1, side, 0, side)),
			"below a factor":      matrix.VStack(ones, matrix.CholeskyFactor(a).Slice(1, side, 0, side)),
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
