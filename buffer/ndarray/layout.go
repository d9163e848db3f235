// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"math"
	"math/bits"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// maxDims is how many dimensions an array may have.
const maxDims = 32

// layout places an array in a buffer: strides in elements, the offset of the first element in bytes. Arrays without
// elements have strides of 0, so that no arithmetic on them goes astray.
type layout struct {
	t       dtype.Type
	shape   []int
	strides []int
	offset  int
}

// newLayout checks everything but the memory's size. Without strides the order is C's.
func newLayout(op string, t dtype.Type, shape, strides []int, offset int) (layout, error) {
	if err := verify(op, t); err != nil {
		return layout{}, err
	}
	if len(shape) > maxDims {
		return layout{}, fail(op, buffer.ErrShape, itoa(len(shape)), " dimensions, at most ", itoa(maxDims))
	}
	if strides != nil && len(strides) != len(shape) {
		return layout{}, fail(op, buffer.ErrStride, itoa(len(strides)), " strides for ", itoa(len(shape)), " dimensions")
	}
	if offset < 0 {
		return layout{}, fail(op, buffer.ErrStride, "offset ", itoa(offset))
	}
	n, size, ok := t.Bytes(wide(shape))
	if !ok || size > math.MaxInt {
		return layout{}, fail(op, buffer.ErrSize, text(shape), " of ", t.String())
	}
	l := layout{t: t, shape: slices.Clone(shape), strides: make([]int, len(shape)), offset: offset}
	switch {
	case n == 0:
	case strides != nil:
		copy(l.strides, strides)
	default:
		l.pack()
	}
	if _, _, ok := l.span(); !ok {
		return layout{}, fail(op, buffer.ErrStride, "strides ", text(strides), ", offset ", itoa(offset), " for ", text(shape))
	}
	return l, nil
}

func wide(shape []int) []int64 {
	v := make([]int64, len(shape))
	for i, d := range shape {
		v[i] = int64(d)
	}
	return v
}

// pack sets the strides to those of C order without gaps.
func (l *layout) pack() {
	step := 1
	for i := len(l.shape) - 1; i >= 0; i-- {
		l.strides[i] = step
		step *= l.shape[i]
	}
}

// elements returns how many elements there are. newLayout saw that the number fits.
func (l layout) elements() int {
	if slices.Contains(l.shape, 0) {
		return 0
	}
	n := 1
	for _, d := range l.shape {
		n *= d
	}
	return n
}

func (l layout) bytes() int { return l.elements() * l.t.Size() }

// span returns the bytes that the array covers, from lo up to but not including hi, or false where they overflow or lie
// before the memory.
func (l layout) span() (lo, hi int, ok bool) {
	lo, hi = l.offset, l.offset
	if l.elements() == 0 {
		return lo, hi, true
	}
	for i, d := range l.shape {
		ext, ok := times(d-1, l.strides[i])
		if ok {
			ext, ok = times(ext, l.t.Size())
		}
		if ok && ext < 0 {
			lo, ok = lo+ext, lo+ext >= 0
		} else if ok {
			hi, ok = hi+ext, hi <= math.MaxInt-ext
		}
		if !ok {
			return 0, 0, false
		}
	}
	return lo, hi + l.t.Size(), hi <= math.MaxInt-l.t.Size()
}

// times multiplies and reports whether the product fits.
func times(a, b int) (int, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > math.MaxInt {
		return 0, false
	}
	return a * b, true
}

func magnitude(a int) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// within refuses layouts that do not fit into the memory, and those that show it so often that a copy would be larger than
// any buffer.
func (l layout) within(op string, size int, limit uint64) error {
	if _, hi, _ := l.span(); hi > size {
		return fail(op, buffer.ErrShort, itoa(size), " bytes, the layout needs ", itoa(hi))
	}
	if l.bytes() > size && uint64(l.bytes()) > limit {
		return fail(op, gpu.ErrLimit, text(l.shape), " of ", l.t.String())
	}
	return nil
}

