// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// View returns the array's bytes from one on as elements of a type and shape, of at most as many bytes. The array must be
// contiguous ([buffer.ErrStride]) and the view no larger ([buffer.ErrShort]).
func (a *Array) View(t dtype.Type, offset int, shape ...int) (*Array, error) {
	const op = "View"
	return a.derive(op, func(l layout) (layout, error) {
		left := l.bytes() - offset
		if offset < 0 || left < 0 {
			return l, fail(op, buffer.ErrIndex, "byte ", offset, " of ", l.bytes())
		}
		v, err := newLayout(op, t, shape, nil, l.offset+offset)
		switch {
		case !l.contiguous():
			err = fail(op, buffer.ErrStride, "the array has gaps")
		case err == nil && v.bytes() > left:
			err = fail(op, buffer.ErrShort, left, " bytes, the view needs ", v.bytes())
		}
		return v, err
	})
}

// Reshape returns a view of a contiguous array with other dimensions and the same number of elements.
func (a *Array) Reshape(shape ...int) (*Array, error) {
	const op = "Reshape"
	return a.derive(op, func(l layout) (layout, error) {
		v, err := newLayout(op, l.t, shape, nil, l.offset)
		switch {
		case !l.contiguous():
			err = fail(op, buffer.ErrStride, "the array has gaps")
		case err == nil && v.elements() != l.elements():
			err = fail(op, buffer.ErrShape, text(l.shape), " to ", text(shape), ": ", fault.Needs("another shape", l.elements(), "element"))
		}
		return v, err
	})
}

// Region is a part of an array as the reference's C functions take it: along dimension d the indices Starts[d],
// Starts[d]+Steps[d] and so on, before Ends[d] is reached. Steps of nil are 1. A step may be negative: then the end is below
// the start, and -1 to include index 0. Bounds do not count from the end when negative. Sizes are the numbers of indices
// in each dimension: computed if nil, else they must agree.
type Region struct{ Starts, Ends, Steps, Sizes []int }

// Slice returns a part, to read, [Array.Fill] or [Array.Assign]. Its bounds must lie in the dimensions: [buffer.ErrIndex].
func (a *Array) Slice(r Region) (*Array, error) {
	const op = "Slice"
	return a.derive(op, func(l layout) (layout, error) {
		n := len(l.shape)
		if len(r.Starts) != n || len(r.Ends) != n || r.Steps != nil && len(r.Steps) != n || r.Sizes != nil && len(r.Sizes) != n {
			return l, fail(op, buffer.ErrShape, "bounds for ", len(r.Starts), " dimensions of ", n)
		}
		out := layout{t: l.t, shape: make([]int, n), strides: slices.Clone(l.strides), offset: l.offset}
		for d := range n {
			step := 1
			if r.Steps != nil {
				step = r.Steps[d]
			}
			count, ok := indices(l.shape[d], r.Starts[d], r.Ends[d], step)
			if !ok {
				return l, fail(op, buffer.ErrIndex, r.Starts[d], ":", r.Ends[d], ":", step, " of dimension ", d, " of ", text(l.shape))
			}
			if r.Sizes != nil && r.Sizes[d] != count {
				return l, fail(op, buffer.ErrShape, "size ", r.Sizes[d], " for ", count, " indices of dimension ", d)
			}
			out.shape[d] = count
			if count > 1 {
				out.strides[d] *= step
			}
		}
		if out.elements() > 0 { // else a start may be the end
			for d, s := range r.Starts {
				out.offset += s * l.strides[d] * l.t.Size()
			}
		}
		return out, nil
	})
}

// indices counts those from start on in steps before end, or reports bounds outside of the dimension.
func indices(dim, start, end, step int) (int, bool) {
	n, by := uint64(end-start), uint64(step)
	switch {
	case step > 0 && 0 <= start && start <= end && end <= dim:
	case step < 0 && -1 <= end && end <= start && start < dim:
		n, by = -n, -by
	default:
		return 0, false
	}
	return int(n/by + min(n%by, 1)), true
}

// Index returns the part at the given indices of the first dimensions; the others stay.
func (a *Array) Index(at ...int) (*Array, error) {
	const op = "Index"
	return a.derive(op, func(l layout) (layout, error) {
		if len(at) > len(l.shape) {
			return l, fail(op, buffer.ErrShape, len(at), " indices for ", text(l.shape))
		}
		out := layout{t: l.t, shape: l.shape[len(at):], strides: l.strides[len(at):], offset: l.offset}
		for d, i := range at {
			if i < 0 || i >= l.shape[d] {
				return l, fail(op, buffer.ErrIndex, i, " of dimension ", d, " of ", text(l.shape))
			}
			out.offset += i * l.strides[d] * l.t.Size()
		}
		return out, nil
	})
}

// Transpose returns a view with the dimensions in another order: dimension d of the view is dimension axes[d] of the
// array. Without axes the order is reversed.
func (a *Array) Transpose(axes ...int) (*Array, error) {
	const op = "Transpose"
	return a.derive(op, func(l layout) (layout, error) {
		n := len(l.shape)
		order := axes
		if len(axes) == 0 {
			for d := range n {
				order = append(order, n-1-d)
			}
		}
		if len(order) != n {
			return l, fail(op, buffer.ErrShape, len(axes), " axes for ", text(l.shape))
		}
		for d, x := range slices.Sorted(slices.Values(order)) {
			if d != x {
				return l, fail(op, buffer.ErrIndex, "axes ", text(axes), " of ", text(l.shape))
			}
		}
		out := layout{t: l.t, offset: l.offset}
		for _, x := range order {
			out.shape, out.strides = append(out.shape, l.shape[x]), append(out.strides, l.strides[x])
		}
		return out, nil
	})
}
