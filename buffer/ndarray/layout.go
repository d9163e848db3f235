// SPDX-License-Identifier: Apache-2.0

package ndarray

import (
	"math"
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

// newLayout checks everything but the memory's size. Without strides the order is C's. Of types it asks what the reference's
// VerifyDataType asks, whatever their code, and refuses those without bits, too.
func newLayout(op string, t dtype.Type, shape, strides []int, offset int) (layout, error) {
	power := t.Bits >= 8 && t.Bits&(t.Bits-1) == 0
	if bool1 := t.Bits == 1 && t.Code == dtype.Bool1.Code; t.Lanes == 0 || !power && !bool1 {
		return layout{}, fail(op, ErrType, t.String())
	}
	if len(shape) > maxDims {
		return layout{}, fail(op, buffer.ErrShape, len(shape), " dimensions, at most ", maxDims)
	}
	if strides != nil && len(strides) != len(shape) {
		return layout{}, fail(op, buffer.ErrStride, len(strides), " strides for ", len(shape), " dimensions")
	}
	n, size, ok := t.Bytes(wide(shape))
	if !ok || size > math.MaxInt {
		return layout{}, fail(op, buffer.ErrSize, text(shape), " of ", t.String())
	}
	l := layout{t: t, shape: slices.Clone(shape), strides: make([]int, len(shape)), offset: offset}
	if n > 0 && strides != nil {
		copy(l.strides, strides)
	} else if n > 0 {
		step := 1
		for i, d := range slices.Backward(shape) {
			l.strides[i] = step
			step *= d
		}
	}
	if _, _, ok := l.span(); !ok {
		return layout{}, fail(op, buffer.ErrStride, "strides ", text(strides), ", offset ", offset, " for ", text(shape))
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

// elements returns how many elements there are. newLayout saw that the number fits.
func (l layout) elements() int {
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
	if l.elements() == 0 {
		return l.offset, l.offset, l.offset >= 0
	}
	const most = math.MaxInt64 / 2 / maxDims // so that sums cannot overflow
	size, low, high := int64(l.t.Size()), int64(l.offset), int64(l.offset)
	for i, d := range l.shape {
		step := int64(l.strides[i])
		if d == 1 || step == 0 {
			continue
		}
		if step < -most || step > most || int64(d-1) > most/size/max(step, -step) {
			return 0, 0, false
		}
		low += min(int64(d-1)*step*size, 0)
		high += max(int64(d-1)*step*size, 0)
	}
	high += size
	return int(low), int(high), low >= 0 && l.offset <= math.MaxInt/2 && high <= math.MaxInt
}

// within refuses layouts that do not fit into the memory, and those that show it so often that a copy would be larger than
// any buffer.
func (l layout) within(op string, size int, limit uint64) error {
	if _, hi, _ := l.span(); hi > size {
		return fail(op, buffer.ErrShort, size, " bytes, the layout needs ", hi)
	}
	if l.bytes() > size && uint64(l.bytes()) > limit {
		return fail(op, gpu.ErrLimit, text(l.shape), " of ", l.t.String())
	}
	return nil
}

// contiguous reports whether the elements lie in C order without gaps, by DLPack's rules: strides of dimensions of one
// element mean nothing, and so do those of arrays without elements.
func (l layout) contiguous() bool { return l.elements() == 0 || len(l.walk().counts) == 0 }

// repeats reports whether elements certainly share memory. Such arrays can be read only.
func (l layout) repeats() bool {
	lo, hi, _ := l.span()
	return l.bytes() > hi-lo
}

// walk is a layout in bytes for going over the elements in C order: runs of bytes without gaps, counts and steps of the
// dimensions around them, the innermost first. There are none around a contiguous array.
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

// region returns what lies from lo to hi, as rows of the runs if it is.
func (w walk) region(lo, hi int) (r buffer.Region, rows bool) {
	if len(w.counts) == 1 && w.steps[0] >= w.run {
		return buffer.Region{Offset: lo, Width: w.run, Pitch: w.steps[0], Count: w.counts[0]}, true
	}
	return buffer.Range(lo, hi-lo), false
}

// lines calls fn for each innermost dimension in those up to d, with the position of its first run, in C order.
func (w walk) lines(d, pos int, fn func(pos, n, step int)) {
	if d == 0 {
		fn(pos, w.counts[0], w.steps[0])
		return
	}
	for range w.counts[d] {
		w.lines(d-1, pos, fn)
		pos += w.steps[d]
	}
}

// gather copies the elements in mem, the first at pos, to dst in C order without gaps.
func (w walk) gather(dst, mem []byte, pos int) {
	done := 0
	w.lines(len(w.counts)-1, pos, func(pos, n, step int) {
		copyRuns(dst, done, w.run, mem, pos, step, n, w.run)
		done += n * w.run
	})
}

// scatter is the way back.
func (w walk) scatter(mem []byte, pos int, src []byte) {
	done := 0
	w.lines(len(w.counts)-1, pos, func(pos, n, step int) {
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
