// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// A matrix can be pointed at a buffer that somebody else keeps, again and again: a shell. It never frees the buffer.
func TestSetValueFromBuffer(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		start := dev.Stats().Buffers
		a := must[*buffer.Buffer](t)(buffer.FromHost(dev, matrix.Host([]float32{1, 2, 3, 4, 5, 6})))
		b := must[*buffer.Buffer](t)(buffer.FromHost(dev, matrix.Host([]float32{7, 8, 9, 10, 11, 12})))
		m := owned(t, dev, 1, 1, 0)
		before := dev.Stats()
		for range 3 {
			check(t, m.SetValueFrom(2, 3, a, buffer.DontOwnBuffer))
			wants(t, m, 2, 3, true, 1, 2, 3, 4, 5, 6)
			check(t, m.SetValueFrom(1, 2, b, buffer.DontOwnBuffer, matrix.Options{Offset: 1}))
			wants(t, m, 1, 2, true, 8, 9)
			if a.Shares() != 1 || b.Shares() != 2 {
				t.Fatalf("%d and %d shares", a.Shares(), b.Shares())
			}
		}
		if after := dev.Stats(); after.BytesUp != before.BytesUp || after.Dispatches != before.Dispatches {
			t.Errorf("something was copied: %+v", after)
		}
		check(t, m.Scale(2, m))
		isError(t, m.Resize(3, 3), matrix.ErrView) // as the buffer is used elsewhere, too
		c := must[*dense](t)(matrix.FromBuffer[float32](dev, 2, 3, b, buffer.SetValueOnDevice))
		wants(t, c, 2, 3, false, 7, 16, 18, 10, 11, 12)
		check(t, c.Zero())
		check(t, m.SetValueFrom(2, 3, b, buffer.DontOwnBuffer))
		wants(t, m, 2, 3, true, 7, 16, 18, 10, 11, 12)

		other := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver(dev.Info().Driver)))
		foreign := must[*buffer.Buffer](t)(buffer.New(other, 24))
		closed := must[*buffer.Buffer](t)(buffer.New(dev, 24))
		check(t, closed.Close())
		for name, c := range map[string]struct {
			src   *buffer.Buffer
			flags buffer.Flags
			opts  matrix.Options
			want  error
		}{
			"nil":             {nil, buffer.DontOwnBuffer, matrix.Options{}, buffer.ErrNil},
			"too short":       {a, buffer.DontOwnBuffer, matrix.Options{Offset: 1}, buffer.ErrShort},
			"another device":  {foreign, buffer.DontOwnBuffer, matrix.Options{}, gpu.ErrForeign},
			"closed":          {closed, buffer.DontOwnBuffer, matrix.Options{}, gpu.ErrClosed},
			"no flags":        {a, 0, matrix.Options{}, gpu.ErrInvalid},
			"release":         {a, buffer.DontOwnBuffer, matrix.Options{Release: func() { t.Error("released") }}, gpu.ErrInvalid},
			"destroy":         {a, buffer.DontOwnBuffer, matrix.Options{Destroy: true}, gpu.ErrInvalid},
			"copy of foreign": {foreign, buffer.SetValueOnDevice, matrix.Options{}, gpu.ErrForeign},
		} {
			if err := m.SetValueFrom(2, 3, c.src, c.flags, c.opts); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		wants(t, m, 2, 3, true, 7, 16, 18, 10, 11, 12)
		check(t, m.Close())
		check(t, c.Close())
		if a.Shares() != 1 || b.Shares() != 1 {
			t.Errorf("%d and %d shares", a.Shares(), b.Shares())
		}
		check(t, a.Close())
		check(t, b.Close())
		check(t, foreign.Close())
		check(t, other.Close())
		if n := dev.Stats().Buffers; n != start {
			t.Errorf("%d buffers, there were %d", n, start)
		}
	})
}
