// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// extent is what the elements of a tensor span: bytes low to high, counted from the first element.
type extent struct {
	elements, low, high int64
}

// check judges a tensor of this program.
func (t *Tensor) check(op string) (extent, error) {
	switch {
	case t == nil:
		return extent{}, fail(op, gpu.ErrInvalid, "nil tensor")
	case t.gone.Load():
		return extent{}, fail(op, gpu.ErrClosed, "the tensor")
	case !t.Device.onHost() && t.Data != nil:
		return extent{}, fail(op, ErrMemory, "host memory as ", t.Device.text())
	case t.Device.onHost() && t.Handle != 0:
		return extent{}, fail(op, ErrMemory, "a handle as host memory")
	}
	return t.judge(op, uintptr(t.Data))
}

// judge is the one judge of tensors, of those that are lent out and those that come in. The latter have no Data yet: what
// a foreign library gives as an address becomes a pointer only when the rest is in order.
func (t *Tensor) judge(op string, data uintptr) (extent, error) {
	if why := badType(t.Type); why != "" {
		return extent{}, fail(op, ErrType, t.Type.String(), why)
	}
	e, why := t.span()
	if why != "" {
		return extent{}, fail(op, ErrShape, fmt.Sprintf("%v, strides %v: %s", t.Shape, t.Strides, why))
	}
	if why := t.badMemory(e, data); why != "" {
		return extent{}, fail(op, ErrMemory, why)
	}
	return e, nil
}

// bitsOf are the bits that the elements of each of DLPack 1.1's type codes can have, one byte each.
var bitsOf = [...]string{
	integers, integers, "\x10\x20\x40\x80", // int, uint, float
	"\x20\x40", "\x10", "\x20\x40\x80", "\x08", // opaque handles, bfloat, complex, bool
	"\x08", "\x08", "\x08", "\x08", "\x08", "\x08", "\x08", "\x08", // floats of a byte
	"\x06", "\x06", "\x04", // floats of less than a byte
}

const integers = "\x01\x02\x03\x04\x05\x06\x07\x08\x10\x20\x40\x80"

// badType says what is wrong with an element type, if anything is.
func badType(t dtype.Type) string {
	switch {
	case int(t.Code) >= len(bitsOf):
		return ": unknown code"
	case strings.IndexByte(bitsOf[t.Code], t.Bits) < 0:
		return fmt.Sprintf(": %d bits", t.Bits)
	case t.Lanes == 0:
		return ": no lanes"
	}
	return ""
}

// span finds where the elements lie.
func (t *Tensor) span() (e extent, why string) {
	if len(t.Shape) > maxRank {
		return e, fmt.Sprintf("more than %d dimensions", maxRank)
	}
	if t.Strides != nil && len(t.Strides) != len(t.Shape) {
		return e, "not a stride for each dimension"
	}
	elements, _, ok := t.Type.Bytes(t.Shape)
	if !ok {
		return e, "a negative dimension, or more bytes than can be counted"
	}
	if elements == 0 {
		return e, ""
	}
	low, high, ok := reach(t.Shape, t.strides())
	width := int64(t.Type.Size()) * 8
	if t.packed() {
		width = int64(t.Type.Bits) * int64(t.Type.Lanes)
	}
	if !ok || high >= math.MaxInt64/width || low < -math.MaxInt64/width {
		return e, "strides too large, or more bytes than can be counted"
	}
	return extent{elements, (low * width) >> 3, ((high+1)*width + 7) >> 3}, ""
}

// reach returns the lowest and the highest place of an element, in elements from the first one.
func reach(shape, strides []int64) (low, high int64, ok bool) {
	const most = math.MaxInt64 / 2 / maxRank // so that sums cannot overflow
	for i, d := range shape {
		steps, s := d-1, strides[i]
		if steps == 0 || s == 0 {
			continue
		}
		if s < -most || s > most || steps > most/max(s, -s) {
			return 0, 0, false
		}
		low += min(steps*s, 0)
		high += max(steps*s, 0)
	}
	return low, high, true
}

// badMemory says what is wrong with where a tensor lies, as far as can be seen. Handles can be anything.
func (t *Tensor) badMemory(e extent, data uintptr) string {
	if e.elements == 0 {
		return ""
	}
	if t.ByteOffset > math.MaxInt64-uint64(e.high) {
		return fmt.Sprintf("offset %d", t.ByteOffset)
	}
	if !t.Device.onHost() {
		return ""
	}
	if data < lowest {
		return "no memory"
	}
	begin, end := int64(t.ByteOffset)+e.low, int64(t.ByteOffset)+e.high
	if begin < 0 && uint64(-begin) > uint64(data-lowest) || end > 0 && uint64(end) > uint64(^uintptr(0)-data) ||
		end-begin > math.MaxInt {
		return fmt.Sprintf("bytes %d to %d of what is at %#x", begin, end, data)
	}
	return ""
}

// compact returns the strides of rows without gaps.
func compact(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	step := int64(1)
	for i, d := range slices.Backward(shape) {
		strides[i] = step
		if d > 1 && step <= math.MaxInt64/d { // it does not fit only where a dimension is 0, and then does not matter
			step *= d
		}
	}
	return strides
}
