// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestCallsInAccess calls everything on a matrix from the function of Access: what would disturb that is ErrMapped, and nothing waits.
func TestCallsInAccess(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		values := []float32{1, 2, 3, 4}
		for name, m := range map[string]*dense{
			"owned":   owned(t, dev, 2, 2, values...),
			"wrapped": must[*dense](t)(matrix.Wrap(dev, 2, 2, append([]float32(nil), values...))),
			"mapped":  must[*dense](t)(matrix.Map[float32](dev, 2, 2)),
		} {
			check(t, m.SetSlice(values))
			for _, in := range []buffer.Intent{buffer.Reads, buffer.Writes} {
				calls := 0
				check(t, m.Access(background, in, func(mem []float32) error {
					calls++
					same(t, "elements", mem, values)
					for call, err := range callsIn(t.Context(), m) {
						reads := in == buffer.Reads && call < 'a'
						if !errors.Is(err, gpu.ErrMapped) && (err != nil || !reads) {
							t.Errorf("%s, intent %v: call %c: %v", name, in, call, err)
						}
					}
					same(t, "elements", mem, values)
					return nil
				}))
				got, err := m.Read(background)
				check(t, err)
				same(t, "elements", got, values)
				if calls != 1 {
					t.Errorf("%s: called %d times", name, calls)
				}
			}
			check(t, m.Close())
		}
	})
}

// callsIn makes calls that read the matrix, under capital letters, and others, which write it.
func callsIn(ctx context.Context, m *dense) map[rune]error {
	view := m.Row(0)
	read := func([]float32) error { return nil }
	clone := func(m *dense) error {
		c, err := m.Clone()
		return errors.Join(err, c.Close())
	}
	return map[rune]error{
		'A': second(m.Read(ctx)), 'B': second(m.At(ctx, 1, 1)), 'C': m.Sync(ctx), 'D': clone(m), 'E': clone(view),
		'F': m.Access(ctx, buffer.Reads, read),
		'a': m.Fill(7), 'b': m.Assign(matrix.Add(m, m)), 'c': view.Fill(7), 'd': m.Set(0, 0, 9), 'e': m.SetSlice(make([]float32, 4)),
		'f': errors.Join(view.Close(), m.Resize(30, 30)), 'g': m.SetValueFrom(2, 2, make([]float32, 4), 0),
		'h': m.SetValueFrom(20, 20, make([]float32, 400), 0), 'i': m.Access(ctx, buffer.Writes, read), 'j': m.SetCol(0, []float32{8, 8}),
	}
}

// TestCloseInAccess closes matrices in the function of Access, which keeps the memory.
func TestCloseInAccess(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, in := range []buffer.Intent{buffer.Reads, buffer.Writes} {
			host, released := []float32{1, 2}, 0
			w := must[*dense](t)(matrix.Wrap(dev, 1, 2, host, matrix.Options{Release: func() { released++ }}))
			p := must[*dense](t)(matrix.Map[float32](dev, 1, 2))
			o := owned(t, dev, 1, 2, 1, 2)
			for _, m := range []*dense{w, p, o} {
				check(t, m.Fill(5))
				check(t, m.Access(background, in, func(mem []float32) error {
					check(t, m.Close())
					if same(t, "elements", mem, []float32{5, 5}); m == w && released != 0 {
						t.Error("released while it is accessed")
					}
					return nil
				}))
				isError(t, m.Sync(background), gpu.ErrClosed)
			}
			if s := dev.Stats(); released != 1 || s.LiveBytes != 0 || s.Buffers != 0 {
				t.Errorf("released %d times, %d bytes in %d buffers are live", released, s.LiveBytes, s.Buffers)
			}
		}
	})
}
