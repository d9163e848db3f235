// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Options places a matrix in its memory. Without one, or with the zero value, the matrix begins where the memory does, and its
// rows lie one after the other without gaps. What a constructor has no use for is [gpu.ErrInvalid], and so are several.
type Options struct {
	ColMajor bool // columns lie one after the other, not rows
	Offset   int  // how many elements of the memory come before the first
	Stride   int  // the distance in elements of two rows (columns), at least their length, which it is if 0
	// Aligned demands that the offset is a multiple of 16 bytes and the stride one of 4 elements: [ErrAlignment] otherwise.
	Aligned bool
	// Padded demands a stride of at least the next multiple of 4 elements, [ErrCapacity] otherwise, and memory for whole rows
	// (columns). The elements between the end of a row and the next are set to zero, and stay zero whatever is assigned to the
	// matrix. New memory has such a stride without Stride.
	Padded bool
	// RowMajorInput says that memory which [FromBuffer] copies holds the elements row by row, whatever the order of the matrix.
	RowMajorInput bool
	// Type is the element type of a matrix of type [Any]. Of another it can only be what T is.
	Type DType
	// Release is called once, when the last share of wrapped memory is closed. Memory that is the library's has none.
	Release func()
	// Destroy destroys a wrapped GPU buffer, unmapping it if need be, before Release is called. For host memory it means nothing.
	Destroy bool
}

// alignment is how many elements a vector has.
const alignment = 4

// parse returns the options of a constructor for elements of type t, which becomes their Type unless it is not known.
func parse(op string, t fuse.Type, opts []Options) (o Options, err error) {
	if len(opts) > 1 {
		return o, fail(op, gpu.ErrInvalid, "more than one Options")
	}
	if len(opts) == 1 {
		o = opts[0]
	}
	switch {
	case o.Type > Float16:
		return o, fail(op, gpu.ErrInvalid, "unknown element type")
	case t == expr.Untyped:
	case o.Type != fuse.F32 && o.Type != t:
		return o, fail(op, gpu.ErrInvalid, o.Type.String(), " for a matrix of ", t.String())
	default:
		o.Type = t
	}
	return o, nil
}

// unreleased refuses a release function where memory is made or copied.
func (o *Options) unreleased(op string) error {
	if o.Release != nil {
		return fail(op, gpu.ErrInvalid, "Release of memory that is the library's")
	}
	return nil
}

// layout applies the options to a rows x cols matrix, in new memory or in memory that there is.
func (o *Options) layout(op string, rows, cols int, anew bool) (expr.Layout, error) {
	l := expr.Layout{Rows: rows, Cols: cols, Offset: o.Offset}
	if o.ColMajor {
		l.Order = expr.ColMajorOrder
	}
	if err := expr.CheckDims(op, rows, cols); err != nil {
		return l, err
	}
	l.Stride = l.Minor()
	padded := shaders.Ceil(l.Minor(), alignment) * alignment
	switch {
	case o.Stride != 0:
		l.Stride = o.Stride
	case o.Padded && anew:
		l.Stride = padded
	}
	var wrong error
	switch n, ok := expr.Elements(max(l.Major(), 1), max(l.Stride, 1)); {
	case o.RowMajorInput && o.ColMajor: // where nothing is turned
		wrong = gpu.ErrInvalid
	case o.Offset < 0 || o.Stride < 0 || l.Stride < l.Minor() && !o.Padded:
		wrong = buffer.ErrStride
	case o.Aligned && (o.Offset*o.Type.Size()%16 != 0 || l.Stride%alignment != 0):
		wrong = ErrAlignment
	case o.Padded && l.Stride < padded:
		wrong = ErrCapacity
	case !ok || o.Offset > expr.MaxElements-n:
		wrong = gpu.ErrLimit
	default:
		return l, nil
	}
	return l, fail(op, wrong, "offset ", itoa(o.Offset), ", stride ", itoa(l.Stride), " for rows of ", itoa(l.Minor()))
}
