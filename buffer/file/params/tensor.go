// SPDX-License-Identifier: Apache-2.0

package params

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
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
	// Offsets in a tensor's header.
	dimsAt, typeAt, shapeAt = 24, 28, 32
)

// fieldError is what is wrong in a tensor's header, at an offset from its start.
type fieldError struct {
	at     int64
	err    error
	detail string
}

func (f *fieldError) error(base int64, name string) error {
	return fail(base+f.at, f.err, "tensor "+stream.Quote(name)+": "+f.detail)
}

// checkDims refuses what cannot be a number of dimensions.
func checkDims(n int32) *fieldError {
	if n < 0 || n > maxDims {
		return &fieldError{dimsAt, file.ErrFormat, decimal(int64(n)) + " dimensions"}
	}
	return nil
}

// checkType refuses the types of which no file can hold whole elements.
func checkType(t dtype.Type) *fieldError {
	switch t.Bits {
	case 8, 16, 32, 64, 128:
	default:
		if t.Code != dtype.UInt || t.Bits != 1 {
			return &fieldError{typeAt + 1, file.ErrType, t.String() + " has no size that the format knows"}
		}
	}
	if t.Lanes != 1 {
		return &fieldError{typeAt + 2, file.ErrType, t.String() + ": of vectors the format holds only one lane's worth of data"}
	}
	return nil
}

// checkShape returns the bytes that a shape's elements take.
func checkShape(t dtype.Type, shape []int64) (int64, *fieldError) {
	_, size, ok := t.Bytes(shape)
	if ok && size <= math.MaxInt {
		return size, nil
	}
	for i, d := range shape {
		at := int64(shapeAt + 8*i)
		if d < 0 {
			return 0, &fieldError{at, file.ErrFormat, "negative dimension " + decimal(d)}
		}
		if _, size, ok := t.Bytes(shape[:i+1]); !ok || size > math.MaxInt {
			return 0, &fieldError{at, file.ErrFormat, "the product of the dimensions overflows"}
		}
	}
	return size, nil // not reached: the whole shape is the last of the parts
}

// appendTensor appends the header of a tensor.
func appendTensor(b []byte, t dtype.Type, shape []int64, size int64) []byte {
	b = binary.LittleEndian.AppendUint64(b, tensorMagic)
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = binary.LittleEndian.AppendUint32(b, cpu)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(shape)))
	b = append(b, byte(t.Code), t.Bits)
	b = binary.LittleEndian.AppendUint16(b, t.Lanes)
	for _, d := range shape {
		b = binary.LittleEndian.AppendUint64(b, uint64(d))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(size))
}

// duplicate says which names are the same.
func duplicate(offset int64, name string, first, second int) error {
	return fail(offset, file.ErrDuplicate, "names "+strconv.Itoa(first)+" and "+strconv.Itoa(second)+" are "+stream.Quote(name))
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