// contiguous reports whether the elements lie in C order without gaps, by DLPack's rules: strides of dimensions of one
// element mean nothing, and so do those of arrays without elements.
func (l layout) contiguous() bool {
	if l.elements() == 0 {
		return true
	}
	step := 1
	for i, d := range slices.Backward(l.shape) {
		if d != 1 && l.strides[i] != step {
			return false
		}
		step *= d
	}
	return true
}

// repeats reports whether elements certainly share memory. Such arrays can be read only.
func (l layout) repeats() bool {
	lo, hi, _ := l.span()
	return l.bytes() > hi-lo
}

// settled sets the strides of an array without elements to 0.
func (l layout) settled() layout {
	if l.elements() == 0 {
		l.strides = make([]int, len(l.shape))
	}
	return l
}

// walk is a layout in bytes for going over the elements in C order: runs of bytes without gaps, counts and steps of the
// dimensions around them, the innermost first.
type walk struct {
	run    int
	counts []int
	steps  []int
}

func (l layout) walk() walk {
	w := walk{run: l.t.Size()}
	for i, d := range slices.Backward(l.shape) {
		step := l.strides[i] * l.t.Size()
		last := len(w.counts) - 1
		switch {
		case d == 1:
		case last < 0 && step == w.run:
			w.run *= d
		case last >= 0 && step == w.steps[last]*w.counts[last]:
			w.counts[last] *= d
		default:
			w.counts, w.steps = append(w.counts, d), append(w.steps, step)
		}
	}
	return w
}

// rows returns the walk as rows of a buffer, if it is one.
func (w walk) rows(lo int) (buffer.Region, bool) {
	switch {
	case len(w.counts) == 0:
		return buffer.Region{Offset: lo, Width: w.run, Pitch: w.run, Count: 1}, true
	case len(w.counts) == 1 && w.steps[0] >= w.run:
		return buffer.Region{Offset: lo, Width: w.run, Pitch: w.steps[0], Count: w.counts[0]}, true
	}
	return buffer.Region{}, false
}

// lines calls fn for each innermost dimension, with the position of its first run, in C order.
func (w walk) lines(pos int, fn func(pos, n, step int)) {
	if len(w.counts) == 0 {
		fn(pos, 1, 0)
		return
	}
	var at [maxDims]int
	for {
		fn(pos, w.counts[0], w.steps[0])
		d := 1
		for ; d < len(w.counts); d++ {
			at[d]++
			pos += w.steps[d]
			if at[d] < w.counts[d] {
				break
			}
			pos -= w.counts[d] * w.steps[d]
			at[d] = 0
		}
		if d == len(w.counts) {
			return
		}
	}
}

// gather copies the elements in mem, the first at pos, to dst in C order without gaps.
func (w walk) gather(dst, mem []byte, pos int) {
	done := 0
	w.lines(pos, func(pos, n, step int) {
		copyRuns(dst, done, w.run, mem, pos, step, n, w.run)
		done += n * w.run
	})
}

// scatter is the way back.
func (w walk) scatter(mem []byte, pos int, src []byte) {
	done := 0
	w.lines(pos, func(pos, n, step int) {
		copyRuns(mem, pos, step, src, done, w.run, n, w.run)
		done += n * w.run
	})
}

// copyRuns copies n runs; single numbers, the usual case of a transpose, without the call that copy would be.
func copyRuns(dst []byte, d, dstep int, src []byte, s, sstep, n, run int) {
	switch run {
	case 1:
		for range n {
			dst[d] = src[s]
			d, s = d+dstep, s+sstep
		}
	case 4:
		for range n {
			*(*[4]byte)(dst[d:]) = *(*[4]byte)(src[s:])
			d, s = d+dstep, s+sstep
		}
	case 8:
		for range n {
			*(*[8]byte)(dst[d:]) = *(*[8]byte)(src[s:])
			d, s = d+dstep, s+sstep
		}
	default:
		for range n {
			copy(dst[d:d+run], src[s:])
			d, s = d+dstep, s+sstep
		}
	}
}
