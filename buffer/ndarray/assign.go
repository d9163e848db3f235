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
)

// Fill sets all elements to a value: integers of 8 to 64 bits, truncated towards 0 as in C, and floats of 16, 32 and 64,
// rounded to nearest. [ErrValue] is a number that the integer type does not have, [ErrType] another type.
func (a *Array) Fill(ctx context.Context, value float64) error {
	return a.fill(ctx, "Fill", a.at(), value)
}

// FillSlice is Fill for a part.
func (a *Array) FillSlice(ctx context.Context, part Region, value float64) error {
	const op = "FillSlice"
	l, err := a.part(op, part)
	if err != nil {
		return err
	}
	return a.fill(ctx, op, l, value)
}

// part returns where a part of the array lies.
func (a *Array) part(op string, part Region) (layout, error) {
	if _, err := a.container(op); err != nil {
		return layout{}, err
	}
	return a.slice(op, part)
}

// Assign sets all elements to those of src, as [Array.AssignSlice] does for a part.
func (a *Array) Assign(ctx context.Context, src *Array) error {
	return a.assign(ctx, "Assign", a.at(), src)
}

// AssignSlice sets a part's elements to those of src, which must have the same type: [ErrType] otherwise. Dimensions must
// agree, those of 1 not counted, or be stretched by NumPy's rules: [buffer.ErrShape] otherwise. The arrays may overlap.
func (a *Array) AssignSlice(ctx context.Context, part Region, src *Array) error {
	const op = "AssignSlice"
	l, err := a.part(op, part)
	if err != nil {
		return err
	}
	return a.assign(ctx, op, l, src)
}

func (a *Array) assign(ctx context.Context, op string, l layout, src *Array) error {
	if _, err := a.container(op); err != nil {
		return err
	}
	if _, err := src.container(op); err != nil {
		return err
	}
	if src.t != l.t {
		return fail(op, ErrType, src.t.String(), " to ", l.t.String())
	}
	if err := a.single(op); err != nil {
		return err
	}
	from, ok := src.stretch(l.shape)
	if !ok {
		from, ok = src.squeeze().stretch(l.squeeze().shape)
	}
	if !ok {
		return fail(op, buffer.ErrShape, text(src.shape), " to ", text(l.shape))
	}
	data, err := src.packed(ctx, op, from)
	if err != nil {
		return err
	}
	return a.write(op, func(b *buffer.Buffer) error { return writeLayout(ctx, b, l, data) })
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
		switch shape[more+d] {
		case n:
			strides[more+d] = l.strides[d]
		default:
			if n != 1 {
				return l, false
			}
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

// fillStep is how many bytes of the device's memory are filled at a time. It is a multiple of every element's size.
const fillStep = 4 << 20

func (a *Array) fill(ctx context.Context, op string, l layout, value float64) error {
	if _, err := a.container(op); err != nil {
		return err
	}
	element, err := encode(op, l.t, value)
	if err != nil {
		return err
	}
	return a.write(op, func(b *buffer.Buffer) error {
		n := l.bytes()
		if n == 0 {
			return nil
		}
		if !l.contiguous() {
			w := l.walk()
			lo, hi, _ := l.span()
			return b.Access(ctx, buffer.Range(lo, hi-lo), buffer.Writes, func(mem []byte) error {
				w.fill(mem, l.offset-lo, element)
				return nil
			})
		}
		if none(element) {
			if done, err := zero(b, l.offset, n); done || err != nil {
				return err
			}
		}
		step := fillStep / len(element) * len(element)
		for done := 0; done < n; done += step {
			err := b.Access(ctx, buffer.Range(l.offset+done, min(step, n-done)), buffer.Replaces, func(mem []byte) error {
				repeat(mem, element)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func none(element []byte) bool {
	return !slices.ContainsFunc(element, func(b byte) bool { return b != 0 })
}

// zero has the device clear its memory, if that is where the bits are and they fill whole words, and reports whether it
// does.
func zero(b *buffer.Buffer, offset, n int) (bool, error) {
	size := n
	if offset+n == b.Size() {
		size = (n + 3) / 4 * 4 // what follows is nobody's
	}
	if onHost(b) || offset%4 != 0 || size%4 != 0 {
		return false, nil
	}
	mem, err := b.Memory(intent(n == b.Size()))
	if err != nil {
		return false, err
	}
	if uint64(offset)+uint64(size) > mem.Size() {
		return false, nil
	}
	if err := mem.Clear(uint64(offset), uint64(size)); err != nil {
		return false, err
	}
	b.Wrote(b.Device(), buffer.Range(offset, n))
	return true, nil
}

// encode returns the bytes of an element, all lanes with the value.
func encode(op string, t dtype.Type, v float64) ([]byte, error) {
	var bits uint64
	size := int(t.Bits)
	switch {
	case t.Code == dtype.Float && size == 64:
		bits = math.Float64bits(v)
	case t.Code == dtype.Float && size == 32:
		bits = uint64(math.Float32bits(float32(v)))
	case t == dtype.Float16 || t.Code == dtype.Float && size == 16:
		bits = uint64(dtype.ToHalf(v).Bits())
	case (t.Code == dtype.Int || t.Code == dtype.UInt) && 8 <= size && size <= 64:
		lo, hi := 0.0, math.Ldexp(1, size)
		if t.Code == dtype.Int {
			lo, hi = -hi/2, hi/2
		}
		n := math.Trunc(v)
		if !(lo <= n && n < hi) { // NaN too
			return nil, fail(op, ErrValue, strconv.FormatFloat(v, 'g', -1, 64), " as ", t.String())
		}
		if t.Code == dtype.Int {
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
