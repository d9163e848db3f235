// SPDX-License-Identifier: Apache-2.0

package npy

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/internal/stream"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Elem are the Go types that elements can be read into and written from. A float16 is a [dtype.Half], or a uint16 of its
// bits.
type Elem interface {
	dtype.Half | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// Reader reads one array.
type Reader struct {
	header Header
	src    *stream.Source
	unit   int    // bytes to reverse, 0 for none
	block  []byte // elements of the other byte order
	rest   []byte // what is left of the block
}

// NewReader reads and checks the header. size is how many bytes r holds, so that a header that claims more is found
// out at once; a negative size means unknown. What follows the array is not read.
func NewReader(r io.Reader, size int64) (*Reader, error) {
	if r == nil {
		return nil, fault.Fail("npy: NewReader", fault.ErrInvalid, "no input")
	}
	return newReader(r, size, place{})
}

func newReader(in io.Reader, size int64, p place) (*Reader, error) {
	src := stream.NewSource(in, size, p.fail)
	h, err := readHeader(src, p)
	if err != nil {
		return nil, err
	}
	r := &Reader{header: h, src: src}
	_, src.Left, _ = h.Type.Bytes(h.Shape)
	if size >= 0 && src.Left > size-src.Pos {
		return nil, p.fail(size, file.ErrTruncated, shapeText(h.Shape)+" of "+h.Type.String()+" needs "+
			stream.Decimal(src.Left)+" bytes, there are "+stream.Decimal(max(0, size-src.Pos)))
	}
	if h.BigEndian {
		r.unit, r.block = unit(h.Type), make([]byte, min(src.Left, 32<<10))
	}
	return r, nil
}

// Header describes the array.
func (r *Reader) Header() Header {
	h := r.header
	h.Shape = slices.Clone(h.Shape)
	return h
}

// Read reads the elements' bytes, little-endian, in the order of the file. It returns io.EOF at their end.
func (r *Reader) Read(p []byte) (int, error) {
	switch {
	case r.src == nil:
		return 0, errNoReader
	case r.unit == 0 || len(r.rest) == 0 && r.src.Left == 0:
		return r.src.Read(p)
	case len(p) == 0:
		return 0, nil
	}
	if len(r.rest) == 0 {
		block := r.block[:min(int64(len(r.block)), r.src.Left)]
		if _, err := io.ReadFull(r.src, block); err != nil {
			return 0, err
		}
		swap(block, r.unit)
		r.rest = block
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

var errNoReader = fault.Fail("npy: Read", fault.ErrInvalid, "no reader")

// Read returns all elements in the order of the file. T has the size of the file's type, and is a [dtype.Half] only
// where that is float16: [file.ErrType] otherwise.
func Read[T Elem](r *Reader) ([]T, error) {
	if err := holds[T](r); err != nil {
		return nil, err
	}
	size := int64(unsafe.Sizeof(*new(T)))
	n := (r.src.Left + int64(len(r.rest))) / size
	if n > math.MaxInt {
		return nil, r.src.Fail(r.src.Pos, file.ErrTooLarge, "more than this machine's memory can be")
	}
	var v []T
	if r.src.Size >= 0 {
		v = make([]T, 0, min(n, 1<<30/size)) // the caller's word for the size may be wrong
	}
	return stream.Grow(v, int(n), func(part []T) error { return ReadInto(r, part) })
}

// ReadInto reads the next len(dst) elements. When it fails, what dst holds is undefined.
func ReadInto[T Elem](r *Reader, dst []T) error {
	if err := holds[T](r); err != nil {
		return err
	}
	b := bytesOf(dst)
	if _, err := io.ReadFull(r, b); err != nil {
		if _, ok := errors.AsType[*file.Error](err); !ok {
			return r.src.Fail(r.src.Pos, file.ErrTruncated, "more elements than there are")
		}
		return err
	}
	if hostBig {
		swap(b, unit(r.header.Type))
	}
	return nil
}

// holds checks a reader of the caller's and the type of an element.
func holds[T Elem](r *Reader) error {
	if r == nil || r.src == nil {
		return errNoReader
	}
	if name := mismatch[T](r.header.Type); name != "" {
		return r.src.Fail(0, file.ErrType, r.header.Type.String()+" read as "+name)
	}
	return nil
}

// mismatch describes T if elements of type t do not go into it: it must be of their size, and a Half is nothing else.
func mismatch[T Elem](t dtype.Type) string {
	if _, half := any(*new(T)).(dtype.Half); half && t != dtype.Float16 {
		return dtype.Float16.String()
	}
	if size := int(unsafe.Sizeof(*new(T))); size != t.Size() {
		return stream.Decimal(size) + " bytes each"
	}
	return ""
}

// NewWriter writes the header of an array. The elements are written little-endian in the order that the header says; a
// header of big-endian elements is [fault.ErrInvalid].
func NewWriter(w io.Writer, h Header) (file.Writer, error) {
	if w == nil {
		return nil, fault.Fail("npy: NewWriter", fault.ErrInvalid, "no output")
	}
	size, err := h.check()
	if err != nil {
		return nil, err
	}
	out := &stream.Writer{Out: stream.Counter{W: w}, Sizes: []int64{size}, Fail: place{}.fail}
	return out.Begin(h.text())
}

// Write writes an array. v holds the elements in the order that the header says, and T is as for [Read].
func Write[T Elem](w io.Writer, h Header, v []T) error {
	if _, err := h.check(); err != nil {
		return err
	}
	switch name := mismatch[T](h.Type); {
	case name != "":
		return (place{}).fail(0, file.ErrType, name+" written as "+h.Type.String())
	case int64(len(v)) != h.Len():
		return (place{}).fail(0, file.ErrFormat, stream.Decimal(len(v))+" elements for shape "+shapeText(h.Shape))
	}
	out, err := NewWriter(w, h)
	if err != nil {
		return err
	}
	b := bytesOf(v)
	if hostBig {
		b = bytes.Clone(b)
		swap(b, unit(h.Type))
	}
	if _, err := out.Write(b); err != nil {
		return err
	}
	return out.Close()
}

// hostBig tells whether this machine puts the high byte first.
var hostBig = func() bool { x := uint16(1); return *(*byte)(unsafe.Pointer(&x)) == 0 }()

// bytesOf returns the memory of v.
func bytesOf[T Elem](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// swap reverses the bytes of every unit.
func swap(b []byte, unit int) {
	for i := 0; unit > 1 && i+unit <= len(b); i += unit {
		slices.Reverse(b[i : i+unit])
	}
}
