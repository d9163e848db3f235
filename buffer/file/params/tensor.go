// SPDX-License-Identifier: Apache-2.0

package params

import (
	"encoding/binary"
	"math"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
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
	// Offsets in a tensor's header.
	dimsAt, typeAt, shapeAt = 24, 28, 32
	// noEnd is where a file of unknown size ends at the latest.
	noEnd = math.MaxInt64
)

// Options are choices of [NewReader], [Scan] and [NewWriter].
type Options struct {
	// Strict refuses bytes after the last tensor. A writer never writes any.
	Strict bool
	// LastWins accepts names that occur more than once: only the last tensor of a name is read or written. Without it they
	// are [file.ErrDuplicate]. A writer still takes the data of all.
	LastWins bool
	// Bool is the type that every boolean tensor gets: [dtype.Bool8], which TVM uses from version 0.23 on, or [dtype.Bool1],
	// which it used before. Both take a byte per element. With the zero value each keeps its own.
	Bool dtype.Type
}

func (o Options) check() error {
	if o.Bool != (dtype.Type{}) && !isBool(o.Bool) {
		return invalid("Bool is " + o.Bool.String() + ": want bool or uint1")
	}
	return nil
}

// typeOf returns t, or what the options say of it.
func (o Options) typeOf(t dtype.Type) dtype.Type {
	if isBool(o.Bool) && isBool(t) {
		return o.Bool
	}
	return t
}

func isBool(t dtype.Type) bool { return t == dtype.Bool8 || t == dtype.Bool1 }

func fail(offset int64, err error, detail string) error {
	return &file.Error{Format: "params", Offset: offset, Detail: detail, Err: err}
}

func invalid(why string) error { return fault.Fail("params", fault.ErrInvalid, why) }

var errNotMade = invalid("not made by NewReader")

// wrong makes the error about a tensor whose header starts at base, at an offset from there.
func wrong(base, at int64, name string, err error, detail string) error {
	return fail(base+at, err, "tensor "+stream.Quote(name)+": "+detail)
}

// checkDims refuses what cannot be a number of dimensions.
func checkDims(base int64, name string, n int64) error {
	if n < 0 || n > maxDims {
		return wrong(base, dimsAt, name, file.ErrFormat, stream.Decimal(n)+" dimensions")
	}
	return nil
}

// checkType refuses the types of which no file can hold whole elements.
func checkType(base int64, name string, t dtype.Type) error {
	switch t.Bits {
	case 8, 16, 32, 64, 128:
	default:
		if t.Code != dtype.UInt || t.Bits != 1 {
			return wrong(base, typeAt+1, name, file.ErrType, t.String()+" has no size that the format knows")
		}
	}
	if t.Lanes != 1 {
		return wrong(base, typeAt+2, name, file.ErrType, t.String()+": of vectors the format holds only the data of one lane")
	}
	return nil
}

// checkShape returns the bytes that a shape's elements take.
func checkShape(base int64, name string, t dtype.Type, shape []int64) (int64, error) {
	_, size, ok := t.Bytes(shape)
	if ok && size <= math.MaxInt {
		return size, nil
	}
	for i, d := range shape {
		at := int64(shapeAt + 8*i)
		if d < 0 {
			return 0, wrong(base, at, name, file.ErrFormat, "negative dimension "+stream.Decimal(d))
		}
		if _, size, ok := t.Bytes(shape[:i+1]); !ok || size > math.MaxInt {
			return 0, wrong(base, at, name, file.ErrFormat, "the product of the dimensions overflows")
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
	return fail(offset, file.ErrDuplicate, "names "+stream.Decimal(first)+" and "+stream.Decimal(second)+" are "+stream.Quote(name))
}
