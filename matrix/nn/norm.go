// SPDX-License-Identifier: Apache-2.0

package nn

import (
	"errors"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// BatchNorm is batch normalisation, after Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing
// Internal Covariate Shift" (2015): for each feature
//
//	y = scale * (x - mean) / sqrt(variance + epsilon) + bias
//
// A feature is a channel of images, or each column where Channels is 0 (CNTK's spatial flag). Scale, bias and statistics are matrices of
// one row, 1 x features.
type BatchNorm struct {
	Channels int     // 0: each column is a feature
	Epsilon  float32 // of at least 0; 0 is 0
}

// Statistics are those of a batch, which [BatchNorm.Train] returns for [BatchNorm.Backward]. Close them when done.
type Statistics struct{ Mean, InvStd *Dense }

// Close drops the matrices.
func (s *Statistics) Close() error {
	if s == nil {
		return nil
	}
	return errors.Join(closed(s.Mean), closed(s.InvStd))
}

func closed(d *Dense) error {
	if d == nil {
		return nil
	}
	return d.Close()
}

// features are the sizes of a batch.
type features struct{ n, cols, count, places int }

func (b BatchNorm) features(op string, x Operand) (e *Expr, f features, err error) {
	e, shape, err := read(op, x)
	switch {
	case err != nil:
		return nil, f, err
	case b.Channels < 0 || !(b.Epsilon >= 0):
		return nil, f, fail(op, gpu.ErrInvalid, "channels or epsilon below 0")
	}
	f = features{shape[0], shape[1], b.Channels, 1}
	if f.count == 0 {
		return e, features{shape[0], shape[1], shape[1], 1}, nil
	}
	if f.cols%f.count != 0 {
		return nil, f, shapeError(op, "a multiple of "+fault.Count(f.count, "column")+" is needed", shape, fault.Shape{shape[0], f.count})
	}
	f.places = f.cols / f.count
	return e, f, nil
}

// vectors reads rows of a number for each feature.
func (f features) vectors(op string, rows ...Operand) ([]*Expr, error) {
	out := make([]*Expr, len(rows))
	for i, r := range rows {
		e, shape, err := read(op, r)
		if err == nil && shape != (fault.Shape{1, f.count}) {
			err = shapeError(op, fitsSize(1, f.count), shape, fault.Shape{1, f.count})
		}
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

// spread has the number of its feature for each column.
func (f features) spread(v *Expr) *Expr {
	if f.places == 1 {
		return v
	}
	return matrix.Gather(v, number(0), over(colsOf(f.cols), f.places))
}

// sums adds up each feature: 1 x count.
func (f features) sums(x *Expr) *Expr {
	cols := x.SumCols()
	if f.places == 1 {
		return cols
	}
	return matrix.Reshape(cols, f.count, f.places).SumRows().T()
}

func (f features) elements() float32 { return float32(max(f.n*f.places, 1)) }

// Infer normalises x with given statistics, such as running ones: n x columns, as x.
func (b BatchNorm) Infer(x, scale, bias, mean, variance Operand) *Expr {
	const op = "BatchNorm.Infer"
	e, f, err := b.features(op, x)
	if err != nil {
		return failed(err)
	}
	v, err := f.vectors(op, scale, bias, mean, variance)
	if err != nil {
		return failed(err)
	}
	factor := v[0].DivElem(v[3].AddScalar(b.Epsilon).Sqrt())
	return e.Sub(f.spread(v[2])).MulElem(f.spread(factor)).Add(f.spread(v[1]))
}

// Train assigns the normalised x to y, with the batch's own mean and variance, and returns these for the way back. Running
// statistics, which may both be nil, become
//
//	running = (1 - factor)*running + factor*batch
//
// where the variance of the batch is the unbiased one, as in CNTK (expAvgFactor) and PyTorch. An empty batch changes nothing. y may be x.
func (b BatchNorm) Train(y *Dense, x, scale, bias Operand, runMean, runVariance *Dense, factor float32) (*Statistics, error) {
	const op = "BatchNorm.Train"
	e, f, err := b.features(op, x)
	if err != nil {
		return nil, err
	}
	v, err := f.vectors(op, scale, bias)
	switch {
	case err != nil:
		return nil, err
	case y == nil:
		return nil, fail(op, buffer.ErrNil, "nil destination")
	case (runMean == nil) != (runVariance == nil):
		return nil, fail(op, gpu.ErrInvalid, "one of the running statistics is nil")
	case runMean != nil:
		if _, err := f.vectors(op, runMean, runVariance); err != nil {
			return nil, err
		}
	}
	mean, err := f.sums(e).DivScalar(f.elements()).Eval()
	if err != nil {
		return nil, err
	}
	variance, err := f.sums(matrix.SquaredDiff(e, f.spread(mean.Expr()))).DivScalar(f.elements()).Eval()
	if err != nil {
		return nil, errors.Join(err, mean.Close())
	}
	s := &Statistics{Mean: mean, InvStd: variance}
	if err := b.finish(y, e, v, f, s, runMean, runVariance, factor); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// finish has the variance in place of the inverse deviation at first.
func (b BatchNorm) finish(y *Dense, e *Expr, v []*Expr, f features, s *Statistics, runMean, runVariance *Dense, factor float32) error {
	if runMean != nil && f.n > 0 {
		unbiased := factor * f.elements() / max(f.elements()-1, 1)
		if err := runMean.Assign(matrix.Scale(1-factor, runMean).Add(matrix.Scale(factor, s.Mean))); err != nil {
			return err
		}
		if err := runVariance.Assign(matrix.Scale(1-factor, runVariance).Add(matrix.Scale(unbiased, s.InvStd))); err != nil {
			return err
		}
	}
	if err := s.InvStd.Assign(s.InvStd.Expr().AddScalar(b.Epsilon).Sqrt().Recip()); err != nil {
		return err
	}
	centred := e.Sub(f.spread(s.Mean.Expr()))
	return y.Assign(centred.MulElem(f.spread(v[0].MulElem(s.InvStd))).Add(f.spread(v[1])))
}

// Backward returns the gradients of a loss by x, scale and bias, given d, the one by the normalised x, and the statistics of
// [BatchNorm.Train]:
//
//	dbias = sum d;  dscale = sum d*u;  dx = scale*invStd * (d - (dbias + u*dscale)/n),  u = (x - mean)*invStd
//
// for each feature of n elements.
func (b BatchNorm) Backward(d, x, scale Operand, s *Statistics) (dx, dscale, dbias *Expr) {
	const op = "BatchNorm.Backward"
	e, f, err := b.features(op, x)
	if err != nil {
		return failed(err), failed(err), failed(err)
	}
	if s == nil {
		s = &Statistics{}
	}
	v, err := f.vectors(op, scale, s.Mean, s.InvStd)
	var grad *Expr
	if err == nil {
		var shape fault.Shape
		if grad, shape, err = read(op, d); err == nil && shape != (fault.Shape{f.n, f.cols}) {
			err = shapeError(op, fitsSize(f.n, f.cols), shape, fault.Shape{f.n, f.cols})
		}
	}
	if err != nil {
		return failed(err), failed(err), failed(err)
	}
	unit := e.Sub(f.spread(v[1])).MulElem(f.spread(v[2]))
	dscale, dbias = f.sums(grad.MulElem(unit)), f.sums(grad)
	mean := f.spread(dbias).Add(unit.MulElem(f.spread(dscale))).DivScalar(f.elements())
	return f.spread(v[0].MulElem(v[2])).MulElem(grad.Sub(mean)), dscale, dbias
}
