// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/gpu"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Option places a matrix in its memory. One that a constructor has no use for is an error, not ignored.
type Option func(*placement) error

type placement struct {
	order          Order
	offset, stride int
	hasStride      bool
	aligned        bool
	padded         bool
	ours           bool // the memory is made for the matrix, of zeros
	rowMajorInput  bool
	release        func()
	destroy        bool
	t              fuse.Type
	hasType        bool
}

// ColMajor stores columns, not rows, in a row.
func ColMajor() Option {
	return func(p *placement) error {
		p.order = ColMajorOrder
		return nil
	}
}

// RowMajorInput says that memory to be copied holds the elements row by row, whatever the order of the matrix. See
// [FromBuffer]. With [ColMajor] and a constructor that does not turn them it is [gpu.ErrInvalid].
func RowMajorInput() Option {
	return func(p *placement) error {
		p.rowMajorInput = true
		return nil
	}
}

// Stride sets the distance in elements between two rows (two columns in column-major order). It is at least their length,
// which it is when the option is absent.
func Stride(n int) Option {
	return func(p *placement) error {
		p.stride, p.hasStride = n, true
		return nil
	}
}

// Offset lets the matrix begin n elements into the memory.
func Offset(n int) Option {
	return func(p *placement) error {
		p.offset = n
		return nil
	}
}

// Aligned demands that the offset is a multiple of 16 bytes and the stride one of 4 elements: [ErrAlignment] otherwise.
func Aligned() Option {
	return func(p *placement) error {
		p.aligned = true
		return nil
	}
}

// Padded demands a stride of at least the next multiple of 4 elements, [ErrCapacity] otherwise, and memory for whole rows
// (columns). The elements between the end of a row and the next are set to zero, and stay zero whatever is assigned to the
// matrix. Owned matrices get such a stride by themselves; for other memory, give it with [Stride].
func Padded() Option {
	return func(p *placement) error {
		p.padded = true
		return nil
	}
}

// Release is called once, when the last share of wrapped memory is closed. Of several, all are called, the last one first;
// nil forgets those before it. Where memory is made or copied there is nothing to release: [gpu.ErrInvalid].
func Release(fn func()) Option {
	return func(p *placement) error {
		if before := p.release; before != nil && fn != nil {
			p.release = func() { fn(); before() }
			return nil
		}
		p.release = fn
		return nil
	}
}

// Destroy destroys a wrapped GPU buffer, unmapping it if need be, when the last share of it is closed. A function of
// [Release] is called after that. For host memory it means nothing: that is the garbage collector's.
func Destroy() Option {
	return func(p *placement) error {
		p.destroy = true
		return nil
	}
}

// OfType chooses the element type of a matrix of type [Any], which is float32 without it. Of another it can only be what T is:
// [gpu.ErrInvalid].
func OfType(t DType) Option {
	return func(p *placement) error {
		if t > Float16 {
			return fail("OfType", gpu.ErrInvalid, "unknown element type")
		}
		p.t, p.hasType = fuse.Type(t), true
		return nil
	}
}

// alignment is how many elements a vector has; see Aligned.
const alignment = 4

func newPlacement(opts []Option) (placement, error) {
	if len(opts) == 0 {
		return placement{}, nil // on the stack
	}
	p := new(placement)
	for _, o := range opts {
		if o == nil {
			continue
		}
		if err := o(p); err != nil {
			return placement{}, err
		}
	}
	return *p, nil
}

// placementOf applies the options of a constructor for elements of type T.
func placementOf[T Elem](op string, opts []Option) (placement, error) {
	p, err := newPlacement(opts)
	if err != nil {
		return p, err
	}
	t := typeOf[T]()
	switch {
	case t == expr.Untyped: // that of the option, or float32
	case p.hasType && p.t != t:
		return p, fail(op, gpu.ErrInvalid, DType(p.t).String(), " for a matrix of ", DType(t).String())
	default:
		p.t = t
	}
	return p, nil
}

// unreleased refuses a release function where memory is made or copied.
func (p *placement) unreleased(op string) error {
	if p.release != nil {
		return fail(op, gpu.ErrInvalid, "Release of memory that is the library's")
	}
	return nil
}

// layout applies the options to a rows x cols matrix.
func (p *placement) layout(op string, rows, cols int) (expr.Layout, error) {
	var none expr.Layout
	if err := expr.CheckDims(op, rows, cols); err != nil {
		return none, err
	}
	if p.rowMajorInput && p.order == ColMajorOrder {
		return none, fail(op, gpu.ErrInvalid, "RowMajorInput with ColMajor, where nothing is turned")
	}
	l := expr.Layout{Rows: rows, Cols: cols, Offset: p.offset, Order: p.order}
	l.Stride = l.Minor()
	if p.padded && p.ours {
		l.Stride = padding(l.Stride)
	}
	if p.hasStride {
		l.Stride = p.stride
	}
	if p.offset < 0 || p.stride < 0 || l.Stride < l.Minor() && !p.padded {
		return none, fail(op, ErrStride, "offset ", itoa(p.offset), ", stride ", itoa(p.stride), " for rows of ", itoa(l.Minor()))
	}
	if p.aligned && (p.offset*p.t.Size()%16 != 0 || l.Stride%alignment != 0) {
		return none, fail(op, ErrAlignment, "offset ", itoa(p.offset), ", stride ", itoa(l.Stride))
	}
	if p.padded && l.Stride < padding(l.Minor()) {
		return none, fail(op, ErrCapacity, "stride ", itoa(l.Stride), " for rows of ", itoa(l.Minor()))
	}
	if n, ok := expr.Elements(max(l.Major(), 1), max(l.Stride, 1)); !ok || p.offset > expr.MaxElements-n {
		return none, fail(op, gpu.ErrLimit, "too many elements between the first and the last")
	}
	return l, nil
}

// padding is the next multiple of a vector's elements.
func padding(n int) int { return shaders.Ceil(n, alignment) * alignment }

// with appends an option.
func with(opts []Option, more ...Option) []Option { return append(slices.Clip(opts), more...) }
