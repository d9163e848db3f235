// SPDX-License-Identifier: Apache-2.0

//go:build cgo && (amd64 || arm64)

package dlpack

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of this package, beside those of package gpu.
var (
	ErrType   = fault.New("ErrType", "impossible element type")
	ErrShape  = fault.New("ErrShape", "impossible shape")
	ErrMemory = fault.New("ErrMemory", "impossible address")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("dlpack: "+op, err, detail...)
}

// Device says what kind of memory a tensor lies in, with DLPack's values, and on which of the devices of that kind.
type Device struct{ Type, ID int32 }

// The kinds of memory that arrays are lent in.
const (
	CPU    int32 = 1
	WebGPU int32 = 15
)

// onHost reports whether the CPU reads and writes the memory at any time: its own, and what CUDA and ROCm call host memory.
func (d Device) onHost() bool { return d.Type == CPU || d.Type == 3 || d.Type == 11 }

func (d Device) text() string { return fmt.Sprintf("device %d of type %d", d.ID, d.Type) }

// The flags of DLPack 1.1, which tell a consumer more about a tensor. Others are not passed on, and [Legacy] has none.
const (
	ReadOnly uint64 = 1 << iota // the consumer must not write
	Copied                      // the tensor is a copy, which nobody but the consumer has
	Padded                      // elements of less than a byte have a byte each; without it they are packed
	known    = ReadOnly | Copied | Padded
)

// Place says where [FromArray] takes an array's elements.
type Place uint8

// The places.
const (
	// InPlace is where the bits are: host memory if the array has some, to which results are brought back first, or else
	// the device's buffer, as a WGPUBuffer and an offset. Nothing is copied otherwise.
	InPlace Place = iota
	// OnHost is host memory. What is only the GPU's is copied.
	OnHost
	// AsCopy is new host memory in any case, row by row without gaps, marked [Copied].
	AsCopy
)

// maxRank is how many dimensions a tensor may have.
const maxRank = 32

// Tensor is memory that is lent, by this program with [Export] or to it by [Import], and how its elements lie there. It
// must not be copied, and methods and Export of one Tensor must not run at the same time, except Close.
type Tensor struct {
	// Data is where host memory begins: Go's, which is pinned as long as it is lent and must hold no Go pointers, or
	// anybody else's. It is nil for other devices, and may be for tensors without elements.
	Data unsafe.Pointer
	// Handle is what other devices have in its place: an address of theirs or an opaque handle.
	Handle uintptr
	Device Device
	Type   dtype.Type
	// Shape has at most 32 dimensions; none is a single element.
	Shape []int64
	// Strides count elements. Nil means row by row without gaps; [Import] always fills them.
	Strides []int64
	// ByteOffset is where the first element is, from Data or Handle on.
	ByteOffset uint64
	Flags      uint64
	// Release, which may be nil, is called exactly once: by Close, or, once exported, when the consumer is done, on
	// whatever thread it is then.
	Release func()

	origin any // what is behind a handle: lent by FromArray, or the *gpu.Device of Trust
	gone   atomic.Bool
}

// Close gives the memory back to whom it belongs. It does nothing for a tensor that was exported: its consumer gives it
// back. Later calls do nothing, from whichever goroutine.
func (t *Tensor) Close() error {
	if t != nil && t.gone.CompareAndSwap(false, true) && t.Release != nil {
		t.Release()
	}
	return nil
}

// Host returns the memory of a tensor that the CPU reads, from its lowest element to its highest, and the byte of it at
// which the first element begins: 0 unless strides are negative. It fails with [gpu.ErrClosed], with [gpu.ErrUnsupported]
// for memory of other devices, or with what [Export] refuses. The memory is dead once the tensor is closed; it must not
// be written to if it is ReadOnly.
func (t *Tensor) Host() (mem gpu.Host, first int, err error) {
	const op = "Host"
	e, err := t.check(op)
	if err != nil {
		return gpu.Host{}, 0, err
	}
	if !t.Device.onHost() {
		return gpu.Host{}, 0, fail(op, gpu.ErrUnsupported, t.Device.text())
	}
	mem, first = t.memory(e)
	return mem, first, nil
}

func (t *Tensor) memory(e extent) (mem gpu.Host, first int) {
	mem = gpu.HostBytes([]byte{})
	if e.elements > 0 {
		begin := unsafe.Add(t.Data, int64(t.ByteOffset)+e.low)
		mem = gpu.HostBytes(unsafe.Slice((*byte)(begin), e.high-e.low))
	}
	mem.ReadOnly = t.Flags&ReadOnly != 0
	return mem, int(-e.low)
}

