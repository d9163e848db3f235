// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// Assign sets all elements to those of src, which must have the same type: [ErrType] otherwise. Dimensions must
// agree, those of 1 not counted, or be stretched by NumPy's rules: [buffer.ErrShape] otherwise. The arrays may overlap.
func (a *Array) Assign(ctx context.Context, src *Array) error {
	const op = "Assign"
	if err := pair(op, a, src); err != nil {
		return err
	}
	if src.t != a.t {
		return fail(op, ErrType, src.t.String(), " to ", a.t.String())
	}
	from, ok := src.stretch(a.shape)
	if !ok {
		from, ok = src.squeeze().stretch(a.squeeze().shape)
	}
	if !ok {
		return fail(op, buffer.ErrShape, text(src.shape), " to ", text(a.shape))
	}
	return a.through(ctx, op, src, from)
}

// stretch repeats dimensions of 1, and what is there as a whole, so that the shape becomes another.
func (l layout) stretch(shape []int) (layout, bool) {
	more := len(shape) - len(l.shape)
	for more < 0 && l.shape[0] == 1 {
		l.shape, l.strides, more = l.shape[1:], l.strides[1:], more+1
	}
	if more < 0 {
		return l, false
	}
	strides := make([]int, len(shape))
	for d, n := range l.shape {
		if shape[more+d] == n {
			strides[more+d] = l.strides[d]
		} else if n != 1 {
			return l, false
		}
	}
	l.shape, l.strides = shape, strides
	return l, true
}

// squeeze leaves dimensions of 1 out.
func (l layout) squeeze() layout {
	out := layout{t: l.t, offset: l.offset}
	for d, n := range l.shape {
		if n != 1 {
			out.shape, out.strides = append(out.shape, n), append(out.strides, l.strides[d])
		}
	}
	return out
}

// fillStep is about how many bytes are filled at a time.
const fillStep = 4 << 20

// Fill sets all elements to a value: integers of 8 to 64 bits, truncated towards 0 as in C, and floats of 16, 32 and 64,
// rounded to nearest. [ErrValue] is a number that the integer type does not have, [ErrType] another type.
func (a *Array) Fill(ctx context.Context, value float64) error {
	const op = "Fill"
	if _, err := a.container(op); err != nil {
		return err
	}
	element, err := encode(op, a.t, value)
	if err != nil {
		return err
	}
	l, n := a.layout, a.bytes()
	return a.write(op, func(b *buffer.Buffer) error {
		if !l.contiguous() {
			return writeLayout(ctx, b, l, slices.Repeat(element, l.elements()))
		}
		if !slices.ContainsFunc(element, func(b byte) bool { return b != 0 }) {
			clear := func(mem *gpu.Buffer, size uint64) error { return mem.Clear(uint64(l.offset), size) }
			if done, err := onDevice(b, l.offset, n, clear); done || err != nil {
				return err
			}
		}
		pattern := slices.Repeat(element, min(n, fillStep)/len(element))
		for done := 0; done < n; done += len(pattern) {
			if err := b.Patch(ctx, l.offset+done, pattern[:min(len(pattern), n-done)]); err != nil {
				return err
			}
		}
		return nil
	})
}

// encode returns the bytes of an element, all lanes with the value.
func encode(op string, t dtype.Type, v float64) ([]byte, error) {
	var bits uint64
	size := int(t.Bits)
	switch {
	case t.Code == dtype.Float32.Code && size == 64:
		bits = math.Float64bits(v)
	case t.Code == dtype.Float32.Code && size == 32:
		bits = uint64(math.Float32bits(float32(v)))
	case t.Code == dtype.Float32.Code && size == 16:
		bits = uint64(dtype.ToHalf(v).Bits())
	case (t.Code == dtype.Int8.Code || t.Code == dtype.Uint8.Code) && 8 <= size && size <= 64:
		lo, hi := 0.0, math.Ldexp(1, size)
		if t.Code == dtype.Int8.Code {
			lo, hi = -hi/2, hi/2
		}
		n := math.Trunc(v)
		if !(lo <= n && n < hi) { // NaN too
			return nil, fail(op, ErrValue, strconv.FormatFloat(v, 'g', -1, 64), " as ", t.String())
		}
		if t.Code == dtype.Int8.Code {
			bits = uint64(int64(n))
		} else {
			bits = uint64(n)
		}
	default:
		return nil, fail(op, ErrType, t.String())
	}
	one := binary.LittleEndian.AppendUint64(nil, bits)[:size/8]
	return slices.Repeat(one, int(t.Lanes)), nil
}
