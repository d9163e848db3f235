// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// programWorld is matrices of all sorts of memory: of the device, of the caller's with gaps and parts, and two that overlap.
type programWorld struct {
	mine, shared []float32
	list         []*dense // with the same size
	all          []*dense
}

func newProgramWorld(t *testing.T, dev *gpu.Device, seed uint64) *programWorld {
	rng := newRand(seed)
	w := &programWorld{mine: random(rng, 60), shared: random(rng, 30)}
	a, b := must[*dense](t)(matrix.FromSlice(dev, 4, 3, random(rng, 12))), must[*dense](t)(matrix.New[float32](dev, 4, 3, matrix.Options{ColMajor: true, Padded: true}))
	wrapped := must[*dense](t)(matrix.Wrap(dev, 6, 5, w.mine, matrix.Options{Stride: 10}))
	part, col := wrapped.Slice(1, 5, 1, 4), must[*dense](t)(matrix.FromSlice(dev, 4, 9, random(rng, 36)))
	low, high := must[*dense](t)(matrix.Wrap(dev, 4, 3, w.shared[:12])), must[*dense](t)(matrix.Wrap(dev, 4, 3, w.shared[6:18]))
	view := col.Slice(0, 4, 5, 8)
	w.list = []*dense{a, b, part, view, low, high}
	w.all = append([]*dense{wrapped, col}, w.list...)
	return w
}

// TestProgramSettles runs the same assignments as a program and one by one, many times and with changes of all sorts in between, and
// compares everything bit by bit.
func TestProgramSettles(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for seed := range uint64(6) {
			rng := newRand(200 + seed)
			x, y := newProgramWorld(t, dev, seed), newProgramWorld(t, dev, seed)
			var steps []matrix.Step
			var assigns []func() error
			some := len(x.list)
			if seed%2 == 0 {
				some -= 2 // without those that overlap
			}
			for range 12 {
				to, i, j, product := rng.IntN(some), rng.IntN(some), rng.IntN(some), rng.IntN(3) == 0
				expr := func(w *programWorld) *expr {
					if product {
						return matrix.Tanh(matrix.Mul(w.list[i], matrix.Mul(matrix.Transpose(w.list[j]), w.list[i])))
					}
					return matrix.Sub(matrix.Scale(0.5, w.list[i]), w.list[j])
				}
				steps = append(steps, matrix.Into(x.list[to], expr(x)))
				assigns = append(assigns, func() error { return y.list[to].Assign(expr(y)) })
			}
			p := must[*matrix.Program](t)(matrix.NewProgram(background, steps...))
			both := func(f func(w *programWorld) error) { check(t, errors.Join(f(x), f(y))) }
			for round := range 12 {
				switch data := random(rng, 12); round % 6 {
				case 1:
					both(func(w *programWorld) error {
						return w.list[round%some].Assign(must[*dense](t)(matrix.FromSlice(dev, 4, 3, data)))
					})
				case 2: // nothing but that the host has everything
					both(func(w *programWorld) error { return w.all[0].Sync(background) })
				case 3: // the host writes, elements of the part and around it
					both(func(w *programWorld) error {
						if err := w.all[0].Sync(background); err != nil {
							return err
						}
						copy(w.mine[3:], data)
						return w.all[0].Touch()
					})
				case 4: // other memory
					both(func(w *programWorld) error {
						return w.list[0].SetValueFrom(4, 3, append([]float32(nil), data...), buffer.DontOwnBuffer)
					})
				case 5:
					both(func(w *programWorld) error { return w.list[1].SetSlice(data) })
				}
				check(t, p.Run(background))
				for _, assign := range assigns {
					check(t, assign())
				}
				if round%6 == 2 {
					both(func(w *programWorld) error { return w.all[0].Sync(background) })
					same(t, name("seed", seed, "round", round, "wrapped"), x.mine, y.mine)
				}
				if round%3 != 1 { // else the next run follows at once
					for i := range x.all {
						same(t, name("seed", seed, "round", round, "matrix", i), must[[]float32](t)(x.all[i].Read(background)), must[[]float32](t)(y.all[i].Read(background)))
					}
				}
			}
			check(t, errors.Join(x.all[0].Sync(background), y.all[0].Sync(background)))
			same(t, name("seed", seed, "wrapped"), x.mine, y.mine)
			check(t, p.Close())
			for _, w := range []*programWorld{x, y} {
				for _, m := range w.all {
					check(t, m.Close())
				}
			}
		}
	})
}