// Trust says that the handle of a [WebGPU] tensor that another library lends is a WGPUBuffer of this device, made with the
// *wgpu.Device that [gpu.Device.Handle] returns, with the usages Storage, CopySrc and CopyDst. Nobody can check that, and
// a wrong one ends the process. Tensors of [FromArray] need no trust, even after a way through another library.
func (t *Tensor) Trust(dev *gpu.Device) {
	if t != nil && dev != nil {
		t.origin = dev
	}
}

// packed reports whether elements share bytes.
func (t *Tensor) packed() bool { return t.Flags&Padded == 0 && t.Type.Bits%8 != 0 }

// strides returns the strides, also where they are missing: those of rows without gaps.
func (t *Tensor) strides() []int64 {
	if t.Strides != nil {
		return t.Strides
	}
	strides := make([]int64, len(t.Shape))
	step := int64(1)
	for i, d := range slices.Backward(t.Shape) {
		strides[i] = step
		step *= max(d, 1) // overflows only where another dimension is 0, and then does not matter
	}
	return strides
}

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
	case !t.Device.onHost() && t.Data != nil, t.Device.onHost() && t.Handle != 0:
		return extent{}, fail(op, ErrMemory, "Data is for host memory, Handle for other devices: ", t.Device.text())
	}
	return t.judge(op, uintptr(t.Data))
}

// bitsOf are the bits that the elements of each of DLPack 1.1's type codes can have, one byte each.
var bitsOf = [...]string{
	integers, integers, "\x10\x20\x40\x80", // int, uint, float
	"\x20\x40", "\x10", "\x20\x40\x80", "\x08", // opaque handles, bfloat, complex, bool
	"\x08", "\x08", "\x08", "\x08", "\x08", "\x08", "\x08", "\x08", // floats of a byte
	"\x06", "\x06", "\x04", // floats of less than a byte
}

const integers = "\x01\x02\x03\x04\x05\x06\x07\x08\x10\x20\x40\x80"

// judge is the one judge of tensors, of those that are lent out and those that come in. The latter have no Data yet: what
// a foreign library gives as an address becomes a pointer only when the rest is in order.
func (t *Tensor) judge(op string, data uintptr) (extent, error) {
	if c := int(t.Type.Code); c >= len(bitsOf) || strings.IndexByte(bitsOf[c], t.Type.Bits) < 0 || t.Type.Lanes == 0 {
		return extent{}, fail(op, ErrType, t.Type.String())
	}
	e, ok := t.span()
	if !ok {
		return extent{}, fail(op, ErrShape, fmt.Sprintf("%v, strides %v, of %v", t.Shape, t.Strides, t.Type))
	}
	if !t.addressed(e, data) {
		return extent{}, fail(op, ErrMemory, fmt.Sprintf("bytes %d to %d around offset %d of %#x", e.low, e.high, t.ByteOffset, data))
	}
	return e, nil
}

// span finds where the elements lie. It fails for shapes and strides that cannot be, and where bytes cannot be counted.
func (t *Tensor) span() (e extent, ok bool) {
	elements, _, ok := t.Type.Bytes(t.Shape)
	if !ok || len(t.Shape) > maxRank || t.Strides != nil && len(t.Strides) != len(t.Shape) {
		return extent{}, false
	}
	if elements == 0 {
		return extent{}, true
	}
	const most = math.MaxInt64 / 2 / maxRank // so that sums cannot overflow
	var low, high int64                      // places of elements
	for i, s := range t.strides() {
		steps := t.Shape[i] - 1
		if steps == 0 || s == 0 {
			continue
		}
		if s < -most || s > most || steps > most/max(s, -s) {
			return extent{}, false
		}
		low += min(steps*s, 0)
		high += max(steps*s, 0)
	}
	bits := int64(t.Type.Size()) * 8
	if t.packed() {
		bits = int64(t.Type.Bits) * int64(t.Type.Lanes)
	}
	if high >= math.MaxInt64/bits || low < -math.MaxInt64/bits {
		return extent{}, false
	}
	return extent{elements, (low * bits) >> 3, ((high+1)*bits + 7) >> 3}, true
}

// addressed reports whether a tensor can lie where it says, as far as can be seen. Handles can be anything.
func (t *Tensor) addressed(e extent, data uintptr) bool {
	if e.elements == 0 {
		return true
	}
	if t.ByteOffset > math.MaxInt64-uint64(e.high) {
		return false
	}
	begin, end := int64(t.ByteOffset)+e.low, int64(t.ByteOffset)+e.high
	return !t.Device.onHost() || data >= lowest && (begin >= 0 || uint64(-begin) <= uint64(data-lowest)) &&
		(end <= 0 || uint64(end) <= uint64(^uintptr(0)-data)) && end-begin <= math.MaxInt
}
