// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Input is what a graph of CVM Runtime says of one of its inputs. Precision is the bits of its values, sign included: from 1
// to 32, or -1 if it is not known. Values are then of [-r, r] with r = 2^(Precision-1) - 1.
type Input struct {
	Name      string
	Shape     []int
	Precision int
}

// check holds the input to the limits of graphs: 1 to 6 dimensions from 1 to 2^24, at most 2^30 elements, [gpu.ErrLimit]
// otherwise, and a precision, [gpu.ErrInvalid] otherwise.
func (in Input) check() error {
	const op = "Input"
	if n := len(in.Shape); n < 1 || n > 6 {
		return fail(op, gpu.ErrLimit, fault.Short(in.Name), ": ", n, " dimensions, a graph takes 1 to 6")
	}
	elements := int64(1)
	for _, d := range in.Shape {
		if d < 1 || d > 1<<24 {
			return fail(op, gpu.ErrLimit, fault.Short(in.Name), ": dimension ", d, ", a graph takes 1 to 16777216")
		}
		if elements *= int64(d); elements > 1<<30 {
			return fail(op, gpu.ErrLimit, fault.Short(in.Name), ": ", text(in.Shape), ", a graph takes 1073741824 elements")
		}
	}
	if in.Precision != -1 && (in.Precision < 1 || in.Precision > 32) {
		return fail(op, gpu.ErrInvalid, fault.Short(in.Name), ": precision ", in.Precision, ", a graph takes 1 to 32 or -1")
	}
	return nil
}

// PrecisionError is a value of a parameter that is beyond its precision. It is [ErrPrecision].
type PrecisionError struct {
	Name      string
	Index     int // in C order
	Value     int32
	Precision int
}

// Error has the reference's words.
func (e *PrecisionError) Error() string {
	if e == nil {
		return ErrPrecision.Error()
	}
	return fault.Text("parameter ", e.Name, " at index ", e.Index, " value:", int(e.Value), " exceed of precision ", e.Precision)
}

// Unwrap returns [ErrPrecision].
func (e *PrecisionError) Unwrap() error { return ErrPrecision }

// Data takes an array for an input with data, as the reference's SetInput does: int8 or int32 ([ErrType]) and of the
// input's shape ([buffer.ErrShape]). The result is an int32 array whose values are within the precision: int8 is widened, and
// values beyond it are clamped. What is later written to a does not change it.
func (in Input) Data(ctx context.Context, a *Array) (*Array, error) { return in.take(ctx, a, true) }

// Param is Data for a parameter: a value beyond the precision is a [PrecisionError].
func (in Input) Param(ctx context.Context, a *Array) (*Array, error) { return in.take(ctx, a, false) }

func (in Input) take(ctx context.Context, a *Array, clamp bool) (*Array, error) {
	const op = "Input"
	if err := in.check(); err != nil {
		return nil, err
	}
	if _, err := a.container(op); err != nil {
		return nil, err
	}
	if a.t != dtype.Int8 && a.t != dtype.Int32 {
		return nil, fail(op, ErrType, fault.Short(in.Name), ": ", a.t.String(), ", a graph takes int8 and int32")
	}
	if !slices.Equal(a.shape, in.Shape) {
		return nil, fail(op, buffer.ErrShape, fault.Short(in.Name), ": ", text(a.shape), " for ", text(in.Shape))
	}
	own, err := a.clone(ctx) // nobody writes it from here on
	if err != nil {
		return nil, err
	}
	values, same, err := own.integers(ctx)
	r := int64(1 << 31) // no value is beyond a precision that is not known
	if in.Precision != -1 {
		r = 1<<(in.Precision-1) - 1
	}
	for i, v := range values {
		c := int32(min(max(int64(v), -r), r))
		if c != v && !clamp {
			err = &PrecisionError{in.Name, i, v, in.Precision}
			break
		}
		values[i], same = c, same && c == v
	}
	if err == nil && same {
		return own, nil
	}
	_ = own.Close()
	if err != nil {
		return nil, err
	}
	return FromSlice(a.dev, values, a.shape...)
}

// integers returns int8 or int32 elements as int32, and whether that is what they are.
func (a *Array) integers(ctx context.Context) ([]int32, bool, error) {
	if a.t == dtype.Int32 {
		v, err := Data[int32](ctx, a)
		return v, true, err
	}
	small, err := Data[int8](ctx, a)
	v := make([]int32, len(small))
	for i, s := range small {
		v[i] = int32(s)
	}
	return v, false, err
}
