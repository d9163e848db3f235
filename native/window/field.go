// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

type (
	dense = matrix.Dense[float32]
	expr  = matrix.Expr[float32]
)

// The Gray-Scott model: two substances diffuse, v turns u into more of itself, u is fed and v removed. See Pearson, Complex Patterns in a
// Simple System, Science 261 (1993).
const (
	size     = 256 // rows and columns, on a torus
	diffuseU = 0.21
	diffuseV = 0.105
	feed     = 0.037
	remove   = 0.0605
)

// field is the state of the model: the concentrations of both substances, and a program that computes two steps.
type field struct {
	u, v, nextU, nextV *dense
	steps              *matrix.Program
}

func newField(ctx context.Context, dev *gpu.Device) (*field, error) {
	f := &field{}
	for _, m := range []**dense{&f.u, &f.v, &f.nextU, &f.nextV} {
		var err error
		if *m, err = matrix.New[float32](dev, size, size); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	nextU, nextV := step(f.u, f.v)
	u, v := step(f.nextU, f.nextV)
	p, err := matrix.NewProgram(ctx, matrix.Into(f.nextU, nextU), matrix.Into(f.nextV, nextV), matrix.Into(f.u, u), matrix.Into(f.v, v))
	f.steps = p
	if err = errors.Join(err, f.seed()); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// seed fills u everywhere and v in some squares, always the same.
func (f *field) seed() error {
	err := f.u.Fill(1)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 24 {
		row, col := rng.IntN(size-8), rng.IntN(size-8)
		square := f.v.Slice(row, row+8, col, col+8)
		err = errors.Join(err, square.Fill(0.5), square.Close())
	}
	return err
}

// step returns both concentrations one step later.
func step(u, v *dense) (nextU, nextV *expr) {
	reaction := matrix.MulElem(u, matrix.MulElem(v, v))
	nextU = diffused(diffuseU, u).Sub(reaction).Add(matrix.Scale(-feed, u).AddScalar(feed))
	nextV = diffused(diffuseV, v).Add(reaction).Sub(matrix.Scale(feed+remove, v))
	return nextU, nextV
}

// diffused returns m after a step of diffusion.
func diffused(rate float32, m *dense) *expr {
	beside := matrix.Roll(m, 1, 0).Add(matrix.Roll(m, -1, 0)).Add(matrix.Roll(m, 0, 1)).Add(matrix.Roll(m, 0, -1))
	return beside.Scale(rate).Add(matrix.Scale(1-4*rate, m))
}

func (f *field) close() error {
	return errors.Join(f.steps.Close(), f.u.Close(), f.v.Close(), f.nextU.Close(), f.nextV.Close())
}
