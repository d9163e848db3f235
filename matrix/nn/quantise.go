// SPDX-License-Identifier: Apache-2.0

package nn

import (
	"errors"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// Quantised is a matrix of few bits for each element, as CNTK's MatrixQuantizer makes it to send gradients. Each column has a range of
// its own. Close it when done.
type Quantised struct {
	// Levels has the numbers of the levels, rows x columns; of 1 bit, eight rows in one: ceil(rows/8) x columns, the lowest bit for the
	// first row.
	Levels *matrix.Dense[uint8]
	// Lower and Upper are the range of each column, 1 x columns; of 1 bit, what the two levels stand for.
	Lower, Upper *Dense
	Rows, Bits   int
}

// Quantise makes a matrix of 1 to 8 bits for each element of x, rows x columns. Of several bits, levels of equal size cover four
// standard deviations on either side of a column's mean, and what is beyond has the first or last one. Of 1 bit, elements below the
// column's mean stand for their own mean and the others for theirs: Seide and others, "1-Bit Stochastic Gradient Descent and its
// Application to Data-Parallel Distributed Training of Speech DNNs" (2014).
//
// A residual, of the size of x or nil, is added to x first and takes what quantising loses: so errors do not add up from call to call.
func Quantise(x Operand, bits int, residual *Dense) (*Quantised, error) {
	const op = "Quantise"
	e, shape, err := read(op, x)
	switch {
	case err != nil:
		return nil, err
	case bits < 1 || bits > 8:
		return nil, fail(op, gpu.ErrInvalid, itoa(bits), " bits")
	case residual != nil:
		r, size, err := read[float32](op, residual)
		if err == nil && size != shape {
			err = shapeError(op, fitsEqual, shape, size)
		}
		if err != nil {
			return nil, err
		}
		e = e.Add(r)
	}
	v, err := e.Eval()
	if err != nil {
		return nil, err
	}
	q := &Quantised{Rows: shape[0], Bits: bits}
	if bits == 1 {
		err = q.halve(v, shape)
	} else {
		err = q.level(v)
	}
	if err == nil && residual != nil {
		err = residual.Assign(matrix.Sub(v, q.Dequantise()))
	}
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// level quantises to several bits.
func (q *Quantised) level(v *Dense) (err error) {
	mean, reach := v.Expr().MeanCols(), v.Expr().StdCols().Scale(4)
	if q.Lower, err = mean.Sub(reach).Eval(); err != nil {
		return err
	}
	if q.Upper, err = mean.Add(reach).Eval(); err != nil {
		return err
	}
	levels := float32(int(1) << q.Bits)
	factor := matrix.Sub(q.Upper, q.Lower).RecipOrZero().Scale(levels)
	at := matrix.Sub(v, q.Lower).MulElem(factor).Floor().Clamp(0, levels-1)
	q.Levels, err = matrix.Convert[uint8](at).Eval()
	return err
}

// halve quantises to 1 bit.
func (q *Quantised) halve(v *Dense, shape fault.Shape) error {
	mean, err := v.Expr().MeanCols().Eval()
	if err != nil {
		return err
	}
	high := matrix.GreaterEqual(v, mean)
	meanOf := func(those *Expr) *Expr {
		return matrix.CopyIf(those, v).SumCols().DivElem(those.SumCols().MaxScalar(1))
	}
	if q.Upper, err = meanOf(high).Eval(); err == nil {
		q.Lower, err = meanOf(matrix.Less(v, mean)).Eval()
	}
	if err == nil {
		bytes := (shape[0] + 7) / 8
		packed := matrix.Fill[float32](bytes, shape[1], 0)
		for bit := range 8 {
			row := plus(times(rowsOf(bytes), 8), bit)
			set := matrix.GreaterEqual(matrix.Gather(v, row, colsOf(shape[1])), mean)
			packed = packed.Add(where(below(row, shape[0]), set.Scale(float32(int(1)<<bit))))
		}
		q.Levels, err = matrix.Convert[uint8](packed).Eval()
	}
	return errors.Join(err, mean.Close())
}

// Dequantise is the matrix again, rows x columns: the middle of each element's level, or what it stands for.
func (q *Quantised) Dequantise() *Expr {
	const op = "Dequantise"
	if q == nil {
		q = &Quantised{}
	}
	levels, shape, err := read[uint8](op, q.Levels)
	if err != nil {
		return failed(err)
	}
	lower, low, err1 := read[float32](op, q.Lower)
	upper, up, err2 := read[float32](op, q.Upper)
	rows := q.Rows
	if q.Bits == 1 {
		rows = (max(q.Rows, 0) + 7) / 8
	}
	size := fault.Shape{1, shape[1]}
	switch {
	case err1 != nil || err2 != nil:
		return failed(errors.Join(err1, err2))
	case q.Bits < 1 || q.Bits > 8 || q.Rows < 0:
		return failed(fail(op, gpu.ErrInvalid, itoa(q.Bits), " bits of ", itoa(q.Rows), " rows"))
	case shape[0] != rows || low != size || up != size:
		return failed(shapeError(op, fault.Needs("the first", rows, "row")+", the others "+size.String(), shape, low, up))
	case q.Bits > 1:
		share := matrix.Convert[float32](levels).AddScalar(0.5).Scale(1 / float32(int(1)<<q.Bits))
		return lower.Add(upper.Sub(lower).MulElem(share))
	}
	i := rowsOf(q.Rows)
	eight := matrix.Convert[uint32](matrix.Gather(levels, over(i, 8), colsOf(shape[1])))
	bit := eight.ShiftRight(matrix.Convert[uint32](rest(i, 8))).BitAnd(matrix.Fill[uint32](1, 1, 1))
	return matrix.Where(matrix.Convert[float32](bit), upper, lower)
}

// Close drops the matrices.
func (q *Quantised) Close() error {
	if q == nil {
		return nil
	}
	var err error
	if q.Levels != nil {
		err = q.Levels.Close()
	}
	return errors.Join(err, closed(q.Lower), closed(q.Upper))
}
