// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Option places a matrix in its memory.
type Option func(*placement)

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
}

// ColMajor stores columns, not rows, in a row.
func ColMajor() Option { return func(p *placement) { p.order = ColMajorOrder } }

func rowMajor(p *placement) { p.order = RowMajorOrder }

// RowMajorInput says that memory to be copied holds the elements row by row, whatever the order of the matrix. See
// [FromBuffer]. With [ColMajor] and a constructor that does not turn them it is [ErrInvalid].
func RowMajorInput() Option { return func(p *placement) { p.rowMajorInput = true } }

// Stride sets the distance in elements between two rows (two columns in column-major order). It is at least their length,
// which it is when the option is absent.
func Stride(n int) Option { return func(p *placement) { p.stride, p.hasStride = n, true } }

// Offset lets the matrix begin n elements into the memory.
func Offset(n int) Option { return func(p *placement) { p.offset = n } }

// Aligned demands that the offset is a multiple of 16 bytes and the stride one of 4 elements: [ErrAlignment] otherwise.
func Aligned() Option { return func(p *placement) { p.aligned = true } }

// Padded demands a stride of at least the next multiple of 4 elements, [ErrCapacity] otherwise, and memory for whole rows
// (columns). The elements between the end of a row and the next are set to zero, and stay zero whatever is assigned to the
// matrix. Owned matrices get such a stride by themselves; for other memory, give it with [Stride].
func Padded() Option { return func(p *placement) { p.padded = true } }

// Release is called once, when the last share of wrapped memory is closed. Of several, all are called, the last one first;
// nil forgets those before it.
func Release(fn func()) Option {
	return func(p *placement) {
		if before := p.release; before != nil && fn != nil {
			p.release = func() { fn(); before() }
			return
		}
		p.release = fn
	}
}

// Destroy destroys a wrapped GPU buffer, unmapping it if need be, when the last share of it is closed. A function of
// [Release] is called after that. For host memory it means nothing: that is the garbage collector's.
func Destroy() Option { return func(p *placement) { p.destroy = true } }

// ours adds that the memory is made for the matrix.
func ours(opts []Option) []Option {
	return append(slices.Clip(opts), func(p *placement) { p.ours = true })
}

// alignment is how many elements a vector has; see Aligned.
const alignment = 4

func newPlacement(opts []Option) placement {
	if len(opts) == 0 {
		return placement{} // on the stack
	}
	p := new(placement)
	for _, o := range opts {
		if o != nil {
			o(p)
		}
	}
	return *p
}

// layout applies the options to a rows x cols matrix.
func (p placement) layout(op string, rows, cols int, t fuse.Type) (layout, error) {
	if err := checkDims(op, rows, cols); err != nil {
		return layout{}, err
	}
	if p.rowMajorInput && p.order == ColMajorOrder {
		return layout{}, fail(op, ErrInvalid, "RowMajorInput with ColMajor, where nothing is turned")
	}
	l := layout{rows: rows, cols: cols, offset: p.offset, order: p.order}
	l.stride = l.minor()
	if p.padded && p.ours {
		l.stride = shaders.Ceil(l.stride, alignment) * alignment
	}
	if p.hasStride {
		l.stride = p.stride
	}
	if p.offset < 0 || p.stride < 0 || l.stride < l.minor() && !p.padded {
		return layout{}, fail(op, ErrStride, "offset ", itoa(p.offset), ", stride ", itoa(p.stride), " for rows of ", itoa(l.minor()))
	}
	if p.aligned && (p.offset*t.Size()%16 != 0 || l.stride%alignment != 0) {
		return layout{}, fail(op, ErrAlignment, "offset ", itoa(p.offset), ", stride ", itoa(l.stride))
	}
	if p.padded && l.stride < shaders.Ceil(l.minor(), alignment)*alignment {
		return layout{}, fail(op, ErrCapacity, "stride ", itoa(l.stride), " for rows of ", itoa(l.minor()))
	}
	if n, ok := elements(max(l.major(), 1), max(l.stride, 1)); !ok || p.offset > maxElements-n {
		return layout{}, fail(op, ErrLimit, "too many elements between the first and the last")
	}
	return l, nil
}
