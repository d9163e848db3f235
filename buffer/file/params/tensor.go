// SPDX-License-Identifier: Apache-2.0

package params

import (
	"encoding/binary"
	"math"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

const (
	listMagic   = 0xF7E58D4F05049CB7
	tensorMagic = 0xDD5E40F096B4A13F
	// mxnetMagic starts the files that MXNet writes under the same extension.
	mxnetMagic = 0x112
	// cpu is the only device type in files.
	cpu = 1
	// maxDims is our own limit. The references have none; NumPy's was 32 for long.
	maxDims = 32
	// Offsets in a tensor's header, and its size without dimensions.
	dimsAt, typeAt, shapeAt, headSize = 24, 28, 32, 40
)

// Options are choices of [NewReader] and [NewWriter].
type Options struct {
	// Strict refuses bytes after the last tensor. A writer never writes any.
	Strict bool
	// LastWins accepts names that occur more than once: only the last tensor of a name is read or written. Without it they
	// are [file.ErrDuplicate]. A writer still takes the data of all.
	LastWins bool
}

var fail = stream.Errors("params")

func invalid(why string) error { return fault.Fail("params", fault.ErrInvalid, why) }

// header is a tensor's header that begins at a byte of the file.
type header struct {
	file.Header
	base int64
}

func (h *header) about() string { return "tensor " + stream.Quote(h.Name) + ": " }

// wrong makes the error about the byte at an offset in the header.
func (h *header) wrong(at int, err error, detail ...any) error {
	return fail(h.base+int64(at), err, h.about()+fault.Text(detail...))
}

// checkDims refuses what cannot be a number of dimensions.
func (h *header) checkDims(n int) error {
	if n < 0 || n > maxDims {
		return h.wrong(dimsAt, file.ErrFormat, n, " dimensions")
	}
	return nil
}

// checkType refuses the types of which no file can hold whole elements.
func (h *header) checkType() error {
	t := h.Type
	power := t.Bits >= 8 && t.Bits <= 128 && t.Bits&(t.Bits-1) == 0
	if !power && (t.Code != dtype.Bool1.Code || t.Bits != dtype.Bool1.Bits) {
		return h.wrong(typeAt+1, file.ErrType, t.String(), " has no size that the format knows")
	}
	if t.Lanes != 1 {
		return h.wrong(typeAt+2, file.ErrType, t.String(), ": of vectors the format holds only the data of one lane")
	}
	return nil
}

// checkShape returns the bytes that the shape's elements take.
func (h *header) checkShape() (int64, error) {
	_, size, ok := h.Type.Bytes(h.Shape)
	if ok && size <= math.MaxInt {
		return size, nil
	}
	for i, d := range h.Shape {
		if d < 0 {
			return 0, h.wrong(shapeAt+8*i, file.ErrFormat, "negative dimension ", d)
		}
		if _, size, ok := h.Type.Bytes(h.Shape[:i+1]); !ok || size > math.MaxInt {
			return 0, h.wrong(shapeAt+8*i, file.ErrFormat, "the product of the dimensions overflows")
		}
	}
	return size, nil // not reached: the whole shape is the last of the parts
}

// appendTensor appends the header of a tensor.
func appendTensor(b []byte, h *file.Header) []byte {
	b = binary.LittleEndian.AppendUint64(b, tensorMagic)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint32(b, cpu)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h.Shape)))
	b = append(b, h.Type.Code, h.Type.Bits)
	b = binary.LittleEndian.AppendUint16(b, h.Type.Lanes)
	for _, d := range h.Shape {
		b = binary.LittleEndian.AppendUint64(b, uint64(d))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(h.Size))
}

// duplicate makes the error about two names that are the same.
func duplicate(offset int64, name string, first, second int) error {
	return fail(offset, file.ErrDuplicate, "names ", first, " and ", second, " are ", stream.Quote(name))
}
