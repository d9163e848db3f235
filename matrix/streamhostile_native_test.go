// SPDX-License-Identifier: Apache-2.0

//go:build !js

package matrix_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestStreamBudgets computes with devices that may take next to nothing, and as much as there is: right, or with a typed error and the
// destination as it was.
func TestStreamBudgets(t *testing.T) {
	const tiny = 20
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		done, refused := 0, 0
		for _, budget := range []uint64{1, 256, 1024, 3000, 6000, math.MaxUint64} {
			tight := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMemory(budget)))
			mem, out := make([]float32, tiny*tiny), make([]float32, tiny*tiny)
			for i := range mem {
				mem[i] = 1
			}
			mem[7] = float32(math.NaN())
			a, c := must[*dense](t)(matrix.Wrap(tight, tiny, tiny, mem)), must[*dense](t)(matrix.Wrap(tight, tiny, tiny, out))
			for name, x := range map[string]*expr{"a*a": matrix.Mul(a, a), "a+a": matrix.Add(a, a)} {
				clear(out)
				check(t, c.Touch())
				err := errors.Join(c.Assign(x), c.Sync(t.Context()))
				switch {
				case err == nil && math.IsNaN(float64(out[7])) && out[tiny*tiny-1] == map[string]float32{"a*a": tiny, "a+a": 2}[name]:
					done++
				case (errors.Is(err, gpu.ErrLimit) || errors.Is(err, gpu.ErrNoMemory)) && slices.Max(out) == 0 && slices.Min(out) == 0:
					refused++
				default:
					t.Errorf("%s in %d bytes: %v, %v", name, budget, out[tiny*tiny-1], err)
				}
			}
			check(t, errors.Join(a.Close(), c.Close(), tight.Close()))
		}
		if done < 4 || refused < 4 {
			t.Errorf("%d done, %d refused", done, refused)
		}
	})
}

// TestStreamAliases assigns to wraps and views of memory that operands are in, too.
func TestStreamAliases(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, dev *gpu.Device) {
		rng := newRand(11)
		for name, change := range map[string]func(a, b *dense) error{
			"another wrap":    func(a, b *dense) error { return a.Assign(matrix.Scale(2, b).AddScalar(1)) },
			"rows below":      func(a, b *dense) error { return views(a.RowSlice(0, 100), b.RowSlice(50, 100), become) },
			"its own rows":    func(a, _ *dense) error { return views(a.RowSlice(0, 90), a.RowSlice(90, 90), become) },
			"shifted columns": func(a, _ *dense) error { return views(a.ColumnSlice(0, 20), a.ColumnSlice(100, 20), become) },
			"a product":       func(a, b *dense) error { return views(a.RowSlice(0, 8), b.RowSlice(2, side/2), rowsTimes) },
		} {
			v := integers(rng, side*side)
			var results [2][]float32
			var errs [2]error
			for i, d := range []*gpu.Device{tight, dev} {
				mem := slices.Clone(v)
				a, b := must[*dense](t)(matrix.Wrap(d, side, side, mem)), must[*dense](t)(matrix.Wrap(d, side, side, mem))
				errs[i] = change(a, b)
				check(t, errors.Join(a.Sync(t.Context()), b.Sync(t.Context()), a.Close(), b.Close()))
				results[i] = mem
			}
			check(t, errs[1])
			want := results[1]
			if errors.Is(errs[0], gpu.ErrLimit) || errors.Is(errs[0], gpu.ErrNoMemory) { // a copy would be needed
				want = v
			} else {
				check(t, errs[0])
			}
			if !slices.Equal(results[0], want) {
				t.Errorf("%s: wrong, %v", name, errs[0])
			}
		}
	})
}

func become(to, from *dense) error { return to.Assign(from) }

func rowsTimes(to, of *dense) error {
	rows, _ := to.Dims()
	return to.Assign(matrix.Add(matrix.Mul(matrix.Fill(rows, side/2, float32(1)), of), to))
}

// views calls fn with two views, and closes them.
func views(to, from *dense, fn func(to, from *dense) error) error {
	return errors.Join(fn(to, from), to.Close(), from.Close())
}

// TestStreamClosed has the device or an operand closed, or the destination touched, by a function for progress or beside it.
func TestStreamClosed(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for name, c := range map[string]struct {
			do   func(tight *gpu.Device, a, c *dense) error
			want error
		}{
			"the device":      {func(tight *gpu.Device, _, _ *dense) error { return tight.Close() }, gpu.ErrClosed},
			"an operand":      {func(_ *gpu.Device, a, _ *dense) error { return a.Close() }, gpu.ErrClosed},
			"the destination": {func(_ *gpu.Device, _, c *dense) error { return c.Close() }, gpu.ErrClosed},
		} {
			tight := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMemory(roomBytes)))
			a := must[*dense](t)(matrix.Wrap(tight, side, side, make([]float32, side*side)))
			to := must[*dense](t)(matrix.Wrap(tight, side, side, make([]float32, side*side)))
			again := make(chan error, 1)
			ctx := matrix.WithProgress(t.Context(), func(done, _ int) {
				if done == 3 {
					go func() { again <- c.do(tight, a, to) }()
					check(t, <-again)
				}
			})
			isError(t, to.AssignContext(ctx, matrix.Mul(a, a)), c.want)
			check(t, errors.Join(a.Close(), to.Close()))
			if s := tight.Stats(); name != "the device" && s.LiveBytes != 0 {
				t.Errorf("%s: %d bytes are live", name, s.LiveBytes)
			}
			check(t, tight.Close())
			isError(t, to.Assign(matrix.Mul(a, a)), gpu.ErrClosed)
			if to.Buffer() != nil && errors.Is(to.Sync(t.Context()), buffer.ErrIncomplete) {
				t.Errorf("%s: closed and incomplete", name)
			}
		}
	})
}
